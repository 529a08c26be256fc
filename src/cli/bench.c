/* SPDX-License-Identifier: MIT
 * whit bench: tokens per second of prompts (pp) and of decoding (tg), and what they are of the
 * memory bandwidth measured in the same minutes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "cli/bench.h"
#include "cli/verbs.h"

enum { N_TESTS_MAX = 256, N_LIST_MAX = 32 };

struct bench_values {
    cli_list models;
    uint32_t n_prompt, n_decode, n_batch, n_rounds, columns;
    const char *depths, *threads;
    int kv;
    bool no_cache, json;
};
static const struct bench_values defaults = {.n_prompt = 512,
                                             .n_decode = 128,
                                             .n_batch = 512,
                                             .n_rounds = 5,
                                             .columns = 1,
                                             .depths = "0",
                                             .threads = "0"};

#define AT(member) offsetof(struct bench_values, member)
static const cli_option options[] = {
    {"-m, --model", CLI_REPEAT, AT(models), "FILE", "A model; may be given again."},
    {"-p, --n-prompt", CLI_COUNT, AT(n_prompt), "P",
     "Tokens of the prompt test; 512, 0 leaves it out.", 0, 1 << 24},
    {"-n, --n-gen", CLI_COUNT, AT(n_decode), "N",
     "Tokens of the decoding test; 128, 0 leaves it out.", 0, 1 << 24},
    {"-d, --n-depth", CLI_TEXT, AT(depths), "LIST",
     "Tokens in the cache before a test, with commas between; 0."},
    {"-t, --threads", CLI_TEXT, AT(threads), "LIST",
     "Threads, with commas between; 0 is one per physical core."},
    {"-ub, --ubatch-size", CLI_COUNT, AT(n_batch), "N", "Tokens of a prompt taken at once; 512.", 1,
     65536},
    {"-r, --repetitions", CLI_COUNT, AT(n_rounds), "R", "Rounds; every test runs once in each; 5.",
     1, 100000},
    {"--columns", CLI_COUNT, AT(columns), "N", "Sequences decoded at once; 1.", 1, 1024},
    {"--kv", CLI_CHOICE, AT(kv), "f16|f32|i8", "Type of the KV cache; f16 by default."},
    {"--no-cache", CLI_FLAG, AT(no_cache), NULL, "Convert sources in memory and write nothing."},
    {"--json", CLI_FLAG, AT(json), NULL, "Print a JSON array with one object per test."},
    {0},
};

struct running {
    cli_bench_test test;
    cli_bench_process process;
    cli_bench_facts facts;
    double *speeds, *shares; /* (n_rounds) tokens per second; share of the bandwidth, 0 unknown */
    double read_gbps;
    uint64_t peak_rss_bytes;
};

