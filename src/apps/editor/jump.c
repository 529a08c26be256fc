/* SPDX-License-Identifier: MIT
 * Finds symbols, definitions and references by the project's code graph, an index of its files. The graph describes the
 * saved files; unsaved texts are parsed here and replace their files. */
#include "editor/state.h"

#include "code/graph.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define N_SYMBOLS 100000u /* maximum number of symbols in the list of all symbols */
#define N_UNSAVED 64
/* maximum size in bytes of an unsaved text that is parsed; a larger one is represented by its saved file */
#define UNSAVED_BYTES (4u << 20)

struct unsaved {
    size_t n;
    struct {
        char *text;
        const char *file; /* path relative to the project */
        whit_parse parse;
    } texts[N_UNSAVED];
};

static void parse_unsaved(ed *e, struct unsaved *unsaved)
{
    char folder[PATH_MAX];
    unsaved->n = 0;
    if (!realpath(e->options.project ? e->options.project : ".", folder)) return;
    size_t n_folder = strlen(folder);
    for (const struct ed_doc *doc = e->docs; doc && unsaved->n < N_UNSAVED; doc = doc->next) {
        const char *path = doc->buffer->path;
        uint64_t size = whit_text_size(doc->buffer->text);
        if (!path || !whit_buffer_is_modified(doc->buffer) || size > UNSAVED_BYTES ||
            strncmp(path, folder, n_folder) != 0 || path[n_folder] != '/' ||
            whit_code_language_of(path) == WHIT_CODE_NONE)
            continue;
        char *text = malloc((size_t)size + 1);
        if (!text) return;
        size_t n = whit_text_read(doc->buffer->text, 0, text, (size_t)size), i = unsaved->n++;
        unsaved->texts[i].text = text;
        unsaved->texts[i].file = path + n_folder + 1;
        unsaved->texts[i].parse = (whit_parse){0};
        whit_parse_text(&unsaved->texts[i].parse, whit_code_language_of(path), text, n);
    }
}

static void free_unsaved(struct unsaved *unsaved)
{
    for (size_t i = 0; i < unsaved->n; i++) {
        whit_parse_free(&unsaved->texts[i].parse);
        free(unsaved->texts[i].text);
    }
}

static bool is_unsaved(const struct unsaved *unsaved, const char *file)
{
    for (size_t i = 0; i < unsaved->n; i++)
        if (!strcmp(unsaved->texts[i].file, file)) return true;
    return false;
}

/* Copies the name of a definition, or "(at the top)" if `definition` is WHIT_PARSE_NONE. */
static void copy_name(const struct unsaved *unsaved, size_t i, uint32_t definition, char *name, size_t room)
{
    snprintf(name, room, "(at the top)");
    if (definition == WHIT_PARSE_NONE) return;
    const whit_parse_definition *d = &unsaved->texts[i].parse.definitions[definition];
    snprintf(name, room, "%.*s", (int)(d->n_name < room ? d->n_name : room - 1), unsaved->texts[i].text + d->name);
}

/* Opens or refreshes the project's code graph and returns it, or NULL, with a message. It stays open; the editor owns
 * it. */
static whit_graph *open_graph(ed *e)
{
    whit_error error;
    const char *project = e->options.project ? e->options.project : ".";
    if (e->graph && whit_graph_refresh(e->graph, project, NULL)) return e->graph;
    ed_graph_close(e);
    if (whit_graph_open(project, NULL, &e->graph, &error) != WHIT_OK) ed_complain_error(e, &error);
    return e->graph;
}

void ed_graph_close(ed *e)
{
    whit_graph_close(e->graph);
    e->graph = NULL;
}

void ed_graph_saved(ed *e, const struct ed_doc *doc)
{
    char folder[PATH_MAX];
    const char *project = e->options.project ? e->options.project : ".", *path = doc->buffer->path;
    if (!e->graph || !path || !realpath(project, folder)) return;
    size_t n = strlen(folder);
    if (strncmp(path, folder, n) == 0 && path[n] == '/') whit_graph_follow(e->graph, project, NULL, path + n + 1);
}

static void add_place(ed *e, const char *file, uint32_t line, const char *what, const char *name)
{
    char label[400], path[PATH_MAX];
    bool here = !e->options.project;
    snprintf(label, sizeof label, "%-32.100s %-9s %.200s:%u", name, what, file, line);
    if (snprintf(path, sizeof path, "%s%s%s", here ? "" : e->options.project, here ? "" : "/", file) < PATH_MAX)
        ed_prompt_add(e, label, path, line, -1);
}

/* Copies the selected text or, without a selection, the identifier at the cursor. Returns false, with a message, if
 * there is no such text or it is too long. */
static bool word_here(ed *e, char *word, size_t room)
{
    whit_range range = ed_selection(ed_cursor(e));
    if (range.begin == range.end) {
        while (range.begin && ed_is_word(whit_layout_byte(ed_layout(e), range.begin - 1))) range.begin--;
        while (ed_is_word(whit_layout_byte(ed_layout(e), range.end))) range.end++;
    }
    size_t n = (size_t)(range.end - range.begin);
    if (!n || n >= room) {
        ed_complain(e, "there is no word at the cursor, or it is longer than 255 bytes, the limit");
        return false;
    }
    word[whit_text_read(ed_text(e), range.begin, word, n)] = 0;
    return true;
}

