/* SPDX-License-Identifier: MIT
 * Implements whit compress, which rounds a float model to signs, trits or four levels. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/items.h"
#include "base/malloc.h"
#include "base/path.h"
#include "cli/compress_page.h"
#include "cli/flags.h"
#include "cli/names.h"
#include "cli/outputs.h"
#include "cli/ranks.h"
#include "cli/recorded.h"
#include "cli/rounding.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "compress/budget.h"
#include "compress/compress.h"
#include "compress/text.h"
#include "compress/work.h"
#include "kernels/codec.h"
#include "runtime/model.h"
#include "train/sample.h"

struct compress_values {
    const char *output, *imatrix, *page;
    int codec, method, group, embedding, scales;
    cli_list mixed, calib, without;
    uint32_t n_sample_tokens, n_tokens, max_tokens, n_threads, n_tune_tokens;
    float tune_minutes, tune_rate, outliers, plane, bits;
    uint32_t rank;
    int64_t seed;
    bool verbose, json, resume, pure, by_blocks;
};
static const struct compress_values defaults = {
    .method = WHIT_COMPRESS_FULL, .max_tokens = CLI_CALIB_TOKENS, .tune_rate = 1e-4f};
static const char *const codecs[] = {"t", "b1", "q2", "q2-planes"}, *const embeddings[] = {"i8", "i4", "f16"};
/* Matrices that b1 stores with codec t within its budget of bits; they are a fifth to a quarter of the weights. */
static const char *const signs_mixed[] = {"q=t", "k=t", "v=t", "o=t"};
/* Options that cannot be combined with --bits, because it chooses their values. */
static const char *const by_budget[] = {"--codec",  "--mixed",    "--pure",  "--group",
                                        "--scales", "--outliers", "--plane", "--rank"};
enum { BY_BUDGET = sizeof by_budget / sizeof *by_budget };
static const uint32_t groups[] = {128, 32, 64, 256};

