/* SPDX-License-Identifier: MIT
 * Implements whit compare, which prints how compressed models differ from their original. */
#include "cli/compare.h"

#include <stdlib.h>

#include "base/items.h"
#include "cli/chat_items.h"
#include "cli/verbs.h"
#include "runtime/model.h"

enum { CTX_DEFAULT = 512, ANSWER_TOKENS = 128 };

struct compare_values {
    cli_list texts;
    const char *copies, *chats;
    uint32_t n_chunks, n_tokens;
    bool all, json;
    cli_session_flags session;
};
static const struct compare_values defaults = {.n_tokens = ANSWER_TOKENS};

#define AT(member) offsetof(struct compare_values, member)
static const cli_option options[] = {
    {"-f, --file", CLI_REPEAT, AT(texts), "FILE",
     "A text to compare on; may be given several times, the text of the model's own kind first.", 0, 0},
    {"--copies", CLI_FILE, AT(copies), "FILE",
     "A text in whose windows a passage comes again at the end: how much of it each model continues, by the passage's "
     "depth.",
     0, 0},
    {"--chat", CLI_FILE, AT(chats), "FILE",
     "Chats to answer greedily, a line of JSON each: \"messages\" or \"prompt\", with \"tools\" and \"answer\" where "
     "wanted.",
     0, 0},
    {"-n, --predict", CLI_COUNT, AT(n_tokens), "N", "Tokens of an answer at most; 128 by default.", 1, 1 << 20},
    {"--chunks", CLI_COUNT, AT(n_chunks), "N", "Windows of each text at most; 0, the default, takes all.", 0, 0},
    {"--all", CLI_FLAG, AT(all), NULL, "Score whole windows; by default their second halves only.", 0, 0},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object.", 0, 0},
    {0},
};

/* ---- models --------------------------------------------------------------------------------- */

/* Reads the sketch of the text from which the file was made (its calibration or training text), if the file contains
 * one. */
static void read_sketch(cli_subject *subject)
{
    whit_value value;
    subject->has_sketch = whit_table_get(whit_ndf_meta(subject->model->file), WHIT_SKETCH_KEY, &value) &&
        value.type == WHIT_VALUE_BYTES && whit_sketch_read(&subject->sketch, value.bytes, value.count);
}

static int open_subject(cli_comparison *c, const struct compare_values *values, const char *path)
{
    whit_error error;
    cli_subject *subject = &c->subjects[c->n++];
    subject->path = path;
    int status = cli_open_model(c->call, path, false, &subject->model);
    if (status == CLI_OK)
        status = cli_check_vocabularies(c->call, path, subject->model, c->subjects[0].path, c->subjects[0].model);
    if (status != CLI_OK) return status;
    read_sketch(subject);
    whit_session_options wanted = cli_session_wanted(&values->session, WHIT_ACT_F32);
    wanted.n_ctx_tokens = c->n_ctx;
    /* Without -c, windows of text are short, but chats have the model's usual context. */
    if (values->chats && !values->session.n_ctx) {
        const uint32_t n_usual = cli_usual_context(subject->model);
        if (n_usual > c->n_ctx) wanted.n_ctx_tokens = n_usual;
    }
    cli_want_all_logits(&wanted, whit_model_vocab_size(subject->model));
    c->n_batch = wanted.n_batch_tokens;
    if (whit_session_open(subject->model, &wanted, &subject->session, &error) != WHIT_OK)
        return cli_fail_error(c->call, &error);
    return values->chats ? cli_chat_items_template(c->call, subject->model, &subject->chat) : CLI_OK;
}

static void close_subjects(cli_comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        cli_score_free(&c->subjects[i].score);
        whit_buf_free(&c->subjects[i].units);
        whit_chat_template_close(c->subjects[i].chat);
        whit_session_close(c->subjects[i].session);
        whit_model_close(c->subjects[i].model);
    }
}

/* ---- windows -------------------------------------------------------------------------------- */

/* Scores the predictions within a slice: the logits of tokens [done, done + n_slice) of the window's n tokens. Returns
 * false if memory runs out. */
