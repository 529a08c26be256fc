/* SPDX-License-Identifier: MIT
 * Implements whit bench, which measures how fast models run on this machine and how far that is from its limits
 * (bench/bench.h). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/system.h"
#include "cli/bench_report.h"
#include "cli/flags.h"
#include "cli/profile.h"
#include "cli/ranks.h"
#include "cli/names.h"
#include "cli/verbs.h"
#include "whit/steps.h"

struct bench_values {
    cli_list models, shapes;
    uint32_t n_prompt, n_decode, n_batch_tokens, n_rounds, n_columns, adapter_rank;
    uint32_t n_guesses;
    const char *depths, *threads, *draft;
    int kv, act; /* act: index of the choice, 0: i8, 1: q2 */
    bool steal, exact_head, kernels, arrays, profile, json, csv, md;
};
enum { BATCH_TOKENS = 512 };
static const struct bench_values defaults = {.n_guesses = WHIT_DRAFT_BY_COST,
                                             .n_prompt = 512,
                                             .n_decode = 128,
                                             .n_rounds = 5,
                                             .n_columns = 1,
                                             .depths = "0",
                                             .threads = "0"};

#define AT(member) offsetof(struct bench_values, member)
static const cli_option options[] = {
    {"-m, --model", CLI_REPEAT, AT(models), "FILE", "A model to measure; may be repeated.", 0, 0},
    {"--shape", CLI_REPEAT, AT(shapes), "SHAPE",
     "NAME:LAYERS[:HEAD[:EMBD]]: a random model of a real shape; may be repeated. LAYERS ends in + with sign planes, "
     "outliers and low-rank pairs, as in b1+.",
     0, 0},
    {"-p, --n-prompt", CLI_COUNT, AT(n_prompt), "N",
     "Tokens of the prompt test; 512 by default, 0 leaves the test out.", 0, 1 << 20},
    {"-n, --n-gen", CLI_COUNT, AT(n_decode), "N", "Tokens of the decoding test; 128 by default, 0 leaves the test out.",
     0, 1 << 20},
    {"-d, --depth", CLI_TEXT, AT(depths), "LIST", "Tokens of context before a test; 0, the default, is none.", 0, 0},
    {"-t, --threads", CLI_TEXT, AT(threads), "LIST",
     "Threads; 0, the default, is one per physical core, or as the machine's profile has it.", 0, 0},
    {"-ub, --ubatch", CLI_COUNT, AT(n_batch_tokens), "N",
     "Most tokens in one pass; 512 unless the machine's profile has another number.", 1, 1 << 16},
    {"-r, --repeat", CLI_COUNT, AT(n_rounds), "N", "Number of rounds; 5 by default.", 1, BENCH_ROUNDS_MAX},
    {"--kv", CLI_CHOICE, AT(kv), "f16|f32|i8|k4v2|k2v2|bitmap", "Type of the KV cache; f16 by default.", 0, 0},
    {"--act", CLI_CHOICE, AT(act), "i8|q2", "Activations that b1 and q2 matrices multiply; i8 by default.", 0, 0},
    {"--columns", CLI_COUNT, AT(n_columns), "N", "Sequences that are decoded at once; 1 by default.", 1, 256},
    {"--adapter", CLI_COUNT, AT(adapter_rank), "RANK",
     "Mount a random adapter of this rank on all matrices of the layers.", 1, WHIT_ADAPTER_MAX_RANK},
    {"--draft", CLI_FILE, AT(draft), "mtp|none|FILE",
     "Decode the model's own likeliest text with guesses: of its block (mtp), of a draft model, or of the text alone "
     "(none).",
     0, 0},
    {"--spec", CLI_COUNT, AT(n_guesses), "N", "Tokens that --draft guesses at a time; by cost without it.", 1, 31},
    {"--exact-head", CLI_FLAG, AT(exact_head), NULL, "Read the whole head; decoding needs only the largest logits.", 0,
     0},
    {"--steal", CLI_FLAG, AT(steal), NULL, "Measure again with one core taken by a busy thread.", 0, 0},
    {"--profile", CLI_FLAG, AT(profile), NULL, "Also say where the time of a step goes.", 0, 0},
    {"--kernels", CLI_FLAG, AT(kernels), NULL, "Measure each matrix kernel by itself instead.", 0, 0},
    {"--arrays", CLI_FLAG, AT(arrays), NULL, "Measure quaternary vectors and fields read in place instead.", 0, 0},
    {"--json", CLI_FLAG, AT(json), NULL, "Print a JSON array with one object per test.", 0, 0},
    {"--csv", CLI_FLAG, AT(csv), NULL, "Print comma-separated values.", 0, 0},
    {"--md", CLI_FLAG, AT(md), NULL,
     "Print the whole Markdown table; the default, but on a terminal its main columns alone.", 0, 0},
    {0},
};

