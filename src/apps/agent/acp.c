/* SPDX-License-Identifier: MIT
 * Serves the Agent Client Protocol, version 1. An editor opens sessions for folders and sends prompts; it receives the
 * answers, the progress, and every change with a question. Each session has a conversation file, which is saved after
 * every answer, so that "session/load" can open the session in another process. One session is open at a time: a prompt
 * to another session first closes it and opens the other.
 *
 * A reader thread reads the editor's messages, so that "session/cancel" arrives while a model answers. The main
 * thread does all other work. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/acp.h"
#include "agent/guard.h"
#include "agent/light.h"
#include "agent/loop.h"
#include "agent/rpc.h"
#include "agent/tools.h"
#include "base/clock.h"
#include "base/flag.h"
#include "base/items.h"
#include "base/phrase.h"
#include "base/plain.h"
#include "base/status.h"
#include "base/system.h"
#include "base/uri.h"

#define QUEUE_MAX         256 /* maximum number of queued messages before further requests are refused */
#define SERVER_NAME_BYTES 33
#define URI_PARTS_MAX     32   /* maximum number of parts of a resource's URI; the text of one with more is left out */
#define QUEUE_ALL         4096 /* capacity of the queue, which also holds replies and the requests to be refused */

struct acp {
    const whit_acp_host *host;
    whit_rpc rpc;
    whit_acp_session open; /* valid while has_session is true */
    bool has_session;
    char session[32], folder[PATH_MAX];
    json_t *sessions;     /* {id: {folder, servers, in, out}}: sessions of this process, including the open one */
    volatile bool cancel; /* cancels the running task; set with the lock held */
    uint64_t n_calls;
    whit_plain text; /* state of the answer that is being sent */
    json_t *shown;   /* {id, diff}[]: changes that were shown and not yet written or dropped */
    /* The reader thread and the main thread share the members below. */
    pthread_mutex_t lock;
    pthread_cond_t more;
    json_t *queue[QUEUE_ALL];
    size_t first, n;
    char running[32]; /* id of the session whose prompt is running; "" if no prompt is running */
    bool ended, is_flooded;
};

/* ---- reading messages of the editor ---------------------------------------------------------------- */

/* Replaces a request that came when the queue was full by the fields needed to refuse it. Takes ownership of
 * `message`. */
static json_t *as_busy(json_t *message)
{
    json_t *id = json_object_get(message, "id");
    json_t *busy = id ? json_pack("{s:O, s:b}", "id", id, "busy", 1) : NULL;
    json_decref(message);
    return busy ? busy : json_object(); /* a message without an id is a notification, which is not answered */
}

static const char *session_of(const json_t *message)
{
    return whit_or_empty(json_string_value(json_object_get(json_object_get(message, "params"), "sessionId")));
}

static bool is_method(const json_t *message, const char *method)
{
    const char *name = json_string_value(json_object_get(message, "method"));
    return name && strcmp(name, method) == 0;
}

/* Cancels the running prompt and the waiting prompts of a session. The caller must hold the lock. */
static void cancel_session(struct acp *a, const char *session)
{
    if (strcmp(session, a->running) == 0) whit_flag_put(&a->cancel, true);
    for (size_t i = 0; i < a->n; i++) {
        json_t *waiting = a->queue[(a->first + i) % QUEUE_ALL];
        if (is_method(waiting, "session/prompt") && strcmp(session, session_of(waiting)) == 0)
            json_object_set_new(waiting, "cancelled", json_true());
    }
}