static bool score_slice(cli_comparison *c, const whit_step_token *tokens, size_t done, size_t n_slice, size_t n)
{
    const size_t n_vocab = whit_model_vocab_size(c->subjects[0].model);
    size_t at = 0;
    for (size_t t = done; t < done + n_slice; t++) {
        if (!tokens[t].want_logits) continue;
        const float *base = whit_session_logits(c->subjects[0].session, at);
        bool ok = true;
        for (size_t i = 0; ok && t + 1 < n && i < c->n; i++) {
            const float *logits = whit_session_logits(c->subjects[i].session, at);
            ok = cli_score_add(&c->subjects[i].score, logits, i ? base : NULL, n_vocab, tokens[t + 1].id);
        }
        if (!ok) return false;
        at++;
    }
    return true;
}

/* Returns the sums over the predictions that were added to a score since its state `before`. */
static cli_unit unit_since(const cli_score *score, const cli_score *before)
{
    cli_unit unit = {.n = (double)(score->n - before->n),
                     .log_ratio = score->sum - before->sum - (score->base_sum - before->base_sum),
                     .n_same = (double)(score->n_same_top - before->n_same_top),
                     .n_right = (double)(score->n_right - before->n_right)};
    for (uint64_t k = before->n; score->divergences && k < score->n; k++) unit.kl += score->divergences[k];
    return unit;
}

int cli_compare_window(cli_comparison *c, const whit_step_token *tokens, size_t n)
{
    whit_error error;
    cli_score before[CLI_SUBJECTS_MAX];
    bool ok = true;
    for (size_t i = 0; i < c->n; i++) {
        before[i] = c->subjects[i].score;
        if (whit_session_truncate(c->subjects[i].session, 0, 0, &error) != WHIT_OK)
            return cli_fail_error(c->call, &error);
    }
    for (size_t done = 0; ok && done < n;) {
        const size_t n_slice = n - done < c->n_batch ? n - done : c->n_batch;
        for (size_t i = 0; i < c->n; i++)
            if (whit_session_step(c->subjects[i].session, tokens + done, n_slice, &error) != WHIT_OK)
                return cli_fail_error(c->call, &error);
        ok = score_slice(c, tokens, done, n_slice, n);
        done += n_slice;
    }
    for (size_t i = 0; ok && i < c->n; i++) {
        const cli_unit unit = unit_since(&c->subjects[i].score, &before[i]);
        ok = whit_buf_append(&c->subjects[i].units, &unit, sizeof unit);
    }
    return ok ? CLI_OK : cli_fail(c->call, CLI_LIMIT, "not enough memory for the divergences");
}

void cli_compare_clear(cli_comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        cli_score_free(&c->subjects[i].score);
        c->subjects[i].units.size_bytes = 0;
    }
}

/* For each model file, sets the share of a text that also occurs in the text from which the file was made (its
 * calibration or training text); -1 if the file has no sketch of that text. */
static void find_overlaps(const cli_comparison *c, const cli_text *text, double *overlaps)
{
    for (size_t i = 0; i < c->n; i++) {
        overlaps[i] = -1;
        if (!c->subjects[i].has_sketch) continue;
        const whit_sketch_overlap found = whit_sketch_compare(&c->subjects[i].sketch, text->data, text->size_bytes);
        if (found.n_seen) overlaps[i] = (double)found.n_common / (double)found.n_seen;
    }
}

static int score_text(cli_comparison *c, const char *path, double *overlaps)
{
    cli_text text = {0};
    int32_t *ids = NULL;
    size_t n_ids = 0;
    whit_step_token *tokens = NULL;
    int status = cli_read_text(c->call, path, &text);
    if (status == CLI_OK)
        status = cli_tokenize(c->call, c->subjects[0].model, text.data, text.size_bytes, true, false, &ids, &n_ids);
    if (status == CLI_OK) find_overlaps(c, &text, overlaps);
    /* A last, shorter window of at least two tokens also counts, unless only the second half of each window counts. */
    size_t n_windows = n_ids / c->n_ctx + (c->all && n_ids % c->n_ctx > 1);
    if (c->n_chunks && n_windows > c->n_chunks) n_windows = c->n_chunks;
    if (status == CLI_OK && !n_windows)
        status = cli_fail(c->call, CLI_REFUSED,
                          "%s: has %zu tokens, too few for a window of %u (-c): give more text or a smaller -c", path,
                          n_ids, c->n_ctx);
    if (status == CLI_OK && !(tokens = calloc(c->n_ctx, sizeof *tokens)))
        status = cli_fail(c->call, CLI_LIMIT, "not enough memory for a window of %u tokens (-c)", c->n_ctx);
    for (size_t w = 0; status == CLI_OK && w < n_windows; w++) {
        size_t start = w * c->n_ctx, n = n_ids - start < c->n_ctx ? n_ids - start : c->n_ctx;
        for (size_t i = 0; i < n; i++)
            tokens[i] = (whit_step_token){.id = ids[start + i], .want_logits = c->all || i >= c->n_ctx / 2};
        if (c->bos >= 0) tokens[0].id = c->bos;
        status = cli_compare_window(c, tokens, n);
        cli_progress(NULL, "compare", (double)(w + 1) / (double)n_windows);
    }
    free(tokens);
    free(text.data);
    free(ids);
    cli_progress_end();
    return status;
}

