/* SPDX-License-Identifier: MIT
 * whit compare: one table of compressed models' differences from their original. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/flags.h"
#include "cli/names.h"
#include "cli/score.h"
#include "cli/verbs.h"
#include "hub/choose.h"
#include "runtime/model.h"

enum { CTX_DEFAULT = 512, FILES_MAX = 32 };

struct compare_values {
    cli_list texts;
    uint32_t n_chunks;
    bool all, json;
    cli_session_flags session;
};
static const struct compare_values defaults = {.session.n_ctx = CTX_DEFAULT};

#define AT(member) offsetof(struct compare_values, member)
static const cli_option options[] = {
    {"-f, --file", CLI_REPEAT, AT(texts), "FILE", "A text to compare on; may be given several times.", 0, 0},
    {"--chunks", CLI_COUNT, AT(n_chunks), "N", "Windows of each text at most; 0, the default, takes all.", 0, 0},
    {"--all", CLI_FLAG, AT(all), NULL, "Score whole windows; by default their second halves only.", 0, 0},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object.", 0, 0},
    {0},
};

struct subject {
    const char *path;
    whit_model *model;
    whit_session *session;
    cli_score score;
};

struct comparison {
    cli_call *call;
    const struct compare_values *values;
    struct subject subjects[FILES_MAX + 1]; /* the original is the first */
    size_t n;
    uint32_t n_ctx, n_batch;
    int32_t bos; /* begins each window; -1: not used */
};

static int open_subject(struct comparison *c, struct subject *subject, const char *path)
{
    whit_error error;
    subject->path = path;
    int status = cli_open_model(c->call, path, false, &subject->model);
    if (status != CLI_OK) return status;
    if (whit_model_vocab_size(subject->model) != whit_model_vocab_size(c->subjects[0].model))
        return cli_fail(c->call, CLI_REFUSED, "%s has another vocabulary (%u tokens) than %s (%u)", path,
                        whit_model_vocab_size(subject->model), c->subjects[0].path,
                        whit_model_vocab_size(c->subjects[0].model));
    whit_session_options wanted = cli_session_wanted(&c->values->session, WHIT_ACT_F32);
    wanted.n_ctx_tokens = c->n_ctx;
    cli_want_all_logits(&wanted, whit_model_vocab_size(subject->model));
    c->n_batch = wanted.n_batch_tokens;
    return whit_session_open(subject->model, &wanted, &subject->session, &error) == WHIT_OK
        ? CLI_OK
        : cli_fail_error(c->call, &error);
}

/* Runs one window of n tokens through all models, a slice at a time. */
static int score_window(struct comparison *c, const whit_step_token *tokens, size_t n)
{
    whit_error error;
    size_t n_vocab = whit_model_vocab_size(c->subjects[0].model);
    for (size_t i = 0; i < c->n; i++)
        if (whit_session_truncate(c->subjects[i].session, 0, 0, &error) != WHIT_OK)
            return cli_fail_error(c->call, &error);
    for (size_t done = 0; done < n;) {
        size_t n_slice = n - done < c->n_batch ? n - done : c->n_batch;
        for (size_t i = 0; i < c->n; i++)
            if (whit_session_step(c->subjects[i].session, tokens + done, n_slice, &error) != WHIT_OK)
                return cli_fail_error(c->call, &error);
        size_t i_wanted = 0;
        for (size_t t = done; t < done + n_slice; t++) {
            if (!tokens[t].want_logits) continue;
            size_t at = i_wanted++;
            if (t + 1 >= n) continue;
            const float *base = whit_session_logits(c->subjects[0].session, at);
            for (size_t i = 1; i < c->n; i++)
                if (!cli_score_add(&c->subjects[i].score, whit_session_logits(c->subjects[i].session, at), base,
                                   n_vocab, tokens[t + 1].id))
                    return cli_fail(c->call, CLI_LIMIT, "out of memory for the divergences");
        }
        done += n_slice;
    }
    return CLI_OK;
}

