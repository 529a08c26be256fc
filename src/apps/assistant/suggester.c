/* SPDX-License-Identifier: MIT */
#include "assistant/suggester.h"

#include "base/flag.h"
#include "base/items.h"
#include "base/system.h"
#include "endpoint/endpoint.h"
#include "endpoint/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define SUGGESTED_TOKENS 64
#define SUGGESTED_LINES  8
#define CONTEXT_TOKENS   4096 /* tokens of the context: three times the editor's limit */

struct question {
    char *before, *behind;
    size_t before_bytes, behind_bytes;
};

struct whit_model_suggester {
    whit_assistant_options options;
    whit_panel_wish chosen; /* copies of the wish that choose_model() has chosen; it stays in use */
    bool knows_key;         /* the guard of secrets knows the endpoint's key */
    whit_buf key;
    whit_suggester callbacks;
    int woken; /* writing end of the pipe whose reading end is callbacks.fd; a full pipe wakes the reader as well */
    pthread_t thread;
    bool has_thread;
    /* Only the worker thread uses the members below. */
    whit_model *model;
    whit_session *session;
    whit_sampler *sampler;
    whit_endpoint *endpoint;
    uint64_t number; /* number of the question being answered */
    uint32_t n_lines;
    /* The lock protects the members below. */
    pthread_mutex_t lock;
    pthread_cond_t asked;
    struct question waiting;
    bool has_waiting, ends, is_useless; /* is_useless: an error has occurred, and no suggestions are made any more */
    uint64_t latest;                    /* number of the latest question; older questions are obsolete */
    whit_buf answer;
    whit_suggestion_state state;
    char why[300];
    volatile bool cancel;
};

static void wake_editor(const whit_model_suggester *s)
{
    while (write(s->woken, "", 1) < 0 && errno == EINTR) {
    }
}

/* Receives a piece of the answer; returns false if the answer is long enough or obsolete, if the suggester ends, or if
 * memory runs out. */
static bool on_text(void *user, const char *text, size_t n)
{
    whit_model_suggester *s = user;
    pthread_mutex_lock(&s->lock);
    bool more = s->latest == s->number && !s->ends;
    for (size_t i = 0; i < n && more; i++)
        if (text[i] == '\n' && ++s->n_lines >= SUGGESTED_LINES) {
            n = i;
            more = false;
            whit_buf_append(&s->answer, text, n);
        }
    if (more) more = whit_buf_append(&s->answer, text, n);
    pthread_mutex_unlock(&s->lock);
    wake_editor(s);
    return more;
}

/* ---- a model in this process ---------------------------------------------------------------- */

static whit_status open_model(whit_model_suggester *s, whit_error *error)
{
    char found[WHIT_CACHE_PATH_BYTES];
    whit_model_options how = whit_model_options_default();
    whit_session_options wanted = whit_session_options_default();
    whit_sampler_options sampling = whit_sampler_options_default();
    if (s->sampler) return WHIT_OK;
    WHIT_TRY(s->options.find_model(s->chosen.model, found, error));
    if (!s->model) WHIT_TRY(whit_model_open(found, &how, &s->model, error));
    int32_t id;
    size_t n_ids;
    /* This checks that the model supports infilling before a session is opened. */
    whit_status status = whit_tokenize_infill(s->model, "", 0, "", 0, &id, 0, &n_ids, error);
    if (status != WHIT_OK && status != WHIT_ERROR_LIMIT) return status;
    wanted.n_ctx_tokens = CONTEXT_TOKENS;
    if (whit_model_context_size(s->model) < CONTEXT_TOKENS) wanted.n_ctx_tokens = 0;
    wanted.act = WHIT_ACT_I8;
    wanted.cpu = getenv("WHIT_CPU");
    wanted.cancel = &s->cancel;
    if (!s->session) WHIT_TRY(whit_session_open(s->model, &wanted, &s->session, error));
    sampling.temperature = 0;
    return whit_sampler_open(s->model, &sampling, &s->sampler, error);
}

static whit_status ask_model(whit_model_suggester *s, const struct question *q, whit_error *error)
{
    WHIT_TRY(open_model(s, error));
    size_t capacity = whit_session_context_size(s->session) - SUGGESTED_TOKENS, n_ids;
    int32_t *ids = malloc(capacity * sizeof *ids);
    if (!ids) return whit_fail_memory(error, "a prompt", capacity * sizeof *ids);
    whit_generate_options options = whit_generate_options_default();
    options.n_tokens = SUGGESTED_TOKENS;
    options.on_text = on_text;
    options.user = s;
    whit_status status = whit_tokenize_infill(s->model, q->before, q->before_bytes, q->behind, q->behind_bytes, ids,
                                              capacity, &n_ids, error);
    if (status == WHIT_OK) status = whit_session_reuse(s->session, 0, ids, n_ids, &options.n_present, error);
    if (status == WHIT_OK) status = whit_generate(s->session, s->sampler, ids, n_ids, &options, NULL, error);
    free(ids);
    return status;
}