#define AT(member) offsetof(struct compress_values, member)
static const cli_option options[] = {
    {"-o, --output", CLI_FILE, AT(output), "OUT", "The .ndf to write; replaced when all is written.", 0, 0},
    {"--codec", CLI_CHOICE, AT(codec), "t|b1|q2|q2-planes",
     "Codec of the layers' matrices: ternary (the default), signs, four levels; q2-planes, as before 28 November 2026: "
     "two "
     "planes of signs, larger and slower, for --act q2.",
     0, 0},
    {"--bits", CLI_REAL, AT(bits), "BITS",
     "Choose codec, group and corrections of every matrix by measured loss, in at most so many true bits a weight of "
     "the "
     "layers, 1.2 to 4; in place of --codec.",
     0, 4},
    {"--mixed", CLI_REPEAT, AT(mixed), "NAME=CODEC",
     "Another codec (also i8, f16) for q, k, v, o, gate, up or down, as in down=t; may be given several times.", 0, 0},
    {"--pure", CLI_FLAG, AT(pure), NULL,
     "Every matrix in --codec. Without it, and without --mixed, the full method gives q, k, v and o trits where the "
     "codec is b1: far better, and within 1.40 bits.",
     0, 0},
    {"--calib", CLI_REPEAT, AT(calib), "FILE",
     "Calibration text: of the kind that the model is for; may be given several times.", 0, 0},
    {"--imatrix", CLI_FILE, AT(imatrix), "FILE",
     "An importance matrix of llama.cpp (GGUF, or the older binary form) in place of a text: weights count by the mean "
     "square of their input, nothing is fed back.",
     0, 0},
    {"--sample", CLI_COUNT, AT(n_sample_tokens), "N",
     "Tokens of text that the model makes up, in place of --calib or beside it; 32768 where neither is given.", 0,
     1 << 30},
    CLI_CALIB_TOKENS_OPTION(AT(max_tokens)),
    {"-c, --window", CLI_COUNT, AT(n_tokens), "N", "Tokens in a window; by default the context, 512 at most.", 2,
     1048576},
    {"--method", CLI_CHOICE, AT(method), "rtn|gptq|full",
     "rtn rounds to the nearest level and needs no text; gptq adds error feedback; full, the default, is every stage.",
     0, 0},
    {"--without", CLI_REPEAT, AT(without), "STAGE",
     "Leave out a stage of full: qep, residual, order, anneal, descent, outliers, plane, lowrank or rotation; may be "
     "given several times.",
     0, 0},
    {"--outliers", CLI_REAL, AT(outliers), "PERCENT",
     "Share of the weights of each matrix that are kept beside the codes as bytes, 16 or 24 bits each; 0.3 at most. By "
     "default what "
     "1.40, 1.80 or 2.30 bits (b1, t, q2) leave room for.",
     0, 0.3},
    {"--plane", CLI_REAL, AT(plane), "PERCENT",
     "Share of the columns of each matrix of signs that get a second sign. By default what the same bits leave room "
     "for, 12.5 "
     "at "
     "most.",
     0, 50},
    {"--rank", CLI_COUNT, AT(rank), "N",
     "Rank of the low-rank pairs; by default 16 for matrices of 1024 rows and columns or more, where the same bits "
     "have room.",
     0, 256},
    {"--tune-tokens", CLI_COUNT, AT(n_tune_tokens), "N",
     "Then train the rounded model towards the original on so many tokens of the text: scales, norms, codes.", 0, 4e9},
    {"--tune-minutes", CLI_REAL, AT(tune_minutes), "N",
     "Train it so for N minutes; the result then depends on the machine.", 0, 1e6},
    {"--tune-blocks", CLI_FLAG, AT(by_blocks), NULL,
     "Tune each layer by itself towards the original's hidden states after it, not the model towards its logits.", 0,
     0},
    {"--tune-rate", CLI_REAL, AT(tune_rate), "X", "Highest learning rate of the tuning; 1e-4 by default.", 0, 1},
    {"--group", CLI_CHOICE, AT(group), "128|32|64|256", "Columns per scale; 128 is the default.", 0, 0},
    {"--scales", CLI_CHOICE, AT(scales), "f16|u8",
     "Scales of groups: f16, the default, or a byte times an f16 per row, which makes smaller groups cheap on long "
     "rows.",
     0, 0},
    {"--embedding", CLI_CHOICE, AT(embedding), "i8|i4|f16", "Codec of embedding and head; i8 is the default.", 0, 0},
    {"--seed", CLI_SEED, AT(seed), "N", "Seed of the sampled text; 0 by default.", 0, 0},
    {"-t, --threads", CLI_COUNT, AT(n_threads), "N",
     "Threads; 0, the default, is one per physical core. The file does not depend on it.", 0, 1024},
    {"--resume", CLI_FLAG, AT(resume), NULL,
     "Go on from OUT.work, which a run that was cut leaves, with the same options; ends in the same bytes.", 0, 0},
    {"--report", CLI_FILE, AT(page), "OUT.html",
     "Write a page that needs nothing else: error and bits of every matrix, and what the model writes before and "
     "after.",
     0, 0},
    {"-v, --verbose", CLI_FLAG, AT(verbose), NULL, "Print a line per matrix.", 0, 0},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object.", 0, 0},
    {0},
};

struct listener {
    cli_call *call;
    bool verbose;
    json_t *matrices; /* list for --json; NULL without it */
    json_t *choice;   /* lines about the codecs that a budget has chosen; NULL without a budget or --json */
    whit_buf *rows;   /* rows for the page; NULL without --report */
    double seconds;   /* time of the compression, without tuning */
    _Atomic uint64_t multiply_adds;
};