static int score_text(struct comparison *c, const char *path)
{
    cli_text text = {0};
    int32_t *ids = NULL;
    size_t n_ids = 0;
    whit_step_token *tokens = NULL;
    int status = cli_read_text(c->call, path, &text);
    if (status == CLI_OK)
        status = cli_tokenize(c->call, c->subjects[0].model, text.data, text.size_bytes, true, false, &ids, &n_ids);
    /* The last, shorter window counts too, unless only second halves do. */
    size_t n_windows = n_ids / c->n_ctx + (c->values->all && n_ids % c->n_ctx > 1);
    if (c->values->n_chunks && n_windows > c->values->n_chunks) n_windows = c->values->n_chunks;
    if (status == CLI_OK && !n_windows)
        status = cli_fail(c->call, CLI_REFUSED, "%s: has %zu tokens, too few for a window of %u (-c)", path, n_ids,
                          c->n_ctx);
    if (status == CLI_OK && !(tokens = calloc(c->n_ctx, sizeof *tokens)))
        status = cli_fail(c->call, CLI_LIMIT, "out of memory");
    for (size_t w = 0; status == CLI_OK && w < n_windows; w++) {
        size_t start = w * c->n_ctx, n = n_ids - start < c->n_ctx ? n_ids - start : c->n_ctx;
        for (size_t i = 0; i < n; i++)
            tokens[i] = (whit_step_token){.id = ids[start + i], .want_logits = c->values->all || i >= c->n_ctx / 2};
        if (c->bos >= 0) tokens[0].id = c->bos;
        status = score_window(c, tokens, n);
        cli_progress(NULL, "compare", (double)(w + 1) / (double)n_windows);
    }
    free(tokens);
    free(text.data);
    free(ids);
    return status;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Bytes on disk of the given model, including further parts of an .ndf; for a folder or a GGUF in parts, those of its
 * conversion. */
static uint64_t file_bytes(const whit_model *model, const char *words)
{
    char path[CLI_PATH_BYTES];
    struct stat info;
    whit_error error;
    uint64_t sum = 0;
    size_t stem;
    unsigned part, n_parts = 1;
    bool is_found = cli_find_model(words, path, &error) == WHIT_OK;
    if (is_found) (void)whit_hub_gguf_stem(path, &stem, &part, &n_parts);
    if (is_found && stat(path, &info) == 0 && S_ISREG(info.st_mode) && n_parts < 2 &&
        !cli_is_same_file(path, whit_ndf_path(model->file)))
        return (uint64_t)info.st_size;
    for (uint32_t i = 0; i < whit_ndf_n_files(model->file); i++) {
        uint64_t bytes = 0;
        (void)whit_ndf_file(model->file, i, &bytes);
        sum += bytes;
    }
    return sum;
}

static uint64_t tensor_bytes(const whit_model *model)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < model->weights.n_tensors; i++)
        for (int p = 0; p < WHIT_PART_COUNT; p++) sum += model->weights.tensors[i].part_bytes[p];
    return sum;
}

static json_t *row_of(struct subject *s)
{
    cli_score *score = &s->score;
    double n = (double)score->n, sum = 0;
    for (size_t i = 0; i < score->n; i++) sum += score->divergences[i];
    qsort(score->divergences, score->n, sizeof *score->divergences, by_size);
    return json_pack("{s:o, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "file", cli_json_path(s->path),
                     "tokens", (json_int_t)score->n, "ppl_ratio", exp((score->sum - score->base_sum) / n), "kld_mean",
                     sum / n, "kld_median", cli_quantile(score->divergences, score->n, 0.5), "kld_p99",
                     cli_quantile(score->divergences, score->n, 0.99), "kld_max", score->divergences[score->n - 1],
                     "top1", 100.0 * (double)score->n_same_top / n, "rms_change", 100 * sqrt(score->squared_change / n),
                     "body_bits_per_weight", whit_weights_layer_bits(&s->model->weights), "file_bytes",
                     (json_int_t)file_bytes(s->model, s->path), "resident_bytes", (json_int_t)tensor_bytes(s->model));
}

static double read_number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

enum { NAME_COLUMNS = 17 };

