/* SPDX-License-Identifier: MIT
 * whit kernels: the kernels that are built in, and which of them run here. */
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "kernels/kernels.h"

struct kernels_values {
    bool json;
};
static const struct kernels_values defaults;
static const cli_option options[] = {
    {"--json", CLI_FLAG, offsetof(struct kernels_values, json), NULL, "Print one JSON object."},
    {0},
};

/* Does the table point to this row's function? A later, stronger row may have taken its place. */
static bool in_use(const whit_kernels *table, const whit_kernel_row *row)
{
    return !memcmp((const char *)table + row->table_offset, &row->function, sizeof row->function);
}

static json_t *entry(const char *name, whit_isa isa, bool runs, bool used)
{
    return json_pack("{s:s, s:s, s:b, s:b}", "name", name, "isa", whit_isa_name(isa), "runs", runs, "used", used);
}

static int run(cli_call *call)
{
    const struct kernels_values *values = call->values;
    whit_cpu *cpu = malloc(sizeof *cpu);
    whit_kernels table;
    whit_error error;
    if (!cpu) return cli_fail(call, CLI_LIMIT, "out of memory");
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
    /* Which matrix kernel is used depends on the tensor, so "used" says that it may be. */
    for (size_t i = 0; i < n_matmuls; i++) {
        bool runs = whit_kernel_runs(&table, matmuls[i]->isa, matmuls[i]->features);
        json_array_append_new(list, entry(matmuls[i]->name, matmuls[i]->isa, runs, runs));
    }
    if (values->json) {
        cli_print_json(call, json_pack("{s:s, s:o}", "isa", whit_isa_name(table.isa), "kernels", list));
        return CLI_OK;
    }
    size_t i;
    json_t *each;
    cli_print(call, "level %s\n", whit_isa_name(table.isa));
    json_array_foreach(list, i, each)
        cli_print(call, "%-32s %-8s %s\n", json_string_value(json_object_get(each, "name")),
                  json_string_value(json_object_get(each, "isa")),
                  json_is_true(json_object_get(each, "used"))       ? "used"
                      : json_is_true(json_object_get(each, "runs")) ? "a stronger one is used"
                                                                    : "does not run here");
    json_decref(list);
    return CLI_OK;
}

const cli_verb cli_kernels_verb = {
    "kernels",
    "",
    0,
    0,
    "list the kernels and which of them run here",
    "Lists every kernel that is built in with the instruction set it needs. WHIT_CPU caps the "
    "level.",
    {{"OPTIONS", options, 0}},
    sizeof(struct kernels_values),
    &defaults,
    run,
};
