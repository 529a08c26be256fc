/* SPDX-License-Identifier: MIT
 * Runs the agent with two threads. The editor's thread calls the panel's functions. The worker's thread runs one job at
 * a time, and waits for the editor when it needs an open text or the user's answer. Events from the worker to the
 * editor are queued; a pipe wakes the editor. No thread wakes up while there is no work. */
#include "base/phrase.h"
#include "assistant/panel_agent.h"
#include "assistant/shown_turn.h"

#include "agent/loop.h"
#include "base/clock.h"
#include "base/flag.h"
#include "base/items.h"
#include "base/status.h"
#include "base/system.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TURNS_MAX 50 /* maximum number of the model's answers per task */
/* nanoseconds for which the list of unsaved texts is valid; the editor compares each text again before it is changed */
#define UNSAVED_NS     50000000ull
#define SELECTION_ROLE "You are asked about a part of a text in an editor."

/* These events go from the worker to the editor, which handles them in its own thread. */
typedef enum event_kind {
    EVENT_TEXT,
    EVENT_NOTE,
    EVENT_DONE,
    EVENT_FAILED,
    EVENT_WRITTEN, /* a file was written */
    EVENT_REPLACE, /* the selection is replaced */
    EVENT_HUNKS,   /* the worker waits for an answer to this kind of event and to the kinds below */
    EVENT_QUESTION,
    EVENT_READ,
    EVENT_LIST,
    EVENT_PATCH,
} event_kind;

struct event {
    struct event *next;
    event_kind kind;
    size_t n;
    char text[]; /* n bytes and a zero byte */
};

/* Describes a turn, which is all changes of one answer, so that it can be undone: its number in the journal of turns,
 * and its changes to open texts. */
struct done_turn {
    uint32_t number;
    whit_changes open;
};

struct whit_panel_agent {
    whit_assistant_options options;
    whit_panel panel;
    char project[PATH_MAX];
    int pipe[2];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    /* The lock protects the members below. */
    bool has_thread, has_job, ending;
    volatile bool cancel;
    struct event *first, *last;
    whit_panel_kind kind;
    whit_buf text, selection, about; /* texts of the job; each ends with a zero byte */
    whit_buf path, name, around;     /* place and surroundings of the selection; each ends with a zero byte */
    bool wants_answer;               /* the worker waits for the editor */
    event_kind asked;                /* the question that the editor has shown; EVENT_TEXT: no question is shown */
    const whit_panel_hunk *hunks;
    size_t n_hunks;
    uint8_t *taken;
    const whit_change *changes; /* changes to open texts of an EVENT_PATCH */
    size_t n_changes;
    whit_buf answer;
    bool is_answered, said;
    whit_error answer_error;
    /* Only the worker uses the members below. */
    whit_panel_wish wished;
    whit_buf wishes;
    whit_answering_model model;
    whit_agent_config config;
    whit_runner runner;
    whit_mcp *mcp;
    bool is_ready, quiet;
    whit_buf unsaved; /* paths of open texts that are not saved, as of unsaved_ns */
    uint64_t unsaved_ns;
    whit_buf turned; /* paths of the turn that is being undone or redone, each ends with a zero byte */
    whit_agent_messages messages;
    whit_agent_report report;
    whit_buf turns, undone; /* arrays of struct done_turn */
};

/* ---- from the worker to the editor ------------------------------------------------------------------ */

static void post(whit_panel_agent *a, event_kind kind, const char *text, size_t n)
{
    struct event *event = malloc(sizeof *event + n + 1);
    if (!event) return;
    event->next = NULL;
    event->kind = kind;
    event->n = n;
    if (n) memcpy(event->text, text, n);
    event->text[n] = 0;
    pthread_mutex_lock(&a->lock);
    if (a->last)
        a->last->next = event;
    else
        a->first = event;
    a->last = event;
    pthread_mutex_unlock(&a->lock);
    while (write(a->pipe[1], "", 1) < 0 && errno == EINTR) {
    } /* if the pipe is full, the editor will wake up anyway */
}

static void post_line(whit_panel_agent *a, event_kind kind, const char *line)
{
    post(a, kind, line, strlen(line));
}