#define LIST_MAX 64

/* Parses numbers separated by commas, such as "0,2048". Returns how many there are; 0 if the text is malformed, a
 * number exceeds `most`, or there are more than LIST_MAX numbers. */
static size_t parse_list(const char *text, uint32_t most, uint32_t list[LIST_MAX])
{
    size_t n = 0;
    for (const char *at = text; n < LIST_MAX; at++) {
        char *end;
        if (*at < '0' || *at > '9') return 0;
        unsigned long number = strtoul(at, &end, 10);
        if (number > most) return 0;
        list[n++] = (uint32_t)number;
        if (!*end) return n;
        if (*end != ',') return 0;
        at = end;
    }
    return 0;
}

/* ---- models and tests ----------------------------------------------------------------------- */

struct bench {
    cli_call *call;
    const struct bench_values *values;
    bench_model *models;
    size_t n_models;
    const char *draft; /* value of --draft as in bench_test; a model's name is replaced by its path */
    char draft_path[BENCH_PATH_BYTES];
    bench_test *tests;
    bench_result *results;
    size_t n_tests;
    whit_cpu cpu;
};

static whit_status make_models(struct bench *b, whit_error *error)
{
    const struct bench_values *v = b->values;
    b->models = calloc(v->models.n + v->shapes.n, sizeof *b->models);
    if (!b->models) return whit_fail_memory(error, "the models", 0);
    for (size_t i = 0; i < v->models.n; i++) {
        bench_model *model = &b->models[b->n_models++];
        const char *path = v->models.items[i], *slash = strrchr(path, '/');
        WHIT_TRY(cli_find_model(path, model->path, error));
        snprintf(model->name, sizeof model->name, "%s", slash ? slash + 1 : path);
    }
    b->draft = v->draft;
    if (v->draft && strcmp(v->draft, "mtp") != 0 && strcmp(v->draft, "none") != 0) {
        WHIT_TRY(cli_find_model(v->draft, b->draft_path, error));
        b->draft = b->draft_path;
    }
    for (size_t i = 0; i < v->shapes.n; i++)
        WHIT_TRY(bench_model_shape(v->shapes.items[i], cli_progress, &b->models[b->n_models++], error));
    cli_progress_end();
    return WHIT_OK;
}

/* Makes the models under mpirun. Rank 0 makes them first, so that the other ranks find random models in the cache if
 * they share it. */
static whit_status make_ranks_models(struct bench *b, const whit_ranks *ranks, whit_error *error)
{
    uint8_t is_made = 1;
    if (!ranks->rank) WHIT_TRY(make_models(b, error));
    if (!ranks->broadcast(ranks->user, &is_made, sizeof is_made))
        return whit_fail(error, WHIT_ERROR_IO,
                         "rank %u: the process of another rank has ended, and its machine's output says why",
                         ranks->rank);
    return ranks->rank ? make_models(b, error) : WHIT_OK;
}

/* Makes a test for every combination of model, depth and number of threads, for prompts and decoding, except for those
 * with 0 tokens (-p 0, -n 0); with --steal also a second test in which a core is busy. */
