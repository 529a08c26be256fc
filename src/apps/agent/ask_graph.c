/* SPDX-License-Identifier: MIT */
#include "agent/ask_graph.h"

#include "agent/guard.h"
#include "agent/light.h"
#include "code/graph.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LINES_MAX  400
#define MAP_TOKENS 3000

/* Caches the last decision of is_hidden(). A file is hidden if a model must not read it, or if its path leads through a
 * link out of the project. Each decision reads the disk; results come grouped by file, so one cached file is enough. */
struct hiding {
    const char *project;
    char file[PATH_MAX];
    bool is_hidden;
};

static bool is_hidden(void *user, const char *file)
{
    struct hiding *h = user;
    if (strcmp(h->file, file) == 0) return h->is_hidden;
    h->is_hidden = whit_light_secret(h->project, file) || whit_light_leaves(h->project, file);
    snprintf(h->file, sizeof h->file, "%s", file);
    return h->is_hidden;
}

/* Returns whether the map may quote a text. The map cuts lines, after which a part of a key could not be recognised. */
static bool may_quote(void *user, const char *text, size_t n_bytes)
{
    (void)user;
    return !whit_guard_has_key(text, n_bytes);
}

static void definitions(const whit_graph *graph, struct hiding *hiding, const char *name, whit_buf *result)
{
    whit_graph_run run = whit_graph_symbols_of(graph, name, strlen(name));
    whit_graph_symbol s;
    for (uint32_t n_lines = 0; n_lines < LINES_MAX && whit_graph_next_symbol(graph, &run, &s);) {
        if (is_hidden(hiding, s.file)) continue;
        n_lines++;
        whit_buf_printf(result, "%s:%u-%u: %s %s\n", s.file, s.line, s.end_line, whit_symbol_kind_name(s.kind), s.name);
    }
}

static void mentions(const whit_graph *graph, struct hiding *hiding, const char *name, bool calls, whit_buf *result)
{
    whit_graph_run run = whit_graph_mentions_of(graph, name, strlen(name));
    whit_graph_mention m;
    for (uint32_t n_lines = 0; n_lines < LINES_MAX && whit_graph_next_mention(graph, &run, &m);) {
        whit_graph_symbol s = {.name = ""};
        if ((calls && !m.calls) || is_hidden(hiding, m.file)) continue;
        bool inside = whit_graph_symbol_at(graph, m.symbol, &s);
        const char *place = inside ? "in " : "at the top";
        whit_buf_printf(result, "%s:%u: %s%s\n", m.file, m.line, place, inside ? s.name : "");
        n_lines++;
    }
}

static void imports(const whit_graph *graph, struct hiding *hiding, const char *path, whit_buf *result)
{
    uint32_t file = is_hidden(hiding, path) ? WHIT_GRAPH_NONE : whit_graph_file_number(graph, path), n = 0;
    uint32_t first = file == WHIT_GRAPH_NONE ? 0 : whit_graph_imports_of(graph, file, &n);
    const char *written;
    uint32_t target, line;
    for (uint32_t i = first; i < first + n && whit_graph_import_at(graph, i, &written, &target, &line); i++) {
        whit_buf_printf(result, "%s:%u: %s", path, line, written);
        if (target != WHIT_GRAPH_NONE) whit_buf_printf(result, " is %s", whit_graph_file(graph, target));
        whit_buf_append_str(result, "\n");
    }
}

#define LIKE_LINES 12

static void likest(const whit_graph *graph, struct hiding *hiding, const char *name, whit_buf *result)
{
    whit_graph_hit hits[LIKE_LINES];
    whit_graph_symbol s;
    whit_error error;
    uint32_t n;
    if (whit_graph_like(graph, hiding->project, NULL, name, hits, LIKE_LINES, &n, &error) != WHIT_OK)
        whit_buf_printf(result, "error: %s", error.message);
    for (uint32_t i = 0; i < n && whit_graph_symbol_at(graph, hits[i].symbol, &s); i++)
        if (!is_hidden(hiding, s.file))
            whit_buf_printf(result, "%s:%u-%u: %s %s\n", s.file, s.line, s.end_line, whit_symbol_kind_name(s.kind),
                            s.name);
}

void whit_ask_graph(const char *project, const char *query, const char *name, whit_buf *result)
{
    whit_graph *graph;
    whit_error error;
    struct hiding hiding = {.project = project};
    bool is_map = strcmp(query, "map") == 0;
    if (!is_map && (!name || !*name)) {
        whit_buf_printf(result, "error: the query '%.40s' needs a name", query);
        return;
    }
    if (whit_graph_open(project, NULL, &graph, &error) != WHIT_OK) {
        whit_buf_printf(result, "error: %s", error.message);
        return;
    }
    size_t before = result->size_bytes;
    bool known = true;
    if (is_map)
        (void)whit_graph_map(graph, project, MAP_TOKENS, is_hidden, may_quote, &hiding, result, &error);
    else if (strcmp(query, "def") == 0)
        definitions(graph, &hiding, name, result);
    else if (strcmp(query, "refs") == 0 || strcmp(query, "callers") == 0)
        mentions(graph, &hiding, name, *query == 'c', result);
    else if (strcmp(query, "like") == 0)
        likest(graph, &hiding, name, result);
    else if (strcmp(query, "imports") == 0)
        imports(graph, &hiding, name, result);
    else
        known = false;
    if (!known)
        whit_buf_printf(result, "error: there is no query '%.40s'; there are " WHIT_ASK_GRAPH_KINDS, query);
    else if (result->size_bytes == before)
        whit_buf_append_str(result, "(nothing)");
    whit_guard_hide_keys(result); /* names of files and symbols */
    whit_graph_close(graph);
}