/* Sends an event and waits for the editor's answer; returns false if the work should end instead. */
static bool wait_answer(whit_panel_agent *a, event_kind kind, const char *text)
{
    pthread_mutex_lock(&a->lock);
    a->is_answered = a->said = false;
    a->answer.size_bytes = 0;
    a->wants_answer = true;
    a->asked = EVENT_TEXT;
    pthread_mutex_unlock(&a->lock);
    post_line(a, kind, text);
    pthread_mutex_lock(&a->lock);
    while (!a->is_answered && !a->cancel && !a->ending) pthread_cond_wait(&a->more, &a->lock);
    a->wants_answer = false;
    bool ok = a->is_answered;
    pthread_mutex_unlock(&a->lock);
    return ok;
}

/* Returns whether an answer of the user to a question of this kind is valid now. An answer to an earlier question must
 * not count for a question that was not shown yet. Must be called with the lock held. */
static bool may_answer(const whit_panel_agent *a, event_kind kind)
{
    return a->wants_answer && !a->is_answered && !a->cancel && a->asked == kind;
}

/* Marks the event as answered and wakes the worker. Must be called with the lock held, on the editor's thread. */
static void wake_worker(whit_panel_agent *a)
{
    a->is_answered = true;
    pthread_cond_signal(&a->more);
}

/* ---- callbacks of the agent's loop ------------------------------------------------------------------ */

static void on_text(void *user, const char *text, size_t n)
{
    whit_panel_agent *a = user;
    if (!a->quiet) post(a, EVENT_TEXT, text, n);
}

static void on_note(void *user, const char *line)
{
    post_line(user, EVENT_NOTE, line);
}

/* Shows a change that needs no confirmation. */
static whit_status on_show(void *user, const whit_change *c, whit_error *error)
{
    whit_buf diff = {0};
    whit_status status = whit_change_show(c, &diff, error);
    if (status == WHIT_OK) post(user, EVENT_TEXT, whit_chars(&diff), diff.size_bytes);
    whit_buf_free(&diff);
    return status;
}

static whit_status ask_hunks(whit_panel_agent *a, const whit_panel_hunk *hunks, size_t n, uint8_t *taken,
                             whit_error *error)
{
    a->hunks = hunks;
    a->n_hunks = n;
    a->taken = taken;
    return wait_answer(a, EVENT_HUNKS, "") ? WHIT_OK : whit_fail(error, WHIT_ERROR_CANCELLED, "stopped");
}

static whit_status on_choose(void *user, const whit_hunks *hunks, uint8_t *taken, whit_error *error)
{
    whit_panel_hunk *shown = calloc(hunks->n + 1, sizeof *shown);
    if (!shown) return whit_fail_memory(error, "the hunks of a patch", hunks->n);
    for (size_t i = 0; i < hunks->n; i++)
        shown[i] =
            (whit_panel_hunk){hunks->list[i].path, hunks->list[i].reason, hunks->list[i].text, hunks->list[i].n_bytes};
    whit_status status = ask_hunks(user, shown, hunks->n, taken, error);
    free(shown);
    return status;
}

/* Asks for approval of a call outside the sandbox, which is shown as one hunk without text. */
static bool on_agreed(void *user, const char *reason, size_t n_files)
{
    const whit_panel_hunk hunk = {"a call", reason, "", 0};
    uint8_t taken = 0;
    whit_error ignored;
    (void)n_files;
    return ask_hunks(user, &hunk, 1, &taken, &ignored) == WHIT_OK && taken;
}

static bool on_ask(void *user, const char *question, whit_buf *reply)
{
    whit_panel_agent *a = user;
    return wait_answer(a, EVENT_QUESTION, question) && a->said &&
        whit_buf_append(reply, a->answer.data, a->answer.size_bytes);
}

/* Reports the written files to the editor, and records the turn with copies of its changes to open texts, for undo. */
static void on_written(void *user, uint32_t turn, const whit_change *changes, size_t n)
{
    whit_panel_agent *a = user;
    struct done_turn done = {.number = turn};
    char path[PATH_MAX * 2];
    if (!n) return; /* no file was written */
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", a->project, changes[i].path);
        post_line(a, EVENT_WRITTEN, path);
        if (changes[i].open) whit_changes_copy(&done.open, &changes[i]);
    }
    if (!whit_buf_append(&a->turns, &done, sizeof done)) whit_changes_free(&done.open);
}

static whit_status texts_list(void *user, whit_buf *paths, whit_error *error)
{
    whit_panel_agent *a = user;
    if (!wait_answer(a, EVENT_LIST, "")) return whit_fail(error, WHIT_ERROR_CANCELLED, "stopped");
    return whit_buf_append(paths, a->answer.data, a->answer.size_bytes)
        ? WHIT_OK
        : whit_fail_memory(error, "the list of paths", a->answer.size_bytes);
}

