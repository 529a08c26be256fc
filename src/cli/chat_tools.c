/* SPDX-License-Identifier: MIT */
#include "cli/chat_tools.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/items.h"
#include "base/piped.h"
#include "base/plain.h"
#include "base/utf8.h"

enum { FILE_BYTES_MAX = 4 << 20, RESULT_BYTES_MAX = 1 << 20, WORDS_MAX = 63, CANNOT_START = 127 };
enum { END_MS = 10000 }; /* time for a program to exit after it has closed its output */

/* ---- the list of tools ---------------------------------------------------------------------- */

static const char *name_of(const json_t *tool)
{
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

/* Moves the command from a tool's description to the list of commands, because the model must not see it. Returns false
 * if the command is malformed. */
static bool take_command(cli_chat_tools *tools, json_t *tool)
{
    json_t *command = json_object_get(tool, "command");
    if (!command) return true;
    bool ok = json_array_size(command) > 0 && json_array_size(command) <= WORDS_MAX;
    for (size_t i = 0; i < json_array_size(command); i++) ok &= json_is_string(json_array_get(command, i));
    ok = ok && json_object_set(tools->commands, name_of(tool), command) == 0;
    return json_object_del(tool, "command") == 0 && ok;
}

static int read_tools(cli_call *call, const char *path, cli_chat_tools *tools)
{
    whit_buf text = {0};
    whit_error error;
    json_error_t at;
    if (whit_read_file(path, FILE_BYTES_MAX, &text, &error) != WHIT_OK) return cli_fail_error(call, &error);
    json_t *list = json_loadb(text.data ? whit_chars(&text) : "", text.size_bytes, JSON_REJECT_DUPLICATES, &at);
    whit_buf_free(&text);
    if (!list) return cli_fail(call, CLI_REFUSED, "%s: line %d: %s", path, at.line, at.text);
    int status = json_is_array(list) ? CLI_OK : cli_fail(call, CLI_REFUSED, "%s: expected a list of tools", path);
    for (size_t i = 0; status == CLI_OK && i < json_array_size(list); i++) {
        json_t *tool = json_array_get(list, i);
        if (!name_of(tool))
            status =
                cli_fail(call, CLI_REFUSED,
                         "%s: tool %zu: expected {\"type\": \"function\", \"function\": {\"name\": ...}}", path, i);
        else if (!take_command(tools, tool))
            status = cli_fail(call, CLI_REFUSED, "%s: tool %zu: the command must be a list of 1 to %d words", path, i,
                              WORDS_MAX);
    }
    if (status == CLI_OK) json_array_extend(tools->list, list);
    json_decref(list);
    return status;
}

static void show_note(void *user, const char *line)
{
    (void)user;
    cli_note("%s", line);
}

int cli_chat_tools_open(cli_call *call, const char *path, bool use_servers, cli_chat_tools *tools)
{
    whit_error error;
    *tools = (cli_chat_tools){.list = json_array(), .commands = json_object()};
    if (!tools->list || !tools->commands) return cli_fail(call, CLI_LIMIT, "not enough memory for the list of tools");
    if (path) {
        int status = read_tools(call, path, tools);
        if (status != CLI_OK) return status;
    }
    if (!use_servers) return CLI_OK;
    if (whit_agent_config_load(&tools->config, ".", &error) != WHIT_OK) return cli_fail_error(call, &error);
    if (!json_object_size(tools->config.servers))
        return cli_fail(call, CLI_USAGE, "--mcp: the agent's configuration names no servers (\"mcp\" in agent.json)");
    if (whit_mcp_open(tools->config.servers, ".", cli_cancelled(), show_note, NULL, &tools->mcp, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    return whit_mcp_add_tools(tools->mcp, tools->list)
        ? CLI_OK
        : cli_fail(call, CLI_LIMIT, "not enough memory for the list of tools");
}

void cli_chat_tools_close(cli_chat_tools *tools)
{
    whit_mcp_close(tools->mcp);
    whit_agent_config_free(&tools->config);
    json_decref(tools->list);
    json_decref(tools->commands);
    *tools = (cli_chat_tools){0};
}

int cli_chat_tools_offer(cli_call *call, const cli_chat_tools *tools, whit_conversation *conversation)
{
    whit_error error;
    if (!json_array_size(tools->list)) return CLI_OK;
    char *text = json_dumps(tools->list, JSON_COMPACT);
    if (!text) return cli_fail(call, CLI_LIMIT, "not enough memory for the list of tools");
    whit_status status = whit_conversation_set_tools(conversation, text, strlen(text), &error);
    free(text);
    return status == WHIT_OK ? CLI_OK : cli_fail_error(call, &error);
}

/* ---- running tools -------------------------------------------------------------------------- */

cli_tool_kind cli_chat_tool_kind(const cli_chat_tools *tools, const char *name)
{
    bool is_red;
    if (json_object_get(tools->commands, name)) return CLI_TOOL_ASKED;
    if (!tools->mcp || !whit_mcp_has(tools->mcp, name, &is_red)) return CLI_TOOL_TYPED;
    return is_red ? CLI_TOOL_ASKED : CLI_TOOL_FREE;
}

json_t *cli_chat_tool_arguments(const whit_conversation_call *call)
{
    json_t *arguments = json_loadb(call->arguments, call->arguments_bytes, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(arguments)) return arguments;
    json_decref(arguments);
    return NULL;
}

/* Appends the arguments of a call as its receiver gets them: a command reads the model's own text, an MCP server the
 * values that were parsed from it. */
static bool show_arguments(const whit_conversation_call *call, bool is_command, whit_buf *text)
{
    json_t *arguments = is_command ? NULL : cli_chat_tool_arguments(call);
    char *sent = arguments ? json_dumps(arguments, JSON_COMPACT) : NULL;
    const bool ok = sent ? whit_plain_show(sent, strlen(sent), WHIT_PLAIN_NAME, text)
                         : whit_plain_show(call->arguments, call->arguments_bytes, WHIT_PLAIN_NAME, text);
    free(sent);
    json_decref(arguments);
    return ok;
}

bool cli_chat_tool_describe(const cli_chat_tools *tools, const whit_conversation_call *call, whit_buf *text)
{
    const json_t *command = json_object_get(tools->commands, call->name);
    bool is_red;
    const bool is_server = !command && tools->mcp && whit_mcp_has(tools->mcp, call->name, &is_red);
    bool ok = whit_buf_append_str(text, "calls ") &&
        whit_plain_show(call->name, strlen(call->name), WHIT_PLAIN_NAME, text) && whit_buf_append_str(text, " ") &&
        show_arguments(call, !is_server, text) && whit_buf_append_str(text, "\n");
    for (size_t i = 0; i < json_array_size(command); i++) {
        const char *word = json_string_value(json_array_get(command, i));
        ok = ok && whit_buf_append_str(text, i ? " '" : "by '") &&
            whit_plain_show(word, strlen(word), WHIT_PLAIN_NAME, text) && whit_buf_append_str(text, "'");
    }
    return ok && (!command || whit_buf_append_str(text, "\n"));
}

/* Writes as much of the input as the program accepts now. Closes the pipe after the last byte or an error. */
static void write_input(whit_piped *child, const char *bytes, size_t n_bytes, size_t *n_written)
{
    while (child->in >= 0 && *n_written < n_bytes) {
        const ssize_t n = write(child->in, bytes + *n_written, n_bytes - *n_written);
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0 && errno != EINTR) break;
        if (n > 0) *n_written += (size_t)n;
    }
    whit_piped_close_input(child);
}

/* Writes the program's input and reads its output until it ends. `result` gets its first RESULT_BYTES_MAX bytes;
 * *n_read becomes the size of the whole output. Returns false if cancelled or out of memory. */
static bool exchange(whit_piped *child, const char *input, size_t n_bytes, whit_buf *result, uint64_t *n_read)
{
    char part[4096];
    *n_read = 0;
    for (size_t n_written = 0;;) {
        if (*cli_cancelled()) return false;
        write_input(child, input, n_bytes, &n_written);
        struct pollfd ready[2] = {{.fd = child->out, .events = POLLIN}, {.fd = child->in, .events = POLLOUT}};
        if (poll(ready, 2, 100) <= 0 || !ready[0].revents) continue;
        const ssize_t n = read(child->out, part, sizeof part);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return true;
        const size_t room = RESULT_BYTES_MAX - result->size_bytes, taken = (size_t)n < room ? (size_t)n : room;
        if (taken && !whit_buf_append(result, part, taken)) return false;
        *n_read += (size_t)n;
    }
}

/* Ends an output that was cut with a note about the cut, which the model and the person read. */
static void note_cut(whit_buf *result, uint64_t n_read)
{
    if (n_read == result->size_bytes) return;
    result->size_bytes = whit_utf8_cut(whit_chars(result), result->size_bytes, result->size_bytes - 1);
    whit_buf_printf(result, "\n[cut: %zu of %llu bytes; ask for less]", result->size_bytes, (unsigned long long)n_read);
}

static void run_command(const json_t *command, const whit_conversation_call *call, whit_buf *result)
{
    const char *words[WORDS_MAX + 1] = {NULL};
    whit_piped child = {0};
    uint64_t n_read = 0;
    whit_error error;
    for (size_t i = 0; i < WORDS_MAX && i < json_array_size(command); i++)
        words[i] = json_string_value(json_array_get(command, i));
    const bool is_started =
        whit_piped_start(&child, (char *const *)words, &(whit_piped_how){.at_terminal = true}, &error) == WHIT_OK;
    const bool is_read = is_started && exchange(&child, call->arguments, call->arguments_bytes, result, &n_read);
    const int status = whit_piped_end(&child, is_read ? END_MS : 0);
    if (!is_read) result->size_bytes = 0;
    if (is_read) note_cut(result, n_read);
    while (result->size_bytes && result->data[result->size_bytes - 1] == '\n') result->size_bytes--;
    if (is_read && status == 0) return;
    if (!is_started || (is_read && status == CANNOT_START && !result->size_bytes))
        whit_buf_printf(result, "error: the command '%s' cannot be started", words[0]);
    else if (!is_read)
        whit_buf_append_str(result, "error: the command was stopped");
    else
        whit_buf_printf(result, "%serror: the command ended with status %d", result->size_bytes ? "\n" : "", status);
}

void cli_chat_tool_run(const cli_chat_tools *tools, const whit_conversation_call *call, whit_buf *result)
{
    const json_t *command = json_object_get(tools->commands, call->name);
    if (command) {
        run_command(command, call, result);
        return;
    }
    json_t *arguments = cli_chat_tool_arguments(call);
    whit_mcp_call(tools->mcp, call->name, arguments, result);
    json_decref(arguments);
}