static void on_matrix(void *user, const whit_compress_report *r)
{
    struct listener *listener = user;
    const char *codec = whit_codec_find(r->type->codec)->name;
    if (listener->rows) {
        uint64_t bytes = r->bytes;
        cli_compressed_matrix row = {.layer = r->layer,
                                     .group = r->type->group,
                                     .sweeps = r->sweeps,
                                     .n_weights = (uint64_t)r->type->n_rows * r->type->n_cols,
                                     .error_gptq = r->error_gptq,
                                     .error = r->error};
        snprintf(row.name, sizeof row.name, "%s", r->name);
        snprintf(row.codec, sizeof row.codec, "%s", codec);
        if (!r->bytes) whit_codec_total_bytes(r->type, &bytes);
        row.bits = 8.0 * (double)bytes / (double)row.n_weights;
        whit_buf_append(listener->rows, &row, sizeof row);
    }
    if (listener->matrices)
        json_array_append_new(listener->matrices,
                              json_pack("{s:s, s:s, s:f, s:f, s:i, s:I, s:b, s:i, s:i}", "name", r->name, "codec",
                                        codec, "error_gptq", r->error_gptq, "error", r->error, "sweeps", (int)r->sweeps,
                                        "outliers", (json_int_t)r->n_outliers, "rotated", r->rotated, "experts",
                                        (int)r->n_experts, "unseen_experts", (int)r->n_unseen));
    else if (r->n_experts && listener->verbose)
        cli_print(listener->call, "%-28s %4s/%u error %.5f -> %.5f, %u experts, %u of which received no token\n",
                  r->name, codec, r->type->group, r->error_gptq, r->error, r->n_experts, r->n_unseen);
    else if (listener->verbose)
        cli_print(listener->call, "%-28s %4s/%u error %.5f -> %.5f, %u sweeps, %llu outliers%s\n", r->name, codec,
                  r->type->group, r->error_gptq, r->error, r->sweeps, (unsigned long long)r->n_outliers,
                  r->rotated ? ", rotated" : "");
}

/* Prints the codecs that a budget has chosen: a summary and, with -v, one line per matrix. With --json, collects the
 * lines. */
static void on_choice(void *user, const char *text)
{
    struct listener *listener = user;
    if (listener->matrices) listener->choice = json_array();
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        if (listener->choice)
            json_array_append_new(listener->choice, json_stringn(line, (size_t)(end - line)));
        else if (line == text)
            cli_note("%.*s", (int)(end - line), line);
        else if (listener->verbose)
            cli_print(listener->call, "%.*s\n", (int)(end - line), line);
    }
}

enum { SAMPLED = 32768 }; /* number of sampled tokens if neither a text nor --sample is given */

/* Reads the given calibration texts as token ids, with their sketch, and appends tokens that the model itself generates
 * (--sample, or if no text is given). Returns an exit status. */