static void *read_all(void *user)
{
    struct acp *a = user;
    json_t *message;
    for (whit_rpc_got got; (got = whit_rpc_read(&a->rpc, -1, &message)) != WHIT_RPC_END;) {
        if (got == WHIT_RPC_BAD) message = json_null(); /* JSON null stands for a line that is not JSON */
        /* JSON true stands for a line that is JSON but not an object */
        if (got == WHIT_RPC_OTHER) message = json_true();
        const char *method = json_string_value(json_object_get(message, "method"));
        pthread_mutex_lock(&a->lock);
        if (is_method(message, "session/cancel")) {
            cancel_session(a, session_of(message));
            json_decref(message);
        } else if (a->n >= QUEUE_ALL) {
            /* The client has sent too many messages. Serving ends, since no message may be dropped silently. */
            json_decref(message);
            a->ended = a->is_flooded = true;
            whit_flag_put(&a->cancel, true);
        } else {
            bool is_busy = method && a->n >= QUEUE_MAX;
            if (is_busy) message = as_busy(message);
            a->queue[(a->first + a->n++) % QUEUE_ALL] = message;
        }
        pthread_cond_signal(&a->more);
        pthread_mutex_unlock(&a->lock);
    }
    pthread_mutex_lock(&a->lock);
    a->ended = true;
    whit_flag_put(&a->cancel, true);
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* Waits for the next message and removes it from the queue. Returns NULL at the end of the input. If the message is a
 * prompt, it counts as running from here on. With `wanted` != 0 it returns the reply to the request of that number,
 * leaves other messages in the queue, and returns NULL if the task is cancelled. */
static json_t *next(struct acp *a, int64_t wanted)
{
    json_t *message = NULL;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        /* a cancelled task takes no reply, not even one that has arrived: the person has said no to all questions */
        if (wanted && whit_flag_is_set(&a->cancel)) break;
        for (size_t i = 0; i < a->n && !message; i++) {
            size_t at = (a->first + i) % QUEUE_ALL;
            if (wanted && !whit_rpc_is_reply(a->queue[at], wanted)) continue;
            message = a->queue[at];
            for (size_t k = i; k + 1 < a->n; k++)
                a->queue[(a->first + k) % QUEUE_ALL] = a->queue[(a->first + k + 1) % QUEUE_ALL];
            a->n--;
        }
        if (message && !wanted && is_method(message, "session/prompt")) {
            snprintf(a->running, sizeof a->running, "%s", session_of(message));
            whit_flag_put(&a->cancel, json_is_true(json_object_get(message, "cancelled")) || a->ended);
        }
        if (message || a->ended) break;
        pthread_cond_wait(&a->more, &a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return message;
}

/* ---- messages to the editor -------------------------------------------------------------------------- */

static void update(struct acp *a, json_t *what)
{
    whit_rpc_notify(&a->rpc, "session/update", json_pack("{s:s, s:o}", "sessionId", a->session, "update", what));
}

/* Sends a piece of text as a terminal shows it: hidden characters, which a person would copy unseen, are replaced by
 * marks such as <U+202E>, and controls by '?'. `state` keeps the first bytes of a character that the piece divides. */
static void send_text(struct acp *a, const char *kind, whit_plain *state, const char *text, size_t n)
{
    char *plain = malloc(WHIT_PLAIN_ROOM(n));
    const size_t n_plain = plain ? whit_plain_text(state, text, n, plain) : 0;
    json_t *value = n_plain ? json_stringn(plain, n_plain) : NULL;
    if (value)
        update(a, json_pack("{s:s, s:{s:s, s:o}}", "sessionUpdate", kind, "content", "type", "text", "text", value));
    free(plain);
}

static void acp_text(void *user, const char *text, size_t n)
{
    struct acp *a = user;
    send_text(a, "agent_message_chunk", &a->text, text, n);
}

/* Returns a text in the form for display as JSON, with marks that keep the order of its characters. NULL means that
 * memory ran out. */
static json_t *in_order(const char *text, size_t n)
{
    whit_buf ordered = {0};
    json_t *value = NULL;
    if (whit_plain_keep_order(text, n, &ordered))
        value = json_stringn(ordered.size_bytes ? whit_chars(&ordered) : "", ordered.size_bytes);
    whit_buf_free(&ordered);
    return value;
}

/* Returns a text for display, such as one side of a change: characters that an editor would not show, or that JSON
 * cannot represent, are replaced by visible marks such as <U+202E>. NULL means that memory ran out. */
static json_t *text_of(const char *text, size_t n, whit_plain_kept kept)
{
    whit_buf shown = {0};
    json_t *value = NULL;
    if (whit_plain_show(text, n, kept, &shown))
        value = in_order(shown.size_bytes ? whit_chars(&shown) : "", shown.size_bytes);
    whit_buf_free(&shown);
    return value;
}

static json_t *line_of(const char *text)
{
    return text_of(text, strlen(text), WHIT_PLAIN_NAME);
}

/* Returns a path by which the editor finds the file: without marks of order, which are no part of its name. */
static json_t *place_of(const char *path)
{
    whit_buf shown = {0};
    const bool ok = whit_plain_show(path, strlen(path), WHIT_PLAIN_NAME, &shown) && whit_buf_append(&shown, "", 1);
    json_t *value = ok ? json_string(whit_chars(&shown)) : NULL;
    whit_buf_free(&shown);
    return value;
}

static void acp_note(void *user, const char *line)
{
    struct acp *a = user;
    char id[32];
    snprintf(id, sizeof id, "note-%llu", (unsigned long long)++a->n_calls);
    update(a,
           json_pack("{s:s, s:s, s:o, s:s, s:s}", "sessionUpdate", "tool_call", "toolCallId", id, "title",
                     line_of(line), "kind", "other", "status", "completed"));
}

static bool has_only_cr_lf(const char *text, size_t n)
{
    bool has_any = false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\n') continue;
        if (!i || text[i - 1] != '\r') return false;
        has_any = true;
    }
    return has_any;
}

/* Returns how the line ends of a change are shown. Editors show CR LF as LF, so CR LF is left unmarked only if all
 * lines of both sides end in CR LF; a CR LF that the change adds is marked. */
static whit_plain_kept kept_ends(const whit_change *c)
{
    const bool stays = c->was && has_only_cr_lf(c->before, c->before_bytes) &&
        (!c->is || !c->after_bytes || has_only_cr_lf(c->after, c->after_bytes));
    return stays ? WHIT_PLAIN_ENDS : WHIT_PLAIN_LINES;
}

static whit_status acp_show(void *user, const whit_change *change, whit_error *error)
{
    struct acp *a = user;
    char full[PATH_MAX * 2], id[32];
    snprintf(id, sizeof id, "edit-%llu", (unsigned long long)++a->n_calls);
    snprintf(full, sizeof full, "%s/%s", a->folder, change->path);
    json_t *title = line_of(change->path);
    const whit_plain_kept kept = kept_ends(change);
    json_t *before = change->was ? text_of(change->before, change->before_bytes, kept) : json_null();
    json_t *after = text_of(change->after, change->is ? change->after_bytes : 0, kept);
    json_t *diff =
        json_pack("{s:s, s:o, s:o, s:o}", "type", "diff", "path", line_of(full), "oldText", before, "newText", after);
    json_t *call = json_pack("{s:s, s:s, s:o, s:s, s:s, s:[O], s:[{s:o}]}", "sessionUpdate", "tool_call", "toolCallId",
                             id, "title", title, "kind", change->is ? "edit" : "delete", "status", "pending", "content",
                             diff, "locations", "path", place_of(full));
    if (!a->shown) a->shown = json_array();
    bool ok = call && json_array_append_new(a->shown, json_pack("{s:s, s:O}", "id", id, "diff", diff)) == 0;
    json_decref(diff);
    if (ok) update(a, call);
    if (!ok) json_decref(call);
    return ok ? WHIT_OK : whit_fail_memory(error, "a change that is shown", change->before_bytes + change->after_bytes);
}

static void update_status(struct acp *a, const char *id, const char *status)
{
    update(a, json_pack("{s:s, s:s, s:s}", "sessionUpdate", "tool_call_update", "toolCallId", id, "status", status));
}

/* Reports every pending change in `shown` as written (n > 0) or dropped (n = 0), and empties `shown`. */
static void acp_written(void *user, uint32_t turn, const whit_change *changes, size_t n)
{
    struct acp *a = user;
    size_t i;
    json_t *one;
    (void)turn, (void)changes;
    json_array_foreach(a->shown, i, one)
        update_status(a, json_string_value(json_object_get(one, "id")), n ? "completed" : "failed");
    json_array_clear(a->shown);
}

/* Asks the person through the editor with a separate tool call, which contains the diffs of all pending changes. */
static bool ask_editor(struct acp *a, const char *reason, size_t n_files)
{
    int64_t number;
    char title[PATH_MAX * 4 + 200], id[32];
    size_t i;
    json_t *one, *diffs = json_array();
    const char *stop = reason ? ". " : "";
    snprintf(title, sizeof title, n_files ? "%s%sWrite %zu file%s" : "%s", whit_or_empty(reason), stop, n_files,
             whit_plural(n_files));
    snprintf(id, sizeof id, "ask-%llu", (unsigned long long)++a->n_calls);
    json_array_foreach(a->shown, i, one) json_array_append(diffs, json_object_get(one, "diff"));
    json_t *params =
        json_pack("{s:s, s:{s:s, s:o, s:s, s:s, s:o}, s:[{s:s, s:s, s:s}, {s:s, s:s, s:s}]}", "sessionId", a->session,
                  "toolCall", "toolCallId", id, "title", in_order(title, strlen(title)), "kind",
                  n_files ? "edit" : "execute", "status", "pending", "content", diffs, "options", "optionId", "yes",
                  "name", "Yes", "kind", "allow_once", "optionId", "no", "name", "No", "kind", "reject_once");
    if (!params || !whit_rpc_ask(&a->rpc, "session/request_permission", params, &number)) return false;
    json_t *reply = next(a, number);
    const json_t *outcome = json_object_get(json_object_get(reply, "result"), "outcome");
    const char *how = json_string_value(json_object_get(outcome, "outcome"));
    const char *option = json_string_value(json_object_get(outcome, "optionId"));
    bool yes = how && strcmp(how, "selected") == 0 && option && strcmp(option, "yes") == 0;
    json_decref(reply);
    update_status(a, id, yes ? "completed" : "failed");
    return yes;
}

/* Changes that were shown with a question about a command or a check (n_files 0) are shown again when they are to be
 * written. They are reported as dropped here: no later question may contain the diff of a change that it does not
 * write, and no such change may be reported as written. */
static bool acp_agreed(void *user, const char *reason, size_t n_files)
{
    const bool yes = ask_editor(user, reason, n_files);
    if (!n_files) acp_written(user, 0, NULL, 0);
    return yes;
}

/* Saves the conversation while a task runs. Errors are ignored here, since prompt() saves again and reports them. */
static void acp_keep(void *user)
{
    whit_error ignored;
    struct acp *a = user;
    (void)a->host->keep(a->host->user, &ignored);
}

static bool acp_ask(void *user, const char *question, whit_buf *answer)
{
    (void)user, (void)question, (void)answer;
    return false; /* the protocol has no question with a free-text answer */
}

/* ---- requests of the editor ---------------------------------------------------------------------------- */

static void close_session(struct acp *a)
{
    json_t *known = json_object_get(a->sessions, a->session);
    if (!a->has_session) return;
    json_object_set_new(known, "in", json_integer((json_int_t)a->open.report->tokens_in));
    json_object_set_new(known, "out", json_integer((json_int_t)a->open.report->tokens_out));
    a->host->close(a->host->user);
    a->has_session = false;
}

/* Closes the open session and opens the session `session` of `sessions`, with the conversation saved in its file.
 * Returns false if it has refused the request `id`. */
static bool open_session(struct acp *a, const json_t *id, const char *session)
{
    const json_t *known = json_object_get(a->sessions, session);
    whit_error error;
    close_session(a);
    snprintf(a->session, sizeof a->session, "%s", session);
    snprintf(a->folder, sizeof a->folder, "%s", whit_or_empty(json_string_value(json_object_get(known, "folder"))));
    if (a->host->find_server(a->host->user, &error) != WHIT_OK) {
        whit_rpc_refuse(&a->rpc, id, -32603, error.message);
        return false;
    }
    const whit_acp_wanted wanted = {.folder = a->folder,
                                    .id = a->host->has_file ? NULL : a->session,
                                    .servers = json_deep_copy(json_object_get(known, "servers")),
                                    .cancel = &a->cancel,
                                    .on_text = acp_text,
                                    .user = a};
    if (!a->host->open(a->host->user, &wanted, &a->open)) {
        a->host->close(a->host->user);                   /* the session's counts of tokens stay as they were */
        if (*a->running && whit_flag_is_set(&a->cancel)) /* its prompt was cancelled while a server began */
            whit_rpc_reply(&a->rpc, id, json_pack("{s:s}", "stopReason", "cancelled"));
        else
            whit_rpc_refuse(&a->rpc, id, -32603,
                            "the session cannot be opened; the output of 'whit agent' on stderr says why");
        return false;
    }
    a->has_session = true;
    a->open.report->tokens_in = (uint64_t)json_integer_value(json_object_get(known, "in"));
    a->open.report->tokens_out = (uint64_t)json_integer_value(json_object_get(known, "out"));
    return true;
}

/* Converts an MCP server from the protocol's form, {name, command, args, env}, to the configuration's form, {command:
 * [...], env: {...}, editor: true}. Returns NULL if `server` does not have the protocol's form. */
static json_t *read_server(const json_t *server)
{
    const char *command = json_string_value(json_object_get(server, "command"));
    json_t *words = command ? json_pack("[s]", command) : NULL, *env = json_object(), *one;
    size_t i;
    bool ok = words && env;
    json_array_foreach(json_object_get(server, "args"), i, one) ok =
        ok && json_is_string(one) && json_array_append(words, one) == 0;
    json_array_foreach(json_object_get(server, "env"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        ok = ok && name && *name && !strchr(name, '=') && json_is_string(json_object_get(one, "value")) &&
            json_object_set(env, name, json_object_get(one, "value")) == 0;
    }
    json_t *made = ok ? json_pack("{s:O, s:O, s:b}", "command", words, "env", env, "editor", 1) : NULL;
    json_decref(words);
    json_decref(env);
    return made;
}

/* Writes a name for an editor's MCP server that none of `servers` has. */
static void plain_name(const char *given, const json_t *servers, char name[SERVER_NAME_BYTES])
{
    char end[16] = "";
    size_t n = 0;
    for (const char *at = given; *at && n + 1 < SERVER_NAME_BYTES; at++)
        name[n++] = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ? *at : '-';
    name[n] = 0;
    for (unsigned number = 2; n && json_object_get(servers, name); number++) {
        const size_t n_end = (size_t)snprintf(end, sizeof end, "-%u", number);
        if (n + n_end >= SERVER_NAME_BYTES) n = SERVER_NAME_BYTES - 1 - n_end;
        memcpy(name + n, end, n_end + 1);
    }
}

/* Reads the MCP servers that the editor passes. A server's name, which becomes part of its tools' names, is cut to 32
 * characters, and characters other than letters and digits become '-'. If that makes two names one, the second gets
 * a number ("a-b-2"). Returns false with the reason if it refuses a server. */
static bool read_servers(const json_t *list, json_t *servers, whit_error *error)
{
    size_t i;
    json_t *one, *seen = json_object(); /* {name as the editor gives it: true} */
    json_array_foreach(list, i, one)
    {
        const char *given = json_string_value(json_object_get(one, "name"));
        char name[SERVER_NAME_BYTES];
        if (!given) given = "server";
        plain_name(given, servers, name);
        json_t *server = read_server(one);
        bool ok =
            *name && server && !json_object_get(seen, given) && json_object_set_new(seen, given, json_true()) == 0;
        if (ok) json_object_set(servers, name, server);
        json_decref(server);
        if (ok) continue;
        whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "mcpServers[%zu] ('%.40s') is not a stdio server with a unique name: expected {name, command, args, env}",
            i, given);
        json_decref(seen);
        return false;
    }
    json_decref(seen);
    return true;
}

/* Reads the folder and the MCP servers of a request into `sessions`. Returns false if it has refused the request
 * `id`. */
static bool read_session(struct acp *a, const json_t *id, const json_t *params, const char *session)
{
    const char *given = json_string_value(json_object_get(params, "cwd"));
    char folder[PATH_MAX];
    whit_error error;
    if (!realpath(given ? given : a->host->project, folder)) {
        whit_rpc_refuse(&a->rpc, id, -32602, "cwd: there is no such folder on this machine");
        return false;
    }
    json_t *servers = json_object();
    const char *reason = "not enough memory";
    if (servers && !read_servers(json_object_get(params, "mcpServers"), servers, &error)) {
        reason = error.message;
        json_decref(servers);
        servers = NULL;
    }
    bool ok = servers &&
        json_object_set_new(a->sessions, session, json_pack("{s:s, s:o}", "folder", folder, "servers", servers)) == 0;
    if (!ok) whit_rpc_refuse(&a->rpc, id, -32602, reason);
    return ok;
}

static void new_session(struct acp *a, const json_t *id, const json_t *params)
{
    char session[32];
    snprintf(session, sizeof session, "whit-%llx", (unsigned long long)whit_system_draw());
    if (!read_session(a, id, params, session) || !open_session(a, id, session)) {
        json_object_del(a->sessions, session);
        return;
    }
    whit_rpc_reply(&a->rpc, id, json_pack("{s:s}", "sessionId", a->session));
}

/* Checks, before the open session is closed, that a conversation of an earlier process was saved for this folder and
 * that its file can be read. Errors: argument (no conversation was saved), format, io. */
static whit_status check_kept(struct acp *a, const char *session, whit_error *error)
{
    const char *digits = session + strlen("whit-");
    const char *folder = json_string_value(json_object_get(json_object_get(a->sessions, session), "folder"));
    whit_agent_messages kept = {.list = json_array()};
    char path[PATH_MAX];
    bool there = false;
    bool is_id = strncmp(session, "whit-", strlen("whit-")) == 0 && *digits && strlen(digits) <= 16 &&
        digits[strspn(digits, "0123456789abcdef")] == 0;
    whit_status status = is_id ? a->host->path(a->host->user, whit_or_empty(folder), session, path, error) : WHIT_OK;
    if (is_id && status == WHIT_OK) status = whit_agent_messages_load(&kept, path, &there, error);
    whit_agent_messages_free(&kept);
    if (status != WHIT_OK || there) return status;
    return whit_fail(error, WHIT_ERROR_ARGUMENT,
                     "no conversation of this session was kept for this folder; begin one with session/new");
}

/* Sends a saved conversation to the editor: the texts of both sides, and one line for each call. */
static void replay_session(struct acp *a)
{
    size_t i, k;
    const json_t *message, *call;
    json_array_foreach(a->open.messages->list, i, message)
    {
        const char *role = whit_or_empty(json_string_value(json_object_get(message, "role")));
        const json_t *content = json_object_get(message, "content");
        const bool is_user = strcmp(role, "user") == 0;
        if (!is_user && strcmp(role, "assistant") != 0) continue;
        if (is_user && i && !whit_agent_is_persons(json_array_get(a->open.messages->list, i - 1), message)) continue;
        if (json_string_length(content))
            send_text(a, is_user ? "user_message_chunk" : "agent_message_chunk", &(whit_plain){0},
                      json_string_value(content), json_string_length(content));
        json_array_foreach(json_object_get(message, "tool_calls"), k, call)
        {
            const json_t *function = json_object_get(call, "function");
            char line[WHIT_TOOL_LINE_BYTES];
            whit_tool_tell(whit_or_empty(json_string_value(json_object_get(function, "name"))),
                           whit_or_empty(json_string_value(json_object_get(function, "arguments"))), line);
            acp_note(a, line);
        }
    }
}

static void load_session(struct acp *a, const json_t *id, const json_t *params)
{
    const char *given = json_string_value(json_object_get(params, "sessionId"));
    whit_error error;
    if (a->host->has_file) {
        whit_rpc_refuse(&a->rpc, id, -32602, "--session and --resume already name the conversation: use session/new");
        return;
    }
    char session[32];
    snprintf(session, sizeof session, "%s", whit_or_empty(given));
    json_t *before = json_incref(json_object_get(a->sessions, session));
    bool ok = read_session(a, id, params, session);
    if (ok && before) json_object_update_missing(json_object_get(a->sessions, session), before); /* its tokens */
    if (ok && check_kept(a, session, &error) != WHIT_OK) {
        whit_rpc_refuse(&a->rpc, id, -32602, error.message);
        ok = false;
    }
    ok = ok && open_session(a, id, session);
    if (!ok && before) json_object_set(a->sessions, session, before);
    if (!ok && !before) json_object_del(a->sessions, session);
    json_decref(before);
    if (!ok) return;
    replay_session(a);
    whit_rpc_reply(&a->rpc, id, json_object());
}

static const char file_scheme[] = "file://";

/* Returns whether a part of a URI names a file that the tools would not read: an absolute path, also after the name of
 * a host, or a path relative to the folder. */
static bool is_secret_part(const char *folder, const char *text, size_t n)
{
    char part[PATH_MAX], full[2 * PATH_MAX];
    if (!whit_uri_decode(text, n, false, part, sizeof part)) return true;
    const char *absolute = strchr(part, '/');
    const bool is_relative = *part && absolute != part;
    if (whit_guard_is_secret(part) || (absolute && absolute[1] && whit_light_secret_file(absolute))) return true;
    return is_relative && snprintf(full, sizeof full, "%s/%s", folder, part) < PATH_MAX && whit_light_secret_file(full);
}

/* Returns whether one of the parts between `separators` is secret, or there are more than URI_PARTS_MAX. */
static bool has_secret_part(const char *folder, const char *at, const char *separators)
{
    for (size_t n, n_parts = 0; *at; at += n + (at[n] != 0)) {
        n = strcspn(at, separators);
        if (++n_parts > URI_PARTS_MAX || is_secret_part(folder, at, n)) return true;
    }
    return false;
}

/* Returns whether the text of a resource must not reach the model: the tools would not read its file, or it contains a
 * key. The scheme of the URI does not tell where the file's path is (editors have schemes of their own, with the path
 * in the query, and without slashes, as in untitled:NAME), so each part is examined. */
static bool is_secret(const char *folder, const char *uri, const json_t *text)
{
    const char *begin = strstr(uri, "://"), *at = begin ? begin + 3 : uri;
    if (is_secret_part(folder, at, strcspn(at, "?#")) || has_secret_part(folder, at, "?#&=") ||
        has_secret_part(folder, uri + strcspn(uri, ":"), "?#&=:;,|"))
        return true;
    return json_string_length(text) && whit_guard_has_key(json_string_value(text), json_string_length(text));
}

/* Appends the name of a resource: the path relative to the folder for a file in it, since the tools accept relative
 * paths, otherwise the URI. A URI with escapes (%20) is appended unchanged, too. */
static void append_name(const char *folder, const char *uri, whit_buf *task)
{
    const size_t n = strlen(folder);
    const char *path = strncmp(uri, file_scheme, strlen(file_scheme)) == 0 ? uri + strlen(file_scheme) : "";
    const bool is_inside = strncmp(path, folder, n) == 0 && path[n] == '/' && path[n + 1] && !strchr(path, '%');
    whit_buf_printf(task, "[%s]\n", is_inside ? path + n + 1 : uri);
}

/* Appends the name and the text of a resource that the editor has embedded. */
static void append_resource(struct acp *a, const char *uri, const json_t *text, whit_buf *task)
{
    static const char left_out[] = "its text may contain keys, so it is left out";
    if (*uri) append_name(a->folder, uri, task);
    if (!is_secret(a->folder, uri, text)) {
        if (json_is_string(text)) whit_buf_append(task, json_string_value(text), json_string_length(text));
        return;
    }
    char line[300];
    snprintf(line, sizeof line, "%.200s: %s", uri, left_out);
    acp_note(a, line);
    whit_buf_printf(task, "(%s)", left_out);
}

/* Reads the texts of a prompt and its resources. Returns false if the prompt contains neither. */
static bool read_prompt(struct acp *a, const json_t *params, whit_buf *task)
{
    size_t i;
    json_t *part;
    bool says = false;
    json_array_foreach(json_object_get(params, "prompt"), i, part)
    {
        const json_t *resource = json_object_get(part, "resource"), *from = json_is_object(resource) ? resource : part;
        const json_t *text = json_object_get(from, "text"), *uri = json_object_get(from, "uri");
        const char *words = json_is_string(text) ? json_string_value(text) : "";
        says = says || json_is_string(uri) || words[strspn(words, " \t\r\n")];
        if (i) whit_buf_append_str(task, "\n");
        if (from == resource || (json_is_string(uri) && json_is_string(text))) {
            append_resource(a, whit_or_empty(json_string_value(uri)), text, task);
            continue;
        }
        if (json_is_string(uri)) append_name(a->folder, json_string_value(uri), task);
        whit_buf_append(task, words, json_string_length(text));
    }
    whit_buf_append(task, "", 1);
    return says;
}

static void prompt(struct acp *a, const json_t *id, const json_t *params)
{
    const whit_acp_host *host = a->host;
    const char *session = json_string_value(json_object_get(params, "sessionId"));
    whit_buf task = {0};
    whit_error error;
    if (!session || !json_object_get(a->sessions, session)) {
        whit_rpc_refuse(&a->rpc, id, -32602,
                        "sessionId: there is no such session: begin it with session/new or session/load");
        return;
    }
    if (whit_flag_is_set(&a->cancel)) { /* the prompt was cancelled before it began */
        whit_rpc_reply(&a->rpc, id, json_pack("{s:s}", "stopReason", "cancelled"));
        return;
    }
    const bool is_open = a->has_session && strcmp(session, a->session) == 0;
    if (!is_open && !open_session(a, id, session)) return;
    if (!read_prompt(a, params, &task)) {
        whit_buf_free(&task);
        whit_rpc_refuse(&a->rpc, id, -32602,
                        "prompt: expected at least one part with a text that is not blank, or a resource");
        return;
    }
    whit_agent_options how = {.project = a->folder,
                              .state_dir = host->state_dir,
                              .task = task.failed ? "" : whit_chars(&task),
                              .n_turns_max = host->n_turns_max,
                              .n_tokens_max = host->n_tokens_max,
                              .may_write = host->may_write,
                              .runner = a->open.runner,
                              .mcp = a->open.mcp,
                              .show = acp_show,
                              .agreed = acp_agreed,
                              .written = acp_written,
                              .ask = acp_ask,
                              .note = acp_note,
                              .keep = acp_keep,
                              .cancel = &a->cancel,
                              .user = a};
    whit_agent_report *report = a->open.report;
    a->text = (whit_plain){0};
    whit_status status = whit_agent_run(&how, a->open.answering, a->open.messages, report, &error);
    whit_error unkept;
    if (host->keep(host->user, &unkept) != WHIT_OK) acp_note(a, unkept.message);
    acp_written(a, 0, NULL, 0); /* after a failure, changes that are still pending are reported as dropped */
    bool spent = host->n_tokens_max && report->tokens_in + report->tokens_out >= host->n_tokens_max;
    const char *reason = "max_turn_requests";
    if (status == WHIT_ERROR_CANCELLED || whit_flag_is_set(&a->cancel))
        reason = "cancelled";
    else if (report->done)
        reason = "end_turn";
    else if (spent)
        reason = "max_tokens";
    if (status == WHIT_OK || status == WHIT_ERROR_CANCELLED)
        whit_rpc_reply(&a->rpc, id, json_pack("{s:s}", "stopReason", reason));
    else
        whit_rpc_refuse(&a->rpc, id, -32603, error.message);
    whit_buf_free(&task);
}

static void handle(struct acp *a, const json_t *message)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    const json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
    if (!json_is_object(message)) {
        bool is_json = json_is_true(message);
        const char *reason = is_json ? "this line is not a JSON object" : "this line is not JSON";
        whit_rpc_refuse(&a->rpc, NULL, is_json ? -32600 : -32700, reason);
    } else if (!method && json_is_true(json_object_get(message, "busy"))) {
        whit_rpc_refuse(&a->rpc, id, -32000, "256 requests are waiting, the limit: send this one again later");
    } else if (!method && !json_object_size(message)) {
    } else if (!method) {
        if (!json_object_get(message, "result") && !json_object_get(message, "error"))
            whit_rpc_refuse(&a->rpc, id, -32600,
                            "expected a JSON-RPC request with a method, or a reply with a result or an error");
    } else if (strcmp(method, "initialize") == 0) {
        whit_rpc_reply(&a->rpc, id,
                       json_pack("{s:i, s:{s:b, s:{s:b, s:b, s:b}}, s:{s:s, s:s}, s:[]}", "protocolVersion", 1,
                                 "agentCapabilities", "loadSession", 1, "promptCapabilities", "image", 0, "audio", 0,
                                 "embeddedContext", 1, "agentInfo", "name", "whit", "version", whit_version(),
                                 "authMethods"));
    } else if (strcmp(method, "authenticate") == 0) {
        whit_rpc_reply(&a->rpc, id, json_object());
    } else if (strcmp(method, "session/new") == 0) {
        new_session(a, id, params);
    } else if (strcmp(method, "session/prompt") == 0) {
        prompt(a, id, params);
        pthread_mutex_lock(&a->lock);
        a->running[0] = 0;
        whit_flag_put(&a->cancel, a->ended); /* cancelling one prompt must not cancel later ones */
        pthread_mutex_unlock(&a->lock);
    } else if (strcmp(method, "session/load") == 0) {
        load_session(a, id, params);
    } else if (id) {
        whit_rpc_refuse(&a->rpc, id, -32601,
                        "method not supported: initialize, authenticate and session/new, load, prompt and cancel are");
    }
}