/* "0,512" to numbers; 0 where it is none. */
static size_t parse_list(const char *text, uint32_t numbers[N_LIST_MAX])
{
    size_t n = 0;
    for (;;) {
        char *end;
        unsigned long number = strtoul(text, &end, 10);
        if (end == text || text[0] == '-' || number > 1 << 24 || n == N_LIST_MAX) return 0;
        numbers[n++] = (uint32_t)number;
        if (!*end) return n;
        if (*end != ',') return 0;
        text = end + 1;
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The tests in the order of the output. */
static size_t list_tests(const struct bench_values *values, const uint32_t *depths, size_t n_depths,
                         const uint32_t *threads, size_t n_threads, struct running *running)
{
    size_t n = 0;
    for (size_t m = 0; m < values->models.n; m++)
        for (size_t t = 0; t < n_threads; t++)
            for (size_t d = 0; d < n_depths; d++)
                for (int prompt = 1; prompt >= 0; prompt--) {
                    uint32_t n_tokens = prompt ? values->n_prompt : values->n_decode;
                    if (!n_tokens || n == N_TESTS_MAX) continue;
                    running[n++].test = (cli_bench_test){.model = values->models.items[m],
                                                         .prompt = prompt,
                                                         .n_tokens = n_tokens,
                                                         .depth = depths[d],
                                                         .columns = prompt ? 1 : values->columns,
                                                         .n_threads = threads[t],
                                                         .n_batch = values->n_batch,
                                                         .kv = (whit_kv_type)values->kv};
                }
    return n;
}

static int start_all(cli_call *call, const struct bench_values *values, struct running *running,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        running[i].speeds = calloc(2 * (size_t)values->n_rounds, sizeof *running[i].speeds);
        if (!running[i].speeds) return cli_fail(call, CLI_LIMIT, "out of memory");
        running[i].shares = running[i].speeds + values->n_rounds;
        if (!cli_bench_start(&running[i].test, values->no_cache, &running[i].process,
                             &running[i].facts))
            return *cli_cancelled()
                       ? CLI_INTERRUPTED
                       : cli_fail(call, CLI_FAILED, "a test's process ended too early");
        if (running[i].facts.error.status != WHIT_OK)
            return cli_fail_error(call, &running[i].facts.error);
    }
    return CLI_OK;
}

static int run_rounds(cli_call *call, uint32_t n_rounds, struct running *running, size_t n)
{
    for (uint32_t r = 0; r < n_rounds; r++)
        for (size_t i = 0; i < n; i++) {
            struct running *one = &running[i];
            cli_bench_round round;
            if (!cli_progress(NULL, "bench", (double)(r * n + i) / (double)(n_rounds * n)))
                return CLI_INTERRUPTED;
            if (!cli_bench_round_run(&one->process, &round) || round.status != WHIT_OK)
                return *cli_cancelled()
                           ? CLI_INTERRUPTED
                           : cli_fail(call, CLI_FAILED, "%s: a test failed", one->test.model);
            double seconds = (double)round.run_ns / 1e9;
            one->speeds[r] = (double)one->test.n_tokens * one->test.columns / seconds;
            if (round.read_ns) {
                double gbps = (double)round.read_bytes / (double)round.read_ns;
                double passes =
                    one->test.prompt
                        ? ((double)one->test.n_tokens + one->test.n_batch - 1) / one->test.n_batch
                        : one->test.n_tokens;
                one->read_gbps = gbps > one->read_gbps ? gbps : one->read_gbps;
                one->shares[r] = passes * (double)one->facts.bytes_per_token / seconds / 1e9 / gbps;
            }
            one->peak_rss_bytes = round.peak_rss_bytes;
        }
    return CLI_OK;
}

static json_t *describe(const struct running *one, const char *cpu, uint32_t n_rounds)
{
    static const char *const kvs[] = {"f16", "f32", "i8"};
    char name[32];
    const char *slash = strrchr(one->test.model, '/');
    snprintf(name, sizeof name, "%s%u", one->test.prompt ? "pp" : "tg", one->test.n_tokens);
    double best = 0;
    for (uint32_t r = 0; r < n_rounds; r++)
        if (one->speeds[r] > best) best = one->speeds[r];
    return json_pack("{s:s, s:s, s:i, s:i, s:s, s:i, s:s, s:s, s:f, s:f, s:I, s:f, s:f, s:I}",
                     "shape", slash ? slash + 1 : one->test.model, "test", name, "depth",
                     (int)one->test.depth, "columns", (int)one->test.columns, "kv",
                     kvs[one->test.kv], "threads", (int)one->facts.n_threads, "cpu", cpu, "isa",
                     one->facts.isa, "tps_median", median(one->speeds, n_rounds), "tps_best", best,
                     "bytes_per_token", (json_int_t)one->facts.bytes_per_token, "read_gbps",
                     one->read_gbps, "bandwidth_share", median(one->shares, n_rounds),
                     "peak_rss_bytes", (json_int_t)one->peak_rss_bytes);
}

static void print_table(cli_call *call, const json_t *list)
{
    size_t i;
    json_t *one;
    cli_print(call,
              "| %-24s | test    | depth | threads | isa     |   median |     best | GB/s read | "
              "share |\n",
              "model");
    cli_print(
        call,
        "|%.26s|---------|------:|--------:|---------|---------:|---------:|----------:|------:|\n",
        "----------------------------------");
    json_array_foreach(list, i, one)
    {
        const char *shape, *test, *isa;
        int depth, threads;
        double tps_median, tps_best, gbps, share;
        json_unpack(one, "{s:s, s:s, s:i, s:i, s:s, s:f, s:f, s:f, s:f}", "shape", &shape, "test",
                    &test, "depth", &depth, "threads", &threads, "isa", &isa, "tps_median",
                    &tps_median, "tps_best", &tps_best, "read_gbps", &gbps, "bandwidth_share",
                    &share);
        cli_print(call, "| %-24s | %-7s | %5d | %7d | %-7s | %8.1f | %8.1f | %9.1f | %3.0f %% |\n",
                  shape, test, depth, threads, isa, tps_median, tps_best, gbps, 100 * share);
    }
}

static int run(cli_call *call)
{
    const struct bench_values *values = call->values;
    uint32_t depths[N_LIST_MAX], threads[N_LIST_MAX];
    size_t n_depths = parse_list(values->depths, depths),
           n_threads = parse_list(values->threads, threads);
    if (!values->models.n) return cli_fail(call, CLI_USAGE, "a model is wanted: -m FILE");
    if (!n_depths)
        return cli_fail(call, CLI_USAGE, "-d takes numbers with commas between, not '%s'",
                        values->depths);
    if (!n_threads)
        return cli_fail(call, CLI_USAGE, "-t takes numbers with commas between, not '%s'",
                        values->threads);

    struct running *running = calloc(N_TESTS_MAX, sizeof *running);
    if (!running) return cli_fail(call, CLI_LIMIT, "out of memory");
    size_t n = list_tests(values, depths, n_depths, threads, n_threads, running);
    int status = start_all(call, values, running, n);
    if (status == CLI_OK) status = run_rounds(call, values->n_rounds, running, n);
    cli_progress_end();
    if (status == CLI_OK) {
        whit_cpu cpu;
        whit_cpu_detect(&cpu);
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(list, describe(&running[i], cpu.model, values->n_rounds));
        if (!values->json)
            print_table(call, list);
        else
            cli_print_json(call, json_incref(list));
        json_decref(list);
    }
    /* The last first: each process holds the ends of the pipes to those before it. */
    while (n--) {
        cli_bench_stop(&running[n].process);
        free(running[n].speeds);
    }
    free(running);
    return status;
}

const cli_verb cli_bench_verb = {
    "bench",
    "",
    0,
    0,
    "measure tokens per second",
    "Tests are prompts of P tokens (pp) and decoding of N tokens (tg), each in a process of its "
    "own; "
    "they take turns, round by round. Beside the speed stand the bandwidth that the same threads "
    "reach reading the mapped weights, and the share of it that the test used (0 where the model "
    "is "
    "too small to say).\n"
    "  whit bench -m model.ndf -t 1,2 -d 0,2048 --json",
    {{"OPTIONS", options, 0}},
    sizeof(struct bench_values),
    &defaults,
    run,
};