static int read_text(cli_call *call, const struct compress_values *v, const whit_source *source, whit_buf *ids,
                     whit_sketch *sketch)
{
    whit_error error;
    for (size_t i = 0; i < v->calib.n; i++)
        if (whit_compress_read_text(source, v->calib.items[i], ids, &error) != WHIT_OK ||
            whit_sketch_add_file(sketch, v->calib.items[i], &error) != WHIT_OK)
            return cli_fail_error(call, &error);
    whit_sketch_finish(sketch);
    uint32_t n_sample = v->n_sample_tokens || v->calib.n ? v->n_sample_tokens : SAMPLED;
    if (!n_sample) return CLI_OK;
    whit_model *model = NULL;
    int status = cli_open_model(call, call->operands[0], false, &model);
    if (status != CLI_OK) return status;
    whit_corpus corpus = {.progress = cli_progress};
    uint32_t n_ctx = model->config.n_ctx;
    whit_sample_options sample = {n_sample, n_ctx < 512 ? n_ctx : 512, (uint64_t)v->seed, v->n_threads,
                                  cli_cancelled()};
    const size_t n_text = ids->size_bytes / sizeof *corpus.ids;
    whit_status made = WHIT_OK;
    if (n_text) made = whit_corpus_add_ids(&corpus, model, WHIT_ITEMS(const int32_t, ids), n_text, &error);
    if (made == WHIT_OK) made = whit_corpus_add_samples(&corpus, model, &sample, &error);
    if (made == WHIT_OK && !whit_buf_append(ids, corpus.ids + n_text, (corpus.n - n_text) * sizeof *corpus.ids))
        made = whit_fail_memory(&error, "the calibration text", corpus.n * sizeof *corpus.ids);
    whit_corpus_free(&corpus);
    whit_model_close(model);
    return made == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

/* Writes the command line for the file's metadata. `o` has the token ids of the calibration text. */
static bool record_command(const cli_call *call, const whit_compress_options *o, whit_buf *command)
{
    const struct compress_values *v = call->values;
    const bool tuned = v->n_tune_tokens || v->tune_minutes > 0;
    char n_used[24], n_sampled[24];
    snprintf(n_used, sizeof n_used, "%zu", o->n_ids < o->max_tokens ? o->n_ids : o->max_tokens);
    snprintf(n_sampled, sizeof n_sampled, "%d", SAMPLED);
    cli_effective effective[BY_BUDGET + 3];
    size_t n = 0;
    effective[n++] = (cli_effective){"--calib-tokens", o->n_ids ? n_used : NULL};
    if (o->n_ids && !v->calib.n && !v->n_sample_tokens) effective[n++] = (cli_effective){"--sample", n_sampled};
    if (!tuned) effective[n++] = (cli_effective){"--tune-rate", NULL};
    for (size_t i = 0; v->bits > 0 && i < BY_BUDGET; i++) effective[n++] = (cli_effective){by_budget[i], NULL};
    return cli_record_command(call, true, effective, n, command);
}

/* ---- tuning ----------------------------------------------------------------------------------------
 * Until the tuned file is written, the untuned file and the trainer's checkpoint are beside OUT. */

enum { TUNE_ROWS = 1024 }; /* tokens per training step */

struct tune_paths {
    char untuned[CLI_PATH_BYTES], work[CLI_PATH_BYTES], checkpoint[CLI_PATH_BYTES];
};

static bool find_paths(const struct compress_values *v, struct tune_paths *paths)
{
    int n = snprintf(paths->untuned, sizeof paths->untuned, "%s.untuned.ndf", v->output);
    snprintf(paths->work, sizeof paths->work, "%s.work", v->output);
    snprintf(paths->checkpoint, sizeof paths->checkpoint, "%s.tune", v->output);
    return n > 0 && (size_t)n < sizeof paths->untuned;
}

/* Appends the calibration text to `ids`; if the model has a beginning-of-text token, in windows that begin with it.
 * Returns false if memory runs out. */
static bool begin_windows(const whit_compress_options *o, uint32_t window, whit_buf *ids)
{
    size_t step = o->bos >= 0 ? window - 1 : o->n_ids;
    for (size_t at = 0; at < o->n_ids; at += step) {
        size_t n = o->n_ids - at < step ? o->n_ids - at : step;
        if (o->bos >= 0) whit_buf_append(ids, &o->bos, sizeof o->bos);
        whit_buf_append(ids, o->ids + at, n * sizeof *o->ids);
    }
    return !ids->failed;
}

static int tune(cli_call *call, const struct compress_values *v, const struct tune_paths *paths,
                const whit_compress_options *compressed)
{
    whit_buf ids = {0};
    whit_model *original = NULL, *rounded = NULL;
    int status = cli_open_model(call, call->operands[0], false, &original);
    if (status == CLI_OK) status = cli_open_model(call, paths->untuned, false, &rounded);
    if (status == CLI_OK) {
        uint32_t n_ctx = original->config.n_ctx, window = n_ctx < 256 ? n_ctx : 256;
        cli_training_flags flags = CLI_TRAINING_DEFAULTS;
        if (v->n_tokens) window = v->n_tokens;
        flags.out = v->output;
        flags.embedding = v->embedding == 2 ? 1 : 0;
        flags.n_tokens = window;
        flags.n_sequences = window < TUNE_ROWS ? TUNE_ROWS / window : 1;
        flags.minutes = v->n_tune_tokens ? 0 : v->tune_minutes;
        flags.n_steps = v->n_tune_tokens / (flags.n_sequences * window);
        if (v->n_tune_tokens && !flags.n_steps) flags.n_steps = 1;
        flags.rate = v->tune_rate;
        flags.seed = v->seed;
        flags.n_threads = v->n_threads;
        flags.checkpoint = paths->checkpoint;
        flags.resume = v->resume && whit_path_exists(paths->checkpoint);
        whit_trainer_options o = cli_training_wanted(&flags);
        o.codecs.layers = o.codecs.embedding = "own";
        o.by_blocks = v->by_blocks;
        o.kl_weight = v->by_blocks ? 0 : 1;
        o.hidden_weight = v->by_blocks ? 1 : 0;
        o.command = compressed->command;
        if (!begin_windows(compressed, window, &ids))
            status = cli_fail(call, CLI_LIMIT, "not enough memory for the text");
        o.ids = WHIT_ITEMS(const int32_t, &ids);
        o.n_ids = ids.size_bytes / sizeof *o.ids;
        if (status == CLI_OK) status = cli_train(call, &flags, rounded, original, &o);
    }
    whit_buf_free(&ids);
    whit_model_close(rounded);
    whit_model_close(original);
    if (status != CLI_OK) return status;
    unlink(paths->untuned);
    unlink(paths->work);
    unlink(paths->checkpoint);
    return CLI_OK;
}

/* ---- the page -------------------------------------------------------------------------------------- */

static uint32_t count_solved(const whit_weights *weights)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < weights->n_tensors; i++) {
        uint8_t codec = weights->tensors[i].type.codec;
        n += codec == WHIT_CODEC_T2 || codec == WHIT_CODEC_T5 || codec == WHIT_CODEC_B1 || codec == WHIT_CODEC_Q2 ||
            codec == WHIT_CODEC_L2;
    }
    return n;
}

