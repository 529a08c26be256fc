/* SPDX-License-Identifier: MIT
 * Implements whit eval: multiple choice by log-likelihood, and answers to chats. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chat_items.h"
#include "cli/flags.h"
#include "cli/interval.h"
#include "cli/task.h"
#include "cli/verbs.h"
#include "kernels/math.h"

struct eval_values {
    const char *task, *labels, *chats;
    uint32_t limit, n_tokens;
    bool json;
    cli_model_flags model;
    cli_session_flags session;
};
static const struct eval_values defaults = {.n_tokens = 128};

#define AT(member) offsetof(struct eval_values, member)
static const cli_option options[] = {
    {"--task", CLI_FILE, AT(task), "FILE", "The questions, a line of JSON each, as they are published.", 0, 0},
    {"--labels", CLI_FILE, AT(labels), "FILE", "Their answers, a number a line, where they are kept apart (PIQA).", 0,
     0},
    {"--chat", CLI_FILE, AT(chats), "FILE",
     "In place of --task: chats to answer greedily, a line of JSON each: \"messages\" or \"prompt\", with \"tools\" "
     "and "
     "\"answer\" where wanted.",
     0, 0},
    {"-n, --predict", CLI_COUNT, AT(n_tokens), "N", "Tokens of an answer to a chat at most; 128 by default.", 1,
     1 << 20},
    {"--limit", CLI_COUNT, AT(limit), "N", "Questions to ask at most; 0, the default, asks all.", 0, 0},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object.", 0, 0},
    {0},
};

struct examiner {
    cli_call *call;
    const char *task; /* name of the task's file, for messages */
    size_t line;
    whit_model *model;
    whit_session *session;
    uint32_t n_ctx, n_batch;
    int32_t *held; /* token ids that the session's cache contains */
    size_t n_held;
    whit_step_token *tokens;
};

struct tally {
    size_t n, right, right_per_character;
    double chance;
};

static double log_likelihood(const float *logits, size_t n_vocab, int32_t id)
{
    double largest = (double)logits[0], sum = 0;
    for (size_t i = 1; i < n_vocab; i++) largest = (double)logits[i] > largest ? (double)logits[i] : largest;
    for (size_t i = 0; i < n_vocab; i++) sum += whit_exp_f64((double)logits[i] - largest);
    return (double)logits[id] - largest - whit_log_f64(sum);
}

/* Computes the log-likelihood of ids[first..n) given all ids before them. Reuses the common prefix in the session's
 * cache. Returns an exit status. */
static int score_ids(struct examiner *e, const int32_t *ids, size_t n, size_t first, double *sum)
{
    whit_error error;
    size_t n_vocab = whit_model_vocab_size(e->model), common = 0;
    if (n > e->n_ctx) { /* too many tokens for the context: the first ones are dropped */
        size_t cut = n - e->n_ctx;
        ids += cut;
        n -= cut;
        first = first > cut ? first - cut : 0;
    }
    if (first < 1) first = 1;
    while (common < e->n_held && common + 1 < first && e->held[common] == ids[common]) common++;
    if (whit_session_truncate(e->session, 0, common, &error) != WHIT_OK) return cli_fail_error(e->call, &error);
    common = whit_session_position(e->session, 0);
    memcpy(e->held, ids, n * sizeof *ids);
    e->n_held = n;
    *sum = 0;
    for (size_t done = common; done < n;) {
        size_t n_slice = n - done < e->n_batch ? n - done : e->n_batch, wanted = 0;
        for (size_t i = 0; i < n_slice; i++)
            e->tokens[i] =
                (whit_step_token){.id = ids[done + i], .want_logits = done + i + 1 >= first && done + i + 1 < n};
        if (whit_session_step(e->session, e->tokens, n_slice, &error) != WHIT_OK)
            return cli_fail_error(e->call, &error);
        for (size_t i = 0; i < n_slice; i++)
            if (e->tokens[i].want_logits)
                *sum += log_likelihood(whit_session_logits(e->session, wanted++), n_vocab, ids[done + i + 1]);
        done += n_slice;
    }
    return CLI_OK;
}

static int score_choice(struct examiner *e, const char *context, const char *choice, double *sum)
{
    size_t n_context = 0, n_all = 0, bytes = strlen(context) + strlen(choice) + 1;
    int32_t *context_ids = NULL, *ids = NULL;
    char *whole = malloc(bytes);
    if (!whole) return cli_fail(e->call, CLI_LIMIT, "not enough memory for a question");
    snprintf(whole, bytes, "%s%s", context, choice);
    int status = cli_tokenize(e->call, e->model, context, strlen(context), true, false, &context_ids, &n_context);
    if (status == CLI_OK) status = cli_tokenize(e->call, e->model, whole, strlen(whole), true, false, &ids, &n_all);
    if (status == CLI_OK && n_context && n_all < 2)
        status = cli_fail(e->call, CLI_REFUSED,
                          "%s: line %zu: this model has one token for the end of the context and the choice, so the "
                          "choice has no likelihood of its own: begin the choice with a blank, or leave the line out",
                          e->task, e->line);
    if (status == CLI_OK && !n_context)
        status = cli_fail(e->call, CLI_REFUSED,
                          "%s: line %zu has an empty context, and this model has no beginning-of-text token, so the "
                          "first token of a choice has no likelihood: give a context, or leave the line out",
                          e->task, e->line);
    if (status == CLI_OK) status = score_ids(e, ids, n_all, n_context < n_all ? n_context : n_all - 1, sum);
    free(whole), free(context_ids), free(ids);
    return status;
}

