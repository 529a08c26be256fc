/* SPDX-License-Identifier: MIT
 * Results as a Markdown table, as CSV or as JSON: the same columns in each, stated once. */
#include <stdio.h>

#include "cli/bench.h"

typedef enum column_kind { COLUMN_TEXT, COLUMN_COUNT, COLUMN_REAL } column_kind;

/* One cell of a result. */
struct cell {
    char text[BENCH_NAME_BYTES];
    double number;
};

static const char *const kv_names[] = {[WHIT_KV_F16] = "f16",   [WHIT_KV_F32] = "f32",   [WHIT_KV_I8] = "i8",
                                       [WHIT_KV_K4V2] = "k4v2", [WHIT_KV_K2V2] = "k2v2", [WHIT_KV_BITMAP] = "bitmap"};

static const struct column {
    const char *key, *title; /* title NULL: not in the Markdown table */
    column_kind kind;
    int digits;    /* in the table */
    double factor; /* in the table */
    bool is_main;  /* also shown on a terminal */
    unsigned with; /* BENCH_WITH_...: the option that it belongs to; 0: always there */
} columns[] = {
    {"shape", "shape", COLUMN_TEXT, 0, 0, true},
    {"test", "test", COLUMN_TEXT, 0, 0, true},
    {"depth", "depth", COLUMN_COUNT, 0, 1, true},
    {"columns", "cols", COLUMN_COUNT, 0, 1},
    {"kv", "kv", COLUMN_TEXT, 0, 0},
    {"threads", "t", COLUMN_COUNT, 0, 1, true},
    {"cpu", NULL, COLUMN_TEXT, 0, 0},
    {"isa", "isa", COLUMN_TEXT, 0, 0},
    {"tps_median", "tokens/s", COLUMN_REAL, 2, 1, true},
    {"tps_best", "best", COLUMN_REAL, 2, 1},
    {"bytes_per_token", "MB/token", COLUMN_COUNT, 1, 1e-6},
    {"read_gbps", "GB/s", COLUMN_REAL, 1, 1},
    {"bandwidth_share", "of reading", COLUMN_REAL, 0, 100},
    {"int8_gmacs", "GMAC/s", COLUMN_REAL, 0, 1},
    {"int8_share", "of int8", COLUMN_REAL, 0, 100},
    {"roofline_share", "roofline", COLUMN_REAL, 0, 100, true},
    {"huge_share", "huge", COLUMN_REAL, 0, 100},
    {"peak_rss_bytes", "peak MB", COLUMN_COUNT, 0, 1e-6, true},
    {"stolen", "stolen", COLUMN_COUNT, 0, 1, .with = BENCH_WITH_STOLEN},
    {"tokens_per_step", "tokens/step", COLUMN_REAL, 2, 1, true, BENCH_WITH_DRAFT},
    {"draft_accepted", "accepted", COLUMN_REAL, 0, 100, true, BENCH_WITH_DRAFT},
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

static bool is_there(const struct column *column, unsigned with)
{
    return !column->with || (column->with & with);
}

static void make_cells(const bench_result *r, struct cell cells[N_COLUMNS])
{
    const bench_test *t = r->test;
    snprintf(cells[0].text, sizeof cells[0].text, "%s", t->model->name);
    snprintf(cells[1].text, sizeof cells[1].text, "%s%u", t->is_decode ? "tg" : "pp", t->n_tokens);
    cells[2].number = t->depth;
    cells[3].number = t->columns;
    snprintf(cells[4].text, sizeof cells[4].text, "%s", kv_names[t->kv]);
    cells[5].number = t->n_threads;
    snprintf(cells[6].text, sizeof cells[6].text, "%s", r->cpu);
    snprintf(cells[7].text, sizeof cells[7].text, "%s", r->isa);
    const double numbers[] = {
        r->tps_median, r->tps_best,        r->bytes_per_token, r->read_gbps,  r->bandwidth_share,
        r->int8_gmacs, r->int8_share,      r->roofline_share,  r->huge_share, (double)r->peak_rss_bytes,
        t->stolen,     r->tokens_per_step, r->accepted};
    for (size_t i = 8; i < N_COLUMNS; i++) cells[i].number = numbers[i - 8];
}

static json_t *make_json(const bench_result *r, unsigned with)
{
    struct cell cells[N_COLUMNS];
    json_t *object = json_object();
    make_cells(r, cells);
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (!is_there(&columns[i], with)) continue;
        json_object_set_new(object, columns[i].key,
                            columns[i].kind == COLUMN_TEXT        ? cli_json_path(cells[i].text)
                                : columns[i].kind == COLUMN_COUNT ? json_integer((json_int_t)(cells[i].number + 0.5))
                                                                  : json_real(cells[i].number));
    }
    if (r->n_lines) {
        json_t *profile = json_array();
        for (uint32_t i = 0; i < r->n_lines; i++)
            json_array_append_new(profile,
                                  json_pack("{s:s, s:i, s:f, s:f}", "steps", r->lines[i].label, "groups",
                                            (int)r->lines[i].n_phases, "seconds", r->lines[i].seconds, "bytes",
                                            r->lines[i].bytes));
        json_object_set_new(object, "profile", profile);
    }
    return object;
}

