/* SPDX-License-Identifier: MIT */
#include "agent/mcp.h"

#include "agent/folders.h"
#include "agent/guard.h"
#include "agent/programs.h"
#include "agent/rpc.h"
#include "agent/runs.h"
#include "base/flag.h"
#include "base/items.h"
#include "base/path.h"
#include "base/phrase.h"
#include "base/piped.h"
#include "base/uri.h"
#include "base/utf8.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_MS  20000
#define CALL_MS   300000
#define END_MS    400
#define TOOLS_MAX 200
#define PAGES_MAX 20 /* maximum number of replies in which a server may list its tools */
#define TEXT_MAX  ((size_t)1 << 20)
#define PROTOCOL  "2025-06-18"

#define COUNT(list) (sizeof(list) / sizeof *(list))

struct server {
    const char *name;
    whit_piped child;
    whit_rpc rpc;
    size_t n_left_out; /* number of its tools beyond TOOLS_MAX */
    bool is_red, is_open, is_editors;
};
struct whit_mcp {
    char *project;
    char home[PATH_MAX]; /* folder in which servers are started; "": no such folder was found */
    struct server servers[32];
    size_t n_servers;
    json_t *tools;
    size_t owners[TOOLS_MAX]; /* index in the list of servers of the server that offers tool i */
};

/* ---- replies of servers ------------------------------------------------------------------------- */

static bool is_offered(const json_t *tools, const char *name)
{
    size_t i;
    json_t *tool;
    json_array_foreach(tools, i,
                       tool) if (strcmp(json_string_value(json_object_get(json_object_get(tool, "function"), "name")),
                                        name) == 0) return true;
    return false;
}

size_t whit_mcp_read_tools(const json_t *reply, const char *server, json_t *tools)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t i, n_left_out = 0;
    json_t *tool;
    json_array_foreach(json_object_get(json_object_get(reply, "result"), "tools"), i, tool)
    {
        const char *name = json_string_value(json_object_get(tool, "name"));
        const char *help = json_string_value(json_object_get(tool, "description"));
        json_t *schema = json_object_get(tool, "inputSchema");
        char full[120];
        if (!name || !*name || strlen(name) > 64 || strspn(name, letters) != strlen(name) || !json_is_object(schema) ||
            strcmp(json_is_string(json_object_get(schema, "type")) ? json_string_value(json_object_get(schema, "type"))
                                                                   : "",
                   "object") != 0)
            continue;
        snprintf(full, sizeof full, WHIT_MCP_PREFIX "%.32s__%s", server, name);
        if (is_offered(tools, full)) continue; /* a call by this name would be ambiguous */
        if (json_array_size(tools) >= TOOLS_MAX) {
            n_left_out++;
            continue;
        }
        json_t *text = json_stringn(whit_or_empty(help), help ? whit_utf8_cut(help, strlen(help), 1000) : 0);
        json_array_append_new(tools,
                              json_pack("{s:s, s:{s:s, s:o, s:O}}", "type", "function", "function", "name", full,
                                        "description", text ? text : json_string(""), "parameters", schema));
    }
    return n_left_out;
}

void whit_mcp_read_result(const json_t *reply, whit_buf *result)
{
    const json_t *wrong = json_object_get(reply, "error"), *good = json_object_get(reply, "result");
    size_t i;
    json_t *part;
    if (wrong) {
        const char *message = json_string_value(json_object_get(wrong, "message"));
        if (!message) message = "an error";
        whit_buf_append_str(result, "error: the MCP server says: ");
        if (!whit_guard_append_cut(result, message, strlen(message), 500)) result->failed = true;
        return;
    }
    if (json_is_true(json_object_get(good, "isError"))) whit_buf_append_str(result, "error: ");
    json_array_foreach(json_object_get(good, "content"), i, part)
    {
        const json_t *text = json_object_get(part, "text");
        const char *type = json_string_value(json_object_get(part, "type"));
        size_t room = result->size_bytes < TEXT_MAX ? TEXT_MAX - result->size_bytes : 0;
        if (i) whit_buf_append_str(result, "\n");
        if (json_is_string(text)) {
            if (!whit_guard_append_cut(result, json_string_value(text), json_string_length(text), room))
                result->failed = true;
        } else
            whit_buf_printf(result, "[%.40s content, which is not text]", type ? type : "something");
        if (!room) break;
    }
    /* zero bytes become '?', since endpoints refuse texts with zero bytes */
    for (size_t at = 0; at < result->size_bytes; at++)
        if (!result->data[at]) result->data[at] = '?';
    if (!result->size_bytes) whit_buf_append_str(result, "(no text)");
}