static size_t characters(const char *text)
{
    size_t n = 0;
    for (text += *text == ' '; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n ? n : 1;
}

static int ask_question(struct examiner *e, const cli_question *q, struct tally *tally)
{
    size_t best = 0, best_per_character = 0;
    double most = -INFINITY, most_per_character = -INFINITY;
    for (size_t i = 0; i < q->n; i++) {
        double sum = 0;
        int status = score_choice(e, q->context[i], q->choice[i], &sum);
        if (status != CLI_OK) return status;
        double per_character = sum / (double)characters(q->choice[i]);
        if (sum > most) most = sum, best = i;
        if (per_character > most_per_character) most_per_character = per_character, best_per_character = i;
    }
    tally->n++;
    tally->right += best == q->answer;
    tally->right_per_character += best_per_character == q->answer;
    tally->chance += 1.0 / (double)q->n;
    return CLI_OK;
}

static int ask_all(struct examiner *e, const struct eval_values *v, const cli_text *task, const cli_text *labels,
                   struct tally *tally)
{
    const char *line = task->data, *end = task->data + task->size_bytes, *label = labels->data;
    char reason[CLI_TASK_REASON_BYTES];
    for (size_t number = 1; line < end && (!v->limit || tally->n < v->limit); number++) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        size_t bytes = (size_t)((next ? next : end) - line);
        int answer = label && *label >= '0' && *label <= '9' ? *label - '0' : -1;
        cli_question question;
        if (bytes) {
            if (!cli_question_read(&question, line, bytes, answer, reason))
                return cli_fail(e->call, CLI_REFUSED, "%s: line %zu %s", v->task, number, reason);
            e->line = number;
            int status = ask_question(e, &question, tally);
            cli_question_free(&question);
            if (status != CLI_OK) return status;
        }
        line = next ? next + 1 : end;
        if (label) label = strchr(label, '\n') ? strchr(label, '\n') + 1 : NULL;
        cli_progress(NULL, "eval", (double)(line - task->data) / (double)task->size_bytes);
    }
    return tally->n ? CLI_OK
                    : cli_fail(e->call, CLI_REFUSED, "%s: has no questions: write one a line, as JSON", v->task);
}

static double deviation(size_t right, size_t n)
{
    double share = (double)right / (double)n;
    return n > 1 ? sqrt(share * (1 - share) / (double)(n - 1)) : 0;
}

static int report_tally(cli_call *call, const struct eval_values *v, const struct tally *t)
{
    double n = (double)t->n, plain = (double)t->right / n, per_character = (double)t->right_per_character / n;
    if (v->json)
        cli_print_json(call,
                       json_pack("{s:o, s:I, s:f, s:f, s:f, s:f, s:f}", "task", cli_json_path(v->task), "questions",
                                 (json_int_t)t->n, "accuracy", plain, "accuracy_error", deviation(t->right, t->n),
                                 "accuracy_per_character", per_character, "accuracy_per_character_error",
                                 deviation(t->right_per_character, t->n), "chance", t->chance / n));
    else
        cli_print(call, "%zu questions: %.2f %% +/- %.2f right, per character %.2f %% +/- %.2f; chance is %.2f %%\n",
                  t->n, 100 * plain, 100 * deviation(t->right, t->n), 100 * per_character,
                  100 * deviation(t->right_per_character, t->n), 100 * t->chance / n);
    return CLI_OK;
}

/* ---- chats ---------------------------------------------------------------------------------- */

static int report_chats(cli_call *call, const struct eval_values *v, const cli_chat_tally *t)
{
    const struct {
        const char *key, *title;
        size_t n_good, n_all;
    } shares[] = {{"right", "right answers", t->n_right, t->n_wanted},
                  {"calling", "answers with calls", t->n_calling, t->n_tooled},
                  {"calls_parsed", "calls whose arguments are an object", t->n_parsed, t->n_calls},
                  {"calls_valid", "calls that match their schema", t->n_valid, t->n_calls}};
    json_t *object = json_pack("{s:o, s:I, s:I, s:b}", "path", cli_json_path(v->chats), "chats", (json_int_t)t->n,
                               "calls", (json_int_t)t->n_calls, "held", t->is_held);
    if (!v->json) cli_print(call, "%zu chats\n", t->n);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        if (!shares[i].n_all) continue;
        const cli_interval share = cli_interval_scale(cli_interval_share(shares[i].n_good, shares[i].n_all), 100);
        cli_interval_set(object, shares[i].key, share);
        if (!v->json)
            cli_print(call, "%-36s %6.2f %% (%.1f to %.1f) of %zu\n", shares[i].title, share.value, share.low,
                      share.high, shares[i].n_all);
    }
    cli_chat_tally_note(t);
    if (v->json)
        cli_print_json(call, object);
    else
        json_decref(object);
    return CLI_OK;
}