whit_status whit_acp_serve(const whit_acp_host *host, whit_error *error)
{
    struct acp *a = calloc(1, sizeof *a);
    pthread_t reader;
    json_t *message;
    if (!a) return whit_fail(error, WHIT_ERROR_MEMORY, "not enough memory for the connection to the editor");
    a->sessions = json_object();
    a->host = host;
    a->rpc.in = host->in;
    a->rpc.out = host->out;
    a->rpc.cancel = host->stop; /* the stop flag ends the reader thread, which cancels the running task */
    /* Request numbers begin at random, so that an answer sent before its question cannot guess the number. They have 52
     * bits, since JSON readers keep 53 bits of a number. */
    a->rpc.next_id = (int64_t)(whit_system_draw() >> 12);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
    signal(SIGPIPE, SIG_IGN);
    whit_status status = WHIT_OK;
    if (pthread_create(&reader, NULL, read_all, a) != 0)
        status = whit_fail(error, WHIT_ERROR_LIMIT,
                           "the system starts no thread to read the editor's messages: end some processes");
    while (status == WHIT_OK && (message = next(a, 0))) {
        handle(a, message);
        json_decref(message);
    }
    if (status == WHIT_OK) pthread_join(reader, NULL);
    if (status == WHIT_OK && a->is_flooded)
        status = whit_fail(
            error, WHIT_ERROR_LIMIT,
            "the editor sent more than %d messages that wait for an answer, the limit: the connection ends", QUEUE_ALL);
    while (a->n) json_decref(a->queue[(a->first + --a->n) % QUEUE_ALL]);
    close_session(a);
    json_decref(a->shown);
    json_decref(a->sessions);
    whit_rpc_free(&a->rpc);
    pthread_cond_destroy(&a->more);
    pthread_mutex_destroy(&a->lock);
    free(a);
    return status;
}