static whit_status make_tests(struct bench *b, whit_error *error)
{
    const struct bench_values *v = b->values;
    uint32_t depths[LIST_MAX], threads[LIST_MAX];
    const uint32_t *tuned = cli_profile_in_use()->values;
    const uint32_t usual_threads = tuned[CLI_TUNED_THREADS] ? tuned[CLI_TUNED_THREADS] : b->cpu.n_threads;
    const uint32_t usual_batch = tuned[CLI_TUNED_BATCH] ? tuned[CLI_TUNED_BATCH] : BATCH_TOKENS;
    size_t n_depths = parse_list(v->depths, 1 << 20, depths),
           n_threads = parse_list(v->threads, WHIT_POOL_THREADS_MAX, threads);
    if (!n_depths || !n_threads) {
        const char *given = n_depths ? v->threads : v->depths;
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "-%c takes up to 64 numbers separated by commas, not '%s'",
                         n_depths ? 't' : 'd', given);
    }
    size_t most = b->n_models * n_depths * n_threads * 4;
    b->tests = calloc(most, sizeof *b->tests);
    b->results = calloc(most, sizeof *b->results);
    if (!b->tests || !b->results) return whit_fail_memory(error, "the list of tests", most);
    for (size_t i = 0; i < most; i++) {
        size_t rest = i / 4;
        bool is_decode = i / 2 % 2, stolen = i % 2;
        uint32_t n = is_decode ? v->n_decode : v->n_prompt, t = threads[rest % n_threads];
        if (n == 0 || (stolen && !v->steal)) continue;
        b->tests[b->n_tests++] = (bench_test){.model = &b->models[rest / n_threads / n_depths],
                                              .depth = depths[rest / n_threads % n_depths],
                                              .n_threads = t ? t : usual_threads,
                                              .is_decode = is_decode,
                                              .stolen = stolen,
                                              .n_tokens = n,
                                              .columns = is_decode ? v->n_columns : 1,
                                              .n_batch_tokens = v->n_batch_tokens ? v->n_batch_tokens : usual_batch,
                                              .profile = v->profile,
                                              .exact_head = v->exact_head,
                                              .adapter_rank = v->adapter_rank,
                                              .kv = (whit_kv_type)v->kv,
                                              .act = v->act ? WHIT_ACT_Q2 : WHIT_ACT_I8,
                                              .draft = is_decode ? b->draft : NULL,
                                              .n_guesses = v->n_guesses,
                                              .n_guesses_max = cli_draft_max(v->n_guesses),
                                              .stop = cli_cancelled(),
                                              .cpu = getenv("WHIT_CPU")};
    }
    return WHIT_OK;
}

static whit_status measure_model(struct bench *b, whit_error *error)
{
    for (size_t i = 0; i < b->n_models; i++) bench_renew_pages(b->models[i].path);
    const bench_measuring wanted = {b->tests, b->n_tests, b->values->n_rounds, cli_progress, cli_guard_likely};
    return bench_measure(&wanted, b->results, error);
}

static void free_bench(struct bench *b)
{
    cli_guard_likely(NULL);
    for (size_t i = 0; i < b->n_models; i++) bench_model_free(&b->models[i]);
    free(b->models);
    free(b->tests);
    free(b->results);
}

/* Measures one model on all ranks together, under mpirun. Returns an exit status. */
static int run_ranks(struct bench *b, bench_form form, bool all)
{
    const struct bench_values *v = b->values;
    const whit_ranks *ranks;
    whit_error error = {0};
    if (v->profile || v->steal || v->kernels || v->arrays || v->adapter_rank || v->draft)
        return cli_fail(
            b->call, CLI_USAGE,
            "--profile, --steal, --kernels, --arrays, --draft and --adapter work on one machine: leave them out, or "
            "start bench without mpirun");
    if (v->models.n + v->shapes.n != 1)
        return cli_fail(b->call, CLI_USAGE, "several machines run one model at a time: name one by -m or --shape");
    int ended = cli_join_ranks(b->call, &ranks);
    if (ended != CLI_OK) return ended;
    whit_cpu_detect(&b->cpu);
    whit_status status = make_ranks_models(b, ranks, &error);
    if (status == WHIT_OK) status = make_tests(b, &error);
    if (status != WHIT_OK) return cli_fail_error(b->call, &error);
    if (!b->n_tests)
        return cli_fail(b->call, CLI_USAGE, "there is nothing to measure: -p and -n are both 0; set one of them");
    return cli_bench_ranks(b->call, form, ranks, b->tests, b->n_tests, v->n_rounds, all);
}

