/* SPDX-License-Identifier: MIT
 * Implements whit perplexity, which measures how well a model predicts a text, window by window, as llama.cpp's program
 * does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/flags.h"
#include "cli/score.h"
#include "cli/verbs.h"

struct perplexity_values {
    const char *file, *base;
    int kv_base; /* the base is the same model with this type of KV cache (--kv-base); -1: the option is not given */
    uint32_t n_chunks;
    bool second_half, json;
    cli_model_flags model;
    cli_session_flags session;
    cli_adapter_flags adapters; /* adapters that only the measured model has, not the base */
};
static const struct perplexity_values defaults = {.kv_base = -1, .session = {.n_sinks = CLI_SINKS}};

#define AT(member) offsetof(struct perplexity_values, member)
static const cli_option options[] = {
    {"-f, --file", CLI_FILE, AT(file), "TEXT", "The text to predict; - is stdin."},
    {"--chunks", CLI_AUTO, AT(n_chunks), "N", "Windows to take at most; 0, the default, takes all."},
    {"--second-half", CLI_FLAG, AT(second_half), NULL,
     "Score predictions from the middle of full windows on only, where each has at least half a "
     "window before it."},
    {"--kl-base", CLI_FILE, AT(base), "M2", "Also measure the divergence from this model, the original."},
    {"--kv-base", CLI_CHOICE, AT(kv_base), "f16|f32|i8|k4v2|k2v2|bitmap",
     "Also measure the divergence from the same model with this type of KV cache."},
    {"--json", CLI_FLAG, AT(json), NULL, "Print one JSON object."},
    CLI_ENDLESS_OPTIONS(AT(session)),
    {0},
};

/* A model that is measured, or the base with which it is compared. */
struct subject {
    whit_model *model;
    whit_session *session;
    cli_adapters adapters;
    bool is_borrowed; /* the other subject owns the model */
};

static void close_subject(struct subject *subject)
{
    whit_session_close(subject->session);
    cli_close_adapters(&subject->adapters);
    if (!subject->is_borrowed) whit_model_close(subject->model);
}

/* Returns whether the tokenizer puts a beginning-of-text token before texts, which it then does for an empty text,
 * too. */
static bool adds_bos(const whit_model *model)
{
    int32_t id = -1;
    size_t n = 0;
    return whit_tokenize(model, "", 0, true, false, &id, 1, &n, NULL) == WHIT_OK && n == 1 &&
        id == whit_model_bos(model);
}

struct window_plan {
    uint32_t n_ctx, n_batch;
    size_t n_windows;
    bool is_endless; /* the whole text is one window */
    bool second_half, bos;
};

/* Scores a window of n tokens, which are ready for session steps; the predictions after tokens with want_logits
 * count. */
static whit_status score_window(struct subject *subject, struct subject *base, const whit_step_token *tokens, size_t n,
                                const struct window_plan *plan, cli_score *score, whit_error *error)
{
    size_t n_vocab = whit_model_vocab_size(subject->model);
    size_t first = plan->second_half ? plan->n_ctx / 2 : 0;
    whit_status status = whit_session_truncate(subject->session, 0, 0, error);
    if (status == WHIT_OK && base->session) status = whit_session_truncate(base->session, 0, 0, error);
    for (size_t done = 0; done < n && status == WHIT_OK;) {
        size_t n_slice = n - done < plan->n_batch ? n - done : plan->n_batch;
        status = whit_session_step(subject->session, tokens + done, n_slice, error);
        if (status == WHIT_OK && base->session)
            status = whit_session_step(base->session, tokens + done, n_slice, error);
        size_t i_wanted = 0;
        for (size_t i = done; i < done + n_slice && status == WHIT_OK; i++) {
            if (!tokens[i].want_logits) continue;
            const float *base_logits = base->session ? whit_session_logits(base->session, i_wanted) : NULL;
            const float *logits = whit_session_logits(subject->session, i_wanted++);
            if (i < first || i + 1 >= n) continue;
            if (!cli_score_add(score, logits, base_logits, n_vocab, tokens[i + 1].id)) {
                error->status = status = WHIT_ERROR_MEMORY;
                snprintf(error->message, sizeof error->message, "not enough memory for the divergences");
            }
        }
        done += n_slice;
        if (plan->is_endless) cli_progress(NULL, "perplexity", (double)done / (double)n);
    }
    return status;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool has_base(const struct perplexity_values *values)
{
    return values->base || values->kv_base >= 0;
}

static void report_score(cli_call *call, const struct perplexity_values *values, const struct window_plan *plan,
                         cli_score *score)
{
    double n = (double)score->n, nll = score->sum / n;
    double variance = score->sum_squares / n - nll * nll;
    double deviation = score->n > 1 && variance > 0 ? sqrt(variance / (n - 1)) : 0;
    json_t *object = json_pack("{s:I, s:f, s:f}", "tokens", (json_int_t)score->n, "nll", nll, "ppl", exp(nll));
    double kld_mean = 0, top1 = 100.0 * (double)score->n_same_top / n;
    if (has_base(values)) {
        for (size_t i = 0; i < score->n; i++) kld_mean += score->divergences[i];
        kld_mean /= n;
        qsort(score->divergences, score->n, sizeof *score->divergences, by_size);
        json_t *divergence =
            json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "kld_mean", kld_mean, "kld_median",
                      cli_quantile(score->divergences, score->n, 0.5), "kld_p99",
                      cli_quantile(score->divergences, score->n, 0.99), "kld_max", score->divergences[score->n - 1],
                      "top1", top1, "ppl_base", exp(score->base_sum / n), "ppl_ratio", exp(nll - score->base_sum / n));
        if (object && divergence) json_object_update(object, divergence);
        json_decref(divergence);
    }
    if (values->json) {
        cli_print_json(call, object);
        return;
    }
    json_decref(object);
    cli_print(call, "Final estimate: PPL over %zu chunks for n_ctx=%u = %.4f +/- %.5f\n", plan->n_windows, plan->n_ctx,
              exp(nll), exp(nll) * deviation);
    if (has_base(values))
        cli_print(call,
                  "Base: PPL = %.4f, ratio %.6f, mean KLD = %.6f, median %.6f, 99 %% %.6f, max %.6f, same top "
                  "%.3f %%\n",
                  exp(score->base_sum / n), exp(nll - score->base_sum / n), kld_mean,
                  cli_quantile(score->divergences, score->n, 0.5), cli_quantile(score->divergences, score->n, 0.99),
                  score->divergences[score->n - 1], top1);
}

