/* SPDX-License-Identifier: MIT
 * Runs the rounds of all tests, and computes their medians.
 *
 * If the system has fork, every test has its own process (worker.c). The rounds of the tests alternate, so that a slow
 * minute of the machine affects all of them. A share, such as that of the bandwidth, is the median of the rounds'
 * ratios. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/system.h"
#include "bench/bench.h"

double bench_median(double *values, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        double value = values[i];
        size_t j = i;
        for (; j > 0 && values[j - 1] > value; j--) values[j] = values[j - 1];
        values[j] = value;
    }
    if (n == 0) return 0;
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/* ---- the stolen core ------------------------------------------------------------------------ */

struct thief {
    unsigned processor; /* number of the processor that the thread keeps busy */
    pthread_t thread;
    atomic_bool ends;
};

static void *run_thief(void *context)
{
    struct thief *t = context;
    whit_thread_pin(pthread_self(), t->processor);
    while (!t->ends)
        for (volatile unsigned i = 0; i < 1000000; i++) continue;
    return NULL;
}

/* Starts a busy thread on the last core; returns false if that fails. */
static bool steal_core(struct thief *t, const whit_cpu *cpu)
{
    t->ends = false;
    t->processor = cpu->core_cpu[cpu->n_cores ? cpu->n_cores - 1 : 0];
    return pthread_create(&t->thread, NULL, run_thief, t) == 0;
}

static void give_core_back(struct thief *t)
{
    t->ends = true;
    pthread_join(t->thread, NULL);
}

/* ---- results -------------------------------------------------------------------------------- */

static void conclude(const bench_facts *facts, const bench_sample *samples, size_t n, bench_result *result)
{
    double values[7][BENCH_ROUNDS_MAX];
    for (size_t i = 0; i < n; i++) {
        const bench_sample *s = &samples[i];
        double read_s = s->bytes / s->read_bytes_per_s, multiply_s = s->all_macs / s->int8_macs_per_s;
        double tps = s->tokens / s->seconds;
        if (tps > result->tps_best) result->tps_best = tps;
        values[0][i] = tps;
        values[1][i] = s->read_bytes_per_s * 1e-9;
        values[2][i] = s->int8_macs_per_s * 1e-9;
        values[3][i] = read_s / s->seconds;
        values[4][i] = s->macs / s->int8_macs_per_s / s->seconds;
        values[5][i] = (read_s > multiply_s ? read_s : multiply_s) / s->seconds;
        values[6][i] = s->bytes / s->tokens;
        if (s->peak_rss_bytes > result->peak_rss_bytes) result->peak_rss_bytes = s->peak_rss_bytes;
    }
    result->tps_median = bench_median(values[0], n);
    result->read_gbps = bench_median(values[1], n);
    result->int8_gmacs = bench_median(values[2], n);
    result->bandwidth_share = bench_median(values[3], n);
    result->int8_share = bench_median(values[4], n);
    result->roofline_share = bench_median(values[5], n);
    result->huge_share = samples[n - 1].huge_share;
    result->bytes_per_token = bench_median(values[6], n);
    double tokens = 0, steps = 0, guessed = 0, right = 0;
    for (size_t i = 0; i < n; i++) {
        tokens += samples[i].tokens;
        steps += samples[i].steps;
        guessed += samples[i].n_guessed;
        right += samples[i].n_right;
    }
    result->tokens_per_step = steps > 0 ? tokens / steps : 0;
    result->accepted = guessed > 0 ? right / guessed : 0;
    snprintf(result->isa, sizeof result->isa, "%s", facts->isa);
}

/* ---- all tests ------------------------------------------------------------------------------ */

struct measuring {
    const bench_measuring *wanted;
    bench_worker *workers;
    bench_sample *samples; /* (n_tests, n_rounds) */
    size_t n_open;         /* number of workers for which bench_worker_open was called, and which must be closed */
    whit_cpu cpu;
};

static whit_status open_workers(struct measuring *m, whit_error *error)
{
    const bench_measuring *w = m->wanted;
    for (size_t i = 0; i < w->n_tests; i++) {
        if (*w->tests[i].stop) return whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
        w->progress(NULL, "opening", (double)i / (double)w->n_tests);
        w->on_open(w->tests[i].model->path);
        m->n_open = i + 1;
        WHIT_TRY(bench_worker_open(&w->tests[i], &m->workers[i], error));
    }
    return WHIT_OK;
}

static whit_status run_rounds(struct measuring *m, whit_error *error)
{
    const bench_measuring *w = m->wanted;
    for (uint32_t round = 0; round < w->n_rounds; round++)
        for (size_t i = 0; i < w->n_tests; i++) {
            w->progress(NULL, "measuring", (double)(round * w->n_tests + i) / (double)(w->n_rounds * w->n_tests));
            struct thief thief;
            if (w->tests[i].stolen && !steal_core(&thief, &m->cpu))
                return whit_fail(error, WHIT_ERROR_MEMORY,
                                 "--steal: the system starts no thread to keep a core busy: end some processes");
            whit_status status = bench_worker_round(&m->workers[i], &m->samples[i * w->n_rounds + round], error);
            if (w->tests[i].stolen) give_core_back(&thief);
            WHIT_TRY(status);
        }
    return WHIT_OK;
}

whit_status bench_measure(const bench_measuring *wanted, bench_result *results, whit_error *error)
{
    struct measuring m = {.wanted = wanted};
    whit_cpu_detect(&m.cpu);
    m.workers = calloc(wanted->n_tests, sizeof *m.workers);
    m.samples = calloc(wanted->n_tests * wanted->n_rounds, sizeof *m.samples);
    whit_status status =
        m.workers && m.samples ? WHIT_OK : whit_fail_memory(error, "the rounds", wanted->n_tests * wanted->n_rounds);
    if (status == WHIT_OK) status = open_workers(&m, error);
    if (status == WHIT_OK) status = run_rounds(&m, error);
    for (size_t i = 0; status == WHIT_OK && i < wanted->n_tests; i++) {
        bench_result *result = &results[i];
        result->test = &wanted->tests[i];
        snprintf(result->cpu, sizeof result->cpu, "%s", m.cpu.model);
        conclude(&m.workers[i].facts, &m.samples[i * wanted->n_rounds], wanted->n_rounds, result);
        if (result->test->profile) result->n_lines = bench_worker_profile(&m.workers[i], result->lines);
    }
    for (size_t i = 0; i < m.n_open; i++) bench_worker_close(&m.workers[i]);
    free(m.workers);
    free(m.samples);
    return status;
}
