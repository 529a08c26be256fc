/* SPDX-License-Identifier: MIT
 * Implements whit bench --arrays. Compares additions and dot products of quaternary vectors with other forms of the
 * same work, and reading a field of an open .ndf file with parsed JSON; also measures programs of the array language.
 * The forms of a test alternate in every round; figures are medians. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "bench/fused.h"
#include "format/ndf_table.h"
#include "kernels/kernels.h"
#include "kernels/quat/quat.h"
#include "lang/core/lang.h"
#include "lang/jit/jit.h"

enum {
    ADD_ELEMS = 896,
    ADD_WORDS = ADD_ELEMS / 64,
    ADD_STRIDE = 16,
    DOT_ELEMS = 3584,
    MAX_WORDS = DOT_ELEMS / 64,
    PAIRS = 16,
    ADDS_OF_PROGRAM = 16000
};
#define MIN_NS 2000000 /* minimum measured time of one form in one round, in nanoseconds */

/* Numbers the measured programs, which are compiled once. */
enum { LOOP, CLOSED, ELEMENTS, TOKEN, N_PROGRAMS };
#define LOOP_ROUNDS "100000"
enum { LOOP_LANES = 100000 * 128, ELEMENTS_N = 65536, N_LOGITS = 128256, N_COMPILED = 50 };
static const char *const programs[N_PROGRAMS] = {
    [LOOP] =
        "let q = quat(vec(128, 1.0))\nlet d = quat(range(128) - 64.0, 0)\nfor i in 0.." LOOP_ROUNDS " { q += d }\n",
    [CLOSED] = "let s = 0\nfor i in 0..1000000000000 { s += i }\n",
    [ELEMENTS] = "r = a * b + 2 * a - b\n",
    [TOKEN] = "logits = cut(logits * 0.8, 1.5)\n",
};
static const char twenty[] =
    "r = (a * b + a * 2 - b) * (a + 3 * b) - (b * b + a / 4 - 1) * (a - b + 5 * a) + a * 6 - b * 7\n";

/* Holds the data of the tests. The bit planes begin at cache lines, as those of allocated vectors do. */
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
    whit_lang *lang[N_PROGRAMS], *adder[WHIT_ISA_COUNT];
    float *logits; /* (N_LOGITS) */
    bench_fused *fused;
    const struct form *form; /* the form being measured */
    volatile int64_t kept;
};

typedef void form_fn(struct arrays *s, const whit_quat_kernels *kernels);

