/* SPDX-License-Identifier: MIT
 * Implements whit mcp, which gives agents of other programs access to a project's code graph and to an associative
 * memory (Model Context Protocol on stdin and stdout). It only reads, except that with --memory and --may-add it also
 * writes to this memory. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/ask_graph.h"
#include "agent/rpc.h"
#include "base/cpu.h"
#include "base/items.h"
#include "cli/verbs.h"
#include "memory/store.h"

enum { HITS = 8 };

struct mcp_values {
    const char *memory;
    bool may_add;
};
static const struct mcp_values defaults;
#define AT(member) offsetof(struct mcp_values, member)
static const cli_option options[] = {
    {"--memory", CLI_FILE, AT(memory), "STORE", "Offer the memory of this file, too (whit memory makes one).", 0, 0},
    {"--may-add", CLI_FLAG, AT(may_add), NULL, "Let clients add texts to the memory.", 0, 0},
    {0},
};

struct mcp {
    cli_call *call;
    const struct mcp_values *values;
    char project[PATH_MAX];
    whit_rpc rpc;
};

static json_t *tool(const char *name, const char *help, json_t *properties, json_t *required)
{
    return json_pack("{s:s, s:s, s:{s:s, s:o, s:o}}", "name", name, "description", help, "inputSchema", "type",
                     "object", "properties", properties, "required", required);
}

static json_t *list_tools(const struct mcp *m)
{
    json_t *list = json_array();
    json_array_append_new(list,
                          tool("graph",
                               "Ask what the project's code defines and calls. query: " WHIT_ASK_GRAPH_KINDS ".",
                               json_pack("{s:{s:s, s:[s,s,s,s,s,s]}, s:{s:s}}", "query", "type", "string", "enum",
                                         "def", "refs", "callers", "imports", "like", "map", "name", "type", "string"),
                               json_pack("[s]", "query")));
    if (m->values->memory)
        json_array_append_new(list,
                              tool("memory_search", "Find the texts of the memory that are most like a query.",
                                   json_pack("{s:{s:s}}", "query", "type", "string"), json_pack("[s]", "query")));
    if (m->values->memory && m->values->may_add)
        json_array_append_new(list,
                              tool("memory_add", "Keep a text in the memory.",
                                   json_pack("{s:{s:s}}", "text", "type", "string"), json_pack("[s]", "text")));
    return list;
}

static whit_status search(const struct mcp *m, const char *text, size_t n, whit_buf *out, whit_error *error)
{
    whit_memory *memory = NULL;
    whit_encoder encoder = {0};
    whit_quat_kernels kernels;
    whit_pool *pool = NULL;
    whit_cpu cpu;
    uint64_t vector[WHIT_MEMORY_WORDS];
    whit_memory_hit hits[HITS];
    uint32_t n_hits = 0;
    whit_cpu_detect(&cpu);
    whit_status status = whit_memory_open(m->values->memory, NULL, &memory, error);
    if (status == WHIT_OK) status = whit_quat_select(&cpu, getenv("WHIT_CPU"), &kernels, error);
    if (status == WHIT_OK) status = whit_encoder_open(NULL, &encoder, error);
    if (status == WHIT_OK) status = whit_pool_open(1, NULL, &pool, error);
    if (status == WHIT_OK) status = whit_encode_text(&encoder, text, n, vector, error);
    if (status == WHIT_OK) status = whit_memory_search(memory, &kernels, pool, vector, HITS, hits, &n_hits, error);
    for (uint32_t i = 0; i < n_hits; i++) {
        const char *found;
        size_t n_found;
        const uint64_t *own;
        whit_memory_at(memory, hits[i].record, &found, &n_found, &own);
        whit_buf_printf(out, "%.3f ", 1 - 2.0 * hits[i].distance / WHIT_MEMORY_BITS);
        whit_buf_append(out, found, n_found);
        whit_buf_append_str(out, "\n");
    }
    if (pool) whit_pool_close(pool);
    if (encoder.letters) whit_encoder_close(&encoder);
    whit_memory_close(memory);
    return status;
}

static whit_status add_text(const struct mcp *m, const char *text, size_t n, whit_error *error)
{
    whit_encoder encoder;
    whit_memory_batch batch = {0};
    uint64_t vector[WHIT_MEMORY_WORDS];
    WHIT_TRY(whit_encoder_open(NULL, &encoder, error));
    whit_status status = whit_encode_text(&encoder, text, n, vector, error);
    if (status == WHIT_OK) status = whit_memory_batch_add(&batch, vector, text, n, error);
    if (status == WHIT_OK) status = whit_memory_batch_commit(&batch, m->values->memory, error);
    whit_memory_batch_free(&batch);
    whit_encoder_close(&encoder);
    return status;
}

static bool is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i]) return false;
    return true;
}

static bool is_tool(const char *name)
{
    static const char *const names[] = {"graph", "memory_search", "memory_add"};
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static json_t *call_tool(const struct mcp *m, const json_t *params)
{
    const char *name = json_string_value(json_object_get(params, "name"));
    const json_t *arguments = json_object_get(params, "arguments");
    const char *query = json_string_value(json_object_get(arguments, "query"));
    const json_t *text = json_object_get(arguments, "text");
    whit_buf out = {0};
    whit_error error;
    whit_status status = WHIT_OK;
    bool wrong = false;
    if (name && strcmp(name, "graph") == 0 && query)
        whit_ask_graph(m->project, query, json_string_value(json_object_get(arguments, "name")), &out);
    else if (name && strcmp(name, "memory_search") == 0 && m->values->memory && query)
        status = search(m, query, strlen(query), &out, &error);
    else if (name && strcmp(name, "memory_add") == 0 && m->values->memory && m->values->may_add && json_is_string(text))
        status = is_blank(json_string_value(text), json_string_length(text))
            ? whit_fail(&error, WHIT_ERROR_ARGUMENT, "text: is empty, and an empty text is not stored")
            : add_text(m, json_string_value(text), json_string_length(text), &error);
    else
        wrong = whit_buf_append_str(&out, "this tool does not exist, or an argument is missing");
    if (status == WHIT_OK && !wrong && !out.size_bytes) whit_buf_append_str(&out, "kept");
    if (status != WHIT_OK) {
        out.size_bytes = 0;
        whit_buf_append_str(&out, error.message);
    }
    wrong = wrong || status != WHIT_OK || (out.size_bytes > 6 && memcmp(out.data, "error:", 6) == 0);
    json_t *value = json_stringn(out.size_bytes ? whit_chars(&out) : "", out.size_bytes);
    /* Source lines in the text may be invalid UTF-8; invalid bytes are replaced. */
    if (!value && whit_buf_append(&out, "", 1)) value = cli_json_path(whit_chars(&out));
    wrong = wrong || !value;
    whit_buf_free(&out);
    return json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text", value ? value : json_string(""),
                     "isError", wrong);
}

