/* SPDX-License-Identifier: MIT
 * Implements whit graph, which shows what a project's code defines, calls and imports. */
#include <string.h>

#include "base/phrase.h"
#include "cli/verbs.h"
#include "base/items.h"
#include "code/graph.h"

struct graph_values {
    bool json;
    uint32_t n_tokens;
    const char *cache;
};
static const struct graph_values defaults = {.n_tokens = 1000};
static const cli_option options[] = {
    {"--json", CLI_FLAG, offsetof(struct graph_values, json), NULL, "Print one JSON value."},
    {"--tokens", CLI_COUNT, offsetof(struct graph_values, n_tokens), "N",
     "The most that a map may take, in tokens of about four bytes; 1000 by default.", 1, 10000000},
    {"--cache", CLI_FILE, offsetof(struct graph_values, cache), "FOLDER",
     "Keep the graph in FOLDER; by default $XDG_CACHE_HOME/whit/graphs or ~/.cache/whit/graphs."},
    {0},
};

/* Collects the rows of the output, either as JSON objects or as lines of text. */
struct rows {
    cli_call *call;
    json_t *array; /* list of JSON objects; NULL: the output is text */
};

static void add_place(struct rows *rows, const char *file, uint32_t line, const char *what, const char *name,
                      uint32_t end_line)
{
    if (rows->array) {
        json_t *row = json_pack("{s:o, s:i, s:s, s:o}", "file", cli_json_path(file), "line", (int)line, "what", what,
                                "name", cli_json_path(name));
        if (row && end_line) json_object_set_new(row, "end_line", json_integer(end_line));
        json_array_append_new(rows->array, row);
    } else {
        cli_print(rows->call, "%s:%u: %s %s\n", file, line, what, name);
    }
}

static void definitions(const whit_graph *graph, const char *name, struct rows *rows)
{
    whit_graph_run run = whit_graph_symbols_of(graph, name, strlen(name));
    whit_graph_symbol symbol;
    while (whit_graph_next_symbol(graph, &run, &symbol))
        add_place(rows, symbol.file, symbol.line, whit_symbol_kind_name(symbol.kind), symbol.name, symbol.end_line);
}

static void mentions(const whit_graph *graph, const char *name, bool calls, struct rows *rows)
{
    whit_graph_run run = whit_graph_mentions_of(graph, name, strlen(name));
    whit_graph_mention mention;
    while (whit_graph_next_mention(graph, &run, &mention)) {
        whit_graph_symbol symbol = {.name = "", .kind = WHIT_SYMBOL_FUNCTION};
        if (calls && !mention.calls) continue;
        bool inside = whit_graph_symbol_at(graph, mention.symbol, &symbol);
        add_place(rows, mention.file, mention.line, inside ? "in" : "at the top", symbol.name, 0);
    }
}

#define LIKE_ROWS 20

static whit_status likest(const whit_graph *graph, const char *folder, const char *cache, const char *name,
                          struct rows *rows, whit_error *error)
{
    whit_graph_hit hits[LIKE_ROWS];
    whit_graph_symbol symbol;
    uint32_t n;
    WHIT_TRY(whit_graph_like(graph, folder, cache, name, hits, LIKE_ROWS, &n, error));
    for (uint32_t i = 0; i < n && whit_graph_symbol_at(graph, hits[i].symbol, &symbol); i++)
        add_place(rows, symbol.file, symbol.line, whit_symbol_kind_name(symbol.kind), symbol.name, symbol.end_line);
    return WHIT_OK;
}

static bool imports(const whit_graph *graph, const char *path, struct rows *rows)
{
    uint32_t file = whit_graph_file_number(graph, path), n;
    if (file == WHIT_GRAPH_NONE) return false;
    uint32_t first = whit_graph_imports_of(graph, file, &n);
    for (uint32_t i = first; i < first + n; i++) {
        const char *written;
        uint32_t target, line;
        if (!whit_graph_import_at(graph, i, &written, &target, &line)) break;
        const char *found = target == WHIT_GRAPH_NONE ? NULL : whit_graph_file(graph, target);
        if (rows->array)
            json_array_append_new(rows->array,
                                  json_pack("{s:o, s:i, s:o, s:o}", "file", cli_json_path(path), "line", (int)line,
                                            "written", cli_json_path(written), "is",
                                            found ? cli_json_path(found) : json_null()));
        else
            cli_print(rows->call, "%s:%u: %s%s%s\n", path, line, written, found ? " is " : "", whit_or_empty(found));
    }
    return true;
}

