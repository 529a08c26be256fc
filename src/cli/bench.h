/* SPDX-License-Identifier: MIT
 * One test of `whit bench` as a process of its own, so that its peak memory is its own. The parent
 * says "go" for every round, so that tests take turns and a noisy minute hits all of them. */
#ifndef WHIT_CLI_BENCH_H
#define WHIT_CLI_BENCH_H

#include "whit.h"

#include <sys/types.h>

typedef struct cli_bench_test {
    const char *model; /* path */
    bool prompt;       /* pp: a prompt in one step; else tg: token after token */
    uint32_t n_tokens; /* of a round */
    uint32_t depth;    /* tokens in the cache before it */
    uint32_t columns;  /* sequences decoded at once (tg) */
    uint32_t n_threads, n_batch;
    whit_kv_type kv;
} cli_bench_test;

/* What the process found out when it was ready. */
typedef struct cli_bench_facts {
    uint32_t n_threads;
    char isa[16];             /* of the matrix kernels */
    uint64_t bytes_per_token; /* weights and cache that one pass reads */
    whit_error error;         /* status WHIT_OK where it is ready */
} cli_bench_facts;

typedef struct cli_bench_round {
    uint64_t run_ns;
    uint64_t read_ns; /* the same threads reading bytes_per_token of the mapped weights */
    uint64_t read_bytes;
    uint64_t peak_rss_bytes;
    whit_status status;
} cli_bench_round;

typedef struct cli_bench_process {
    pid_t pid;
    int to_child, from_child;
} cli_bench_process;

/* Starts the process and waits until it is ready. False where it could not be started; otherwise
 * facts->error says how it went. cli_bench_stop in every case. */
bool cli_bench_start(const cli_bench_test *test, bool no_cache, cli_bench_process *process,
                     cli_bench_facts *facts);
bool cli_bench_round_run(cli_bench_process *process, cli_bench_round *round);
void cli_bench_stop(cli_bench_process *process);

#endif