static whit_status texts_read(void *user, const char *path, whit_buf *content, bool *is, whit_error *error)
{
    whit_panel_agent *a = user;
    bool known = false;
    *is = false;
    if (whit_now_ns() - a->unsaved_ns > UNSAVED_NS) {
        a->unsaved.size_bytes = 0;
        WHIT_TRY(texts_list(a, &a->unsaved, error));
        a->unsaved_ns = whit_now_ns();
    }
    for (size_t at = 0; at < a->unsaved.size_bytes && !known; at += strlen(whit_chars(&a->unsaved) + at) + 1)
        known = strcmp(whit_chars(&a->unsaved) + at, path) == 0;
    if (!known) return WHIT_OK;
    if (!wait_answer(a, EVENT_READ, path)) return whit_fail(error, WHIT_ERROR_CANCELLED, "stopped");
    *is = a->said;
    return !*is || whit_buf_append(content, a->answer.data, a->answer.size_bytes)
        ? WHIT_OK
        : whit_fail_memory(error, "a text", a->answer.size_bytes);
}

static whit_status texts_write(void *user, const whit_change *changes, size_t n, whit_error *error)
{
    whit_panel_agent *a = user;
    a->changes = changes;
    a->n_changes = n;
    if (!wait_answer(a, EVENT_PATCH, "")) return whit_fail(error, WHIT_ERROR_CANCELLED, "stopped");
    if (!a->said) *error = a->answer_error;
    return a->said ? WHIT_OK : error->status;
}

/* ---- the worker's jobs ------------------------------------------------------------------------------ */

static whit_status be_ready(whit_panel_agent *a, whit_error *error)
{
    const whit_answering_calls calls = {a->options.find_model, on_text, on_note, a, &a->cancel};
    WHIT_TRY(whit_answering_model_open(&a->model, &a->wished, &calls, error));
    if (a->is_ready) return WHIT_OK;
    a->runner = (whit_runner){.project = a->project, .config = &a->config, .cancel = &a->cancel};
    /* If an earlier call failed, `config` may be incomplete, so it is read again. Once MCP servers are open, it must
     * not change, because `mcp` points to the servers' names in it. */
    if (!a->mcp) {
        whit_agent_config_free(&a->config);
        WHIT_TRY(whit_agent_config_load(&a->config, a->project, error));
    }
    if (a->config.servers && !a->mcp)
        WHIT_TRY(whit_mcp_open(a->config.servers, a->project, &a->cancel, on_note, a, &a->mcp, error));
    size_t limit = a->model.answering.context_bytes ? a->model.answering.context_bytes : 400000;
    WHIT_TRY(whit_agent_messages_begin(&a->messages, a->project, limit, error));
    a->is_ready = true;
    return WHIT_OK;
}

static whit_status do_task(whit_panel_agent *a, whit_error *error)
{
    const whit_open_texts open = {texts_read, texts_write, texts_list, a};
    WHIT_TRY(be_ready(a, error)); /* this call also opens the MCP servers */
    whit_agent_options how = {.project = a->project,
                              .task = whit_chars(&a->text),
                              .n_turns_max = TURNS_MAX,
                              .runner = &a->runner,
                              .mcp = a->mcp,
                              .show = on_show,
                              .agreed = on_agreed,
                              .choose = on_choose,
                              .written = on_written,
                              .open = &open,
                              .ask = on_ask,
                              .note = on_note,
                              .cancel = &a->cancel,
                              .user = a};
    char line[200];
    whit_agent_report *r = &a->report;
    uint32_t n_turns = r->n_turns;
    WHIT_TRY(whit_agent_run(&how, &a->model.answering, &a->messages, r, error));
    n_turns = r->n_turns - n_turns;
    if (!r->done)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "the task is not finished after %d answers, the limit: ask the agent to continue", TURNS_MAX);
    snprintf(line, sizeof line, "done: %u turn%s; %s%llu tokens in, %llu out so far", n_turns, whit_plural(n_turns),
             r->tokens_are_guessed ? "about " : "", (unsigned long long)r->tokens_in,
             (unsigned long long)r->tokens_out);
    post_line(a, EVENT_DONE, line);
    return WHIT_OK;
}