/* Returns the protocol version to use: the client's if it is supported, otherwise the newest supported one, which the
 * client may refuse. Version 2025-03-26 is not supported, because only it has batches. */
static const char *version_for(const char *wanted)
{
    static const char *const known[] = {"2025-06-18", "2024-11-05"};
    for (size_t i = 0; wanted && i < sizeof known / sizeof *known; i++)
        if (strcmp(wanted, known[i]) == 0) return known[i];
    return known[0];
}

static void handle(struct mcp *m, const json_t *message)
{
    const char *method = json_string_value(json_object_get(message, "method"));
    const json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");
    bool is_reply = json_object_get(message, "result") || json_object_get(message, "error");
    if (!method || json_is_null(id)) {
        if (id && !is_reply) whit_rpc_refuse(&m->rpc, id, -32600, "expected a JSON-RPC request with a method");
    } else if (!id) {
        return; /* a notification gets no reply */
    } else if (strcmp(method, "initialize") == 0) {
        const char *wanted = json_string_value(json_object_get(params, "protocolVersion"));
        whit_rpc_reply(&m->rpc, id,
                       json_pack("{s:s, s:{s:{}}, s:{s:s, s:s}}", "protocolVersion", version_for(wanted),
                                 "capabilities", "tools", "serverInfo", "name", "whit", "version", whit_version()));
    } else if (strcmp(method, "ping") == 0) {
        whit_rpc_reply(&m->rpc, id, json_object());
    } else if (strcmp(method, "tools/list") == 0) {
        whit_rpc_reply(&m->rpc, id, json_pack("{s:o}", "tools", list_tools(m)));
    } else if (strcmp(method, "tools/call") == 0 && !is_tool(json_string_value(json_object_get(params, "name")))) {
        whit_rpc_refuse(&m->rpc, id, -32602, "there is no tool of this name; tools/list names them");
    } else if (strcmp(method, "tools/call") == 0) {
        whit_rpc_reply(&m->rpc, id, call_tool(m, params));
    } else {
        whit_rpc_refuse(&m->rpc, id, -32601, "method not supported: initialize, ping, tools/list and tools/call are");
    }
}

static int run_mcp(cli_call *call)
{
    struct mcp m = {.call = call,
                    .values = call->values,
                    .rpc = {.in = STDIN_FILENO, .out = STDOUT_FILENO, .cancel = cli_cancelled()}};
    const char *folder = call->n_operands ? call->operands[0] : ".";
    json_t *message;
    if (!realpath(folder, m.project)) return cli_fail(call, CLI_IO, "%s: is not a folder", folder);
    if (m.values->may_add && !m.values->memory) return cli_fail(call, CLI_USAGE, "--may-add needs --memory STORE");
    for (whit_rpc_got got; (got = whit_rpc_read(&m.rpc, -1, &message)) != WHIT_RPC_END;) {
        if (got != WHIT_RPC_MESSAGE) {
            bool is_json = got == WHIT_RPC_OTHER; /* the message is JSON, but a batch or a single value, which supported
                                                   * versions do not allow */
            const char *reason = is_json ? "this line is not a JSON object" : "this line is not JSON";
            if (!whit_rpc_refuse(&m.rpc, NULL, is_json ? -32600 : -32700, reason)) break;
            continue;
        }
        handle(&m, message);
        json_decref(message);
    }
    whit_rpc_free(&m.rpc);
    return *cli_cancelled() ? CLI_INTERRUPTED : CLI_OK;
}

const cli_verb cli_mcp_verb = {
    "mcp",
    "[FOLDER]",
    0,
    1,
    "offer a project's code graph and a memory to other agents",
    "Speaks the Model Context Protocol on stdin and stdout. The tool graph answers where the code of FOLDER (the "
    "current one by default) defines, mentions, calls and imports what; with --memory, memory_search finds texts of "
    "that store, and with --may-add memory_add keeps new ones. Nothing else is read or written.\n"
    "  whit mcp . --memory notes.mem\n",
    {{"OPTIONS", options, 0}},
    sizeof(struct mcp_values),
    &defaults,
    run_mcp,
};
