/* SPDX-License-Identifier: MIT
 * Writes an outline of a project that is at most as long as a given number of tokens. */
#include "base/utf8.h"
#include "base/items.h"
#include "code/graph_file.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define TOKEN_BYTES 4   /* approximate number of bytes per token of source code */
#define LINE_BYTES  120 /* size of the buffer for a definition's line; longer lines are cut */

struct chosen {
    uint32_t symbol, file, line, n_mentions;
};

static int by_mentions(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    if (x->n_mentions != y->n_mentions) return x->n_mentions > y->n_mentions ? -1 : 1;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

static int by_place(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

#define RIVALS 64 /* if a name has many symbols, only the global ones among its first RIVALS symbols are counted */

/* Counts the references to each symbol of a name; a mention of a function counts only if it is a call. A mention refers
 * to the local symbols of its own file if there are any, otherwise to the global symbols. `counts` is indexed by symbol
 * number; `symbols` is scratch memory. */
static void count_name(const whit_graph *graph, const char *name, uint32_t *counts, whit_buf *symbols)
{
    whit_graph_symbol symbol;
    whit_graph_mention mention;
    size_t n_name = strlen(name);
    symbols->size_bytes = 0;
    whit_graph_run run = whit_graph_symbols_of(graph, name, n_name);
    while (whit_graph_next_symbol(graph, &run, &symbol) && whit_buf_append(symbols, &symbol, sizeof symbol)) {
    }
    const whit_graph_symbol *first = WHIT_ITEMS(const whit_graph_symbol, symbols), *at = first;
    const whit_graph_symbol *end = first + symbols->size_bytes / sizeof symbol;
    run = whit_graph_mentions_of(graph, name, n_name);
    while (whit_graph_next_mention(graph, &run, &mention)) { /* symbols and mentions are both sorted by file */
        bool found = false;
        while (at < end && at->file_number < mention.file_number) at++;
        for (const whit_graph_symbol *s = at; s < end && s->file_number == mention.file_number; s++)
            if (s->is_local) {
                counts[s->number] += mention.calls || s->kind != WHIT_SYMBOL_FUNCTION;
                found = true;
            }
        for (const whit_graph_symbol *s = first; s < end && s < first + RIVALS && !found; s++)
            if (!s->is_local) counts[s->number] += mention.calls || s->kind != WHIT_SYMBOL_FUNCTION;
    }
}

/* Counts the references to all symbols; `counts` is indexed by symbol number. Returns false if memory runs out. */
static bool count_all(const whit_graph *graph, uint32_t *counts)
{
    whit_buf room = {0};
    whit_graph_symbol symbol, first;
    for (whit_graph_run run = whit_graph_all_symbols(graph); whit_graph_next_symbol(graph, &run, &symbol);) {
        whit_graph_run same = whit_graph_symbols_of(graph, symbol.name, strlen(symbol.name));
        if (whit_graph_next_symbol(graph, &same, &first) && first.number == symbol.number)
            count_name(graph, symbol.name, counts, &room);
    }
    bool ok = !room.failed;
    whit_buf_free(&room);
    return ok;
}

/* Copies the line of a definition without indentation and returns its length; a long line is cut, but not within a
 * UTF-8 character. */
static size_t source_line(const whit_buf *text, uint32_t line, char *out, size_t room)
{
    const char *at = whit_chars(text), *end = at + text->size_bytes;
    for (uint32_t i = 1; i < line && at < end; i++) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        at = feed ? feed + 1 : end;
    }
    size_t n_line = 0;
    while (at < end && isspace((uint8_t)*at) && *at != '\n') at++;
    while (at + n_line < end && at[n_line] != '\n' && n_line < room) n_line++;
    size_t n = whit_utf8_cut(at, n_line, room - 1);
    if (n) memcpy(out, at, n);
    while (n && isspace((uint8_t)out[n - 1])) n--;
    out[n] = 0;
    return n;
}

whit_status whit_graph_map(const whit_graph *graph, const char *folder, size_t n_tokens, whit_graph_skip_fn *skip,
                           whit_graph_quote_fn *may_quote, void *user, whit_buf *out, whit_error *error)
{
    whit_graph_counts counts = whit_graph_count(graph);
    whit_graph_run run = whit_graph_all_symbols(graph);
    size_t n_numbers = (size_t)run.end + run.edits_end;
    struct chosen *all = malloc(((size_t)counts.n_symbols + 1) * sizeof *all);
    bool *named = calloc((size_t)counts.n_files + 1, sizeof *named);
    uint32_t *n_mentions = calloc(n_numbers + 1, sizeof *n_mentions);
    if (!all || !named || !n_mentions || !count_all(graph, n_mentions)) {
        free(all);
        free(named);
        free(n_mentions);
        return whit_fail_memory(error, "the map of the code", counts.n_symbols * sizeof *all);
    }
    size_t n = 0, budget = n_tokens * TOKEN_BYTES, used = 0, n_chosen = 0;
    whit_graph_symbol symbol;
    while (whit_graph_next_symbol(graph, &run, &symbol)) {
        if (symbol.kind == WHIT_SYMBOL_VARIABLE || (skip && skip(user, symbol.file))) continue;
        /* A local symbol counts a quarter, so that symbols for other files come first. */
        uint32_t weight = n_mentions[symbol.number] / (symbol.is_local ? 4 : 1);
        all[n++] = (struct chosen){symbol.number, symbol.file_number, symbol.line, weight};
    }
    qsort(all, n, sizeof *all, by_mentions);
    for (; n_chosen < n; n_chosen++) { /* finds how many symbols fit, assuming half the maximum length for each line */
        whit_graph_symbol_at(graph, all[n_chosen].symbol, &symbol);
        size_t bytes = LINE_BYTES / 2 + 10 + (named[symbol.file_number] ? 0 : strlen(symbol.file) + 2);
        if (used + bytes > budget) break;
        used += bytes;
        named[symbol.file_number] = true;
    }
    qsort(all, n_chosen, sizeof *all, by_place);
    whit_buf text = {0};
    uint32_t file = WHIT_GRAPH_NONE;
    whit_graph_symbol last = {0};
    for (size_t i = 0; i < n_chosen; i++) {
        char line[LINE_BYTES];
        whit_graph_symbol_at(graph, all[i].symbol, &symbol);
        size_t before = out->size_bytes;
        /* If a definition began at "typedef struct name {", its end "} name;" is not listed again. */
        if (i && symbol.file_number == file && last.line < symbol.line && symbol.line <= last.end_line &&
            !strcmp(last.name, symbol.name))
            continue;
        last = symbol;
        if (symbol.file_number != file) {
            file = symbol.file_number;
            whit_buf_free(&text);
            (void)graph_read(folder, symbol.file, &text, NULL);
            if (may_quote && text.size_bytes && !may_quote(user, whit_chars(&text), text.size_bytes))
                text.size_bytes = 0;
            whit_buf_printf(out, "%s:\n", symbol.file);
        }
        if (!source_line(&text, symbol.line, line, sizeof line))
            snprintf(line, sizeof line, "%.*s", (int)whit_utf8_cut(symbol.name, strlen(symbol.name), LINE_BYTES - 1),
                     symbol.name);
        whit_buf_printf(out, "%5u %s\n", symbol.line, line);
        if (out->size_bytes > budget) {
            out->size_bytes = before;
            break;
        }
    }
    whit_buf_free(&text);
    free(all);
    free(named);
    free(n_mentions);
    return out->failed ? whit_fail_memory(error, "the map of the code", budget) : WHIT_OK;
}