/* ---- the verb ------------------------------------------------------------------------------- */

static int compare_texts(cli_comparison *c, const cli_list *texts, json_t *report)
{
    double overlaps[CLI_SUBJECTS_MAX];
    json_t *list = json_array();
    int status = CLI_OK;
    for (size_t i = 0; status == CLI_OK && i < texts->n; i++) {
        status = score_text(c, texts->items[i], overlaps);
        if (status == CLI_OK) status = cli_compare_report(c, texts->items[i], overlaps, list);
        cli_compare_clear(c);
    }
    if (status == CLI_OK && texts->n > 1) cli_compare_beside(c, list);
    json_object_set_new(report, "texts", list);
    return status;
}

static int run_compare(cli_call *call)
{
    const struct compare_values *values = call->values;
    cli_comparison c = {
        .call = call, .n_chunks = values->n_chunks, .bos = -1, .all = values->all, .json = values->json};
    c.n_ctx = values->session.n_ctx ? values->session.n_ctx : CTX_DEFAULT;
    if (!values->texts.n && !values->copies && !values->chats)
        return cli_fail(call, CLI_USAGE, "no text given: -f %s, --copies TEXT or --chat FILE",
                        call->n_operands > 2 ? call->operands[call->n_operands - 1] : "TEXT");
    const uint32_t least = 2u + !values->all; /* minimum number of tokens in a window that has any token to score */
    if (c.n_ctx < least) return cli_fail(call, CLI_USAGE, "a window (-c) needs at least %u tokens", least);
    int status = CLI_OK;
    for (size_t i = 0; status == CLI_OK && i < call->n_operands; i++)
        status = open_subject(&c, values, call->operands[i]);
    if (status == CLI_OK && (values->texts.n || values->copies))
        cli_remark_context(whit_model_context_size(c.subjects[0].model), c.n_ctx);
    int32_t id = -1;
    size_t n = 0;
    if (status == CLI_OK && whit_tokenize(c.subjects[0].model, "", 0, true, false, &id, 1, &n, NULL) == WHIT_OK &&
        n == 1)
        c.bos = id;
    json_t *report = json_object();
    if (status == CLI_OK) json_object_set_new(report, "original", cli_json_path(c.subjects[0].path));
    if (status == CLI_OK && values->texts.n) status = compare_texts(&c, &values->texts, report);
    if (status == CLI_OK && values->copies) status = cli_compare_copies(&c, values->copies, report);
    if (status == CLI_OK && values->chats) status = cli_compare_chats(&c, values->chats, values->n_tokens, report);
    if (status == CLI_OK && values->json)
        cli_print_json(call, report);
    else
        json_decref(report);
    close_subjects(&c);
    return status;
}

const cli_verb cli_compare_verb = {
    "compare",
    "ORIGINAL FILE...",
    2,
    CLI_SUBJECTS_MAX,
    "what compressed models keep of their original",
    "Runs all models over each text in windows of -c tokens (512 by default), as perplexity does, and prints a line "
    "per file: the ratio of perplexities, the divergence of the original from it (KL in nats: mean and 99 %), "
    "how often the likeliest token is the same, the root mean square change of the probability of the "
    "token that came (percent), true bits per weight of the layers, and megabytes on disk. The line below has 95 % "
    "intervals over windows. Several files are compared with the first of them in pairs, several texts with the first "
    "of them. A file that was made with the text, or with a part of it, is named.\n"
    "--copies asks how far back models still see, --chat how their answers differ. --json also has the median "
    "and the largest divergence, the bytes of tensors in memory, and every answer.\n"
    "  whit compare model.gguf q2.ndf t.ndf -f own.txt -f wiki.test.raw -c 256\n"
    "  whit compare model.gguf q2.ndf --chat questions.jsonl --json",
    {{"OPTIONS", options, 0}, {"SESSION", cli_session_options, AT(session)}},
    sizeof(struct compare_values),
    &defaults,
    run_compare,
};