static int write_page(cli_call *call, const struct compress_values *v, const whit_compress_options *o,
                      const whit_buf *rows, uint64_t began_ns)
{
    static const char opening[] = "Once upon a time, in a little house at the edge of a large wood, there lived an old "
                                  "man with his daughter and a cat who ";
    whit_error error;
    whit_model *original = NULL, *compressed = NULL;
    char tuning[64];
    int status = cli_open_model(call, call->operands[0], false, &original);
    if (status == CLI_OK) status = cli_open_model(call, v->output, false, &compressed);
    if (status != CLI_OK) {
        whit_model_close(original);
        return status;
    }
    cli_compress_page page = {.source = call->operands[0],
                              .output = v->output,
                              .command = o->command,
                              .tuning = v->n_tune_tokens || v->tune_minutes > 0 ? tuning : NULL,
                              .layer_bits = whit_weights_layer_bits(&compressed->weights),
                              .matrices = *rows,
                              .seconds = (double)(whit_now_ns() - began_ns) / 1e9};
    if (v->n_tune_tokens)
        snprintf(tuning, sizeof tuning, "%u tokens", v->n_tune_tokens);
    else
        snprintf(tuning, sizeof tuning, "the text for %.3g minutes", (double)v->tune_minutes);
    const whit_weights *of[] = {&original->weights, &compressed->weights};
    uint64_t sums[2] = {0};
    for (int i = 0; i < 2; i++)
        for (uint32_t t = 0; t < of[i]->n_tensors; t++) sums[i] += whit_codec_tensor_bytes(&of[i]->tensors[t]);
    page.bytes_before = sums[0];
    page.bytes_after = sums[1];
    page.n_unreported =
        (rows->size_bytes ? count_solved(of[1]) : 0) - (uint32_t)(rows->size_bytes / sizeof(cli_compressed_matrix));
    int32_t ids[64];
    size_t n_ids = o->n_ids;
    whit_status made = WHIT_OK;
    if (!o->n_ids &&
        whit_tokenize(original, opening, sizeof opening - 1, false, false, ids, 64, &n_ids, NULL) != WHIT_OK)
        n_ids = 0; /* without a tokenizer the page has no samples */
    const int32_t *sample = o->n_ids ? o->ids : ids;
    made = cli_compress_page_sample(&page, original, compressed, sample, o->n_ids || n_ids < 64 ? n_ids : 64, &error);
    if (made == WHIT_OK) made = cli_compress_page_write(&page, v->page, &error);
    page.matrices = (whit_buf){0}; /* the caller frees the matrices */
    cli_compress_page_free(&page);
    whit_model_close(compressed);
    whit_model_close(original);
    return made == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

/* Reports on the written model, with the bits per weight that `whit inspect` shows. */
static int report_result(cli_call *call, const struct compress_values *v, const struct listener *listener)
{
    whit_error error;
    whit_model *model = NULL;
    uint64_t file_bytes = 0;
    char size[32];
    whit_model_options open = whit_model_options_default();
    if (whit_model_open(v->output, &open, &model, &error) != WHIT_OK) return cli_fail_error(call, &error);
    (void)cli_file_size(v->output, &file_bytes);
    double bits = whit_weights_layer_bits(&model->weights);
    whit_model_close(model);
    if (v->json)
        cli_print_json(call,
                       json_pack("{s:o, s:s, s:f, s:f, s:I, s:O, s:O*}", "output", cli_json_path(v->output), "codec",
                                 v->bits > 0 ? "mixed" : codecs[v->codec], "body_bits_per_weight", bits, "seconds",
                                 listener->seconds, "multiply_adds", (json_int_t)listener->multiply_adds, "matrices",
                                 listener->matrices, "choice", listener->choice));
    else
        cli_note("%s: %s, %.3f bits per weight of the layers", v->output, cli_bytes(file_bytes, size), bits);
    return CLI_OK;
}

/* Reports that the run was interrupted, and whether it has left finished layers that --resume can reuse. */
static int fail_interrupted(cli_call *call, const char *work)
{
    if (whit_path_exists(work))
        return cli_fail(call, CLI_INTERRUPTED, "interrupted; --resume reuses the finished layers");
    return cli_fail(call, CLI_INTERRUPTED, "interrupted; no layer was finished yet, and nothing was written");
}

/* Reports a failed write, for example on a full disk, and where the finished layers for --resume are. */
static int fail_written(cli_call *call, const char *work, const whit_error *error)
{
    if (error->status != WHIT_ERROR_IO || !whit_path_exists(work)) return cli_fail_error(call, error);
    return cli_fail(call, CLI_IO, "%s; %s contains the finished layers, and --resume reuses them", error->message,
                    work);
}

/* Refuses outputs that would replace an input or each other, that cannot be written, or whose suffix is that of another
 * format, and calibration files that are not text. */
static int check_files(cli_call *call, const struct compress_values *v)
{
    const cli_named_file outputs[] = {{"-o", v->output}, {"--report", v->page}};
    const cli_named_file inputs[] = {{"SRC", call->operands[0]}, {"--imatrix", v->imatrix}};
    int status = cli_check_apart(call, outputs[1], outputs, 1);
    for (size_t i = 0; status == CLI_OK && i < 2; i++) {
        status = cli_check_apart(call, outputs[i], inputs, 2);
        for (size_t k = 0; status == CLI_OK && k < v->calib.n; k++)
            status = cli_check_apart(call, outputs[i], &(cli_named_file){"--calib", v->calib.items[k]}, 1);
    }
    for (size_t k = 0; status == CLI_OK && k < v->calib.n; k++) status = cli_check_text(call, v->calib.items[k]);
    if (status == CLI_OK) status = cli_check_output(call, v->output, CLI_OUTPUT_MODEL);
    return status == CLI_OK ? cli_check_output(call, v->page, CLI_OUTPUT_PAGE) : status;
}

/* Warns if the layers already have fewer than six bits per weight: the loss of that rounding remains, and the loss of
 * this one is added. */
static void note_rounded(const whit_source *source)
{
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        const whit_source_tensor *tensor = &source->tensors[i];
        const uint8_t codec = tensor->type.codec;
        if (tensor->type.layout != WHIT_LAYOUT_TILE16 || strncmp(tensor->name, "layers.", 7) != 0 ||
            whit_codec_find(codec)->is_float || codec == WHIT_CODEC_I8 || codec == WHIT_CODEC_I8S ||
            codec == WHIT_CODEC_I6)
            continue;
        cli_note("%s: its matrices are already rounded (%s is %s), so both losses add up; compressing the original in "
                 "floats or 8 bits gives a better file",
                 source->path, tensor->name, whit_codec_find(codec)->name);
        return;
    }
}

