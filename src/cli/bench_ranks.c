/* SPDX-License-Identifier: MIT
 * Tests of a model that several processes (ranks) run: tokens a second, what travels, and the time that the model of
 * docs/dev/perf/ranks.md predicts:
 *
 *     t(N) = t(1) / N + (exchanges + passes) latency + bytes / bandwidth
 *
 * t(1) is rank 0's time of the same test without the others, who wait meanwhile. Latency and bandwidth are measured by
 * exchanges before. Nothing is forked here: OpenMPI does not allow it. */
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "cli/ranks.h"
#include "runtime/split.h"

enum { N_SMALL = 65, SMALL_BYTES = 64, N_LARGE = 9, LARGE_BYTES = 1 << 20 };

/* Costs of an exchange between the ranks. */
struct network {
    double latency_s, bytes_per_s;
};

struct result {
    const bench_test *test;
    const struct network *network;
    uint32_t n_ranks;
    double tps_median, tps_best;                /* tokens a second with all ranks */
    double exchanges, messages, sent, received; /* rank 0's, a token */
    double alone_ms, predicted_ms, seen_ms;     /* a token; NAN: not measured */
};

/* ---- the network ----------------------------------------------------------------------------- */

/* Returns the median time of an exchange in which each rank sends n_bytes to each other; -1 if a rank is lost. */
static double time_exchange(const whit_ranks *ranks, void *memory, size_t n_bytes, uint32_t n)
{
    double seconds[N_SMALL];
    size_t offsets[WHIT_RANKS_MAX + 1];
    for (uint32_t r = 0; r <= ranks->n_ranks; r++) offsets[r] = r * n_bytes;
    for (uint32_t i = 0; i < n + 1; i++) {
        const uint64_t from_ns = whit_now_ns();
        if (!ranks->gather(ranks->user, memory, offsets, false)) return -1;
        if (i) seconds[i - 1] = (double)(whit_now_ns() - from_ns) * 1e-9; /* the first one waits for slower ranks */
    }
    return bench_median(seconds, n);
}

