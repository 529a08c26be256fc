/* SPDX-License-Identifier: MIT
 * Measures tests of a model that is split over several processes (ranks): tokens a second, the bytes that are sent, and
 * the time per token that the formula of docs/dev/perf/ranks.md predicts:
 *
 *     t(N) = t(1) / N + (exchanges + passes) latency + bytes / bandwidth
 *
 * t(1) is the time of the same test on rank 0 alone, while the other ranks wait. Latency and bandwidth are measured
 * first, by exchanges. Nothing is forked here: OpenMPI does not allow it. */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "runtime/split.h"

enum { N_SMALL = 65, SMALL_BYTES = 64, N_LARGE = 9, LARGE_BYTES = 1 << 20 };

/* ---- the network ----------------------------------------------------------------------------- */

/* Returns the median time, in seconds, of n exchanges in which each rank sends n_bytes to every other; -1 if a rank is
 * lost. */
static double time_exchange(const whit_ranks *ranks, void *memory, size_t n_bytes, uint32_t n)
{
    double seconds[N_SMALL];
    size_t offsets[WHIT_RANKS_MAX + 1];
    for (uint32_t r = 0; r <= ranks->n_ranks; r++) offsets[r] = r * n_bytes;
    for (uint32_t i = 0; i < n + 1; i++) {
        const uint64_t from_ns = whit_now_ns();
        if (!ranks->gather(ranks->user, memory, offsets, false)) return -1;
        /* the first exchange is not counted, because it waits for slower ranks */
        if (i) seconds[i - 1] = (double)(whit_now_ns() - from_ns) * 1e-9;
    }
    return bench_median(seconds, n);
}

static whit_status measure_network(const whit_ranks *ranks, bench_network *network, whit_error *error)
{
    const size_t size_bytes = (size_t)ranks->n_ranks * LARGE_BYTES;
    *network = (bench_network){.bytes_per_s = INFINITY};
    if (ranks->n_ranks == 1) return WHIT_OK;
    void *memory = calloc(1, size_bytes);
    if (!memory) return whit_fail_memory(error, "the measured exchanges", size_bytes);
    const double small_s = time_exchange(ranks, memory, SMALL_BYTES, N_SMALL);
    const double large_s = small_s < 0 ? -1 : time_exchange(ranks, memory, LARGE_BYTES, N_LARGE);
    free(memory);
    if (large_s < 0)
        return whit_fail(error, WHIT_ERROR_IO,
                         "rank %u: the process of another rank has ended, and its machine's output says why",
                         ranks->rank);
    network->latency_s = small_s;
    if (large_s > small_s) network->bytes_per_s = (double)(ranks->n_ranks - 1) * LARGE_BYTES / (large_s - small_s);
    return WHIT_OK;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Runs one round. Sets *seconds to its time, and adds the traffic of rank 0 to *sums. */
static whit_status run_round(bench_steps *steps, double *seconds, bench_together *sums, whit_error *error)
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
    if (split) { /* a pass begins with a message, which costs one latency */
        sums->exchanges += (double)(split->n_passes - told.n_passes);
        sums->messages += (double)(split->n_messages - told.n_messages);
        sums->sent += (double)(split->sent_bytes - told.sent_bytes);
    }
    return bench_steps_forget(steps, error);
}

/* Runs all rounds of a test. Sets seconds[n_rounds] to their times, and adds the traffic of all rounds to *sums. */
static whit_status run_test(const bench_test *t, const whit_model *model, uint32_t n_rounds, double *seconds,
                            bench_together *sums, whit_error *error)
{
    bench_steps steps;
    whit_status status = bench_steps_open(t, model, NULL, &steps, error);
    if (status == WHIT_OK) status = bench_steps_fill(&steps, error);
    if (status == WHIT_OK) /* this pass, which is not measured, warms up pages, caches and threads */
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

/* Returns whether the free memory of this machine is enough for the whole model. */
static bool fits_here(const whit_model *model)
{
    const void *address;
    const char *path;
    size_t size_bytes;
    uint64_t bytes = 0;
    for (uint32_t i = 0; whit_ndf_mapping(model->file, i, &address, &size_bytes, &path); i++) bytes += size_bytes;
    return bytes <= whit_memory_available();
}

/* On rank 0 and before the model is split, measures alone_ms of each test, or sets it to NAN if the model does not fit
 * into memory. */
static whit_status run_alone(const whit_model *model, bench_together *results, size_t n, uint32_t n_rounds,
                             double *seconds, whit_error *error)
{
    const bool fits = fits_here(model);
    for (size_t i = 0; i < n; i++) {
        bench_together unused = {0};
        results[i].alone_ms = NAN;
        if (!fits) continue;
        WHIT_TRY(run_test(results[i].test, model, n_rounds, seconds, &unused, error));
        results[i].alone_ms = 1e3 * bench_median(seconds, n_rounds) / tokens_of(results[i].test);
    }
    return WHIT_OK;
}

static whit_status run_together(const whit_model *model, bench_together *results, size_t n, uint32_t n_rounds,
                                double *seconds, whit_error *error)
{
    for (size_t i = 0; i < n; i++) {
        bench_together *r = &results[i], sums = {0};
        const double n_tokens = tokens_of(r->test);
        WHIT_TRY(run_test(r->test, model, n_rounds, seconds, &sums, error));
        const double median_s = bench_median(seconds, n_rounds); /* this call also sorts the array, so that seconds[0]
                                                                  * is the shortest time */
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

/* ---- tests on rank 0 and on all ranks -------------------------------------------------------- */

whit_status bench_measure_alone(const whit_ranks *ranks, const whit_model *model, uint32_t n_rounds,
                                bench_network *network, bench_together *results, size_t n, whit_error *error)
{
    WHIT_TRY(measure_network(ranks, network, error));
    if (ranks->rank) return WHIT_OK;
    double *seconds = calloc(n_rounds, sizeof *seconds);
    const whit_status status = seconds ? run_alone(model, results, n, n_rounds, seconds, error)
                                       : whit_fail_memory(error, "the list of tests", n_rounds);
    free(seconds);
    return status;
}

whit_status bench_measure_together(const whit_model *model, uint32_t n_rounds, bench_together *results, size_t n,
                                   whit_error *error)
{
    double *seconds = calloc(n_rounds, sizeof *seconds);
    const whit_status status = seconds ? run_together(model, results, n, n_rounds, seconds, error)
                                       : whit_fail_memory(error, "the list of tests", n_rounds);
    free(seconds);
    return status;
}
