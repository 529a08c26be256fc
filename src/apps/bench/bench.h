/* SPDX-License-Identifier: MIT
 * Measures how fast models run on this machine, and how far that is from the machine's limits, for whit bench.
 *
 *   shapes.c              shapes, and random models of them in the cache
 *   random_corrections.c  sign planes, outliers and low-rank pairs of such a model
 *   random_adapter.c      a random adapter
 *   huge_pages.c          huge and small pages of a model's files
 *   steps.c               the steps of a test: filling its depth, passes, forgetting
 *   timed_work.c          one test: its model, session and rounds
 *   worker.c              the process of a test (worker_here.c: no process, on Windows)
 *   guesses.c             decoding with guesses
 *   step_cost.c           counts of the bytes that a step reads, and of its multiply-adds
 *   measure.c             the rounds of all tests, and their medians
 *   measured_ranks.c      tests of a model that several processes run
 *   measured_kernels.c    one kernel at a time
 *   measured_arrays.c     quaternary vectors, fields read in place, programs */
#ifndef WHIT_BENCH_BENCH_H
#define WHIT_BENCH_BENCH_H

#include "base/ranks.h"
#include "base/rng.h"
#include "runtime/adapter.h"
#include "model/exec_step.h"
#include "runtime/session.h"
#include "whit.h"

#define BENCH_NAME_BYTES  128
#define BENCH_PATH_BYTES  4096
#define BENCH_ROUNDS_MAX  1000
#define BENCH_LABEL_BYTES 96

/* Describes one model of a bench call. */
typedef struct bench_model {
    char name[BENCH_NAME_BYTES]; /* the shape as given, or the name of the file */
    char path[BENCH_PATH_BYTES];
    bool no_head;               /* the shape says HEAD none: no pass computes logits */
    whit_ndf_writer *in_memory; /* model in memory, if the cache cannot be used; `path` then names its descriptor */
} bench_model;

/* Makes a random model of the shape NAME:BODY[:HEAD[:EMBD]], or finds it in the cache. `progress` is called while a
 * model is made; it may be NULL. */
whit_status bench_model_shape(const char *text, whit_progress_fn *progress, bench_model *model, whit_error *error);
/* Draws random corrections (sign planes, outliers, low-rank pairs) of a matrix into empty buffers, which the caller
 * frees. */
whit_status bench_corrections(const whit_tensor_type *type, uint64_t seed, whit_buf parts[WHIT_PART_COUNT],
                              whit_error *error);
void bench_model_free(bench_model *model);

/* ---- huge pages ------------------------------------------------------------------------------- */

/* Makes the system cache a model's files in huge pages, unless they are in huge pages already or the system has no such
 * pages. */
void bench_renew_pages(const char *model_path);
/* Returns the share of an open model's mapped bytes that are in huge pages, among mappings that ask for huge pages; 0
 * if it is unknown. */
double bench_huge_share(const whit_model *model);

typedef struct bench_test {
    const bench_model *model;
    bool is_decode; /* true: text generation (tg); false: prompt processing (pp) */
    uint32_t n_tokens, depth, columns, n_threads, n_batch_tokens;
    whit_kv_type kv;
    whit_act_type act;
    bool stolen; /* a busy thread occupies one core during the test */
    bool profile, exact_head;
    uint32_t adapter_rank; /* rank of a random adapter on every sequence; 0: no adapter */
    const char *cpu;       /* highest CPU level to use, as in the environment variable WHIT_CPU */
    /* source of guesses for speculative decoding: "mtp" (the model's own block), "none" (the text so far alone) or a
     * file; NULL: no guesses */
    const char *draft;
    uint32_t n_guesses; /* guesses at a time; WHIT_DRAFT_BY_COST: chosen by their measured costs */
    uint32_t n_guesses_max;
    const volatile bool *stop; /* if it becomes true, passes end with WHIT_ERROR_CANCELLED; not NULL */
} bench_test;

/* The message that a worker sends when it is ready or has failed to open. */
typedef struct bench_facts {
    whit_status status;
    char message[504];
    char isa[32]; /* highest CPU level among the matrix kernels in use */
} bench_facts;

/* Holds a worker's result of one round. The rates of reading and multiplying are measured by the same threads between
 * the steps. */
typedef struct bench_sample {
    whit_status status;
    char message[504];
    double tokens, seconds;
    /* bytes: bytes that the model reads (not a draft model); macs: multiply-adds of the layers; both within
     * `seconds` */
    double bytes, macs;
    double all_macs; /* multiply-adds of the layers and the head, within `seconds` */
    double read_bytes_per_s, int8_macs_per_s, huge_share;
    /* with guesses: steps, guessed tokens, and guesses that were right */
    double steps, n_guessed, n_right;
    uint64_t peak_rss_bytes;
} bench_sample;

