/* SPDX-License-Identifier: MIT
 * whit bench: declarations that its files share.
 *
 *   bench.c         options, the list of tests, rounds, shares
 *   bench_model.c   shapes, and random models of them in the cache
 *   bench_pages.c   huge and small pages of a model's files
 *   bench_steps.c   the steps of a test: filling its depth, passes, forgetting
 *   bench_work.c    one test
 *   bench_worker.c  its process (bench_worker_here.c: none, on Windows)
 *   bench_draft.c   decoding with guesses
 *   bench_ranks.c   tests of a model that several processes run
 *   bench_count.c   what a step reads and multiplies
 *   bench_report.c  tables and JSON
 *   bench_adapter.c a random adapter
 *   bench_kernels.c one kernel at a time
 *   bench_arrays.c  quaternary vectors */
#ifndef WHIT_CLI_BENCH_H
#define WHIT_CLI_BENCH_H

#include "base/ranks.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "runtime/adapter.h"
#include "model/exec_step.h"
#include "runtime/session.h"

#define BENCH_NAME_BYTES  128
#define BENCH_PATH_BYTES  4096
#define BENCH_ROUNDS_MAX  1000
#define BENCH_LABEL_BYTES 96

/* One model of the call. */
typedef struct bench_model {
    char name[BENCH_NAME_BYTES]; /* the shape as given, or the file's name */
    char path[BENCH_PATH_BYTES];
    bool no_head;               /* HEAD none: no pass computes logits */
    whit_ndf_writer *in_memory; /* used if the cache cannot be; `path` then names its descriptor */
} bench_model;

/* Makes, or finds in the cache, a random model of NAME:BODY[:HEAD[:EMBD]]. `progress` is called while one is made;
 * NULL: not called. */
whit_status bench_model_shape(const char *text, whit_progress_fn *progress, bench_model *model, whit_error *error);
/* Random corrections of a matrix into empty buffers, which the caller frees. */
whit_status bench_corrections(const whit_tensor_type *type, uint64_t seed, whit_buf parts[WHIT_PART_COUNT],
                              whit_error *error);
void bench_model_free(bench_model *model);

/* ---- pages ------------------------------------------------------------------------------------ */

/* Has the system cache a model's files in huge pages, if they are not and the system can. */
void bench_renew_pages(const char *model_path);
/* Returns the share of an open model's mapped bytes that lies in huge pages, counting maps that ask for huge pages; 0
 * if unknown. */
double bench_huge_share(const whit_model *model);

typedef struct bench_test {
    const bench_model *model;
    bool is_decode; /* tg, else pp */
    uint32_t n_tokens, depth, columns, n_threads, n_batch_tokens;
    whit_kv_type kv;
    whit_act_type act;
    bool stolen; /* a busy thread occupies one core */
    bool profile, exact_head;
    uint32_t adapter_rank; /* rank of a random adapter on every sequence; 0: no adapter */
    const char *cpu;       /* limit of the CPU level, as WHIT_CPU */
    const char *draft;     /* decoding with guesses of "mtp", "none" (of the text alone) or a file; NULL: without */
    uint32_t n_guesses;    /* at a time; WHIT_DRAFT_BY_COST: by cost */
    uint32_t n_guesses_max;
    const volatile bool *stop; /* true: passes end with WHIT_ERROR_CANCELLED */
} bench_test;

/* A worker's message once it is ready. */
typedef struct bench_facts {
    whit_status status;
    char message[504];
    char isa[32]; /* strongest level of the matrix kernels used */
} bench_facts;

/* A worker's result of a round. Rates are of the same threads, measured between the steps. */
typedef struct bench_sample {
    whit_status status;
    char message[504];
    double tokens, seconds;
    double bytes, macs; /* bytes read and multiply-adds (layers only) in this time */
    double all_macs;    /* multiply-adds including the head */
    double read_bytes_per_s, int8_macs_per_s, huge_share;
    double steps, n_guessed, n_right; /* with guesses: steps, tokens guessed, and how many of them were right */
    uint64_t peak_rss_bytes;
} bench_sample;