static int run_compress(cli_call *call)
{
    const struct compress_values *v = call->values;
    char found[CLI_PATH_BYTES];
    struct tune_paths paths;
    bool tuned = v->n_tune_tokens || v->tune_minutes > 0;
    whit_error error;
    whit_source source = {0};
    whit_buf ids = {0};
    whit_imatrix imatrix = {0};
    whit_sketch sketch = {0};
    whit_buf rows = {0}, command = {0};
    uint64_t began_ns = whit_now_ns();
    struct listener listener = {.call = call, .verbose = v->verbose};
    whit_malloc_map_from(1 << 20); /* maps large arrays, such as those of a matrix, separately; otherwise the process
                                    * grows with each layer */
    if (!v->output) return cli_fail(call, CLI_USAGE, "no output given: -o OUT.ndf");
    if (!find_paths(v, &paths))
        return cli_fail(call, CLI_USAGE, "-o: the output's path is too long, over about 4,000 bytes");
    if (tuned && v->method == WHIT_COMPRESS_RTN)
        return cli_fail(call, CLI_USAGE, "rounding without a text cannot be tuned: --method gptq or full");
    if (v->by_blocks && !tuned)
        return cli_fail(call, CLI_USAGE, "--tune-blocks needs --tune-tokens N, which sets how long to tune");
    if (v->method != WHIT_COMPRESS_FULL && (v->outliers > 0 || v->plane > 0 || v->rank || v->without.n))
        return cli_fail(call, CLI_USAGE, "--outliers, --plane, --rank and --without need --method full");
    if (v->imatrix && (v->calib.n || v->n_sample_tokens))
        return cli_fail(call, CLI_USAGE, "--imatrix takes the place of a text: leave out --calib and --sample");
    if (v->imatrix && tuned) return cli_fail(call, CLI_USAGE, "tuning needs a text: use --calib in place of --imatrix");
    if (v->scales && tuned) return cli_fail(call, CLI_USAGE, "scales of u8 cannot be tuned: --scales f16");
    int checked = check_files(call, v);
    if (checked == CLI_OK && !v->resume && v->method != WHIT_COMPRESS_RTN)
        checked = cli_check_anew(call, paths.work, WHIT_WORK_HEADER_BYTES);
    if (checked != CLI_OK) return checked;
    const whit_ranks *ranks;
    const int joined = cli_join_ranks(call, &ranks);
    if (joined != CLI_OK) return joined;
    const bool is_first = !ranks || !ranks->rank;
    if (ranks && (tuned || v->imatrix || v->method == WHIT_COMPRESS_RTN))
        return cli_fail(call, CLI_USAGE,
                        "several machines share the calibration text of --method gptq or full: leave out --imatrix and "
                        "--tune-tokens; 'whit tune' tunes a finished file");
    if (tuned && v->embedding == 1)
        return cli_fail(call, CLI_USAGE, "an embedding of i4 cannot be tuned: --embedding i8 or f16");
    if (v->bits > 0) {
        if (v->bits < (float)WHIT_BUDGET_BITS_MIN)
            return cli_fail(call, CLI_USAGE, "--bits takes 1.2 to 4 bits a weight");
        if (v->method != WHIT_COMPRESS_FULL || v->imatrix)
            return cli_fail(call, CLI_USAGE, "--bits needs a text and every stage: leave out --method and --imatrix");
        for (size_t i = 0; i < BY_BUDGET; i++)
            if (cli_was_given(call, by_budget[i]))
                return cli_fail(call, CLI_USAGE, "--bits chooses codec, group and corrections: leave out %s",
                                by_budget[i]);
    }
    whit_compress_options o = {.codec = v->bits > 0 ? "q2" : codecs[v->codec],
                               .mixed = v->mixed.items,
                               .n_mixed = v->mixed.n,
                               .method = (whit_compress_method)v->method,
                               .outlier_percent = v->outliers,
                               .plane_percent = v->plane,
                               .rank = v->rank,
                               .group = groups[v->group],
                               .embedding = embeddings[v->embedding],
                               .u8_scales = v->scales == 1,
                               .max_tokens = v->max_tokens,
                               .n_tokens = v->n_tokens,
                               .n_threads = v->n_threads,
                               .work = paths.work,
                               .keep_work = tuned,
                               .resume = v->resume,
                               .ranks = ranks,
                               .multiply_adds = &listener.multiply_adds,
                               .progress = is_first ? cli_progress : NULL,
                               .report = is_first ? on_matrix : NULL,
                               .chosen = is_first ? on_choice : NULL,
                               .bits = (double)v->bits,
                               .user = &listener};
    if (v->method == WHIT_COMPRESS_FULL && !v->pure && !v->mixed.n && !strcmp(o.codec, "b1")) {
        o.mixed = signs_mixed;
        o.n_mixed = sizeof signs_mixed / sizeof *signs_mixed;
    }
    for (size_t i = 0; i < v->without.n; i++) {
        unsigned stage = whit_compress_stage_named(v->without.items[i]);
        if (!stage)
            return cli_fail(
                call, CLI_USAGE,
                "'%s' is not a stage: qep, residual, order, anneal, descent, outliers, plane, lowrank, rotation",
                v->without.items[i]);
        o.without |= stage;
    }
    cli_guard_likely(call->operands[0]);
    if (cli_find_model(call->operands[0], found, &error) != WHIT_OK ||
        whit_source_open(found, NULL, &source, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    int status = CLI_OK;
    if (tuned && source.config.n_ctx < 2) {
        status = cli_fail(call, CLI_USAGE,
                          "%s: a model with a context of one token has nothing to predict in it, "
                          "so it cannot be tuned",
                          call->operands[0]);
    } else if (v->imatrix) {
        if (whit_imatrix_open(&imatrix, v->imatrix, NULL, &error) == WHIT_OK)
            o.imatrix = &imatrix;
        else
            status = cli_fail_error(call, &error);
    } else if (v->method != WHIT_COMPRESS_RTN) {
        status = read_text(call, v, &source, &ids, &sketch);
        if (sketch.n) o.sketch = &sketch;
        o.ids = WHIT_ITEMS(const int32_t, &ids);
        o.n_ids = ids.size_bytes / sizeof *o.ids;
        o.bos = whit_compress_bos(&source);
    }
    if (status == CLI_OK && !record_command(call, &o, &command))
        status = cli_fail(call, CLI_LIMIT, "not enough memory for the record of the command");
    o.command = whit_chars(&command);
    if (v->json) listener.matrices = json_array();
    if (v->page) listener.rows = &rows;
    uint64_t solve_ns = whit_now_ns();
    const char *output = tuned ? paths.untuned : v->output;
    if (status == CLI_OK && whit_compress(&source, &o, output, NULL, &error) != WHIT_OK)
        status = *cli_cancelled() ? fail_interrupted(call, paths.work) : fail_written(call, paths.work, &error);
    if (status != CLI_OK && ranks) cli_ranks_end(true); /* the other ranks wait for this one and would never end */
    listener.seconds = (double)(whit_now_ns() - solve_ns) / 1e9;
    cli_progress_end();
    if (status == CLI_OK && tuned) status = tune(call, v, &paths, &o);
    if (status == CLI_OK && v->page && is_first) status = write_page(call, v, &o, &rows, began_ns);
    if (status == CLI_OK && is_first) note_rounded(&source);
    if (status == CLI_OK && is_first) status = report_result(call, v, &listener);
    json_decref(listener.matrices);
    json_decref(listener.choice);
    whit_buf_free(&ids);
    whit_buf_free(&rows);
    whit_buf_free(&command);
    whit_imatrix_close(&imatrix);
    whit_source_close(&source);
    return status;
}

const cli_verb cli_compress_verb = {
    "compress",
    "SRC",
    1,
    1,
    "round a float model to 1, 1.58 or 2 bits",
    "Reads what convert reads and rounds the matrices of the layers to signs (b1), trits (t) or four levels (q2), "
    "without training: with error feedback over a calibration text, layer by layer, so that each layer makes up for "
    "what the ones before it lost. Give text of the kind that the model is for, 250 kB or more; without it the model "
    "makes its own. docs/use/compression.md says what each stage gives.\n"
    "  whit compress model.gguf --codec t --calib text.txt -o small.ndf\n"
    "  whit compress model.gguf --codec q2 --method rtn -o rough.ndf",
    {{"OPTIONS", options, 0}},
    sizeof(struct compress_values),
    &defaults,
    run_compress,
    .usual = "--codec, --calib, -o, --method, --report",
};