/* Asks one question without tools; appends the answer's text to `text`. */
static whit_status ask_plain(whit_panel_agent *a, const char *system, const char *question, whit_buf *text,
                             whit_error *error)
{
    json_t *tools = json_array(), *got = NULL;
    json_t *messages =
        json_pack("[{s:s, s:s}, {s:s, s:s}]", "role", "system", "content", system, "role", "user", "content", question);
    whit_status status = messages
        ? WHIT_OK
        : whit_fail(error, WHIT_ERROR_FORMAT, "the selection is not UTF-8 text, so it cannot be sent to the model");
    if (status == WHIT_OK) status = a->model.answering.ask(a->model.answering.user, messages, tools, &got, error);
    const json_t *message = json_object_get(json_array_get(json_object_get(got, "choices"), 0), "message");
    const char *content = json_string_value(json_object_get(message, "content"));
    if (status == WHIT_OK && !content)
        status = whit_fail(error, WHIT_ERROR_FORMAT, "the model answered without a text: try again");
    if (status == WHIT_OK && !whit_buf_append_str(text, content)) status = whit_fail_memory(error, "an answer", 0);
    json_decref(got);
    json_decref(messages);
    json_decref(tools);
    return status;
}

/* Reduces an answer to the content of its first fenced block; without a complete block the whole text stays. Removes
 * line ends at the end of the result, and adds a line feed if the old text ends with one. */
static void take_block(whit_buf *text, const char *old, size_t old_bytes)
{
    whit_buf_append(text, "", 1);
    char *begin = WHIT_ITEMS(char, text), *fence = strstr(begin, "```"), *body = fence ? strchr(fence, '\n') : NULL;
    char *end = body ? strstr(body, "\n```") : NULL;
    size_t n = text->size_bytes - 1;
    if (end) {
        n = (size_t)(end - body);
        memmove(begin, body + 1, n);
    }
    while (n && (begin[n - 1] == '\n' || begin[n - 1] == '\r')) n--;
    text->size_bytes = n;
    if (old_bytes && old[old_bytes - 1] == '\n') whit_buf_append(text, "\n", 1);
}

/* Refuses to send a secret to an endpoint. */
static whit_status check_secret(const whit_panel_agent *a, whit_error *error)
{
    const char *path = whit_chars(&a->path);
    const bool is_secret = a->model.endpoint &&
        whit_assistant_is_secret(*path ? path : NULL, whit_chars(&a->name), whit_chars(&a->around),
                                 a->around.size_bytes - 1);
    return is_secret ? whit_fail(error, WHIT_ERROR_ARGUMENT,
                                 "this text may contain keys, so it is not sent (-m MODEL answers in this process)")
                     : WHIT_OK;
}

static whit_status do_explain(whit_panel_agent *a, whit_error *error)
{
    whit_buf question = {0}, text = {0};
    WHIT_TRY(be_ready(a, error));
    WHIT_TRY(check_secret(a, error));
    whit_buf_printf(&question, "Explain this part of %s:\n\n```\n%s\n```\n", whit_chars(&a->about),
                    whit_chars(&a->selection));
    whit_status status = question.failed
        ? whit_fail_memory(error, "a question", a->selection.size_bytes)
        : ask_plain(a, SELECTION_ROLE " Answer briefly, in plain text.", whit_chars(&question), &text, error);
    if (status == WHIT_OK) post_line(a, EVENT_DONE, "explained");
    whit_buf_free(&question);
    whit_buf_free(&text);
    return status;
}

/* Asks the user to approve the hunks of a rewritten selection; the approved hunks replace the selection's text. */
static whit_status ask_rewrite(whit_panel_agent *a, whit_changes *staged, whit_error *error)
{
    whit_hunks hunks = {0};
    whit_status status = whit_hunks_make(&hunks, a->project, staged, error);
    uint8_t *taken = status == WHIT_OK ? calloc(hunks.n + 1, 1) : NULL;
    if (status == WHIT_OK && !taken) status = whit_fail_memory(error, "the hunks of a patch", hunks.n);
    if (status == WHIT_OK) status = on_choose(a, &hunks, taken, error);
    if (status == WHIT_OK) status = whit_hunks_keep(&hunks, taken, staged, error);
    if (status == WHIT_OK && whit_changes_count(staged))
        post(a, EVENT_REPLACE, whit_changes_at(staged, 0)->after, whit_changes_at(staged, 0)->after_bytes);
    else if (status == WHIT_OK)
        post_line(a, EVENT_DONE, "nothing was rewritten");
    free(taken);
    whit_hunks_free(&hunks);
    return status;
}