/* Scores the windows in turn. A last, shorter window of at least two tokens is scored if all tokens count, but not if
 * only the second half of each window counts. If the cache is endless, the text is one window. Returns an exit
 * status. */
static int measure_text(cli_call *call, struct subject *subject, struct subject *base, const int32_t *ids, size_t n_ids,
                        struct window_plan *plan, cli_score *score)
{
    const size_t n_all = n_ids / plan->n_ctx < plan->n_windows ? n_ids : plan->n_windows * plan->n_ctx;
    const size_t n_window = plan->is_endless ? n_all : plan->n_ctx;
    whit_step_token *tokens = calloc(n_window, sizeof *tokens);
    if (!tokens) return cli_fail(call, CLI_LIMIT, "not enough memory for a window of %zu tokens", n_window);
    int status = CLI_OK;
    whit_error error;
    for (size_t start = 0; start < n_all && start / n_window < plan->n_windows && status == CLI_OK; start += n_window) {
        size_t n = n_all - start < n_window ? n_all - start : n_window;
        for (size_t i = 0; i < n; i++)
            tokens[i] =
                (whit_step_token){.id = ids[start + i], .want_logits = !plan->second_half || i >= plan->n_ctx / 2};
        if (plan->bos) tokens[0].id = whit_model_bos(subject->model);
        if (score_window(subject, base, tokens, n, plan, score, &error) != WHIT_OK)
            status = cli_fail_error(call, &error);
        cli_progress(NULL, "perplexity", (double)(start + n) / (double)n_all);
    }
    free(tokens);
    return status;
}

static int open_session(cli_call *call, const struct perplexity_values *values, struct subject *subject,
                        struct window_plan *plan)
{
    whit_error error;
    whit_session_options wanted = cli_session_wanted(&values->session, WHIT_ACT_F32);
    if (subject->is_borrowed) wanted.kv = (whit_kv_type)values->kv_base;
    wanted.n_ctx_tokens = plan->n_ctx;
    cli_want_all_logits(&wanted, whit_model_vocab_size(subject->model));
    plan->n_batch = wanted.n_batch_tokens;
    return whit_session_open(subject->model, &wanted, &subject->session, &error) == WHIT_OK &&
            whit_session_mount(subject->session, 0, subject->adapters.mounts, subject->adapters.n, &error) == WHIT_OK
        ? CLI_OK
        : cli_fail_error(call, &error);
}

/* Refuses a context in which no token could be scored. Returns an exit status. */
static int check_window(cli_call *call, const struct perplexity_values *values, uint32_t n_ctx)
{
    const uint32_t least = 2u + values->second_half;
    return n_ctx >= least ? CLI_OK : cli_fail(call, CLI_USAGE, "a window (-c) needs at least %u tokens", least);
}

/* Divides the tokens into windows, opens the sessions, measures the model and prints the result. Returns an exit
 * status. */
