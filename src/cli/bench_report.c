/* SPDX-License-Identifier: MIT
 * Prints results as a Markdown table, CSV or JSON with the same columns, which are listed once. */
#include <math.h>
#include <stdio.h>

#include "cli/bench_report.h"

static const char *const kv_names[] = {[WHIT_KV_F16] = "f16",   [WHIT_KV_F32] = "f32",   [WHIT_KV_I8] = "i8",
                                       [WHIT_KV_K4V2] = "k4v2", [WHIT_KV_K2V2] = "k2v2", [WHIT_KV_BITMAP] = "bitmap"};

static const bench_column columns[] = {
    {"shape", "shape", BENCH_TEXT, 0, 0, true},
    {"test", "test", BENCH_TEXT, 0, 0, true},
    {"depth", "depth", BENCH_COUNT, 0, 1, true},
    {"columns", "cols", BENCH_COUNT, 0, 1},
    {"kv", "kv", BENCH_TEXT, 0, 0},
    {"threads", "t", BENCH_COUNT, 0, 1, true},
    {"cpu", NULL, BENCH_TEXT, 0, 0},
    {"isa", "isa", BENCH_TEXT, 0, 0},
    {"tps_median", "tokens/s", BENCH_REAL, 2, 1, true},
    {"tps_best", "best", BENCH_REAL, 2, 1},
    {"bytes_per_token", "MB/token", BENCH_COUNT, 1, 1e-6},
    {"read_gbps", "GB/s", BENCH_REAL, 1, 1},
    {"bandwidth_share", "of reading", BENCH_REAL, 0, 100},
    {"int8_gmacs", "GMAC/s", BENCH_REAL, 0, 1},
    {"int8_share", "of int8", BENCH_REAL, 0, 100},
    {"roofline_share", "roofline", BENCH_REAL, 0, 100, true},
    {"huge_share", "huge", BENCH_REAL, 0, 100},
    {"peak_rss_bytes", "peak MB", BENCH_COUNT, 0, 1e-6, true},
    {"stolen", "stolen", BENCH_COUNT, 0, 1, .with = BENCH_WITH_STOLEN},
    {"tokens_per_step", "tokens/step", BENCH_REAL, 2, 1, true, BENCH_WITH_DRAFT},
    {"draft_accepted", "accepted", BENCH_REAL, 0, 100, true, BENCH_WITH_DRAFT},
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

static bool is_there(const bench_table *table, size_t column)
{
    const unsigned with = table->columns[column].with;
    return !with || (with & table->with);
}

static void make_cells(const void *results, size_t i, bench_cell *cells)
{
    const bench_result *r = (const bench_result *)results + i;
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
    for (size_t k = 8; k < N_COLUMNS; k++) cells[k].number = numbers[k - 8];
}

json_t *bench_row_json(const bench_table *table, size_t row)
{
    bench_cell cells[BENCH_COLUMNS_MAX];
    json_t *object = json_object();
    table->make_cells(table->results, row, cells);
    for (size_t i = 0; i < table->n_columns; i++) {
        if (!is_there(table, i)) continue;
        const bench_column *column = &table->columns[i];
        json_t *value;
        if (column->kind == BENCH_TEXT)
            value = cli_json_path(cells[i].text);
        else if (isnan(cells[i].number))
            value = json_null();
        else if (column->kind == BENCH_COUNT)
            value = json_integer((json_int_t)(cells[i].number + 0.5));
        else
            value = json_real(cells[i].number);
        json_object_set_new(object, column->key, value);
    }
    return object;
}

static void print_cell(cli_call *call, bench_form form, const bench_column *column, const bench_cell *cell)
{
    if (column->kind == BENCH_TEXT)
        cli_print(call, form == BENCH_CSV ? "\"%s\"" : "%s", cell->text);
    else if (isnan(cell->number))
        cli_print(call, form == BENCH_MD ? "-" : "");
    else if (form == BENCH_MD)
        cli_print(call, "%.*f%s", column->digits, cell->number * column->factor, column->factor == 100 ? " %" : "");
    else
        cli_print(call, "%.*f", column->kind == BENCH_COUNT ? 0 : 6, cell->number);
}

void bench_print_table(cli_call *call, bench_form form, const bench_table *table, bool all)
{
    const char *begin = form == BENCH_MD ? "| " : "";
    const char *between = form == BENCH_MD ? " | " : ",";
    const char *end = form == BENCH_MD ? " |\n" : "\n";
    for (size_t line = 0; line < table->n + 1; line++) {
        bench_cell cells[BENCH_COLUMNS_MAX];
        if (line > 0) table->make_cells(table->results, line - 1, cells);
        const char *gap = begin;
        for (size_t i = 0; i < table->n_columns; i++) {
            const bench_column *c = &table->columns[i];
            if (!is_there(table, i)) continue;
            if (form == BENCH_MD && (!c->title || !(all || c->is_main))) continue;
            cli_print(call, "%s", gap);
            if (line == 0)
                cli_print(call, "%s", form == BENCH_MD ? c->title : c->key);
            else
                print_cell(call, form, c, &cells[i]);
            gap = between;
        }
        cli_print(call, "%s", end);
        if (line > 0 || form != BENCH_MD) continue;
        for (size_t i = 0; i < table->n_columns; i++)
            if (is_there(table, i) && table->columns[i].title && (all || table->columns[i].is_main))
                cli_print(call, table->columns[i].kind == BENCH_TEXT ? "|---" : "|--:");
        cli_print(call, "|\n");
    }
}

static json_t *make_json(const bench_table *table, size_t row)
{
    const bench_result *r = (const bench_result *)table->results + row;
    json_t *object = bench_row_json(table, row);
    if (!r->n_lines) return object;
    json_t *profile = json_array();
    for (uint32_t i = 0; i < r->n_lines; i++)
        json_array_append_new(profile,
                              json_pack("{s:s, s:i, s:f, s:f}", "steps", r->lines[i].label, "groups",
                                        (int)r->lines[i].n_phases, "seconds", r->lines[i].seconds, "bytes",
                                        r->lines[i].bytes));
    json_object_set_new(object, "profile", profile);
    return object;
}

/* Prints the profile of a result, longest times first. */
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
    const bench_table table = {
        .columns = columns, .n_columns = N_COLUMNS, .with = with, .make_cells = make_cells, .results = results, .n = n};
    if (form == BENCH_JSON) {
        json_t *array = json_array();
        for (size_t i = 0; i < n; i++) json_array_append_new(array, make_json(&table, i));
        cli_print_json(call, array);
        return;
    }
    if (form == BENCH_MD && n) cli_print(call, "%s\n\n", results[0].cpu);
    bench_print_table(call, form, &table, all);
    for (size_t i = 0; i < n && form == BENCH_MD; i++)
        if (results[i].n_lines) print_profile(call, &results[i]);
}