struct form {
    const char *test, *form;
    form_fn *run;
    uint32_t n_items; /* number of items that one call processes: additions, dot products, reads ... */
    const char *item;
    whit_isa isa;
    bool levels;          /* the form is measured once for each CPU level that this machine supports */
    int expression, size; /* numbers of the expression and the size, as in fused.h */
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
static void add_program(struct arrays *s, const whit_quat_kernels *kernels)
{
    whit_error error;
    s->kept += whit_lang_run(s->adder[kernels->isa], &error);
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

static void run_program(struct arrays *s, int program)
{
    whit_error error;
    s->kept += whit_lang_run(s->lang[program], &error);
}
static void run_loop(struct arrays *s, const whit_quat_kernels *kernels)
{
    (void)kernels;
    run_program(s, LOOP);
}
static void run_closed(struct arrays *s, const whit_quat_kernels *kernels)
{
    (void)kernels;
    for (int i = 0; i < 1000; i++) run_program(s, CLOSED);
}
static void run_elements(struct arrays *s, const whit_quat_kernels *kernels)
{
    (void)kernels;
    run_program(s, ELEMENTS);
}
static void run_token(struct arrays *s, const whit_quat_kernels *kernels)
{
    whit_error error;
    (void)kernels;
    s->kept += whit_lang_lend_vec(s->lang[TOKEN], "logits", s->logits, N_LOGITS, &error);
    run_program(s, TOKEN);
}

static const char vectors[] = "let a = range(65536)\nlet b = a * 0.5\nlet r = a + 0\n";

/* Loads and runs `before`, then loads `text`, which can use the names that `before` defines. Returns NULL after an
 * error. */
static whit_lang *open_program(const whit_quat_kernels *quat, const char *before, const char *text)
{
    whit_lang_options options = {.quat = quat, .jit = whit_lang_jit_native(), .tier = WHIT_LANG_NATIVE};
    whit_lang *lang;
    whit_error error;
    if (whit_lang_open(&options, &lang, &error) != WHIT_OK) return NULL;
    if (whit_lang_declare(lang, "logits", WHIT_LANG_VEC, &error) == WHIT_OK &&
        whit_lang_load(lang, "bench", before, strlen(before), &error) == WHIT_OK &&
        whit_lang_run(lang, &error) == WHIT_OK && whit_lang_load(lang, "bench", text, strlen(text), &error) == WHIT_OK)
        return lang;
    whit_lang_close(lang);
    return NULL;
}

static void compile_twenty(struct arrays *s, const whit_quat_kernels *kernels)
{
    whit_error error;
    (void)kernels;
    for (int i = 0; i < N_COMPILED; i++)
        s->kept += whit_lang_load(s->lang[ELEMENTS], "bench", twenty, sizeof twenty - 1, &error);
    /* The session keeps all compiled code until it is closed, so it is closed and opened again. */
    whit_lang_close(s->lang[ELEMENTS]);
    s->lang[ELEMENTS] = open_program(&s->quat, vectors, programs[ELEMENTS]);
}

static void run_fused(struct arrays *s, const whit_quat_kernels *kernels)
{
    (void)kernels;
    bench_fused_program(s->fused, s->form->expression, s->form->size);
}
static void run_fused_c(struct arrays *s, const whit_quat_kernels *kernels)
{
    (void)kernels;
    bench_fused_c(s->fused, s->form->expression, s->form->size);
}

/* Opens a program that adds PAIRS different vectors in turn, q += d0; q += d1; ..., as the other forms of the test
 * do. */
static whit_lang *open_adder(const whit_quat_kernels *quat)
{
    char before[2000], text[1000];
    int n = snprintf(before, sizeof before, "let q = quat(range(%d) - 400.0, 0)\n", ADD_ELEMS);
    for (int k = 0; k < PAIRS; k++)
        n += snprintf(before + n, sizeof before - (size_t)n, "let d%d = quat(sin(range(%d) * %d), 0)\n", k, ADD_ELEMS,
                      k + 1);
    n = snprintf(text, sizeof text, "for i in 0..%d {", ADDS_OF_PROGRAM / PAIRS);
    for (int k = 0; k < PAIRS; k++) n += snprintf(text + n, sizeof text - (size_t)n, " q += d%d;", k);
    snprintf(text + n, sizeof text - (size_t)n, " }\n");
    return open_program(quat, before, text);
}

static const struct form forms[] = {
    {"add 896", "table of 65,536", add_table, 1000, "add"},
    {"add 896", "f32 loop", add_floats, 1000, "add"},
    {"add 896", "bit-sliced", add_words, 1000, "add", .levels = true},
    {"add 896", "program: q += d, every round", add_program, ADDS_OF_PROGRAM, "add", .levels = true},
    {"dot 3584", "8 popcounts", dot_eight, 1000, "dot", .levels = true},
    {"dot 3584", "4 popcounts", dot_four, 1000, "dot", .levels = true},
    {"field of 40", "jansson parses and reads", field_parsed, 1, "read"},
    {"field of 40", "read in place", field_in_place, 1000, "read"},
    {"program", "q += d, 128 lanes, every round", run_loop, LOOP_LANES, "lane"},
    {"program", "s += i, 10^12 rounds in closed form", run_closed, 1000, "loop"},
    {"program", "r = a * b + 2 * a - b of 65,536", run_elements, ELEMENTS_N, "element"},
    {"program", "scale and cut 128,256 logits", run_token, 1, "token"},
    {"program", "compile 20 operations, with a session for every 50", compile_twenty, N_COMPILED, "expression"},
};

static whit_status open_arrays(struct arrays *s, whit_error *error)
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
    s->logits = whit_zalloc_array(NULL, N_LOGITS, sizeof *s->logits);
    for (size_t i = 0; ok && s->logits && i < N_LOGITS; i++) s->logits[i] = (float)whit_rng_uniform(&rng) * 9;
    for (int i = 0; i < N_PROGRAMS; i++) ok = (s->lang[i] = open_program(&s->quat, vectors, programs[i])) != NULL && ok;
    s->fused = bench_fused_open(&s->quat);
    if (!ok || !s->json || !s->logits || !s->fused) return whit_fail_memory(error, "the measured arrays", 0);
    return WHIT_OK;
}

struct row {
    struct form form;
    whit_quat_kernels kernels;
    double ns[BENCH_ROUNDS_MAX], median_ns;
};

static double measure_row(struct arrays *s, const struct row *row)
{
    uint64_t t0 = whit_thread_cpu_ns(), t1; /* CPU time excludes the load of other processes */
    uint32_t n = 0;
    s->form = &row->form;
    do {
        row->form.run(s, &row->kernels);
        n++;
        t1 = whit_thread_cpu_ns();
    } while (t1 - t0 < MIN_NS);
    return (double)(t1 - t0) / n / row->form.n_items;
}

/* Returns the time of the first form of a test divided by this form's time; if the first form has levels, at the same
 * CPU level. Returns 1 for forms of the test "program", which are not compared. */
static double beside(const struct row *rows, size_t n, const struct row *row)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].form.test == row->form.test && strcmp(row->form.test, "program") != 0 &&
            (!rows[i].form.levels || rows[i].kernels.isa == row->kernels.isa))
            return rows[i].median_ns / row->median_ns;
    return 1;
}