static whit_status measure_network(const whit_ranks *ranks, struct network *network, whit_error *error)
{
    const size_t size_bytes = (size_t)ranks->n_ranks * LARGE_BYTES;
    *network = (struct network){.bytes_per_s = INFINITY};
    if (ranks->n_ranks == 1) return WHIT_OK;
    void *memory = calloc(1, size_bytes);
    if (!memory) return whit_fail_memory(error, "the exchanges", size_bytes);
    const double small_s = time_exchange(ranks, memory, SMALL_BYTES, N_SMALL);
    const double large_s = small_s < 0 ? -1 : time_exchange(ranks, memory, LARGE_BYTES, N_LARGE);
    free(memory);
    if (large_s < 0) return whit_fail(error, WHIT_ERROR_IO, "rank %u: another rank is lost", ranks->rank);
    network->latency_s = small_s;
    if (large_s > small_s) network->bytes_per_s = (double)(ranks->n_ranks - 1) * LARGE_BYTES / (large_s - small_s);
    return WHIT_OK;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Adds the steps of a round: their time, and what rank 0 has sent and received during them. */
static whit_status run_round(bench_steps *steps, double *seconds, struct result *sums, whit_error *error)
{
    const bench_test *t = steps->test;
    const whit_model_ranks *split = steps->session->model->split;
    const uint32_t per_step = t->is_decode ? 1 : t->n_batch_tokens;
    const whit_exec_traffic before = steps->session->exec.traffic, *after = &steps->session->exec.traffic;
    const whit_model_ranks told = split ? *split : (whit_model_ranks){0};
    const uint64_t from_ns = whit_now_ns();
    for (uint32_t done = 0; done < t->n_tokens; done += per_step) {
        const uint32_t n = t->n_tokens - done < per_step ? t->n_tokens - done : per_step;
        const bool wants = !t->model->no_head && (t->is_decode || done + n == t->n_tokens);
        WHIT_TRY(bench_steps_pass(steps, t->is_decode ? t->columns : n, wants, error));
    }
    *seconds = (double)(whit_now_ns() - from_ns) * 1e-9;
    sums->exchanges += (double)(after->n_gathers - before.n_gathers);
    sums->messages += (double)(after->n_messages - before.n_messages);
    sums->sent += (double)(after->sent_bytes - before.sent_bytes);
    sums->received += (double)(after->received_bytes - before.received_bytes);
    if (split) { /* a pass begins with a message that takes one latency */
        sums->exchanges += (double)(split->n_passes - told.n_passes);
        sums->messages += (double)(split->n_messages - told.n_messages);
        sums->sent += (double)(split->sent_bytes - told.sent_bytes);
    }
    return bench_steps_forget(steps, error);
}

/* Runs a test. *sums: over all rounds. */
static whit_status run_test(const bench_test *t, const whit_model *model, uint32_t n_rounds, double *seconds,
                            struct result *sums, whit_error *error)
{
    bench_steps steps;
    whit_status status = bench_steps_open(t, model, NULL, &steps, error);
    if (status == WHIT_OK) status = bench_steps_fill(&steps, error);
    if (status == WHIT_OK) /* pages, caches and threads are warm afterwards */
        status = bench_steps_pass(&steps, t->is_decode ? t->columns : 1, !t->model->no_head, error);
    if (status == WHIT_OK) status = bench_steps_forget(&steps, error);
    for (uint32_t i = 0; status == WHIT_OK && i < n_rounds; i++) status = run_round(&steps, &seconds[i], sums, error);
    bench_steps_close(&steps);
    return status;
}

static double tokens_of(const bench_test *t)
{
    return (double)t->n_tokens * t->columns;
}

/* Whether one machine has memory for the whole model. */
static bool fits_here(const whit_model *model)
{
    const void *address;
    const char *path;
    size_t size_bytes;
    uint64_t bytes = 0;
    for (uint32_t i = 0; whit_ndf_mapping(model->file, i, &address, &size_bytes, &path); i++) bytes += size_bytes;
    return bytes <= whit_memory_available();
}

/* Rank 0, before the model is split: the tests on one machine. */
static whit_status run_alone(const whit_model *model, struct result *results, size_t n, uint32_t n_rounds,
                             double *seconds, whit_error *error)
{
    const bool fits = fits_here(model);
    for (size_t i = 0; i < n; i++) {
        struct result unused = {0};
        results[i].alone_ms = NAN;
        if (!fits) continue;
        WHIT_TRY(run_test(results[i].test, model, n_rounds, seconds, &unused, error));
        results[i].alone_ms = 1e3 * bench_median(seconds, n_rounds) / tokens_of(results[i].test);
    }
    return WHIT_OK;
}

static whit_status run_together(const whit_model *model, struct result *results, size_t n, uint32_t n_rounds,
                                double *seconds, whit_error *error)
{
    for (size_t i = 0; i < n; i++) {
        struct result *r = &results[i], sums = {0};
        const double n_tokens = tokens_of(r->test);
        WHIT_TRY(run_test(r->test, model, n_rounds, seconds, &sums, error));
        const double median_s = bench_median(seconds, n_rounds); /* sorts them */
        r->tps_median = n_tokens / median_s;
        r->tps_best = n_tokens / seconds[0];
        r->seen_ms = 1e3 * median_s / n_tokens;
        r->exchanges = sums.exchanges / n_rounds / n_tokens;
        r->messages = sums.messages / n_rounds / n_tokens;
        r->sent = sums.sent / n_rounds / n_tokens;
        r->received = sums.received / n_rounds / n_tokens;
        const double bytes = r->sent > r->received ? r->sent : r->received;
        r->predicted_ms =
            r->alone_ms / r->n_ranks + 1e3 * (r->exchanges * r->network->latency_s + bytes / r->network->bytes_per_s);
    }
    return WHIT_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

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
    const struct result *r = (const struct result *)results + i;
    const bench_test *t = r->test;
    snprintf(cells[0].text, sizeof cells[0].text, "%s", t->model->name);
    snprintf(cells[1].text, sizeof cells[1].text, "%s%u", t->is_decode ? "tg" : "pp", t->n_tokens);
    const double gbits = isinf(r->network->bytes_per_s) ? NAN : r->network->bytes_per_s * 8e-9;
    const double numbers[] = {t->depth, t->columns,    r->n_ranks,  t->n_threads,    r->network->latency_s * 1e6,
                              gbits,    r->tps_median, r->tps_best, r->exchanges,    r->messages,
                              r->sent,  r->received,   r->alone_ms, r->predicted_ms, r->seen_ms};
    for (size_t k = 2; k < N_COLUMNS; k++) cells[k].number = numbers[k - 2];
}

static void print_results(cli_call *call, bench_form form, const struct result *results, size_t n, bool all)
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

int bench_ranks(cli_call *call, bench_form form, const whit_ranks *ranks, const bench_test *tests, size_t n_tests,
                uint32_t n_rounds, bool all)
{
    whit_error error = {0};
    whit_model *model = NULL;
    struct network network;
    struct result *results = calloc(n_tests, sizeof *results);
    double *seconds = calloc(n_rounds, sizeof *seconds);
    whit_status status = results && seconds ? WHIT_OK : whit_fail_memory(&error, "the tests", n_tests);
    for (size_t i = 0; status == WHIT_OK && i < n_tests; i++)
        results[i] = (struct result){.test = &tests[i], .network = &network, .n_ranks = ranks->n_ranks};
    if (status == WHIT_OK) status = whit_model_open(tests->model->path, NULL, &model, &error);
    if (status == WHIT_OK) status = measure_network(ranks, &network, &error);
    if (status == WHIT_OK && !ranks->rank) status = run_alone(model, results, n_tests, n_rounds, seconds, &error);
    int ended = status == WHIT_OK ? cli_split_model(call, model) : cli_fail_error(call, &error);
    if (ended == CLI_OK) {
        status = run_together(model, results, n_tests, n_rounds, seconds, &error);
        ended = status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
    }
    if (ended == CLI_OK) print_results(call, form, results, n_tests, all);
    whit_model_close(model);
    free(results);
    free(seconds);
    return ended;
}