static whit_status choose_rewrite(whit_panel_agent *a, const whit_buf *text, whit_error *error)
{
    whit_changes staged = {0};
    const whit_change change = {.path = whit_chars(&a->about),
                                .was = true,
                                .is = true,
                                .before = whit_chars(&a->selection),
                                .before_bytes = a->selection.size_bytes - 1,
                                .after = whit_chars(text),
                                .after_bytes = text->size_bytes};
    whit_status status =
        whit_changes_copy(&staged, &change) ? WHIT_OK : whit_fail_memory(error, "a text", text->size_bytes);
    if (status == WHIT_OK) whit_changes_settle(&staged);
    if (status == WHIT_OK && !whit_changes_count(&staged))
        post_line(a, EVENT_DONE, "the model would leave the text unchanged");
    else if (status == WHIT_OK)
        status = ask_rewrite(a, &staged, error);
    whit_changes_free(&staged);
    return status;
}

static whit_status do_rewrite(whit_panel_agent *a, whit_error *error)
{
    whit_buf question = {0}, text = {0};
    WHIT_TRY(be_ready(a, error));
    WHIT_TRY(check_secret(a, error));
    whit_buf_printf(&question, "Rewrite this part of %s: %s\n\n```\n%s\n```\n", whit_chars(&a->about),
                    whit_chars(&a->text), whit_chars(&a->selection));
    a->quiet = true;
    whit_status status = question.failed
        ? whit_fail_memory(error, "a question", a->selection.size_bytes)
        : ask_plain(a, SELECTION_ROLE " Answer with the new text of that part alone, in one fenced block.",
                    whit_chars(&question), &text, error);
    a->quiet = false;
    if (status == WHIT_OK) {
        take_block(&text, whit_chars(&a->selection), a->selection.size_bytes - 1);
        status = choose_rewrite(a, &text, error);
    }
    whit_buf_free(&question);
    whit_buf_free(&text);
    return status;
}

static void on_turned(void *user, const whit_change *change)
{
    whit_panel_agent *a = user;
    whit_buf_append(&a->turned, change->path, strlen(change->path) + 1);
}

static void note_recovered(whit_panel_agent *a, uint32_t recovered)
{
    char line[120];
    snprintf(line, sizeof line, WHIT_TURNS_RECOVERED, recovered);
    if (recovered) post_line(a, EVENT_NOTE, line);
}

/* Shows the turn that an undo (or redo) in the journal would write, and asks about it. *number gets its number, 0 if
 * the person does not agree to the whole turn. */
static whit_status ask_turn(whit_panel_agent *a, bool redo, uint32_t *number, whit_error *error)
{
    whit_shown_turn shown;
    whit_status status = whit_shown_turn_read(a->project, redo, &shown, error);
    note_recovered(a, shown.recovered);
    uint8_t *taken = status == WHIT_OK ? calloc(shown.n + 1, 1) : NULL;
    if (status == WHIT_OK && !taken) status = whit_fail_memory(error, "the difference of a turn", shown.n);
    if (status == WHIT_OK) status = ask_hunks(a, shown.hunks, shown.n, taken, error);
    *number = status == WHIT_OK && !memchr(taken, 0, shown.n) ? shown.number : 0;
    free(taken);
    whit_shown_turn_free(&shown);
    return status;
}

/* Undoes (or redoes) the latest turn of this run, in open texts and in files. If this run has no such turn, undoes (or
 * redoes) the turn that the journal chooses (whit_turns_undo), after a question. */
