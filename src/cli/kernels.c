/* SPDX-License-Identifier: MIT
 * Implements whit kernels, which lists the kernels in this program and which of them this machine can run and uses. */
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "kernels/kernels.h"
#include "linalg/blas.h"
#include "linalg/gemm_bf16.h"

struct kernels_values {
    bool json;
};
static const struct kernels_values defaults;
static const cli_option options[] = {
    {"--json", CLI_FLAG, offsetof(struct kernels_values, json), NULL, "Print one JSON object."},
    {0},
};

/* Returns whether the table uses this row's function; a later, faster row may have replaced it. */
static bool in_use(const whit_kernels *table, const whit_kernel_row *row)
{
    return !memcmp((const char *)table + row->table_offset, &row->function, sizeof row->function);
}

static json_t *entry(const char *name, whit_isa isa, bool runs, bool used)
{
    return json_pack("{s:s, s:s, s:b, s:b}", "name", name, "isa", whit_isa_name(isa), "runs", runs, "used", used);
}

/* ---- which matrix kernels are chosen -------------------------------------------------------------- */

/* Returns a typical tensor type with this codec: with scales per group if the codec has these, otherwise per row. */
static whit_tensor_type usual_type(uint8_t codec)
{
    const whit_codec_info *info = whit_codec_find(codec);
    whit_tensor_type type = {.codec = codec, .layout = WHIT_LAYOUT_TILE16, .n_rows = 1024, .n_cols = 1024};
    if (info->is_float) return type;
    type.scale_kind = info->group_min ? WHIT_SCALE_GROUP : WHIT_SCALE_ROW;
    type.scale_type = WHIT_SCALE_F16;
    if (info->scale_types & WHIT_SCALE_BIT(F16)) {
        if (info->group_min) type.group = info->group_min < 32 ? 32 : info->group_min;
        return type;
    }
    while (!(info->scale_types >> type.scale_type & 1)) type.scale_type++;
    type.group = codec == WHIT_CODEC_F4 || codec == WHIT_CODEC_X8 || info->group_min > 16 ? 32 : 16;
    type.has_offset = whit_scale_has_minima(type.scale_type);
    if (type.scale_type == WHIT_SCALE_E4) type.scale = 1;
    return type;
}

/* Lists the matrix kernel that is chosen for each codec, kind of activations and number of tokens. */
static void list_choices(const whit_kernels *table, json_t *choices)
{
    static const uint32_t tokens[] = {1, 4, 16, 128};
    static const struct {
        const char *name;
        whit_act_type act;
    } acts[] = {{"f32", WHIT_ACT_F32}, {"i8", WHIT_ACT_I8}, {"q2", WHIT_ACT_Q2}};
    for (unsigned codec = 0; codec < WHIT_CODEC_COUNT; codec++)
        for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) {
            whit_tensor_type type = usual_type((uint8_t)codec);
            whit_acts_spec spec = whit_acts_spec_for(&type, acts[a].act);
            static const uint8_t kinds[] = {WHIT_ACTS_F32, WHIT_ACTS_I8, WHIT_ACTS_Q2};
            if (spec.kind != kinds[a]) continue; /* activations of this kind are not possible with the codec */
            for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++)
                json_array_append_new(choices,
                                      json_pack("{s:s, s:s, s:i, s:s}", "codec", whit_codec_find(codec)->name,
                                                "activations", acts[a].name, "tokens", (int)tokens[t], "kernel",
                                                whit_matmul_find(table, &type, &spec, tokens[t])->name));
        }
}

/* Prints one line for each codec and kind of activations, with the numbers of tokens from which on another kernel is
 * chosen. */
