/* SPDX-License-Identifier: MIT
 * Runs whit bench under mpirun: several ranks run a model, and rank 0 prints the table. */
#include "cli/bench_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/ranks.h"

static const bench_column columns[] = {
    {"shape", "shape", BENCH_TEXT, 0, 0, true},
    {"test", "test", BENCH_TEXT, 0, 0, true},
    {"depth", "depth", BENCH_COUNT, 0, 1, true},
    {"columns", "cols", BENCH_COUNT, 0, 1},
    {"ranks", "ranks", BENCH_COUNT, 0, 1, true},
    {"threads", "t", BENCH_COUNT, 0, 1, true},
    {"latency_us", "latency us", BENCH_REAL, 1, 1},
    {"gbits", "Gbit/s", BENCH_REAL, 1, 1},
    {"tps_median", "tokens/s", BENCH_REAL, 2, 1, true},
    {"tps_best", "best", BENCH_REAL, 2, 1},
    {"exchanges_per_token", "exchanges", BENCH_REAL, 1, 1},
    {"messages_per_token", "messages", BENCH_REAL, 1, 1, true},
    {"sent_bytes_per_token", "sent KB", BENCH_REAL, 1, 1e-3, true},
    {"received_bytes_per_token", "received KB", BENCH_REAL, 1, 1e-3, true},
    {"alone_ms", "alone ms", BENCH_REAL, 2, 1},
    {"predicted_ms", "predicted ms", BENCH_REAL, 2, 1, true},
    {"seen_ms", "seen ms", BENCH_REAL, 2, 1, true},
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

static void make_cells(const void *results, size_t i, bench_cell *cells)
{
    const bench_together *r = (const bench_together *)results + i;
    const bench_test *t = r->test;
    snprintf(cells[0].text, sizeof cells[0].text, "%s", t->model->name);
    snprintf(cells[1].text, sizeof cells[1].text, "%s%u", t->is_decode ? "tg" : "pp", t->n_tokens);
    const double gbits = isinf(r->network->bytes_per_s) ? NAN : r->network->bytes_per_s * 8e-9;
    const double numbers[] = {t->depth, t->columns,    r->n_ranks,  t->n_threads,    r->network->latency_s * 1e6,
                              gbits,    r->tps_median, r->tps_best, r->exchanges,    r->messages,
                              r->sent,  r->received,   r->alone_ms, r->predicted_ms, r->seen_ms};
    for (size_t k = 2; k < N_COLUMNS; k++) cells[k].number = numbers[k - 2];
}

static void print_results(cli_call *call, bench_form form, const bench_together *results, size_t n, bool all)
{
    const bench_table table = {
        .columns = columns, .n_columns = N_COLUMNS, .make_cells = make_cells, .results = results, .n = n};
    if (form != BENCH_JSON) {
        bench_print_table(call, form, &table, all);
        return;
    }
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(array, bench_row_json(&table, i));
    cli_print_json(call, array);
}

int cli_bench_ranks(cli_call *call, bench_form form, const whit_ranks *ranks, const bench_test *tests, size_t n_tests,
                    uint32_t n_rounds, bool all)
{
    whit_error error = {0};
    whit_model *model = NULL;
    bench_network network;
    bench_together *results = calloc(n_tests, sizeof *results);
    whit_status status = results ? WHIT_OK : whit_fail_memory(&error, "the list of tests", n_tests * sizeof *results);
    for (size_t i = 0; status == WHIT_OK && i < n_tests; i++)
        results[i] = (bench_together){.test = &tests[i], .network = &network, .n_ranks = ranks->n_ranks};
    if (status == WHIT_OK) status = whit_model_open(tests->model->path, NULL, &model, &error);
    if (status == WHIT_OK) status = bench_measure_alone(ranks, model, n_rounds, &network, results, n_tests, &error);
    int ended = status == WHIT_OK ? cli_split_model(call, model) : cli_fail_error(call, &error);
    if (ended == CLI_OK) {
        status = bench_measure_together(model, n_rounds, results, n_tests, &error);
        ended = status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
    }
    if (ended == CLI_OK) print_results(call, form, results, n_tests, all);
    whit_model_close(model);
    free(results);
    return ended;
}