/* ---- a model at an endpoint ----------------------------------------------------------------- */

static void stream_text(void *user, const char *text, size_t n)
{
    whit_model_suggester *s = user;
    if (!on_text(s, text, n)) whit_flag_put(&s->cancel, true);
}

static whit_status ask_endpoint(whit_model_suggester *s, const struct question *q, whit_error *error)
{
    if (!s->endpoint && !s->key.size_bytes) WHIT_TRY(whit_agent_key(s->chosen.key_file, &s->key, error));
    whit_endpoint_options at = {.url = s->chosen.url,
                                .path = "/completions",
                                .key = whit_chars(&s->key),
                                .connect_s = 5,
                                .stall_s = 30,
                                .n_tries = 1,
                                .cancel = &s->cancel};
    if (!s->endpoint) WHIT_TRY(whit_endpoint_open(&at, &s->endpoint, error));
    json_t *request = json_pack("{s:s%, s:s%, s:i, s:i, s:b, s:s*}", "prompt", q->before, q->before_bytes, "suffix",
                                q->behind, q->behind_bytes, "max_tokens", SUGGESTED_TOKENS, "temperature", 0, "stream",
                                1, "model", s->chosen.name);
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!body) return WHIT_OK; /* the text is not UTF-8 */
    whit_sse stream = {.on_text = stream_text, .user = s};
    const whit_endpoint_sink sink = whit_sse_sink(&stream);
    whit_status status = whit_endpoint_post(s->endpoint, body, strlen(body), &sink, error);
    free(body);
    if (status == WHIT_OK && stream.failed) status = whit_fail(error, WHIT_ERROR_IO, "%s", stream.why);
    if (status == WHIT_OK && !stream.is_stream) { /* the server does not stream its answers */
        json_t *whole = json_loadb(whit_chars(&stream.body), stream.body.size_bytes, 0, NULL);
        const json_t *text = json_object_get(json_array_get(json_object_get(whole, "choices"), 0), "text");
        if (json_is_string(text)) on_text(s, json_string_value(text), json_string_length(text));
        json_decref(whole);
    }
    whit_sse_free(&stream);
    return status;
}

/* ---- the worker thread ---------------------------------------------------------------------- */

static void free_question(struct question *q)
{
    free(q->before);
    free(q->behind);
    *q = (struct question){0};
}