static int run_bench(cli_call *call)
{
    struct bench b = {.call = call, .values = call->values};
    const struct bench_values *v = b.values;
    bench_form form = BENCH_MD;
    if (v->json)
        form = BENCH_JSON;
    else if (v->csv)
        form = BENCH_CSV;
    if (v->json + v->csv + v->md > 1)
        return cli_fail(call, CLI_USAGE, "only one of --json, --csv and --md can be printed");
    if (v->profile && v->csv)
        return cli_fail(call, CLI_USAGE, "--profile cannot be printed as --csv: leave it out, or use --json");
    if (!v->draft && v->n_guesses != WHIT_DRAFT_BY_COST)
        return cli_fail(call, CLI_USAGE, "--spec sets the number of drafted tokens: add --draft mtp, none or FILE");
    if (v->draft && (v->n_columns > 1 || v->profile))
        return cli_fail(call, CLI_USAGE, "--draft measures one sequence, without --columns and --profile");
    const bool all = v->md || !isatty(STDOUT_FILENO);
    if (cli_under_mpirun()) {
        const int ended = run_ranks(&b, form, all);
        free_bench(&b);
        return ended;
    }
    if (v->arrays) return cli_bench_arrays(call, form, v->n_rounds, getenv("WHIT_CPU"));
    if (v->kernels) return cli_bench_kernels(call, form, v->n_rounds, getenv("WHIT_CPU"));
    if (v->models.n + v->shapes.n == 0)
        return cli_fail(call, CLI_USAGE,
                        "name a model (-m FILE) or a shape (--shape bitnet-2b4t:t2); see 'whit bench --help'");
    whit_error error = {0};
    whit_cpu_detect(&b.cpu);
    whit_status status = make_models(&b, &error);
    if (status == WHIT_OK) status = make_tests(&b, &error);
    if (status == WHIT_OK) status = measure_model(&b, &error);
    cli_progress_end();
    unsigned with = v->draft ? BENCH_WITH_DRAFT : 0;
    if (v->steal) with |= BENCH_WITH_STOLEN;
    if (status == WHIT_OK) bench_report(call, form, b.results, b.n_tests, with, all);
    free_bench(&b);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

const cli_verb cli_bench_verb = {
    "bench",
    "",
    0,
    0,
    "measure models, and the limits of this machine beside them",
    "Measures prompts (pp) and decoding (tg) as llama-bench does. Beside every figure stand the limits "
    "that the same threads have, measured between its steps: reading the same weights, and multiplying "
    "int8 numbers with the instructions in use. Shares are medians of the rounds' own ratios; the "
    "roofline share is the longer of reading and multiplying over the time taken. Weights read faster "
    "from huge pages: files that are cached in small ones are read anew, and \"huge\" says how much lies "
    "in huge ones; shares compare where that is equal.\n"
    "A shape is a random model of real size: bitnet-2b4t, tinyllama-1.1b, llama3-8b, falcon3-7b, "
    "qwen3-0.6b, qwen35-0.8b, qwen35-4b (with -mtp: also its block that guesses tokens), lfm2-1.2b, gemma4-e2b, "
    "gemma4-e4b, bonsai2-27b, qwen3-30b-a3b, lfm2-8b-a1b or maple-a1b (NAME/N: "
    "N of its layers), with the codec of its layers (t2 t5 "
    "b1 q2 l2 i4 i8; mobile: Gemma 4's own mix of bits), of its head "
    "(default i8s where it is "
    "the embedding too, else i4; none leaves the head out) and of its embedding. It is made once and "
    "kept in the cache folder. WHIT_CPU caps the instructions.\n"
    "Under mpirun the ranks run one model together: what travels for a token, and the time that the network's latency "
    "and bandwidth predict beside the one seen.\n"
    "  whit bench --shape bitnet-2b4t:t5 -t 1,2 -d 0,2048 --kv i8\n"
    "  whit bench --shape qwen35-0.8b-mtp:t2 --draft mtp --spec 2 -p 0",
    {{"OPTIONS", options, 0}},
    sizeof(struct bench_values),
    &defaults,
    run_bench,
    .usual = "-m, -t, -r, --json",
};
