/* SPDX-License-Identifier: MIT
 * Runs every test in this process, for systems without fork: the peak memory is then that of all tests together. */
#include "bench/timed_work.h"

whit_status bench_worker_open(const bench_test *test, bench_worker *worker, whit_error *error)
{
    *worker = (bench_worker){.pid = -1, .to = -1, .from = -1};
    return bench_work_open(test, &worker->here, &worker->facts, error);
}

whit_status bench_worker_round(bench_worker *worker, bench_sample *sample, whit_error *error)
{
    *sample = (bench_sample){0};
    return bench_work_round(worker->here, sample, error);
}

uint32_t bench_worker_profile(bench_worker *worker, bench_line lines[BENCH_LINES_MAX])
{
    return bench_work_profile(worker->here, lines);
}

void bench_worker_close(bench_worker *worker)
{
    bench_work_close(worker->here);
    worker->here = NULL;
}
