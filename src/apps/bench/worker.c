/* SPDX-License-Identifier: MIT
 * Runs every test in its own process, so that its peak memory can be measured; the parent process starts each round, so
 * that the rounds of all tests alternate. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bound_child.h"
#include "base/file.h"
#include "bench/timed_work.h"

/* The parent's messages, one byte each. SAY_END is needed, because closing the pipe would not end a worker: workers
 * that were forked later hold copies of its descriptor. */
enum { SAY_ROUND = 'r', SAY_PROFILE = 'p', SAY_END = 'e' };

/* ---- pipes ---------------------------------------------------------------------------------- */

static bool receive_all(int fd, void *data, size_t size_bytes)
{
    for (char *at = data; size_bytes;) {
        ssize_t n = read(fd, at, size_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size_bytes -= (size_t)n;
    }
    return true;
}

/* ---- the worker's side ---------------------------------------------------------------------- */

static void serve(const bench_test *test, int from_parent, int to_parent)
{
    whit_error error = {0};
    bench_facts facts = {0};
    bench_work *work;
    facts.status = bench_work_open(test, &work, &facts, &error);
    memcpy(facts.message, error.message, sizeof facts.message);
    bool ok = whit_write_all(to_parent, &facts, sizeof facts) && facts.status == WHIT_OK;
    for (char command; ok && receive_all(from_parent, &command, 1) && command != SAY_END;) {
        if (command == SAY_ROUND) {
            bench_sample sample = {0};
            sample.status = bench_work_round(work, &sample, &error);
            memcpy(sample.message, error.message, sizeof sample.message);
            ok = whit_write_all(to_parent, &sample, sizeof sample);
        } else {
            bench_line lines[BENCH_LINES_MAX] = {{{0}, 0, 0, 0}};
            uint32_t n = bench_work_profile(work, lines);
            ok = whit_write_all(to_parent, &n, sizeof n) && whit_write_all(to_parent, lines, n * sizeof *lines);
        }
    }
    bench_work_close(work);
}

/* ---- the parent's side ---------------------------------------------------------------------- */

static whit_status report_loss(const bench_worker *worker, whit_error *error)
{
    return *worker->test->stop ? whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted")
                               : whit_fail(error, WHIT_ERROR_MEMORY,
                                           "the process of this measurement ended early, perhaps for lack of memory: "
                                           "choose a smaller model or context");
}

whit_status bench_worker_open(const bench_test *test, bench_worker *worker, whit_error *error)
{
    int down[2], up[2];
    *worker = (bench_worker){.test = test, .pid = -1, .to = -1, .from = -1};
    if (pipe(down) != 0) return whit_fail_errno(error, "bench", "open a pipe");
    if (pipe(up) != 0) {
        close(down[0]);
        close(down[1]);
        return whit_fail_errno(error, "bench", "open a pipe");
    }
    fflush(NULL);
    worker->pid = whit_fork_bound(SIGKILL);
    if (worker->pid == 0) {
        close(down[1]);
        close(up[0]);
        serve(test, down[0], up[1]);
        _exit(0);
    }
    worker->to = down[1];
    worker->from = up[0];
    close(down[0]);
    close(up[1]);
    if (worker->pid < 0) {
        bench_worker_close(worker);
        return whit_fail_errno(error, "bench", "start a process");
    }
    if (!receive_all(worker->from, &worker->facts, sizeof worker->facts)) return report_loss(worker, error);
    if (worker->facts.status != WHIT_OK) return whit_fail(error, worker->facts.status, "%s", worker->facts.message);
    return WHIT_OK;
}

whit_status bench_worker_round(bench_worker *worker, bench_sample *sample, whit_error *error)
{
    char command = SAY_ROUND;
    if (!whit_write_all(worker->to, &command, 1) || !receive_all(worker->from, sample, sizeof *sample))
        return report_loss(worker, error);
    if (sample->status != WHIT_OK) return whit_fail(error, sample->status, "%s", sample->message);
    return WHIT_OK;
}

uint32_t bench_worker_profile(bench_worker *worker, bench_line lines[BENCH_LINES_MAX])
{
    char command = SAY_PROFILE;
    uint32_t n = 0;
    if (!whit_write_all(worker->to, &command, 1) || !receive_all(worker->from, &n, sizeof n) || n > BENCH_LINES_MAX ||
        !receive_all(worker->from, lines, n * sizeof *lines))
        return 0;
    return n;
}

void bench_worker_close(bench_worker *worker)
{
    char command = SAY_END;
    if (worker->to >= 0) {
        whit_write_all(worker->to, &command, 1);
        close(worker->to);
    }
    if (worker->from >= 0) close(worker->from);
    while (worker->pid > 0 && waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *worker = (bench_worker){.pid = -1, .to = -1, .from = -1};
}