static int measure_windows(cli_call *call, struct subject *subject, struct subject *base, const int32_t *ids,
                           size_t n_ids, struct window_plan *plan)
{
    const struct perplexity_values *values = call->values;
    cli_score score = {0};
    plan->bos = adds_bos(subject->model);
    if (!plan->n_ctx) plan->n_ctx = cli_usual_context(subject->model);
    int status = check_window(call, values, plan->n_ctx);
    if (status != CLI_OK) return status;
    plan->n_windows = n_ids / plan->n_ctx + (!values->second_half && n_ids % plan->n_ctx > 1);
    if (values->n_chunks && plan->n_windows > values->n_chunks) plan->n_windows = values->n_chunks;
    if (!plan->n_windows)
        return cli_fail(call, CLI_REFUSED,
                        "%s: has %zu tokens, too few for a window of %u (-c): give more text or a smaller -c",
                        values->file, n_ids, plan->n_ctx);
    cli_remark_context(whit_model_context_size(subject->model), plan->n_ctx);
    status = open_session(call, values, subject, plan);
    if (status == CLI_OK && base->model) status = open_session(call, values, base, plan);
    if (status == CLI_OK) status = measure_text(call, subject, base, ids, n_ids, plan, &score);
    if (status == CLI_OK) report_score(call, values, plan, &score);
    cli_score_free(&score);
    return status;
}

static int run_perplexity(cli_call *call)
{
    const struct perplexity_values *values = call->values;
    struct subject subject = {0}, base = {0};
    struct window_plan plan = {
        .n_ctx = values->session.n_ctx, .second_half = values->second_half, .is_endless = values->session.endless};
    cli_text text = {0};
    int32_t *ids = NULL;
    size_t n_ids = 0;

    if (!values->file) return cli_fail(call, CLI_USAGE, "no text given; type 'whit perplexity MODEL -f TEXT'");
    if (values->base && values->kv_base >= 0)
        return cli_fail(call, CLI_USAGE, "--kl-base compares models, --kv-base caches: give only one of them");
    if (values->session.endless && values->second_half)
        return cli_fail(
            call, CLI_USAGE,
            "--endless reads without windows, --second-half scores halves of windows: give only one of them");
    int checked = cli_check_endless(call, &values->session, NULL);
    if (checked == CLI_OK && plan.n_ctx) checked = check_window(call, values, plan.n_ctx);
    if (checked != CLI_OK) return checked;
    int status = cli_open_flagged_model(call, &values->model, &subject.model);
    if (status == CLI_OK) status = cli_open_adapters(call, &values->adapters, subject.model, &subject.adapters);
    if (status == CLI_OK && values->base)
        status = cli_open_model(call, values->base, values->model.no_cache, &base.model);
    if (status == CLI_OK && base.model)
        status = cli_check_vocabularies(call, values->base, base.model, cli_model_name(&values->model), subject.model);
    if (status == CLI_OK && values->kv_base >= 0) {
        base.model = subject.model;
        base.is_borrowed = true;
        status = cli_open_adapters(call, &values->adapters, base.model, &base.adapters);
    }
    if (status == CLI_OK) status = cli_read_text(call, values->file, &text);
    if (status == CLI_OK)
        status = cli_tokenize(call, subject.model, text.data, text.size_bytes, true, false, &ids, &n_ids);
    if (status == CLI_OK) status = measure_windows(call, &subject, &base, ids, n_ids, &plan);
    close_subject(&base);
    close_subject(&subject);
    free(text.data);
    free(ids);
    return status;
}

const cli_verb cli_perplexity_verb = {
    "perplexity",
    "",
    0,
    0,
    "measure how well a model predicts a text",
    "The text is tokenised once, with the beginning-of-text token in front where the model adds "
    "one. "
    "Windows of -c tokens follow each other; where the model adds that token it takes the place of "
    "the "
    "first token of each window. With --endless the text is read as one, beyond the context. Every prediction inside a "
    "window counts, in the last, shorter "
    "window "
    "too. Prints the perplexity; with --json the object has \"tokens\" (predictions scored), "
    "\"nll\" "
    "(their mean negative log-likelihood in nats) and \"ppl\", and with --kl-base or --kv-base \"kld_mean\", "
    "\"kld_median\", \"kld_p99\", \"kld_max\", \"top1\" (percent of equal first choices), "
    "\"ppl_base\" and \"ppl_ratio\".\n"
    "  whit perplexity -m model.ndf -f wiki.test.raw -c 512 --json\n"
    "  whit perplexity -m model.ndf -f text.txt -c 256 --second-half --kv i8 --kv-base f32",
    {{"OPTIONS", options, 0},
     {"MODEL", cli_model_options, AT(model)},
     {"SESSION", cli_session_options, AT(session)},
     {"ADAPTERS", cli_adapter_options, AT(adapters)}},
    sizeof(struct perplexity_values),
    &defaults,
    run_perplexity,
};