/* `all` false: the table has its main columns alone. */
static void print_rows(cli_call *call, bench_form form, const bench_result *results, size_t n, unsigned with, bool all)
{
    const char *begin = form == BENCH_MD ? "| " : "";
    const char *between = form == BENCH_MD ? " | " : ",";
    const char *end = form == BENCH_MD ? " |\n" : "\n";
    for (size_t line = 0; line < n + 1; line++) {
        struct cell cells[N_COLUMNS];
        if (line > 0) make_cells(&results[line - 1], cells);
        const char *gap = begin;
        for (size_t i = 0; i < N_COLUMNS; i++) {
            const struct column *c = &columns[i];
            if (!is_there(c, with)) continue;
            if (form == BENCH_MD && (!c->title || !(all || c->is_main))) continue;
            if (line == 0)
                cli_print(call, "%s%s", gap, form == BENCH_MD ? c->title : c->key);
            else if (c->kind == COLUMN_TEXT)
                cli_print(call, form == BENCH_CSV ? "%s\"%s\"" : "%s%s", gap, cells[i].text);
            else if (form == BENCH_MD)
                cli_print(call, "%s%.*f%s", gap, c->digits, cells[i].number * c->factor, c->factor == 100 ? " %" : "");
            else
                cli_print(call, "%s%.*f", gap, c->kind == COLUMN_COUNT ? 0 : 6, cells[i].number);
            gap = between;
        }
        cli_print(call, "%s", end);
        if (line > 0 || form != BENCH_MD) continue;
        for (size_t i = 0; i < N_COLUMNS; i++)
            if (is_there(&columns[i], with) && columns[i].title && (all || columns[i].is_main))
                cli_print(call, columns[i].kind == COLUMN_TEXT ? "|---" : "|--:");
        cli_print(call, "|\n");
    }
}

/* Prints the profile, longest time first. */
static void print_profile(cli_call *call, const bench_result *r)
{
    double all = 0;
    bool shown[BENCH_LINES_MAX] = {false};
    for (uint32_t i = 0; i < r->n_lines; i++) all += r->lines[i].seconds;
    cli_print(call, "\n%s, %s%u, depth %u, %u threads:\n", r->test->model->name, r->test->is_decode ? "tg" : "pp",
              r->test->n_tokens, r->test->depth, r->test->n_threads);
    for (uint32_t k = 0; k < r->n_lines; k++) {
        uint32_t best = r->n_lines;
        for (uint32_t i = 0; i < r->n_lines; i++)
            if (!shown[i] && (best == r->n_lines || r->lines[i].seconds > r->lines[best].seconds)) best = i;
        shown[best] = true;
        const bench_line *line = &r->lines[best];
        cli_print(call, "%6.2f %%  %3u x %s", 100 * line->seconds / all, line->n_phases, line->label);
        cli_print(call, line->bytes > 0 ? " (%.1f MB)\n" : "\n", line->bytes * 1e-6);
    }
}

void bench_report(cli_call *call, bench_form form, const bench_result *results, size_t n, unsigned with, bool all)
{
    if (form == BENCH_JSON) {
        json_t *array = json_array();
        for (size_t i = 0; i < n; i++) json_array_append_new(array, make_json(&results[i], with));
        cli_print_json(call, array);
        return;
    }
    if (form == BENCH_MD && n) cli_print(call, "%s\n\n", results[0].cpu);
    print_rows(call, form, results, n, with, all);
    for (size_t i = 0; i < n && form == BENCH_MD; i++)
        if (results[i].n_lines) print_profile(call, &results[i]);
}
