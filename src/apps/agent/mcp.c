/* SPDX-License-Identifier: MIT */
#include "agent/mcp.h"

#include "agent/rpc.h"
#include "base/phrase.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define BEGIN_MS  20000
#define CALL_MS   300000
#define TOOLS_MAX 200
#define TEXT_MAX  ((size_t)1 << 20)
#define PROTOCOL  "2025-06-18"

struct server {
    const char *name;
    pid_t child;
    whit_rpc rpc;
    bool is_red, is_open;
};
struct whit_mcp {
    struct server servers[32];
    size_t n_servers;
    json_t *tools;
    size_t owners[TOOLS_MAX]; /* index of the server that offers each tool */
};

extern char **environ;

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

void whit_mcp_read_tools(const json_t *reply, const char *server, json_t *tools)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t i;
    json_t *tool;
    json_array_foreach(json_object_get(json_object_get(reply, "result"), "tools"), i, tool)
    {
        const char *name = json_string_value(json_object_get(tool, "name"));
        const char *help = json_string_value(json_object_get(tool, "description"));
        json_t *schema = json_object_get(tool, "inputSchema");
        char full[120];
        if (json_array_size(tools) >= TOOLS_MAX) return;
        if (!name || !*name || strlen(name) > 64 || strspn(name, letters) != strlen(name) || !json_is_object(schema) ||
            strcmp(json_is_string(json_object_get(schema, "type")) ? json_string_value(json_object_get(schema, "type"))
                                                                   : "",
                   "object") != 0)
            continue;
        snprintf(full, sizeof full, WHIT_MCP_PREFIX "%.32s__%s", server, name);
        if (is_offered(tools, full)) continue; /* a call could mean either */
        json_t *text = json_stringn(whit_or_empty(help), help ? whit_utf8_cut(help, strlen(help), 1000) : 0);
        json_array_append_new(tools,
                              json_pack("{s:s, s:{s:s, s:o, s:O}}", "type", "function", "function", "name", full,
                                        "description", text ? text : json_string(""), "parameters", schema));
    }
}

void whit_mcp_read_result(const json_t *reply, whit_buf *result)
{
    const json_t *wrong = json_object_get(reply, "error"), *good = json_object_get(reply, "result");
    size_t i;
    json_t *part;
    if (wrong) {
        const char *message = json_string_value(json_object_get(wrong, "message"));
        if (!message) message = "an error";
        whit_buf_printf(result, "error: the server says: %.*s", (int)whit_utf8_cut(message, strlen(message), 500),
                        message);
        return;
    }
    if (json_is_true(json_object_get(good, "isError"))) whit_buf_append_str(result, "error: ");
    json_array_foreach(json_object_get(good, "content"), i, part)
    {
        const json_t *text = json_object_get(part, "text");
        const char *type = json_string_value(json_object_get(part, "type"));
        size_t room = result->size_bytes < TEXT_MAX ? TEXT_MAX - result->size_bytes : 0;
        if (i) whit_buf_append_str(result, "\n");
        if (json_is_string(text))
            whit_buf_append(result, json_string_value(text),
                            whit_utf8_cut(json_string_value(text), json_string_length(text), room));
        else
            whit_buf_printf(result, "[%.40s, which is no text]", type ? type : "something");
        if (!room) break;
    }
    for (size_t at = 0; at < result->size_bytes; at++) /* endpoints refuse texts with zero bytes */
        if (!result->data[at]) result->data[at] = '?';
    if (!result->size_bytes) whit_buf_append_str(result, "(no text)");
}

/* ---- servers ------------------------------------------------------------------------------------- */

/* This program's environment without the endpoint's key, and `more` ({NAME: value}, or NULL), as new strings in a new
 * list; NULL: out of memory. */
static char **make_environment(const json_t *more)
{
    size_t n = 0, n_all = json_object_size(more) + 1;
    const char *name;
    json_t *value;
    for (char **v = environ; *v; v++) n_all++;
    char **all = calloc(n_all, sizeof *all);
    bool ok = all != NULL;
    for (char **v = environ; ok && *v; v++) {
        char own[256];
        size_t n_name = strcspn(*v, "=");
        bool is_other =
            snprintf(own, sizeof own, "%.*s", (int)n_name, *v) < (int)sizeof own && json_object_get(more, own);
        if (is_other || strncmp(*v, "WHIT_API_KEY=", 13) == 0) continue;
        ok = (all[n++] = strdup(*v)) != NULL;
    }
    json_object_foreach((json_t *)(uintptr_t)more, name,
                        value) if (ok && asprintf(&all[n++], "%s=%s", name, json_string_value(value)) < 0) all[--n] =
        NULL,
                                                                                                           ok = false;
    if (ok) return all;
    for (size_t i = 0; all && i < n; i++) free(all[i]);
    free(all);
    return NULL;
}