/* Holds one line of a profile: the phases of one kind of work, summed over all layers. seconds: in all passes so far;
 * bytes: of the weights, in one pass. */
typedef struct bench_line {
    char label[BENCH_LABEL_BYTES];
    uint32_t n_phases; /* number of phases per pass */
    double seconds, bytes;
} bench_line;
#define BENCH_LINES_MAX 64

/* ---- bytes and multiply-adds of a pass -------------------------------------------------------- */

typedef struct bench_range {
    const uint8_t *data;
    uint64_t size_bytes;
} bench_range;

typedef struct bench_count {
    bench_range *ranges; /* weights that a pass reads; for experts an expected share of them */
    uint32_t n_ranges;
    double pass_bytes;     /* bytes of the ranges, and of recurrent states and small vectors such as those of norms */
    double selected_bytes; /* the part of pass_bytes that a pass without logits does not read */
    /* bytes read per row that a screened head computes exactly; 0: the head is not screened */
    double survivor_bytes;
    double row_bytes;             /* bytes of one row of the embedding */
    const struct whit_kv *kv;     /* the KV cache; the windows of its layers limit the bytes that a pass reads */
    double layer_macs, head_macs; /* multiply-adds per row */
    whit_isa isa;
} bench_count;

/* Counts the bytes and multiply-adds of passes over n_rows rows by the session's plan; n_selected of the rows need
 * logits (`screened`: only the largest logits). */
whit_status bench_count_open(const whit_session *session, uint32_t n_rows, uint32_t n_selected, bool screened,
                             bench_count *count, whit_error *error);
void bench_count_close(bench_count *count);
/* Returns the bytes of the KV cache that a query reads if `position` positions precede it. */
double bench_cache_bytes(const struct whit_kv *kv, double position);
/* Writes a label for the kind of work of a phase, which is the same in all layers: "gate+up", "norm+acts". */
void bench_phase_label(const whit_session *session, const whit_exec_phase *phase, char label[BENCH_LABEL_BYTES]);

/* ---- adapters --------------------------------------------------------------------------------- */

/* Holds a random adapter of one rank on all matrices of the layers, mounted on every sequence. */
typedef struct bench_adapter {
    whit_buf image;
    whit_adapter adapter;
    double pass_bytes;
} bench_adapter;
whit_status bench_adapter_mount(whit_session *session, uint32_t rank, bench_adapter *bench, whit_error *error);
void bench_adapter_free(bench_adapter *bench);

/* ---- speculative decoding --------------------------------------------------------------------- */

/* Finds the draft model of a test: the model itself, the model of a file, which is opened into *opened for the caller
 * to close, or NULL (guesses from the text alone). */
whit_status bench_draft_open(const bench_test *test, const whit_model *model, whit_model **opened,
                             const whit_model **drafter, whit_error *error);
/* Generates the test's tokens after the tokens of sequence 0 and the further token `last`. Adds the results to the
 * sample. */
whit_status bench_draft_round(whit_session *session, const bench_test *test, const bench_count *count, int32_t last,
                              bench_sample *sample, whit_error *error);

/* ---- passes of a test ------------------------------------------------------------------------- */

/* Holds the session of a test, and random tokens for its passes. */
typedef struct bench_steps {
    const bench_test *test;
    whit_session *session;
    whit_step_token *tokens; /* the tokens of one pass */
    whit_rng rng;
} bench_steps;

/* Opens the session of a test, with a draft model or NULL. The caller calls bench_steps_close also after a failure. */
whit_status bench_steps_open(const bench_test *test, const whit_model *model, const whit_model *drafter,
                             bench_steps *steps, whit_error *error);
/* Returns a random token id. */
int32_t bench_steps_id(bench_steps *steps);
/* Feeds n random tokens: one to each of n sequences (decoding), or all to the first sequence (a prompt). wants: logits
 * are computed; for a prompt only those of its last token. */
whit_status bench_steps_pass(bench_steps *steps, uint32_t n, bool wants, whit_error *error);
/* Feeds random tokens to all sequences until their length is the test's depth. */
whit_status bench_steps_fill(bench_steps *steps, whit_error *error);
/* Cuts all sequences back to the test's depth, and computes again the positions that sliding windows have dropped. */
whit_status bench_steps_forget(bench_steps *steps, whit_error *error);
void bench_steps_close(bench_steps *steps);

/* ---- processes that run the tests ------------------------------------------------------------- */

typedef struct bench_worker {
    const bench_test *test;
    pid_t pid; /* -1: no process */
    int to, from;
    struct bench_work *here; /* the work in this process, on systems without fork */
    bench_facts facts;
} bench_worker;

/* Starts the process, and waits until it has opened the model and filled the sequences to the test's depth. The caller
 * must close the worker even if this fails. */
