/* SPDX-License-Identifier: MIT
 * The project's code graph in the editor: symbols, definitions, references. */
#include "editor/state.h"

#include "code/graph.h"

#include <limits.h>
#include <stdio.h>

#define N_SYMBOLS 100000u /* in the list of all */

static whit_graph *open_graph(ed *e)
{
    whit_graph *graph;
    whit_error error;
    const char *project = e->options.project ? e->options.project : ".";
    if (whit_graph_open(project, NULL, &graph, &error) == WHIT_OK) return graph;
    ed_complain_error(e, &error);
    return NULL;
}

static void add_place(ed *e, const char *file, uint32_t line, const char *what, const char *name)
{
    char label[400], path[PATH_MAX];
    bool here = !e->options.project;
    snprintf(label, sizeof label, "%-32.100s %-9s %.200s:%u", name, what, file, line);
    if (snprintf(path, sizeof path, "%s%s%s", here ? "" : e->options.project, here ? "" : "/", file) < PATH_MAX)
        ed_prompt_add(e, label, path, line, -1);
}

/* The identifier at the cursor, or what is selected. */
static bool word_here(ed *e, char *word, size_t room)
{
    whit_range range = ed_selection(ed_cursor(e));
    if (range.begin == range.end) {
        while (range.begin && ed_is_word(whit_layout_byte(ed_layout(e), range.begin - 1))) range.begin--;
        while (ed_is_word(whit_layout_byte(ed_layout(e), range.end))) range.end++;
    }
    size_t n = (size_t)(range.end - range.begin);
    if (!n || n >= room) {
        ed_complain(e, "no word here");
        return false;
    }
    word[whit_text_read(ed_text(e), range.begin, word, n)] = 0;
    return true;
}

/* One place is gone to, of several one is chosen. */
static void offer(ed *e, const char *word, const char *what)
{
    size_t n = e->prompt.n_items;
    if (!n) {
        ed_prompt_close(e);
        ed_complain(e, "no %s of '%s' in the project", what, word);
        return;
    }
    ed_prompt_filter(e);
    if (n == 1)
        ed_prompt_key(e, (whit_key){.code = WHIT_KEY_ENTER}, NULL, 0);
    else
        ed_say(e, "%zu", n);
}

void ed_symbols_open(ed *e)
{
    whit_graph *graph = open_graph(e);
    whit_graph_symbol symbol;
    if (!graph) return;
    ed_prompt_open(e, ED_PROMPT_RESULTS, "Symbol: ", "");
    for (uint32_t i = 0; i < N_SYMBOLS && whit_graph_symbol_at(graph, i, &symbol); i++)
        add_place(e, symbol.file, symbol.line, whit_symbol_kind_name(symbol.kind), symbol.name);
    ed_prompt_filter(e);
    whit_graph_close(graph);
}

void ed_definition(ed *e)
{
    if (!ed_language_definition(e)) ed_definition_by_graph(e);
}

void ed_definition_by_graph(ed *e)
{
    char word[256];
    whit_graph *graph = word_here(e, word, sizeof word) ? open_graph(e) : NULL;
    if (!graph) return;
    uint32_t n, first = whit_graph_symbols_of(graph, whit_graph_name(graph, word, strlen(word)), &n);
    whit_graph_symbol symbol;
    const char *path = e->window->doc->buffer->path;
    bool local = false;
    /* What is local here hides what is elsewhere; what is local elsewhere is not meant. */
    for (uint32_t i = first; i < first + n && whit_graph_symbol_at(graph, i, &symbol); i++) {
        size_t n_path = path ? strlen(path) : 0, n_file = strlen(symbol.file);
        local |= symbol.is_local && n_path > n_file && !strcmp(path + n_path - n_file, symbol.file);
    }
    ed_prompt_open(e, ED_PROMPT_RESULTS, "Definition: ", "");
    for (uint32_t i = first; i < first + n && whit_graph_symbol_at(graph, i, &symbol); i++) {
        size_t n_path = path ? strlen(path) : 0, n_file = strlen(symbol.file);
        bool same = n_path > n_file && !strcmp(path + n_path - n_file, symbol.file);
        if (local ? symbol.is_local && same : !symbol.is_local)
            add_place(e, symbol.file, symbol.line, whit_symbol_kind_name(symbol.kind), symbol.name);
    }
    offer(e, word, "definition");
    whit_graph_close(graph);
}

void ed_references(ed *e)
{
    char word[256];
    whit_graph *graph = word_here(e, word, sizeof word) ? open_graph(e) : NULL;
    if (!graph) return;
    uint32_t n, first = whit_graph_mentions_of(graph, whit_graph_name(graph, word, strlen(word)), &n);
    whit_graph_mention mention;
    ed_prompt_open(e, ED_PROMPT_RESULTS, "Reference: ", "");
    for (uint32_t i = first; i < first + n && whit_graph_mention_at(graph, i, &mention); i++) {
        whit_graph_symbol symbol = {.name = "(at the top)"};
        whit_graph_symbol_at(graph, mention.symbol, &symbol);
        add_place(e, mention.file, mention.line, mention.calls ? "calls" : "mentions", symbol.name);
    }
    offer(e, word, "reference");
    whit_graph_close(graph);
}
