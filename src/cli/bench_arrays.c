/* SPDX-License-Identifier: MIT
 * whit bench --arrays: quaternary vectors beside the forms that they replace, and a field of an open
 * .ndf beside parsed JSON. The forms of a test take turns in every round; figures are medians. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "cli/bench.h"
#include "format/ndf_table.h"
#include "kernels/kernels.h"
#include "kernels/quat/quat.h"

enum {
    ADD_ELEMS = 896,
    ADD_WORDS = ADD_ELEMS / 64,
    ADD_STRIDE = 16,
    DOT_ELEMS = 3584,
    MAX_WORDS = DOT_ELEMS / 64,
    PAIRS = 16,
    FORMS_MAX = 32,
    LABEL_BYTES = 64
};
#define MIN_NS 2000000 /* of one form in one round */

/* Planes begin at cache lines, as allocated ones do. */
struct arrays {
    _Alignas(64) uint64_t a[2 * MAX_WORDS], b[2 * MAX_WORDS];
    uint64_t adds[PAIRS][2 * ADD_STRIDE], sum[2 * ADD_STRIDE];
    float x[ADD_ELEMS], y[PAIRS][ADD_ELEMS];
    uint8_t table[WHIT_QUAT_TABLE_BYTES], add_bytes[PAIRS][ADD_ELEMS / 4], sum_bytes[ADD_ELEMS / 4];
    whit_kernels floats;
    whit_quat_kernels quat;
    whit_table fields;
    whit_buf field_bytes;
    char *json;
    volatile int64_t kept;
};

typedef void form_fn(struct arrays *s, const whit_quat_kernels *kernels);

struct form {
    const char *test, *form;
    form_fn *run;
    uint32_t n_items; /* of one call: adds, dots, reads */
    const char *item;
    whit_isa isa;
    bool levels; /* measured once per level that runs here */
};

static whit_quat_planes planes(uint64_t *words, uint32_t n_words)
{
    return (whit_quat_planes){words, words + n_words};
}
static whit_quat_view view(const uint64_t *words, uint32_t n_words)
{
    return (whit_quat_view){words, words + n_words};
}

static void add_table(struct arrays *s, const whit_quat_kernels *kernels)
{
    (void)kernels;
    for (int i = 0; i < 1000; i++)
        whit_quat_table_run(s->table, s->sum_bytes, s->sum_bytes, s->add_bytes[i % PAIRS], ADD_ELEMS / 4);
}
static void add_floats(struct arrays *s, const whit_quat_kernels *kernels)
{
    (void)kernels;
    for (int i = 0; i < 1000; i++) s->floats.add(s->x, s->y[i % PAIRS], ADD_ELEMS);
}
static void add_words(struct arrays *s, const whit_quat_kernels *kernels)
{
    whit_quat_planes sum = planes(s->sum, ADD_STRIDE);
    for (int i = 0; i < 1000; i++)
        kernels->add(sum, view(s->sum, ADD_STRIDE), view(s->adds[i % PAIRS], ADD_STRIDE), ADD_WORDS);
}
static void dot_eight(struct arrays *s, const whit_quat_kernels *kernels)
{
    for (int i = 0; i < 1000; i++) s->kept += kernels->dot8(view(s->a, MAX_WORDS), view(s->b, MAX_WORDS), DOT_ELEMS);
}
static void dot_four(struct arrays *s, const whit_quat_kernels *kernels)
{
    for (int i = 0; i < 1000; i++) s->kept += kernels->dot(view(s->a, MAX_WORDS), view(s->b, MAX_WORDS), DOT_ELEMS);
}
static void field_in_place(struct arrays *s, const whit_quat_kernels *kernels)
{
    (void)kernels;
    for (int i = 0; i < 1000; i++) {
        uint64_t value = 0;
        whit_table_get_u64(&s->fields, "field.17", &value);
        s->kept += (int64_t)value;
    }
}
static void field_parsed(struct arrays *s, const whit_quat_kernels *kernels)
{
    (void)kernels;
    json_t *object = json_loads(s->json, 0, NULL);
    s->kept += json_integer_value(json_object_get(object, "field.17"));
    json_decref(object);
}

static const struct form forms[] = {
    {"add 896", "table of 65,536", add_table, 1000, "add"},
    {"add 896", "f32 loop", add_floats, 1000, "add"},
    {"add 896", "bit-sliced", add_words, 1000, "add", .levels = true},
    {"dot 3584", "8 popcounts", dot_eight, 1000, "dot", .levels = true},
    {"dot 3584", "4 popcounts", dot_four, 1000, "dot", .levels = true},
    {"field of 40", "jansson parses and reads", field_parsed, 1, "read"},
    {"field of 40", "read in place", field_in_place, 1000, "read"},
};