whit_status bench_worker_open(const bench_test *test, bench_worker *worker, whit_error *error);
whit_status bench_worker_round(bench_worker *worker, bench_sample *sample, whit_error *error);
/* Requests the profile of all rounds so far; returns the number of lines, or 0 if the test has no profile or the worker
 * has ended. */
uint32_t bench_worker_profile(bench_worker *worker, bench_line lines[BENCH_LINES_MAX]);
void bench_worker_close(bench_worker *worker);

/* ---- results of a test ------------------------------------------------------------------------ */

typedef struct bench_result {
    const bench_test *test;
    char cpu[64], isa[32];
    double tps_median, tps_best, bytes_per_token, read_gbps, bandwidth_share;
    double int8_gmacs, int8_share, roofline_share, huge_share;
    /* with guesses: tokens per step, and the share of guesses that were right; 0 without guesses */
    double tokens_per_step, accepted;
    uint64_t peak_rss_bytes;
    bench_line lines[BENCH_LINES_MAX];
    uint32_t n_lines;
} bench_result;

/* ---- measuring all tests ---------------------------------------------------------------------- */

/* Describes a call that measures several tests, whose rounds alternate. */
typedef struct bench_measuring {
    const bench_test *tests;
    size_t n_tests;
    uint32_t n_rounds;                 /* at most BENCH_ROUNDS_MAX */
    whit_progress_fn *progress;        /* its result is ignored; bench_test.stop cancels a test */
    void (*on_open)(const char *path); /* called with a model's path before the process of a test opens the model */
} bench_measuring;

/* Measures the tests and fills the array of n_tests results, which must be zero-initialised; each then points to its
 * test. */
whit_status bench_measure(const bench_measuring *wanted, bench_result *results, whit_error *error);

/* ---- a model split over ranks ------------------------------------------------------------------ */

/* Holds the measured cost of an exchange between the ranks. */
typedef struct bench_network {
    double latency_s, bytes_per_s;
} bench_network;

/* Holds the results of a test that first rank 0 runs alone and then all ranks run together. */
typedef struct bench_together {
    const bench_test *test;
    const bench_network *network;
    uint32_t n_ranks;
    double tps_median, tps_best;                /* tokens a second with all ranks */
    double exchanges, messages, sent, received; /* numbers per token, counted by rank 0; sent, received: bytes */
    double alone_ms, predicted_ms, seen_ms;     /* milliseconds per token; NAN: not measured */
} bench_together;

/* Measures the network and then, on rank 0, the n tests of `results`, whose first three members must be set. All ranks
 * call this, with a model that is not split yet. */
whit_status bench_measure_alone(const whit_ranks *ranks, const whit_model *model, uint32_t n_rounds,
                                bench_network *network, bench_together *results, size_t n, whit_error *error);
/* Measures the tests with all ranks. Must be called after bench_measure_alone, when the model has been split. */
whit_status bench_measure_together(const whit_model *model, uint32_t n_rounds, bench_together *results, size_t n,
                                   whit_error *error);

/* ---- kernels and arrays ----------------------------------------------------------------------- */

/* Holds the figures of one matrix kernel, which runs by itself on one thread. */
typedef struct bench_kernel {
    char name[64], kernel[64], isa[16]; /* name: the format of the weights and its scales; kernel, isa: the kernel's
                                         * name and CPU level */
    uint32_t n_columns;
    double us, gbps, read_share, gmacs, int8_share;
} bench_kernel;
typedef struct bench_kernels {
    bench_kernel *rows;
    size_t n;
} bench_kernels;

/* Measures the matrix kernel of every format for each number of columns, in n_rounds rounds; leaves out generic kernels
 * for several columns if the CPU has a better level. `cap` is the highest CPU level to use, as in WHIT_CPU. The caller
 * frees the list even after an error. */
whit_status bench_measure_kernels(const char *cap, uint32_t n_rounds, whit_progress_fn *progress, bench_kernels *list,
                                  whit_error *error);
void bench_kernels_free(bench_kernels *list);

/* Holds the figures of one form of a test. A test compares forms, such as a program and C code, of the same
 * computation. */
typedef struct bench_array {
    char test[BENCH_NAME_BYTES];
    /* item: name of an item, such as "element"; isa "": the form does not depend on a CPU level */
    const char *form, *item, *isa;
    /* ns: nanoseconds per item; ratio: time of the test's first form (at the same CPU level, if it has levels) / this
     * form's time; 1 for the test "program", whose forms are not compared */
    double ns, ratio;
} bench_array;
#define BENCH_ARRAYS_MAX 64

whit_status bench_measure_arrays(const char *cap, uint32_t n_rounds, const volatile bool *stop,
                                 bench_array list[BENCH_ARRAYS_MAX], size_t *n_rows, whit_error *error);

double bench_median(double *values, size_t n); /* sorts `values`; returns 0 if n is 0 */

#endif