static int print_map(cli_call *call, const whit_graph *graph, const char *folder, const struct graph_values *values)
{
    whit_buf map = {0};
    whit_error error;
    if (whit_graph_map(graph, folder, values->n_tokens, NULL, NULL, NULL, &map, &error) != WHIT_OK) {
        whit_buf_free(&map);
        return cli_fail_error(call, &error);
    }
    if (values->json)
        cli_print_json(call, json_pack("{s:s%}", "map", map.size_bytes ? WHIT_ITEMS(char, &map) : "", map.size_bytes));
    else
        cli_write(call, WHIT_ITEMS(char, &map), map.size_bytes);
    whit_buf_free(&map);
    return CLI_OK;
}

static int print_counts(cli_call *call, const whit_graph *graph, bool json)
{
    whit_graph_counts n = whit_graph_count(graph);
    if (json) {
        cli_print_json(call,
                       json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "files", (json_int_t)n.n_files, "lines",
                                 (json_int_t)n.n_lines, "symbols", (json_int_t)n.n_symbols, "mentions",
                                 (json_int_t)n.n_mentions, "imports", (json_int_t)n.n_imports, "bytes",
                                 (json_int_t)n.size_bytes, "built", n.is_new));
        return CLI_OK;
    }
    cli_print(call, "%u files, %llu lines: %u symbols, %u mentions, %u imports; %s\n", n.n_files,
              (unsigned long long)n.n_lines, n.n_symbols, n.n_mentions, n.n_imports, n.is_new ? "built" : "unchanged");
    return CLI_OK;
}

static int query(cli_call *call, const whit_graph *graph, const struct graph_values *values)
{
    const char *folder = call->operands[0], *what = call->n_operands > 1 ? call->operands[1] : NULL;
    const char *name = call->n_operands > 2 ? call->operands[2] : NULL;
    if (!what) return print_counts(call, graph, values->json);
    if (!strcmp(what, "map"))
        return name ? cli_fail(call, CLI_USAGE, "the query map takes no name") : print_map(call, graph, folder, values);
    struct rows rows = {call, values->json ? json_array() : NULL};
    bool is_def = !strcmp(what, "def"), is_refs = !strcmp(what, "refs"), is_callers = !strcmp(what, "callers");
    bool is_like = !strcmp(what, "like");
    whit_error error;
    int status = CLI_OK;
    if (!is_def && !is_refs && !is_callers && !is_like && strcmp(what, "imports"))
        status = cli_fail(call, CLI_USAGE, "'%s' is not a query: def, refs, callers, imports, like or map", what);
    else if (!name)
        status = cli_fail(call, CLI_USAGE, "the query %s needs a name", what);
    else if (is_def)
        definitions(graph, name, &rows);
    else if (is_refs || is_callers)
        mentions(graph, name, is_callers, &rows);
    else if (is_like)
        status = likest(graph, folder, values->cache, name, &rows, &error) == WHIT_OK ? CLI_OK
                                                                                      : cli_fail_error(call, &error);
    else if (!imports(graph, name, &rows))
        status = cli_fail(call, CLI_FAILED, "%s is not a source file of %s", name, folder);
    if (status == CLI_OK && rows.array) return cli_print_json(call, rows.array) ? CLI_OK : CLI_IO;
    json_decref(rows.array);
    return status;
}

static int run_graph(cli_call *call)
{
    const struct graph_values *values = call->values;
    whit_graph *graph;
    whit_error error;
    if (whit_graph_open(call->operands[0], values->cache, &graph, &error) != WHIT_OK)
        return cli_fail_error(call, &error);
    int status = query(call, graph, values);
    whit_graph_close(graph);
    return status;
}

const cli_verb cli_graph_verb = {
    "graph",
    "FOLDER [QUERY [NAME]]",
    1,
    3,
    "ask what a project's code defines, calls and imports",
    "Reads the source files of FOLDER (.gitignore is respected), keeps what it finds in a file under the cache folder, "
    "and reads again what has changed. QUERY is def NAME (where it is defined), refs NAME (where it "
    "is mentioned), callers NAME (where it is called), imports FILE (what a file includes, by its path in FOLDER), "
    "like NAME (the functions and types most like it, by the letters of their names and by what they call and what "
    "calls them), or map (an outline that fits --tokens, of what is referred to most). Without one, the graph is "
    "counted.\n"
    "C, C++ and Python are read by their structure, JavaScript, TypeScript, Rust, Go, Java, shell and others by the "
    "words that definitions begin with; macros are not expanded.\n"
    "  whit graph . callers whit_fail\n"
    "  whit graph . map --tokens 2000\n",
    {{"OPTIONS", options, 0}},
    sizeof(struct graph_values),
    &defaults,
    run_graph,
    false,
    "def|refs|callers|imports|like|map",
    1,
};