static bool open_arrays(struct arrays *s, whit_error *error)
{
    whit_rng rng = {1};
    whit_table_builder builder = {0};
    json_t *object = json_object();
    for (int i = 0; i < 40; i++) {
        char key[24];
        snprintf(key, sizeof key, "field.%d", i);
        whit_table_set_u64(&builder, key, (uint64_t)i * 1000);
        json_object_set_new(object, key, json_integer(i * 1000));
    }
    bool ok = whit_table_build(&builder, &s->field_bytes, error) == WHIT_OK &&
        whit_table_open(s->field_bytes.data, s->field_bytes.size_bytes, "bench", &s->fields, error) == WHIT_OK;
    whit_table_builder_free(&builder);
    s->json = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    whit_quat_table_add(s->table);
    for (size_t i = 0; i < 2 * MAX_WORDS; i++) {
        s->a[i] = whit_rng_next(&rng);
        s->b[i] = whit_rng_next(&rng);
    }
    for (size_t k = 0; k < PAIRS; k++) {
        for (size_t i = 0; i < 2 * ADD_STRIDE; i++) s->adds[k][i] = whit_rng_next(&rng);
        for (size_t i = 0; i < ADD_ELEMS; i++) s->y[k][i] = (float)whit_rng_uniform(&rng) * 1e-9f;
        whit_quat_table_pack(view(s->adds[k], ADD_STRIDE), ADD_ELEMS, s->add_bytes[k]);
    }
    return ok && s->json;
}

struct row {
    const struct form *form;
    whit_quat_kernels kernels;
    double ns[BENCH_ROUNDS_MAX], median_ns;
};

static double measure(struct arrays *s, const struct row *row)
{
    uint64_t t0 = whit_thread_cpu_ns(), t1; /* the load of other processes is not in it */
    uint32_t n = 0;
    do {
        row->form->run(s, &row->kernels);
        n++;
        t1 = whit_thread_cpu_ns();
    } while (t1 - t0 < MIN_NS);
    return (double)(t1 - t0) / n / row->form->n_items;
}

/* Times are beside the first form of a test, of the same level where it has levels. */
static double beside(const struct row *rows, size_t n, const struct row *row)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].form->test == row->form->test && (!rows[i].form->levels || rows[i].kernels.isa == row->kernels.isa))
            return rows[i].median_ns / row->median_ns;
    return 1;
}

static void report(cli_call *call, bench_form form, const struct row *rows, size_t n)
{
    json_t *array = json_array();
    if (form == BENCH_MD) cli_print(call, "| test | form | level | ns | beside the first |\n|---|---|---|--:|--:|\n");
    if (form == BENCH_CSV) cli_print(call, "test,form,isa,ns,ratio\n");
    for (const struct row *row = rows; row < rows + n; row++) {
        const char *isa = row->form->levels ? whit_isa_name(row->kernels.isa) : "";
        double ratio = beside(rows, n, row);
        if (form == BENCH_JSON)
            json_array_append_new(array,
                                  json_pack("{s:s, s:s, s:s, s:s, s:f, s:f}", "test", row->form->test, "form",
                                            row->form->form, "isa", isa, "item", row->form->item, "ns", row->median_ns,
                                            "ratio", ratio));
        else
            cli_print(call, form == BENCH_MD ? "| %s | %s | %s | %.2f | %.1f |\n" : "%s,%s,%s,%.3f,%.2f\n",
                      row->form->test, row->form->form, isa, row->median_ns, ratio);
    }
    if (form == BENCH_JSON)
        cli_print_json(call, array);
    else
        json_decref(array);
}

int bench_arrays(cli_call *call, bench_form form, uint32_t n_rounds, const char *cap)
{
    whit_error error = {0};
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    struct arrays *s = whit_zalloc(NULL, sizeof *s);
    struct row *rows = calloc(FORMS_MAX, sizeof *rows);
    size_t n = 0;
    int status = CLI_OK;
    if (!s || !rows)
        status = cli_fail(call, CLI_LIMIT, "out of memory");
    else if (whit_quat_select(&cpu, cap, &s->quat, &error) != WHIT_OK ||
             whit_kernels_select(&cpu, cap, &s->floats, &error) != WHIT_OK || !open_arrays(s, &error))
        status = cli_fail_error(call, &error);
    for (size_t i = 0; status == CLI_OK && i < sizeof forms / sizeof *forms; i++)
        for (int isa = 0; isa < WHIT_ISA_COUNT; isa++) {
            bool known =
                isa == WHIT_ISA_GENERIC || isa == WHIT_ISA_AVX2 || isa == WHIT_ISA_AVX512 || isa == WHIT_ISA_NEON;
            if (!known || !whit_isa_allows(s->quat.isa, (whit_isa)isa) || (isa && !forms[i].levels)) continue;
            rows[n].form = &forms[i];
            whit_quat_select(&cpu, whit_isa_name((whit_isa)isa), &rows[n].kernels, NULL);
            n++;
        }
    for (uint32_t round = 0; status == CLI_OK && round < n_rounds; round++) {
        if (*cli_cancelled()) status = cli_fail(call, CLI_INTERRUPTED, "interrupted");
        for (size_t i = 0; i < n; i++) rows[i].ns[round] = measure(s, &rows[i]);
    }
    for (size_t i = 0; i < n; i++) rows[i].median_ns = bench_median(rows[i].ns, n_rounds);
    if (status == CLI_OK) report(call, form, rows, n);
    if (s) {
        whit_buf_free(&s->field_bytes);
        free(s->json);
    }
    whit_free(NULL, s, sizeof *s);
    free(rows);
    return status;
}