static whit_status do_undo(whit_panel_agent *a, bool redo, whit_error *error)
{
    whit_buf *from = redo ? &a->undone : &a->turns;
    whit_buf *to = redo ? &a->turns : &a->undone;
    struct done_turn *turn =
        from->size_bytes ? (struct done_turn *)(void *)(from->data + from->size_bytes) - 1 : &(struct done_turn){0};
    size_t n_open = whit_changes_count(&turn->open);
    uint32_t number = turn->number, recovered;
    char line[120];
    whit_turns *journal = NULL;
    a->turned.size_bytes = 0;
    if (!number && !n_open) {
        WHIT_TRY(ask_turn(a, redo, &number, error));
        if (!number) {
            post_line(a, EVENT_DONE, redo ? "nothing is redone" : "nothing is undone");
            return WHIT_OK;
        }
    }
    for (size_t i = 0; i < n_open && !redo; i++) whit_change_turn_round(whit_changes_at(&turn->open, i));
    whit_status status = n_open ? texts_write(a, whit_changes_at(&turn->open, 0), n_open, error) : WHIT_OK;
    bool in_texts = status == WHIT_OK && n_open;
    if (status == WHIT_OK && (number || !n_open)) {
        status = whit_turns_open(a->project, NULL, &journal, &recovered, error);
        if (status == WHIT_OK) note_recovered(a, recovered);
        if (status == WHIT_OK)
            status = (redo ? whit_turns_redo : whit_turns_undo)(journal, &number, false, on_turned, a, error);
        whit_turns_close(journal);
    }
    for (size_t i = 0; i < n_open && !redo; i++) whit_change_turn_round(whit_changes_at(&turn->open, i));
    if (status != WHIT_OK && in_texts) { /* the change of the texts is reversed: all changes are made, or none */
        whit_error ignored;
        for (size_t i = 0; i < n_open && redo; i++) whit_change_turn_round(whit_changes_at(&turn->open, i));
        (void)texts_write(a, whit_changes_at(&turn->open, 0), n_open, &ignored);
        for (size_t i = 0; i < n_open && redo; i++) whit_change_turn_round(whit_changes_at(&turn->open, i));
    }
    WHIT_TRY(status);
    for (size_t at = 0; at < a->turned.size_bytes; at += strlen(whit_chars(&a->turned) + at) + 1) {
        char path[PATH_MAX * 2];
        snprintf(path, sizeof path, "%s/%s", a->project, whit_chars(&a->turned) + at);
        post_line(a, EVENT_WRITTEN, path);
    }
    if (from->size_bytes) {
        if (!whit_buf_append(to, turn, sizeof *turn)) whit_changes_free(&turn->open);
        from->size_bytes -= sizeof *turn;
    }
    if (number)
        snprintf(line, sizeof line, "turn %u is %s", number, redo ? "redone" : "undone");
    else
        snprintf(line, sizeof line, "the turn in open texts is %s", redo ? "redone" : "undone");
    post_line(a, EVENT_DONE, line);
    return WHIT_OK;
}

static void *work(void *user)
{
    whit_panel_agent *a = user;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (!a->has_job && !a->ending) pthread_cond_wait(&a->more, &a->lock);
        if (a->ending) break;
        pthread_mutex_unlock(&a->lock);
        whit_error error;
        a->unsaved_ns = 0;
        whit_status status;
        if (a->kind == WHIT_PANEL_TASK)
            status = do_task(a, &error);
        else if (a->kind == WHIT_PANEL_EXPLAIN)
            status = do_explain(a, &error);
        else if (a->kind == WHIT_PANEL_REWRITE)
            status = do_rewrite(a, &error);
        else
            status = do_undo(a, a->kind == WHIT_PANEL_REDO, &error);
        a->quiet = false;
        pthread_mutex_lock(&a->lock);
        bool cancelled = a->cancel;
        a->has_job = false;
        whit_flag_put(&a->cancel, a->ending);
        pthread_mutex_unlock(&a->lock);
        if (status != WHIT_OK)
            post_line(a, EVENT_FAILED,
                      cancelled ? "stopped; changes that were approved before are kept" : error.message);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- the panel's functions, on the editor's thread ---------------------------------------------------- */

static bool keep(whit_buf *buf, const char *text, size_t n)
{
    buf->size_bytes = 0;
    return whit_buf_append(buf, whit_or_empty(text), text ? n : 0) && whit_buf_append(buf, "", 1);
}

static bool keep_wish(whit_panel_agent *a, const whit_panel_wish *settings)
{
    whit_panel_wish wish = whit_assistant_wish_of(&a->options.wish, settings);
    const char *wishes[] = {wish.model, wish.url, wish.name, wish.key_file};
    const char **kept[] = {&a->wished.model, &a->wished.url, &a->wished.name, &a->wished.key_file};
    size_t at[4];
    a->wishes.size_bytes = 0;
    for (size_t i = 0; i < 4; i++) {
        at[i] = a->wishes.size_bytes;
        if (wishes[i] && !whit_buf_append(&a->wishes, wishes[i], strlen(wishes[i]) + 1)) return false;
    }
    for (size_t i = 0; i < 4; i++) *kept[i] = wishes[i] ? whit_chars(&a->wishes) + at[i] : NULL;
    return true;
}

static whit_status panel_begin(void *user, const whit_panel_request *request, whit_error *error)
{
    whit_panel_agent *a = user;
    char about[300];
    whit_status status = WHIT_OK;
    pthread_mutex_lock(&a->lock);
    bool busy = a->has_job, first = !a->has_thread;
    pthread_mutex_unlock(&a->lock);
    if (busy) return whit_fail(error, WHIT_ERROR_LIMIT, "the agent is at work; agent-stop (S-F9) stops it");
    snprintf(about, sizeof about, "%.200s (%.40s)", whit_or_empty(request->name), whit_or_empty(request->language));
    if (!keep(&a->text, request->text, request->text ? strlen(request->text) : 0) ||
        !keep(&a->selection, request->selection, request->selection_bytes) || !keep(&a->about, about, strlen(about)) ||
        !keep(&a->path, request->path, strlen(whit_or_empty(request->path))) ||
        !keep(&a->name, request->name, strlen(whit_or_empty(request->name))) ||
        !keep(&a->around, request->around, request->around_bytes) ||
        (!a->model.is_open && !keep_wish(a, &request->wish)))
        return whit_fail_memory(error, "a task", request->selection_bytes);
    if (first) {
        if (!whit_system_pipe(a->pipe)) return whit_fail_errno(error, "the agent", "open a pipe");
        sigset_t all, before; /* signals are left to the editor's thread */
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        a->has_thread = pthread_create(&a->thread, NULL, work, a) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!a->has_thread)
            status =
                whit_fail(error, WHIT_ERROR_LIMIT, "the system starts no thread for the agent: end some processes");
    }
    if (status == WHIT_OK) {
        pthread_mutex_lock(&a->lock);
        a->kind = request->kind;
        whit_flag_put(&a->cancel, false);
        a->has_job = true;
        pthread_cond_signal(&a->more);
        pthread_mutex_unlock(&a->lock);
    }
    return status;
}