static void print_choices(cli_call *call, const json_t *choices)
{
    size_t i;
    json_t *each;
    const char *last = "";
    cli_print(call, "\n%-5s %-11s %s", "codec", "activations", "kernel by the number of tokens");
    json_array_foreach(choices, i, each)
    {
        const char *codec, *activations, *kernel;
        int tokens;
        json_unpack(each, "{s:s, s:s, s:i, s:s}", "codec", &codec, "activations", &activations, "tokens", &tokens,
                    "kernel", &kernel);
        if (tokens == 1) cli_print(call, "\n%-5s %-11s", codec, activations);
        if (tokens == 1 || strcmp(last, kernel) != 0) cli_print(call, " %d: %s", tokens, kernel);
        last = kernel;
    }
    cli_print(call, "\n");
}

/* Lists the kernels for bfloat16 products in training. "used": --precision bf16 chooses this kernel. */
static void list_products(json_t *list)
{
    static const whit_precision orders[] = {WHIT_PRECISION_BF16_TILES, WHIT_PRECISION_BF16_PAIRS};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const whit_gemm_kernel *kernel = whit_blas_kernel(orders[i]);
        json_array_append_new(
            list, entry(kernel->name, kernel->isa, true, whit_precision_choose(WHIT_PRECISION_BF16) == orders[i]));
    }
}

static int run_kernels(cli_call *call)
{
    const struct kernels_values *values = call->values;
    whit_cpu *cpu = malloc(sizeof *cpu);
    whit_kernels table;
    whit_error error;
    if (!cpu) return cli_fail(call, CLI_LIMIT, "not enough memory for the description of the CPU");
    whit_cpu_detect(cpu);
    whit_status status = whit_kernels_select(cpu, getenv("WHIT_CPU"), &table, &error);
    free(cpu);
    if (status != WHIT_OK) return cli_fail_error(call, &error);

    size_t n_rows, n_matmuls;
    const whit_kernel_row *rows = whit_kernel_rows(&n_rows);
    const whit_matmul_kernel *const *matmuls = whit_matmul_kernels(&n_matmuls);
    json_t *list = json_array();
    for (size_t i = 0; i < n_rows; i++)
        json_array_append_new(list,
                              entry(rows[i].op, rows[i].isa, whit_kernel_runs(&table, rows[i].isa, rows[i].features),
                                    in_use(&table, &rows[i])));
    /* Which matrix kernel is chosen depends on the tensor, so "used" only means that it can be. */
    for (size_t i = 0; i < n_matmuls; i++) {
        bool runs = whit_kernel_runs(&table, matmuls[i]->isa, matmuls[i]->features);
        json_array_append_new(list, entry(matmuls[i]->name, matmuls[i]->isa, runs, runs));
    }
    list_products(list);
    json_t *choices = json_array();
    list_choices(&table, choices);
    if (values->json) {
        cli_print_json(
            call, json_pack("{s:s, s:o, s:o}", "isa", whit_isa_name(table.isa), "kernels", list, "choices", choices));
        return CLI_OK;
    }
    size_t i;
    json_t *each;
    cli_print(call, "level %s\n", whit_isa_name(table.isa));
    json_array_foreach(list, i, each)
    {
        const char *state = "does not run here";
        if (json_is_true(json_object_get(each, "used")))
            state = "used";
        else if (json_is_true(json_object_get(each, "runs")))
            state = "a stronger one is used";
        cli_print(call, "%-32s %-8s %s\n", json_string_value(json_object_get(each, "name")),
                  json_string_value(json_object_get(each, "isa")), state);
    }
    print_choices(call, choices);
    json_decref(list);
    json_decref(choices);
    return CLI_OK;
}

const cli_verb cli_kernels_verb = {
    "kernels",
    "",
    0,
    0,
    "list the kernels and which of them run here",
    "Lists every kernel that is built in with the instruction set it needs, then the matrix kernel that this "
    "CPU gets for each codec, kind of activations and number of tokens. WHIT_CPU caps the level.",
    {{"OPTIONS", options, 0}},
    sizeof(struct kernels_values),
    &defaults,
    run_kernels,
};