static int answer_chats(struct examiner *e, const struct eval_values *v)
{
    cli_chat_items items;
    cli_chat_tally tally = {0};
    whit_chat_template *chat = NULL;
    int status = cli_chat_items_read(e->call, v->chats, &items);
    if (status == CLI_OK) status = cli_chat_items_template(e->call, e->model, &chat);
    const size_t n = v->limit && v->limit < items.n ? v->limit : items.n;
    for (size_t i = 0; status == CLI_OK && i < n; i++) {
        const cli_chat_item *item = &items.items[i];
        cli_chat_answer answer = {0};
        status = cli_chat_items_answer(e->call, item, v->chats, e->model, e->session, chat, v->n_tokens, &answer);
        if (status == CLI_OK) cli_chat_tally_add(&tally, item, &answer);
        cli_chat_answer_free(&answer);
        cli_progress(NULL, "eval", (double)(i + 1) / (double)n);
    }
    cli_progress_end();
    if (status == CLI_OK) status = report_chats(e->call, v, &tally);
    whit_chat_template_close(chat);
    cli_chat_items_free(&items);
    return status;
}

static int answer_task(struct examiner *e, const struct eval_values *v)
{
    struct tally tally = {0};
    cli_text task = {0}, labels = {0};
    int status = cli_read_text(e->call, v->task, &task);
    if (status == CLI_OK && v->labels) status = cli_read_text(e->call, v->labels, &labels);
    if (status == CLI_OK) status = ask_all(e, v, &task, &labels, &tally);
    cli_progress_end();
    if (status == CLI_OK) status = report_tally(e->call, v, &tally);
    free(task.data), free(labels.data);
    return status;
}

static int run_eval(cli_call *call)
{
    const struct eval_values *v = call->values;
    struct examiner e = {.call = call, .task = v->task};
    whit_error error;
    if (!v->task == !v->chats)
        return cli_fail(call, CLI_USAGE, "give the questions by --task FILE or by --chat FILE, and not by both");
    int status = cli_open_flagged_model(call, &v->model, &e.model);
    if (status == CLI_OK) {
        whit_session_options wanted = cli_session_wanted(&v->session, WHIT_ACT_F32);
        if (!wanted.n_ctx_tokens) wanted.n_ctx_tokens = cli_usual_context(e.model);
        cli_want_all_logits(&wanted, whit_model_vocab_size(e.model));
        e.n_ctx = wanted.n_ctx_tokens;
        e.n_batch = wanted.n_batch_tokens;
        e.held = calloc(e.n_ctx, sizeof *e.held);
        e.tokens = calloc(e.n_batch, sizeof *e.tokens);
        if (!e.held || !e.tokens)
            status = cli_fail(call, CLI_LIMIT, "not enough memory for a context of %u tokens (-c)", e.n_ctx);
        if (status == CLI_OK && whit_session_open(e.model, &wanted, &e.session, &error) != WHIT_OK)
            status = cli_fail_error(call, &error);
    }
    if (status == CLI_OK) status = v->chats ? answer_chats(&e, v) : answer_task(&e, v);
    free(e.held), free(e.tokens);
    whit_session_close(e.session);
    whit_model_close(e.model);
    return status;
}

const cli_verb cli_eval_verb = {
    "eval",
    "",
    0,
    0,
    "multiple-choice questions by log-likelihood; answers to chats",
    "Gives each choice its log-likelihood behind the question, plain and per character, and counts how often the "
    "likeliest is the right one, with the standard error and what chance would give. Reads the published files of "
    "HellaSwag, ARC, PIQA (with --labels), WinoGrande and BoolQ, and lines of {\"context\", \"choices\", \"answer\"}. "
    "Questions are put as EleutherAI's lm-evaluation-harness does, without examples. --chat counts answers that have "
    "the wanted text, and tool calls that can be read and match their schema, with 95 % intervals.\n"
    "  whit eval -m model.ndf --task hellaswag_val.jsonl --limit 1000 --json\n"
    "  whit eval -m model.ndf --chat questions.jsonl",
    {{"OPTIONS", options, 0}, {"MODEL", cli_model_options, AT(model)}, {"SESSION", cli_session_options, AT(session)}},
    sizeof(struct eval_values),
    &defaults,
    run_eval,
};