/* ---- starting and calling servers ---------------------------------------------------------------- */

/* Finds the folder in which servers are started: the person's home. `python3 -m NAME` and `npx NAME` look for their
 * code in the current folder, so this must not be the project. If the home is a part of the project, a folder of this
 * program's state is used, in which no agent may write. */
static void find_home(struct whit_mcp *mcp)
{
    const char *home = getenv("HOME");
    char inside[PATH_MAX];
    whit_error ignored;
    /* "HOME/." leads nowhere if the home is not a folder */
    const bool is_folder = home && whit_path_is_absolute(home) &&
        snprintf(inside, sizeof inside, "%s/.", home) < (int)sizeof inside && realpath(inside, mcp->home);
    const char *copied = getenv(WHIT_TASK_PROJECT); /* the project is a copy of this one */
    if (is_folder && !whit_path_is_below(mcp->home, mcp->project) && !(copied && whit_path_is_below(mcp->home, copied)))
        return;
    if (whit_agent_state_path(mcp->project, NULL, "servers", "", mcp->home, &ignored) != WHIT_OK ||
        whit_agent_make_folders(mcp->home, &ignored) != WHIT_OK)
        *mcp->home = 0;
}

/* Answers a server's request for the folders that it may work on (MCP's roots): the project. */
static json_t *answer_server(void *user, const char *method)
{
    const struct whit_mcp *mcp = user;
    char uri[3 * PATH_MAX + 16];
    const char *name = strrchr(mcp->project, '/');
    if (strcmp(method, "roots/list") != 0 || !whit_uri_of_path(mcp->project, uri, sizeof uri)) return NULL;
    name = name && name[1] ? name + 1 : mcp->project;
    json_t *root = json_pack("{s:s, s:s}", "uri", uri, "name", name);
    /* a name that is not UTF-8 is left out; the URI has its bytes as escapes */
    return json_pack("{s:[o]}", "roots", root ? root : json_pack("{s:s}", "uri", uri));
}

/* Starts a server of a configuration in its folder. The server gets the environment variables of its `env` and not the
 * endpoint's key, nor the socket of the model. */
static bool start_server(const struct whit_mcp *mcp, struct server *s, const json_t *settings)
{
    const json_t *command = json_object_get(settings, "command"), *more = json_object_get(settings, "env");
    const char *place = json_string_value(json_object_get(settings, "folder"));
    const char *folder = place && strcmp(place, "project") == 0 ? mcp->project : mcp->home;
    size_t n_changes = 0, i;
    json_t *word, *value;
    const char *name;
    const char **words = calloc(json_array_size(command) + 1, sizeof *words);
    char **changes = calloc(json_object_size(more) + 4, sizeof *changes);
    whit_error error;
    bool ok = *folder && words && changes && (changes[n_changes++] = strdup("WHIT_API_KEY")) != NULL &&
        (changes[n_changes++] = strdup(WHIT_TASK_SOCKET)) != NULL;
    /* shells and programs that read PWD believe it if it names the current folder by another path */
    if (ok && !json_object_get(more, "PWD")) {
        ok = asprintf(&changes[n_changes], "PWD=%s", folder) >= 0;
        n_changes += ok;
    }
    json_object_foreach((json_t *)(uintptr_t)more, name, value)
    {
        if (!ok) break;
        ok = asprintf(&changes[n_changes], "%s=%s", name, json_string_value(value)) >= 0;
        n_changes += ok;
    }
    if (ok) {
        json_array_foreach(command, i, word) words[i] = json_string_value(word);
        const whit_piped_how how = {.folder = folder, .changes = (const char *const *)changes};
        ok = whit_piped_start(&s->child, (char *const *)words, &how, &error) == WHIT_OK;
    }
    for (i = 0; changes && i < n_changes; i++) free(changes[i]);
    free(changes);
    free(words);
    if (!ok) return false;
    s->rpc.out = s->child.in;
    s->rpc.in = s->child.out;
    return true;
}

