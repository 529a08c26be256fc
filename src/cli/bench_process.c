/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "kernels/codec.h"
#include "runtime/session.h"

enum { CHUNK_BYTES = 1 << 20 };

/* The child: a model, a session at its depth, and the tokens of a round. */
struct bench {
    cli_bench_test test;
    whit_model *model;
    whit_session *session;
    whit_step_token *tokens; /* (n_tokens or columns) */
    uint64_t bytes_per_token;
};

/* Ids that are the same for everybody and never special in a usual vocabulary. */
static int32_t synthetic_id(const whit_model *model, uint32_t i)
{
    uint32_t n_vocab = whit_model_vocab_size(model), first = n_vocab > 512 ? 256 : n_vocab / 2;
    return (int32_t)(first + (i * 7919u) % (n_vocab - first));
}

/* Matrices of the plan's linear steps once each, norms and embedding rows left out, and the keys
 * and values of `depth` positions of each column. */
static uint64_t count_bytes(const struct bench *bench)
{
    const whit_session *session = bench->session;
    uint64_t total = 0, bytes;
    for (uint32_t i = 0; i < session->plan.n_steps; i++) {
        const whit_plan_step *step = &session->plan.steps[i];
        if (step->op == WHIT_PLAN_LINEAR &&
            whit_codec_total_bytes(&bench->model->weights.tensors[step->weight].type, &bytes))
            total += bytes;
    }
    const whit_config *config = &bench->model->config;
    uint64_t head_bytes = bench->test.kv == WHIT_KV_F32   ? 4 * config->head_dim
                          : bench->test.kv == WHIT_KV_F16 ? 2 * config->head_dim
                                                          : config->head_dim + 4;
    return total + 2 * head_bytes * config->n_kv_heads * config->n_layers * bench->test.depth *
                       bench->test.columns;
}

/* The strongest level among the matrix kernels that the test's passes run. */
static whit_isa matrix_isa(const struct bench *bench)
{
    const whit_session *session = bench->session;
    uint32_t n_rows = bench->test.prompt ? bench->test.n_tokens : bench->test.columns;
    if (n_rows > session->options.n_batch_tokens) n_rows = session->options.n_batch_tokens;
    whit_isa strongest = WHIT_ISA_GENERIC;
    for (uint32_t i = 0; i < session->plan.n_steps; i++) {
        if (session->plan.steps[i].op != WHIT_PLAN_LINEAR) continue;
        const whit_matmul_kernel *kernel = whit_exec_kernel(&session->exec.steps[i], n_rows);
        if (kernel->isa > strongest) strongest = kernel->isa;
    }
    return strongest;
}

/* Puts every sequence back to the test's depth. */
static whit_status rewind_to_depth(struct bench *bench, whit_error *error)
{
    for (uint32_t s = 0; s < bench->test.columns; s++)
        WHIT_TRY(whit_session_truncate(bench->session, s, bench->test.depth, error));
    return WHIT_OK;
}

static whit_status run_round(struct bench *bench, whit_error *error)
{
    const cli_bench_test *test = &bench->test;
    if (test->prompt) {
        for (uint32_t i = 0; i < test->n_tokens; i++)
            bench->tokens[i] =
                (whit_step_token){0, synthetic_id(bench->model, i), i + 1 == test->n_tokens};
        return whit_session_step(bench->session, bench->tokens, test->n_tokens, error);
    }
    for (uint32_t i = 0; i < test->n_tokens; i++) {
        for (uint32_t s = 0; s < test->columns; s++)
            bench->tokens[s] = (whit_step_token){s, synthetic_id(bench->model, i + s), true};
        WHIT_TRY(whit_session_step(bench->session, bench->tokens, test->columns, error));
    }
    return WHIT_OK;
}

static whit_status open_bench(struct bench *bench, bool no_cache, whit_error *error)
{
    const cli_bench_test *test = &bench->test;
    whit_model_options model = whit_model_options_default();
    model.no_cache = no_cache;
    WHIT_TRY(whit_model_open(test->model, &model, &bench->model, error));
    whit_session_options options = whit_session_options_default();
    options.n_ctx_tokens = test->depth + test->n_tokens;
    options.n_batch_tokens = test->n_batch;
    options.n_sequences = test->columns;
    options.n_threads = test->n_threads;
    options.kv = test->kv;
    options.cpu = getenv("WHIT_CPU");
    options.cancel = cli_cancelled();
    WHIT_TRY(whit_session_open(bench->model, &options, &bench->session, error));

    uint32_t n = test->depth > test->n_tokens ? test->depth : test->n_tokens;
    bench->tokens = calloc(n > test->columns ? n : test->columns, sizeof *bench->tokens);
    if (!bench->tokens) return whit_fail_memory(error, "tokens", n * sizeof *bench->tokens);
    for (uint32_t s = 0; s < test->columns && test->depth; s++) {
        for (uint32_t i = 0; i < test->depth; i++)
            bench->tokens[i] = (whit_step_token){s, synthetic_id(bench->model, i), false};
        WHIT_TRY(whit_session_step(bench->session, bench->tokens, test->depth, error));
    }
    bench->bytes_per_token = count_bytes(bench);
    return WHIT_OK;
}