/* One line of a profile: steps of one kind, summed over all layers. */
typedef struct bench_line {
    char label[BENCH_LABEL_BYTES];
    uint32_t n_phases; /* phases per pass */
    double seconds, bytes;
} bench_line;
#define BENCH_LINES_MAX 64

/* ---- one step, counted ------------------------------------------------------------------------ */

typedef struct bench_range {
    const uint8_t *data;
    uint64_t size_bytes;
} bench_range;

typedef struct bench_count {
    bench_range *ranges; /* weights that a pass reads completely */
    uint32_t n_ranges;
    double pass_bytes;            /* bytes of the ranges and vectors */
    double selected_bytes;        /* the part of pass_bytes that a pass without wanted logits does not read */
    double survivor_bytes;        /* further bytes per rescored row of a screened head; 0: not screened */
    double row_bytes;             /* bytes of an embedding's row */
    const struct whit_kv *kv;     /* its windows determine the bytes that a pass reads of the cache */
    double layer_macs, head_macs; /* multiply-adds per row */
    whit_isa isa;
} bench_count;

/* Counts from the plan of a session that runs passes of n_rows rows, for n_selected of which logits are wanted,
 * (`screened`) only the largest ones. */
whit_status bench_count_open(const whit_session *session, uint32_t n_rows, uint32_t n_selected, bool screened,
                             bench_count *count, whit_error *error);
void bench_count_close(bench_count *count);
/* Bytes of the cache that a query reads after `position` earlier positions. */
double bench_cache_bytes(const struct whit_kv *kv, double position);
/* Names the kind of work of a phase, the same for all layers: "gate+up", "norm+acts". */
void bench_phase_label(const whit_session *session, const whit_exec_phase *phase, char label[BENCH_LABEL_BYTES]);

/* ---- adapters --------------------------------------------------------------------------------- */

/* A random adapter of one rank on all matrices of the layers, mounted on every sequence. */
typedef struct bench_adapter {
    whit_buf image;
    whit_adapter adapter;
    double pass_bytes;
} bench_adapter;
whit_status bench_adapter_mount(whit_session *session, uint32_t rank, bench_adapter *bench, whit_error *error);
void bench_adapter_free(bench_adapter *bench);

/* ---- guesses ---------------------------------------------------------------------------------- */

/* Finds the draft model of a test: the model itself, a file, which is opened into *opened for the caller to close, or
 * NULL. */
whit_status bench_draft_open(const bench_test *test, const whit_model *model, whit_model **opened,
                             const whit_model **drafter, whit_error *error);
/* Generates the test's tokens after those of sequence 0 and the token `last`. Adds to the sample. */
whit_status bench_draft_round(whit_session *session, const bench_test *test, const bench_count *count, int32_t last,
                              bench_sample *sample, whit_error *error);

/* ---- steps ------------------------------------------------------------------------------------ */

/* The session of a test, and random tokens for its passes. */
typedef struct bench_steps {
    const bench_test *test;
    whit_session *session;
    whit_step_token *tokens; /* tokens of a pass */
    whit_rng rng;
} bench_steps;

/* Opens the session of a test, with a draft model or NULL; bench_steps_close also accepts what a failure leaves. */
whit_status bench_steps_open(const bench_test *test, const whit_model *model, const whit_model *drafter,
                             bench_steps *steps, whit_error *error);
/* Returns a random token. */
int32_t bench_steps_id(bench_steps *steps);
/* Feeds n random tokens: of as many sequences (decoding), or of the first one. wants: logits, of the last one alone
 * for a prompt. */
whit_status bench_steps_pass(bench_steps *steps, uint32_t n, bool wants, whit_error *error);
/* Fills all sequences up to the test's depth. */
whit_status bench_steps_fill(bench_steps *steps, whit_error *error);
/* Cuts all sequences back to the test's depth. */
whit_status bench_steps_forget(bench_steps *steps, whit_error *error);
void bench_steps_close(bench_steps *steps);