static void panel_stop(void *user)
{
    whit_panel_agent *a = user;
    pthread_mutex_lock(&a->lock);
    if (a->has_job) whit_flag_put(&a->cancel, true);
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
}

static void panel_choose(void *user, const uint8_t *taken, size_t n)
{
    whit_panel_agent *a = user;
    pthread_mutex_lock(&a->lock);
    if (may_answer(a, EVENT_HUNKS) && n == a->n_hunks) {
        memcpy(a->taken, taken, n);
        wake_worker(a);
    }
    pthread_mutex_unlock(&a->lock);
}

static void panel_reply(void *user, const char *text)
{
    whit_panel_agent *a = user;
    pthread_mutex_lock(&a->lock);
    if (may_answer(a, EVENT_QUESTION)) {
        a->said = text && whit_buf_append_str(&a->answer, text);
        wake_worker(a);
    }
    pthread_mutex_unlock(&a->lock);
}

static int panel_fd(void *user)
{
    const whit_panel_agent *a = user;
    return a->pipe[0];
}

/* Applies the changes to all open texts or to none: if one fails, the earlier ones are reversed. */
static bool patch_open(whit_panel_agent *a, struct whit_editor *editor)
{
    char path[PATH_MAX * 2];
    for (size_t i = 0; i < a->n_changes; i++) {
        const whit_change *c = &a->changes[i];
        snprintf(path, sizeof path, "%s/%s", a->project, c->path);
        if (whit_editor_patch(editor, path, c->before, c->before_bytes, c->after, c->after_bytes, &a->answer_error) ==
            WHIT_OK)
            continue;
        while (i-- > 0) {
            whit_error ignored;
            c = &a->changes[i];
            snprintf(path, sizeof path, "%s/%s", a->project, c->path);
            (void)whit_editor_patch(editor, path, c->after, c->after_bytes, c->before, c->before_bytes, &ignored);
        }
        return false;
    }
    return true;
}