static bool start_server(struct server *s, const json_t *command, const json_t *more)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    size_t n = json_array_size(command), i;
    json_t *word;
    const char **arguments = calloc(n + 1, sizeof *arguments);
    char **variables = make_environment(more);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    /* A group of its own, so that Ctrl-C ends an answer, not the server, which gets the default of SIGPIPE and SIGINT:
     * this process may ignore them. */
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGINT);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    bool ok = arguments && variables && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
    if (ok) {
        json_array_foreach(command, i, word) arguments[i] = json_string_value(word);
        ok = posix_spawn_file_actions_adddup2(&actions, in[0], 0) == 0 &&
            posix_spawn_file_actions_adddup2(&actions, out[1], 1) == 0 &&
            posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0) == 0 &&
            posix_spawnp(&s->child, arguments[0], &actions, &attributes, (char *const *)arguments, variables) == 0;
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(arguments);
    for (char **v = variables; v && *v; v++) free(*v);
    free(variables);
    if (in[0] >= 0) close(in[0]);
    if (out[1] >= 0) close(out[1]);
    s->rpc.out = in[1];
    s->rpc.in = out[0];
    if (ok) fcntl(in[1], F_SETFL, O_NONBLOCK); /* one that does not read must not stop this process */
    if (!ok) s->child = 0;
    return ok;
}

static void stop(struct server *s)
{
    int status;
    if (s->rpc.out >= 0) close(s->rpc.out); /* the end of its input: it may go by itself */
    if (s->rpc.in >= 0) close(s->rpc.in);
    for (int i = 0; s->child > 0; i++) {
        siginfo_t left = {0};
        if (waitid(P_PID, (id_t)s->child, &left, WEXITED | WNOHANG | WNOWAIT) != 0 || left.si_pid) break;
        if (i == 20) kill(-s->child, SIGTERM);
        if (i == 40) kill(-s->child, SIGKILL);
        usleep(10000);
    }
    if (s->child > 0) {
        kill(-s->child, SIGKILL); /* kills what a wrapper has left; the group number cannot be reused before waitpid */
        waitpid(s->child, &status, 0);
    }
    whit_rpc_free(&s->rpc);
}

static bool introduce(struct server *s, json_t *tools)
{
    json_t *hello =
        whit_rpc_converse(&s->rpc, "initialize",
                          json_pack("{s:s, s:{}, s:{s:s, s:s}}", "protocolVersion", PROTOCOL, "capabilities",
                                    "clientInfo", "name", "whit", "version", whit_version()),
                          BEGIN_MS);
    bool ok =
        json_is_object(json_object_get(hello, "result")) && whit_rpc_notify(&s->rpc, "notifications/initialized", NULL);
    json_decref(hello);
    json_t *cursor = NULL;
    for (int pages = 0; ok && pages < 20; pages++) {
        json_t *reply = whit_rpc_converse(&s->rpc, "tools/list",
                                          cursor ? json_pack("{s:o}", "cursor", cursor) : json_object(), BEGIN_MS);
        ok = json_is_object(json_object_get(reply, "result"));
        whit_mcp_read_tools(reply, s->name, tools);
        json_t *next = json_object_get(json_object_get(reply, "result"), "nextCursor");
        cursor = json_is_string(next) ? json_incref(next) : NULL;
        json_decref(reply);
        if (!cursor) break;
        if (pages == 19 || !ok) json_decref(cursor);
    }
    return ok;
}

whit_status whit_mcp_open(const json_t *servers, const volatile bool *cancel,
                          void (*note)(void *user, const char *line), void *user, whit_mcp **out, whit_error *error)
{
    const char *name;
    json_t *server;
    whit_mcp *mcp = *out = calloc(1, sizeof *mcp);
    if (!mcp || !(mcp->tools = json_array())) {
        free(mcp);
        *out = NULL;
        return whit_fail_memory(error, "MCP servers", sizeof *mcp);
    }
    signal(SIGPIPE, SIG_IGN); /* a server that is gone is a failed write */
    json_object_foreach((json_t *)(uintptr_t)servers, name, server)
    {
        if (mcp->n_servers == sizeof mcp->servers / sizeof *mcp->servers) break;
        struct server *s = &mcp->servers[mcp->n_servers++];
        const char *allow = json_string_value(json_object_get(server, "allow"));
        *s = (struct server){.name = name, .rpc = {.in = -1, .out = -1, .cancel = cancel, .allows_nul = true}};
        s->is_red = !allow || strcmp(allow, "green") != 0;
        size_t n_tools = json_array_size(mcp->tools);
        s->is_open = start_server(s, json_object_get(server, "command"), json_object_get(server, "env")) &&
            introduce(s, mcp->tools);
        for (; n_tools < json_array_size(mcp->tools); n_tools++) mcp->owners[n_tools] = mcp->n_servers - 1;
        if (s->is_open) continue;
        char line[120];
        snprintf(line, sizeof line, "the MCP server '%.40s' does not answer; it is left out", name);
        note(user, line);
    }
    return WHIT_OK;
}

void whit_mcp_close(whit_mcp *mcp)
{
    if (!mcp) return;
    for (size_t i = 0; i < mcp->n_servers; i++) stop(&mcp->servers[i]);
    json_decref(mcp->tools);
    free(mcp);
}

bool whit_mcp_add_tools(const whit_mcp *mcp, json_t *tools)
{
    return json_array_extend(tools, mcp->tools) == 0;
}

/* The server that offers a tool, and the tool's own name. */
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

void whit_mcp_call(whit_mcp *mcp, const char *name, const json_t *arguments, whit_buf *result)
{
    const char *own = "";
    struct server *s = find_server(mcp, name, &own);
    json_t *reply = s ? whit_rpc_converse(&s->rpc, "tools/call",
                                          json_pack("{s:s, s:O}", "name", own, "arguments", arguments), CALL_MS)
                      : NULL;
    if (reply)
        whit_mcp_read_result(reply, result);
    else
        whit_buf_append_str(result, "error: the server does not answer");
    json_decref(reply);
}