/* ---- workers ---------------------------------------------------------------------------------- */

typedef struct bench_worker {
    const bench_test *test;
    pid_t pid; /* -1: no process */
    int to, from;
    struct bench_work *here; /* where there are no processes */
    bench_facts facts;
} bench_worker;

/* Starts the process and waits until the model is open and the depth filled. To be closed even if it fails. */
whit_status bench_worker_open(const bench_test *test, bench_worker *worker, whit_error *error);
whit_status bench_worker_round(bench_worker *worker, bench_sample *sample, whit_error *error);
/* Fetches the profile of all rounds so far; returns the number of lines. */
uint32_t bench_worker_profile(bench_worker *worker, bench_line lines[BENCH_LINES_MAX]);
void bench_worker_close(bench_worker *worker);

/* ---- results ---------------------------------------------------------------------------------- */

typedef struct bench_result {
    const bench_test *test;
    char cpu[64], isa[32];
    double tps_median, tps_best, bytes_per_token, read_gbps, bandwidth_share;
    double int8_gmacs, int8_share, roofline_share, huge_share;
    double tokens_per_step, accepted; /* with guesses; accepted: share that was right, 0 without any */
    uint64_t peak_rss_bytes;
    bench_line lines[BENCH_LINES_MAX];
    uint32_t n_lines;
} bench_result;

typedef enum bench_form { BENCH_MD, BENCH_CSV, BENCH_JSON } bench_form;

typedef enum bench_kind { BENCH_TEXT, BENCH_COUNT, BENCH_REAL } bench_kind;

/* Columns that are there with some options alone. */
enum { BENCH_WITH_STOLEN = 1, BENCH_WITH_DRAFT = 2 };

typedef struct bench_column {
    const char *key, *title; /* title NULL: not in the Markdown table */
    bench_kind kind;
    int digits;    /* in the table */
    double factor; /* in the table */
    bool is_main;  /* also shown on a terminal */
    unsigned with; /* BENCH_WITH_...: the option that it belongs to; 0: always there */
} bench_column;

typedef struct bench_cell {
    char text[BENCH_NAME_BYTES];
    double number; /* NAN: unknown */
} bench_cell;
#define BENCH_COLUMNS_MAX 24

/* Results as a table. make_cells fills (n_columns) cells from result i. */
typedef struct bench_table {
    const bench_column *columns;
    size_t n_columns; /* at most BENCH_COLUMNS_MAX */
    unsigned with;    /* the columns of options that are there */
    void (*make_cells)(const void *results, size_t i, bench_cell *cells);
    const void *results;
    size_t n;
} bench_table;

/* Prints a table as Markdown or CSV. all: not only the main columns of Markdown. */
void bench_print_table(cli_call *call, bench_form form, const bench_table *table, bool all);
/* Returns a row as an object with the columns' keys. */
json_t *bench_row_json(const bench_table *table, size_t row);

/* with: the columns of options; all: also those of the table that a terminal does not show. */
void bench_report(cli_call *call, bench_form form, const bench_result *results, size_t n, unsigned with, bool all);

/* whit bench under mpirun, called by all ranks: measures the network, then on rank 0 the tests, by itself and with the
 * others, and prints them. All tests are of one model. */
int bench_ranks(cli_call *call, bench_form form, const whit_ranks *ranks, const bench_test *tests, size_t n_tests,
                uint32_t n_rounds, bool all);

/* whit bench --kernels. */
int bench_kernels(cli_call *call, bench_form form, uint32_t n_rounds, const char *cpu);
/* whit bench --arrays. */
int bench_arrays(cli_call *call, bench_form form, uint32_t n_rounds, const char *cpu);

double bench_median(double *values, size_t n); /* sorts `values` */

#endif