static void stop(struct server *s)
{
    whit_piped_end(&s->child, END_MS);
    whit_rpc_free(&s->rpc);
}

static bool introduce(struct server *s, json_t *tools)
{
    json_t *hello =
        whit_rpc_converse(&s->rpc, "initialize",
                          json_pack("{s:s, s:{s:{}}, s:{s:s, s:s}}", "protocolVersion", PROTOCOL, "capabilities",
                                    "roots", "clientInfo", "name", "whit", "version", whit_version()),
                          BEGIN_MS);
    bool ok =
        json_is_object(json_object_get(hello, "result")) && whit_rpc_notify(&s->rpc, "notifications/initialized", NULL);
    json_decref(hello);
    json_t *cursor = NULL;
    for (int pages = 0; ok && pages < PAGES_MAX; pages++) {
        json_t *reply = whit_rpc_converse(&s->rpc, "tools/list",
                                          cursor ? json_pack("{s:o}", "cursor", cursor) : json_object(), BEGIN_MS);
        ok = json_is_object(json_object_get(reply, "result"));
        s->n_left_out += whit_mcp_read_tools(reply, s->name, tools);
        json_t *next = json_object_get(json_object_get(reply, "result"), "nextCursor");
        cursor = json_is_string(next) ? json_incref(next) : NULL;
        json_decref(reply);
        if (!cursor) break;
        if (pages == PAGES_MAX - 1 || !ok) json_decref(cursor);
    }
    return ok;
}

/* Appends "N of 'NAME'", or the name alone if n is 0, to a list. */
static void add_left_out(whit_buf *list, size_t n, const char *name)
{
    if (list->size_bytes) whit_buf_append_str(list, ", ");
    if (n) whit_buf_printf(list, "%zu of ", n);
    whit_buf_printf(list, "'%.40s'", name);
}

/* Tells the person which servers and tools are left out because of the limits, in a line each. */
static void tell_left_out(const whit_mcp *mcp, size_t n_servers, whit_buf *servers,
                          void (*note)(void *user, const char *line), void *user)
{
    whit_buf tools = {0}, line = {0};
    size_t n_tools = 0;
    for (size_t i = 0; i < mcp->n_servers; i++) {
        n_tools += mcp->servers[i].n_left_out;
        if (mcp->servers[i].n_left_out) add_left_out(&tools, mcp->servers[i].n_left_out, mcp->servers[i].name);
    }
    if (n_servers) {
        whit_buf_printf(&line, "%zu MCP server%s left out, because at most %zu are started: %.*s", n_servers,
                        n_servers == 1 ? " is" : "s are", COUNT(mcp->servers), (int)servers->size_bytes,
                        whit_chars(servers));
        if (whit_buf_append(&line, "", 1)) note(user, whit_chars(&line));
        line.size_bytes = 0;
    }
    if (n_tools) {
        whit_buf_printf(&line, "%zu MCP tool%s left out, because a model gets at most %d: %.*s", n_tools,
                        n_tools == 1 ? " is" : "s are", TOOLS_MAX, (int)tools.size_bytes, whit_chars(&tools));
        if (whit_buf_append(&line, "", 1)) note(user, whit_chars(&line));
    }
    whit_buf_free(&tools);
    whit_buf_free(&line);
}