/* Goes to the only place found, or opens a list of several places. Without a place, reports that the project has no
 * `what` of the word. */
static void offer(ed *e, const char *word, const char *what)
{
    size_t n = e->prompt.n_items;
    if (!n) {
        ed_prompt_close(e);
        ed_complain(e, "the project has no %s of '%s'", what, word);
        return;
    }
    /* keeps a list of one place from replacing the last list of results */
    if (n == 1) e->prompt.kind = ED_PROMPT_SYMBOLS;
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
    struct unsaved unsaved;
    char name[256];
    parse_unsaved(e, &unsaved);
    ed_prompt_open(e, ED_PROMPT_SYMBOLS, "Symbol: ", "");
    whit_graph_run run = whit_graph_all_symbols(graph);
    for (uint32_t i = 0; i < N_SYMBOLS && whit_graph_next_symbol(graph, &run, &symbol); i++)
        if (!is_unsaved(&unsaved, symbol.file))
            add_place(e, symbol.file, symbol.line, whit_symbol_kind_name(symbol.kind), symbol.name);
    for (size_t i = 0; i < unsaved.n; i++)
        for (uint32_t k = 0; k < unsaved.texts[i].parse.n_definitions; k++) {
            const whit_parse_definition *d = &unsaved.texts[i].parse.definitions[k];
            copy_name(&unsaved, i, k, name, sizeof name);
            add_place(e, unsaved.texts[i].file, d->line, whit_symbol_kind_name(d->kind), name);
        }
    ed_prompt_filter(e);
    free_unsaved(&unsaved);
}

void ed_definition(ed *e)
{
    if (!ed_language_definition(e)) ed_definition_by_graph(e);
}

static bool is_file(const char *path, const char *file)
{
    size_t n_path = path ? strlen(path) : 0, n_file = strlen(file);
    return n_path > n_file && path[n_path - n_file - 1] == '/' && !strcmp(path + n_path - n_file, file);
}

void ed_definition_by_graph(ed *e)
{
    char word[256];
    whit_graph *graph = word_here(e, word, sizeof word) ? open_graph(e) : NULL;
    if (!graph) return;
    whit_graph_symbol symbol;
    struct unsaved unsaved;
    const char *path = e->window->doc->buffer->path;
    bool local = false;
    size_t n_word = strlen(word);
    parse_unsaved(e, &unsaved);
    ed_prompt_open(e, ED_PROMPT_RESULTS, "Definition: ", "");
    /* A local definition in this file hides all definitions that are not local; local definitions in other files are
     * skipped. Pass 0 looks for a local definition, pass 1 adds the places. */
    for (int pass = 0; pass < 2; pass++) {
        whit_graph_run run = whit_graph_symbols_of(graph, word, n_word);
        while (whit_graph_next_symbol(graph, &run, &symbol)) {
            if (is_unsaved(&unsaved, symbol.file)) continue;
            bool same = is_file(path, symbol.file);
            if (!pass)
                local |= symbol.is_local && same;
            else if (local ? symbol.is_local && same : !symbol.is_local)
                add_place(e, symbol.file, symbol.line, whit_symbol_kind_name(symbol.kind), symbol.name);
        }
        for (size_t i = 0; i < unsaved.n; i++)
            for (uint32_t k = 0; k < unsaved.texts[i].parse.n_definitions; k++) {
                const whit_parse_definition *d = &unsaved.texts[i].parse.definitions[k];
                bool same = is_file(path, unsaved.texts[i].file);
                if (d->n_name != n_word || memcmp(unsaved.texts[i].text + d->name, word, n_word) != 0) continue;
                if (!pass)
                    local |= d->is_local && same;
                else if (local ? d->is_local && same : !d->is_local)
                    add_place(e, unsaved.texts[i].file, d->line, whit_symbol_kind_name(d->kind), word);
            }
    }
    free_unsaved(&unsaved);
    offer(e, word, "definition");
}

void ed_references(ed *e)
{
    char word[256];
    whit_graph *graph = word_here(e, word, sizeof word) ? open_graph(e) : NULL;
    if (!graph) return;
    whit_graph_mention mention;
    struct unsaved unsaved;
    char name[256];
    size_t n_word = strlen(word);
    parse_unsaved(e, &unsaved);
    ed_prompt_open(e, ED_PROMPT_RESULTS, "Reference: ", "");
    for (size_t i = 0; i < unsaved.n; i++)
        for (size_t k = 0; k < unsaved.texts[i].parse.n_mentions; k++) {
            const whit_parse_mention *m = &unsaved.texts[i].parse.mentions[k];
            if (m->imports || m->n_name != n_word || memcmp(unsaved.texts[i].text + m->name, word, n_word) != 0)
                continue;
            copy_name(&unsaved, i, m->inside, name, sizeof name);
            add_place(e, unsaved.texts[i].file, m->line, m->calls ? "calls" : "mentions", name);
        }
    whit_graph_run run = whit_graph_mentions_of(graph, word, n_word);
    while (whit_graph_next_mention(graph, &run, &mention)) {
        if (is_unsaved(&unsaved, mention.file)) continue;
        whit_graph_symbol symbol = {.name = "(at the top)"};
        whit_graph_symbol_at(graph, mention.symbol, &symbol);
        add_place(e, mention.file, mention.line, mention.calls ? "calls" : "mentions", symbol.name);
    }
    free_unsaved(&unsaved);
    offer(e, word, "reference");
}