struct reading {
    const uint64_t *words;
    uint64_t sums[WHIT_POOL_THREADS_MAX];
};

static void read_chunks(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    struct reading *reading = context;
    const size_t n_words = CHUNK_BYTES / sizeof(uint64_t);
    const uint64_t *words = reading->words + begin * n_words;
    uint64_t sum = 0;
    for (size_t i = 0; i < (end - begin) * n_words; i++) sum += words[i];
    reading->sums[worker] += sum;
}

/* The session's threads read as much of the mapped model as a pass does, whole MiB. */
static void read_weights(const struct bench *bench, struct reading *reading, cli_bench_round *round)
{
    const void *address;
    size_t size_bytes;
    const char *path;
    if (!whit_model_mapping(bench->model, 0, &address, &size_bytes, &path)) return;
    if (size_bytes > bench->bytes_per_token) size_bytes = bench->bytes_per_token;
    uint32_t n_chunks = (uint32_t)(size_bytes / CHUNK_BYTES);
    if (!n_chunks) return;
    reading->words = address;
    uint64_t before = whit_now_ns();
    whit_pool_run(bench->session->pool, read_chunks, reading, n_chunks, 1);
    round->read_ns = whit_now_ns() - before;
    round->read_bytes = (uint64_t)n_chunks * CHUNK_BYTES;
}

static bool read_all(int fd, void *data, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        ssize_t n = read(fd, (char *)data + done, size_bytes - done);
        if (n < 0 && errno == EINTR && !*cli_cancelled()) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/* Answers every byte on `in` with a round, until it is closed. Only ever called in the child. */
static void child(const cli_bench_test *test, bool no_cache, int in, int out)
{
    struct bench bench = {.test = *test};
    struct reading *reading = calloc(1, sizeof *reading);
    cli_bench_facts facts = {0};
    whit_status status = reading ? open_bench(&bench, no_cache, &facts.error) : WHIT_ERROR_MEMORY;
    facts.error.status = status;
    if (status == WHIT_OK) {
        facts.n_threads = whit_pool_size(bench.session->pool);
        facts.bytes_per_token = bench.bytes_per_token;
        snprintf(facts.isa, sizeof facts.isa, "%s", whit_isa_name(matrix_isa(&bench)));
    }
    bool heard = write(out, &facts, sizeof facts) == sizeof facts;
    char go;
    while (status == WHIT_OK && heard && read_all(in, &go, 1)) {
        cli_bench_round round = {0};
        struct rusage usage;
        round.status = rewind_to_depth(&bench, NULL);
        uint64_t before = whit_now_ns();
        if (round.status == WHIT_OK) round.status = run_round(&bench, NULL);
        round.run_ns = whit_now_ns() - before;
        getrusage(RUSAGE_SELF, &usage);
        round.peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
        read_weights(&bench, reading, &round);
        heard = write(out, &round, sizeof round) == sizeof round;
    }
    whit_session_close(bench.session);
    whit_model_close(bench.model);
    free(bench.tokens);
    free(reading);
}

bool cli_bench_start(const cli_bench_test *test, bool no_cache, cli_bench_process *process,
                     cli_bench_facts *facts)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    *process = (cli_bench_process){.pid = -1, .to_child = -1, .from_child = -1};
    if (pipe(to) != 0 || pipe(from) != 0 || (process->pid = fork()) < 0) {
        for (int i = 0; i < 2; i++) {
            close(to[i]);
            close(from[i]);
        }
        return false;
    }
    if (process->pid == 0) {
        close(to[1]);
        close(from[0]);
        child(test, no_cache, to[0], from[1]);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    process->to_child = to[1];
    process->from_child = from[0];
    return read_all(process->from_child, facts, sizeof *facts);
}

bool cli_bench_round_run(cli_bench_process *process, cli_bench_round *round)
{
    return write(process->to_child, "g", 1) == 1 &&
           read_all(process->from_child, round, sizeof *round);
}

void cli_bench_stop(cli_bench_process *process)
{
    if (process->pid <= 0) return;
    close(process->to_child);
    close(process->from_child);
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    process->pid = -1;
}