whit_status whit_mcp_open(const json_t *servers, const char *project, const volatile bool *cancel,
                          void (*note)(void *user, const char *line), void *user, whit_mcp **out, whit_error *error)
{
    const char *name;
    json_t *server;
    whit_buf left_out = {0};
    size_t n_left_out = 0;
    whit_mcp *mcp = *out = calloc(1, sizeof *mcp);
    if (mcp) mcp->tools = json_array();
    if (mcp) mcp->project = realpath(project, NULL);
    if (!mcp || !mcp->tools || !mcp->project) {
        whit_mcp_close(mcp);
        *out = NULL;
        return whit_fail_memory(error, "MCP servers", sizeof *mcp);
    }
    const whit_status known = whit_programs_know(servers, mcp->project, error);
    if (known != WHIT_OK) {
        whit_mcp_close(mcp);
        *out = NULL;
        return known;
    }
    find_home(mcp);
    signal(SIGPIPE, SIG_IGN); /* a write to a server that has ended must fail instead of ending this process */
    json_object_foreach((json_t *)(uintptr_t)servers, name, server)
    {
        if (mcp->n_servers == COUNT(mcp->servers)) {
            n_left_out++;
            add_left_out(&left_out, 0, name);
            continue;
        }
        struct server *s = &mcp->servers[mcp->n_servers++];
        const char *allow = json_string_value(json_object_get(server, "allow"));
        *s = (struct server){
            .name = name,
            .rpc = {.in = -1, .out = -1, .cancel = cancel, .allows_nul = true, .answer = answer_server, .user = mcp}};
        s->is_red = !allow || strcmp(allow, "green") != 0;
        s->is_editors = json_is_true(json_object_get(server, "editor"));
        size_t n_tools = json_array_size(mcp->tools);
        s->is_open = start_server(mcp, s, server) && introduce(s, mcp->tools);
        for (; n_tools < json_array_size(mcp->tools); n_tools++) mcp->owners[n_tools] = mcp->n_servers - 1;
        if (s->is_open) continue;
        if (whit_flag_is_set(cancel)) { /* the next task begins it again */
            whit_buf_free(&left_out);
            whit_mcp_close(mcp);
            *out = NULL;
            return whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
        }
        char line[120];
        snprintf(line, sizeof line, "the MCP server '%.40s' does not answer; it is left out", name);
        note(user, line);
    }
    tell_left_out(mcp, n_left_out, &left_out, note, user);
    whit_buf_free(&left_out);
    return WHIT_OK;
}

void whit_mcp_close(whit_mcp *mcp)
{
    if (!mcp) return;
    for (size_t i = 0; i < mcp->n_servers; i++) stop(&mcp->servers[i]);
    json_decref(mcp->tools);
    free(mcp->project);
    free(mcp);
}

bool whit_mcp_add_tools(const whit_mcp *mcp, json_t *tools)
{
    return json_array_extend(tools, mcp->tools) == 0;
}

/* Finds the open server that offers a tool. *own gets the tool's name without the prefix. Returns NULL if no open
 * server offers it. */
static struct server *find_server(const whit_mcp *mcp, const char *name, const char **own)
{
    size_t i;
    json_t *tool;
    json_array_foreach(mcp->tools, i, tool)
    {
        struct server *s = (struct server *)(uintptr_t)&mcp->servers[mcp->owners[i]];
        if (strcmp(json_string_value(json_object_get(json_object_get(tool, "function"), "name")), name) != 0) continue;
        if (!s->is_open) return NULL;
        *own = name + sizeof WHIT_MCP_PREFIX - 1 + strlen(s->name) + 2;
        return s;
    }
    return NULL;
}

bool whit_mcp_has(const whit_mcp *mcp, const char *name, bool *is_red)
{
    const char *own;
    const struct server *s = find_server(mcp, name, &own);
    *is_red = s && s->is_red;
    return s != NULL;
}

bool whit_mcp_is_editors(const whit_mcp *mcp, const char *name)
{
    const char *own;
    const struct server *s = find_server(mcp, name, &own);
    return s && s->is_editors;
}

void whit_mcp_call(whit_mcp *mcp, const char *name, const json_t *arguments, whit_buf *result)
{
    const char *own = "";
    struct server *s = find_server(mcp, name, &own);
    json_t *reply = s ? whit_rpc_converse(&s->rpc, "tools/call",
                                          json_pack("{s:s, s:O}", "name", own, "arguments", arguments), CALL_MS)
                      : NULL;
    /* the person has cancelled the task, or the answer is late: the server is told to stop */
    if (s && !reply)
        (void)whit_rpc_notify(
            &s->rpc, "notifications/cancelled",
            json_pack("{s:I, s:s}", "requestId", (json_int_t)s->rpc.next_id, "reason", "nobody waits for the result"));
    if (reply)
        whit_mcp_read_result(reply, result);
    else
        whit_buf_append_str(result, "error: the MCP server does not answer");
    json_decref(reply);
}