/* Lists every form of every expression and test: once, or once for each CPU level if the form has levels. */
static whit_status list_rows(struct arrays *s, const whit_cpu *cpu, struct row *rows, size_t *n_rows, whit_error *error)
{
    size_t n = 0;
    for (int i = 0; i < BENCH_FUSED * BENCH_FUSED_SIZES; i++) {
        int expression = i / BENCH_FUSED_SIZES, size = i % BENCH_FUSED_SIZES;
        struct form fused = {.test = bench_fused_name(s->fused, expression, size),
                             .form = "C, gcc -O3 for this CPU",
                             .run = run_fused_c,
                             .n_items = bench_fused_elements(size),
                             .item = "element",
                             .expression = expression,
                             .size = size};
        rows[n++].form = fused;
        fused.form = "program";
        fused.run = run_fused;
        rows[n++].form = fused;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int isa = 0; isa < WHIT_ISA_COUNT; isa++) {
            bool known =
                isa == WHIT_ISA_GENERIC || isa == WHIT_ISA_AVX2 || isa == WHIT_ISA_AVX512 || isa == WHIT_ISA_NEON;
            if (!known || !whit_isa_allows(s->quat.isa, (whit_isa)isa) || (isa && !forms[i].levels)) continue;
            rows[n].form = forms[i];
            whit_quat_select(cpu, whit_isa_name((whit_isa)isa), &rows[n].kernels, NULL);
            if (rows[n].form.run == add_program && !(s->adder[isa] = open_adder(&rows[n].kernels)))
                return whit_fail_memory(error, "the measured arrays", 0);
            n++;
        }
    *n_rows = n;
    return WHIT_OK;
}

static void write_rows(const struct row *rows, size_t n, bench_array *out)
{
    for (size_t i = 0; i < n; i++) {
        snprintf(out[i].test, sizeof out[i].test, "%s", rows[i].form.test);
        out[i].form = rows[i].form.form;
        out[i].item = rows[i].form.item;
        out[i].isa = rows[i].form.levels ? whit_isa_name(rows[i].kernels.isa) : "";
        out[i].ns = rows[i].median_ns;
        out[i].ratio = beside(rows, n, &rows[i]);
    }
}

static void close_arrays(struct arrays *s)
{
    for (int i = 0; i < N_PROGRAMS; i++) whit_lang_close(s->lang[i]);
    for (int isa = 0; isa < WHIT_ISA_COUNT; isa++) whit_lang_close(s->adder[isa]);
    bench_fused_close(s->fused);
    whit_free(NULL, s->logits, N_LOGITS * sizeof *s->logits);
    whit_buf_free(&s->field_bytes);
    free(s->json);
}

whit_status bench_measure_arrays(const char *cap, uint32_t n_rounds, const volatile bool *stop,
                                 bench_array list[BENCH_ARRAYS_MAX], size_t *n_rows, whit_error *error)
{
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    struct arrays *s = whit_zalloc(NULL, sizeof *s);
    struct row *rows = calloc(BENCH_ARRAYS_MAX, sizeof *rows);
    size_t n = 0;
    whit_status status = s && rows ? WHIT_OK : whit_fail_memory(error, "the measured arrays", sizeof *s);
    if (status == WHIT_OK) status = whit_quat_select(&cpu, cap, &s->quat, error);
    if (status == WHIT_OK) status = whit_kernels_select(&cpu, cap, &s->floats, error);
    if (status == WHIT_OK) status = open_arrays(s, error);
    if (status == WHIT_OK) status = list_rows(s, &cpu, rows, &n, error);
    for (uint32_t round = 0; status == WHIT_OK && round < n_rounds; round++) {
        if (*stop) status = whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
        for (size_t i = 0; status == WHIT_OK && i < n; i++) rows[i].ns[round] = measure_row(s, &rows[i]);
    }
    for (size_t i = 0; i < n; i++) rows[i].median_ns = bench_median(rows[i].ns, n_rounds);
    if (status == WHIT_OK) write_rows(rows, n, list);
    *n_rows = n;
    if (s) close_arrays(s);
    whit_free(NULL, s, sizeof *s);
    free(rows);
    return status;
}