static void *work(void *user)
{
    whit_model_suggester *s = user;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->has_waiting && !s->ends) pthread_cond_wait(&s->asked, &s->lock);
        if (s->ends) break;
        struct question q = s->waiting;
        s->waiting = (struct question){0};
        s->has_waiting = false;
        s->number = s->latest;
        s->n_lines = 0;
        whit_flag_put(&s->cancel, false);
        pthread_mutex_unlock(&s->lock);
        whit_error error;
        whit_status status = s->chosen.url ? ask_endpoint(s, &q, &error) : ask_model(s, &q, &error);
        free_question(&q);
        pthread_mutex_lock(&s->lock);
        bool too_long = status == WHIT_ERROR_LIMIT; /* the text exceeds the context: this question gets no suggestion,
                                                     * but later questions may */
        bool failed = status != WHIT_OK && status != WHIT_ERROR_CANCELLED && !too_long;
        if (failed) s->is_useless = true;
        if (s->latest == s->number) {
            s->state = failed ? WHIT_SUGGESTION_FAILED : WHIT_SUGGESTION_DONE;
            if (failed) snprintf(s->why, sizeof s->why, "%.280s", error.message);
            wake_editor(s);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- functions that the editor calls ---------------------------------------------------------- */

static char *copy_text(const char *text, size_t n)
{
    char *own = malloc(n + 1);
    if (own) {
        memcpy(own, text, n);
        own[n] = 0;
    }
    return own;
}

/* Cancels the question that is being answered, and drops the waiting question and the answer. Must be called with the
 * lock held. */
static void forget(whit_model_suggester *s)
{
    s->latest++;
    whit_flag_put(&s->cancel, true);
    free_question(&s->waiting);
    s->has_waiting = false;
    s->answer.size_bytes = 0;
    s->answer.failed = false;
    s->state = WHIT_SUGGESTION_NONE;
}

/* Chooses the model at the first question for which the options or the settings name a model or a URL; it then stays.
 * Returns false if they name neither. */
static bool choose_model(whit_model_suggester *s, const whit_panel_wish *settings)
{
    if (s->chosen.model || s->chosen.url) return true;
    whit_panel_wish wish = whit_assistant_wish_of(&s->options.wish, settings);
    s->chosen = (whit_panel_wish){wish.model ? strdup(wish.model) : NULL, wish.url ? strdup(wish.url) : NULL,
                                  wish.name ? strdup(wish.name) : NULL, wish.key_file ? strdup(wish.key_file) : NULL};
    return s->chosen.model || s->chosen.url;
}

/* Returns whether this text must not be sent to the endpoint. Its key is read before the first text is looked at, as
 * the text may contain it. */
static bool is_secret(whit_model_suggester *s, const whit_suggestion_question *question)
{
    whit_buf key = {0};
    whit_error ignored; /* the thread reads the key again, and reports why it cannot */
    if (!s->knows_key) (void)whit_agent_key(s->chosen.key_file, &key, &ignored);
    whit_buf_free(&key);
    s->knows_key = true;
    return whit_assistant_is_secret(question->path, question->name, question->around, question->around_bytes);
}

static bool ask_suggestion(void *user, const whit_suggestion_question *question)
{
    whit_model_suggester *s = user;
    if (!choose_model(s, &question->settings) || (s->chosen.url && (!question->anywhere || is_secret(s, question))))
        return false;
    pthread_mutex_lock(&s->lock);
    forget(s);
    bool begins = !s->is_useless;
    if (begins && !s->has_thread) begins = s->has_thread = !pthread_create(&s->thread, NULL, work, s);
    if (begins) {
        s->waiting = (struct question){copy_text(question->before, question->before_bytes),
                                       copy_text(question->behind, question->behind_bytes), question->before_bytes,
                                       question->behind_bytes};
        begins = s->has_waiting = s->waiting.before && s->waiting.behind;
    }
    if (begins) {
        s->state = WHIT_SUGGESTION_WORKING;
        pthread_cond_signal(&s->asked);
    } else {
        free_question(&s->waiting);
    }
    pthread_mutex_unlock(&s->lock);
    return begins;
}

static void cancel(void *user)
{
    whit_model_suggester *s = user;
    pthread_mutex_lock(&s->lock);
    forget(s);
    pthread_mutex_unlock(&s->lock);
}

static whit_suggestion_state take_suggestion(void *user, whit_buf *text, char *why, size_t why_bytes)
{
    whit_model_suggester *s = user;
    char drained[256];
    ssize_t n;
    while ((n = read(s->callbacks.fd, drained, sizeof drained)) > 0 || (n < 0 && errno == EINTR)) {
    }
    pthread_mutex_lock(&s->lock);
    if (s->answer.size_bytes) whit_buf_append(text, s->answer.data, s->answer.size_bytes);
    s->answer.size_bytes = 0;
    whit_suggestion_state state = s->state;
    if (state == WHIT_SUGGESTION_DONE || state == WHIT_SUGGESTION_FAILED) s->state = WHIT_SUGGESTION_NONE;
    if (state == WHIT_SUGGESTION_FAILED) snprintf(why, why_bytes, "%s", s->why);
    pthread_mutex_unlock(&s->lock);
    return state;
}

whit_status whit_model_suggester_open(const whit_assistant_options *options, whit_model_suggester **suggester,
                                      whit_error *error)
{
    whit_model_suggester *s = *suggester = calloc(1, sizeof *s);
    if (!s) return whit_fail_memory(error, "suggestions", sizeof *s);
    s->options = *options;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->asked, NULL);
    int ends[2] = {-1, -1};
    const bool ok = whit_system_pipe(ends);
    whit_status status = ok ? WHIT_OK : whit_fail_errno(error, "suggestions", "open a pipe");
    s->callbacks = (whit_suggester){s, ends[0], ask_suggestion, cancel, take_suggestion};
    s->woken = ends[1];
    if (ok) return WHIT_OK;
    whit_model_suggester_close(s);
    *suggester = NULL;
    return status;
}

void whit_model_suggester_close(whit_model_suggester *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    forget(s);
    s->ends = true;
    pthread_cond_signal(&s->asked);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread) pthread_join(s->thread, NULL);
    whit_sampler_close(s->sampler);
    whit_session_close(s->session);
    whit_model_close(s->model);
    whit_endpoint_close(s->endpoint);
    whit_buf_free(&s->answer);
    whit_buf_free(&s->key);
    free((char *)s->chosen.model);
    free((char *)s->chosen.url);
    free((char *)s->chosen.name);
    free((char *)s->chosen.key_file);
    if (s->callbacks.fd >= 0) close(s->callbacks.fd);
    if (s->woken >= 0) close(s->woken);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->asked);
    free(s);
}

const whit_suggester *whit_model_suggester_callbacks(const whit_model_suggester *s)
{
    return &s->callbacks;
}
