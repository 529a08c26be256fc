/* SPDX-License-Identifier: MIT
 * Runs one test of whit bench, in its own process (worker.c) or in the caller's (worker_here.c). */
#ifndef WHIT_BENCH_TIMED_WORK_H
#define WHIT_BENCH_TIMED_WORK_H

#include "bench/bench.h"

typedef struct bench_work bench_work;

/* Opens the model and a session, fills the sequences to the test's depth, measures how long the probes of the machine's
 * speed must run, and sets facts->isa. The test must outlive the work. */
whit_status bench_work_open(const bench_test *test, bench_work **work, bench_facts *facts, whit_error *error);
/* Runs one round and adds its figures to `sample`, which must be zero-initialised. */
whit_status bench_work_round(bench_work *work, bench_sample *sample, whit_error *error);
/* Sums the times of all rounds so far by kind of work. Returns the number of lines; 0 if the test has no profile. */
uint32_t bench_work_profile(const bench_work *work, bench_line lines[BENCH_LINES_MAX]);
void bench_work_close(bench_work *work); /* NULL is allowed */

#endif