/* A row of at most 80 columns; a long name has a line of its own. */
static void print_row(cli_call *call, const char *path, const json_t *row)
{
    bool fits = strlen(path) <= NAME_COLUMNS;
    if (!fits) cli_print(call, "%s\n", path);
    cli_print(call, "%-*s %9.4f %9.5f %9.5f %7.2f %7.3f %6.3f %9.2f\n", NAME_COLUMNS, fits ? path : "",
              read_number(row, "ppl_ratio"), read_number(row, "kld_mean"), read_number(row, "kld_p99"),
              read_number(row, "top1"), read_number(row, "rms_change"), read_number(row, "body_bits_per_weight"),
              read_number(row, "file_bytes") / 1e6);
}

static int report_comparison(struct comparison *c, const char *text, json_t *texts)
{
    json_t *rows = json_array();
    if (!c->values->json)
        cli_print(c->call, "%s\n%-*s %9s %9s %9s %7s %7s %6s %9s\n", text, NAME_COLUMNS, "file", "ppl ratio", "KL mean",
                  "KL 99 %", "top-1 %", "RMS %", "bits", "file MB");
    for (size_t i = 1; i < c->n; i++) {
        json_t *row = row_of(&c->subjects[i]);
        if (!row) break;
        if (!c->values->json) print_row(c->call, c->subjects[i].path, row);
        json_array_append_new(rows, row);
        cli_score_free(&c->subjects[i].score);
    }
    json_array_append_new(texts, json_pack("{s:o, s:o}", "text", cli_json_path(text), "files", rows));
    return CLI_OK;
}

static int run_compare(cli_call *call)
{
    const struct compare_values *values = call->values;
    struct comparison c = {.call = call, .values = values, .bos = -1};
    c.n_ctx = values->session.n_ctx ? values->session.n_ctx : CTX_DEFAULT;
    if (!values->texts.n) return cli_fail(call, CLI_USAGE, "a text is wanted: -f TEXT");
    const uint32_t least = 2u + !values->all; /* in a shorter window nothing would be scored */
    if (c.n_ctx < least) return cli_fail(call, CLI_USAGE, "a window (-c) has at least %u tokens", least);
    json_t *texts = json_array();
    int status = CLI_OK;
    for (size_t i = 0; status == CLI_OK && i < call->n_operands; i++)
        status = open_subject(&c, &c.subjects[c.n++], call->operands[i]);
    int32_t id = -1;
    size_t n = 0;
    if (status == CLI_OK && whit_tokenize(c.subjects[0].model, "", 0, true, false, &id, 1, &n, NULL) == WHIT_OK &&
        n == 1)
        c.bos = id;
    for (size_t i = 0; status == CLI_OK && i < values->texts.n; i++) {
        status = score_text(&c, values->texts.items[i]);
        cli_progress_end();
        if (status == CLI_OK) status = report_comparison(&c, values->texts.items[i], texts);
    }
    if (status == CLI_OK && values->json)
        cli_print_json(call, json_pack("{s:o, s:O}", "original", cli_json_path(c.subjects[0].path), "texts", texts));
    json_decref(texts);
    for (size_t i = 0; i < c.n; i++) {
        cli_score_free(&c.subjects[i].score);
        whit_session_close(c.subjects[i].session);
        whit_model_close(c.subjects[i].model);
    }
    return status;
}

const cli_verb cli_compare_verb = {
    "compare",
    "ORIGINAL FILE...",
    2,
    FILES_MAX + 1,
    "what compressed models keep of their original",
    "Runs all models over each text in windows of -c tokens (512 by default), as perplexity does, and prints a line "
    "per file: the ratio of perplexities, the divergence of the original from it (KL in nats: mean and 99 %), "
    "how often the likeliest token is the same, the root mean square change of the probability of the "
    "token that came (percent), true bits per weight of the layers, and megabytes on disk. --json also has the median "
    "and the largest divergence and the bytes of tensors in memory.\n"
    "  whit compare model.gguf q2.ndf t.ndf -f own.txt -f wiki.test.raw -c 256",
    {{"OPTIONS", options, 0}, {"SESSION", cli_session_options, AT(session)}},
    sizeof(struct compare_values),
    &defaults,
    run_compare,
};