/* Handles an event for which the worker waits; does nothing if the worker no longer waits for it. */
static void serve(whit_panel_agent *a, struct whit_editor *editor, const struct event *event)
{
    char path[PATH_MAX * 2];
    pthread_mutex_lock(&a->lock);
    bool waits = a->wants_answer && !a->is_answered && !a->cancel;
    if (waits && (event->kind == EVENT_HUNKS || event->kind == EVENT_QUESTION)) {
        const whit_panel_hunk *hunks = a->hunks;
        size_t n = a->n_hunks;
        a->asked = event->kind;
        pthread_mutex_unlock(&a->lock); /* the panel may answer during the call below, and needs the lock */
        if (event->kind == EVENT_HUNKS)
            whit_editor_agent_hunks(editor, hunks, n);
        else
            whit_editor_agent_question(editor, event->text);
        return;
    }
    if (waits) {
        snprintf(path, sizeof path, "%s/%s", a->project, event->text);
        if (event->kind == EVENT_READ)
            a->said = whit_editor_unsaved(editor, path, &a->answer);
        else if (event->kind == EVENT_LIST)
            a->said = whit_editor_unsaved_paths(editor, a->project, &a->answer);
        else
            a->said = patch_open(a, editor);
        wake_worker(a);
    }
    pthread_mutex_unlock(&a->lock);
}

static bool panel_pump(void *user, struct whit_editor *editor)
{
    whit_panel_agent *a = user;
    char drained[256];
    bool any = false;
    while (a->pipe[0] >= 0 && read(a->pipe[0], drained, sizeof drained) > 0) {
    }
    for (;;) {
        pthread_mutex_lock(&a->lock);
        struct event *event = a->first;
        if (event) a->first = event->next;
        if (!a->first) a->last = NULL;
        pthread_mutex_unlock(&a->lock);
        if (!event) return any;
        any = any || (event->kind != EVENT_READ && event->kind != EVENT_LIST);
        switch (event->kind) {
        case EVENT_TEXT: whit_editor_agent_text(editor, event->text, event->n); break;
        case EVENT_NOTE: whit_editor_agent_note(editor, event->text); break;
        case EVENT_DONE: whit_editor_agent_done(editor, event->text, false); break;
        case EVENT_FAILED: whit_editor_agent_done(editor, event->text, true); break;
        case EVENT_WRITTEN: whit_editor_written(editor, event->text); break;
        case EVENT_REPLACE: {
            bool ok = whit_editor_agent_replace(editor, event->text, event->n);
            whit_editor_agent_done(editor, ok ? "rewritten" : "the text has changed meanwhile: nothing is rewritten",
                                   !ok);
            break;
        }
        default: serve(a, editor, event);
        }
        free(event);
    }
}

/* ---- opening and closing the agent -------------------------------------------------------------------- */

whit_status whit_panel_agent_open(const whit_assistant_options *options, whit_panel_agent **agent, whit_error *error)
{
    whit_panel_agent *a = *agent = calloc(1, sizeof *a);
    if (!a) return whit_fail_memory(error, "an agent", sizeof *a);
    a->options = *options;
    a->pipe[0] = a->pipe[1] = -1;
    if (!realpath(".", a->project)) a->project[0] = 0;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
    a->panel = (whit_panel){.begin = panel_begin,
                            .stop = panel_stop,
                            .choose = panel_choose,
                            .reply = panel_reply,
                            .fd = panel_fd,
                            .pump = panel_pump,
                            .user = a};
    return WHIT_OK;
}

static void free_turns(whit_buf *turns)
{
    for (size_t i = 0; i < turns->size_bytes / sizeof(struct done_turn); i++)
        whit_changes_free(&(WHIT_ITEMS(struct done_turn, turns))[i].open);
    whit_buf_free(turns);
}

void whit_panel_agent_close(whit_panel_agent *a)
{
    if (!a) return;
    if (a->has_thread) {
        pthread_mutex_lock(&a->lock);
        a->ending = true;
        whit_flag_put(&a->cancel, true);
        pthread_cond_signal(&a->more);
        pthread_mutex_unlock(&a->lock);
        pthread_join(a->thread, NULL);
    }
    while (a->first) {
        struct event *next = a->first->next;
        free(a->first);
        a->first = next;
    }
    for (int i = 0; i < 2; i++)
        if (a->pipe[i] >= 0) close(a->pipe[i]);
    whit_mcp_close(a->mcp);
    whit_answering_model_close(&a->model);
    whit_agent_messages_free(&a->messages);
    whit_agent_config_free(&a->config);
    free_turns(&a->turns);
    free_turns(&a->undone);
    whit_buf *const buffers[] = {&a->unsaved, &a->turned, &a->text,   &a->selection, &a->about,        &a->path,
                                 &a->name,    &a->around, &a->answer, &a->wishes,    &a->report.answer};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) whit_buf_free(buffers[i]);
    pthread_cond_destroy(&a->more);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

const whit_panel *whit_panel_agent_panel(const whit_panel_agent *a)
{
    return &a->panel;
}
