/* SPDX-License-Identifier: MIT
 * Implements queries: attaches the bytes of a graph, and looks up symbols, mentions and imports. */
#include "code/graph.h"

#include "base/hash.h"
#include "code/graph_file.h"

#include <stdlib.h>

uint32_t graph_hash(const char *text, size_t n)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    hash ^= hash >> 16;
    return hash * 0x7FEB352Du ^ hash >> 13;
}

void graph_check(const uint8_t *data, size_t size_bytes, uint8_t check[8])
{
    static const uint8_t key[crypto_shorthash_KEYBYTES] = "whit graph 2";
    struct graph_head head;
    memcpy(&head, data, sizeof head);
    crypto_shorthash(head.check, data + sizeof head, size_bytes - sizeof head, key);
    crypto_shorthash(check, (const uint8_t *)&head, sizeof head, key);
}

const char *whit_symbol_kind_name(whit_symbol_kind kind)
{
    static const char *const names[] = {"symbol", "function", "type", "macro", "variable"};
    return (unsigned)kind < WHIT_N_SYMBOL_KINDS ? names[kind] : names[0];
}

/* Returns whether every number in this part of the graph refers to an existing entry, so that readers need not check it
 * again. Numbers of imported files must be below `n_targets`. */
static bool is_sound(const struct graph_part *graph, uint64_t n_targets)
{
    const uint64_t *n = graph->n;
    uint64_t n_strings = n[GRAPH_STRINGS];
    if (!n_strings || graph->strings[n_strings - 1] || !n[GRAPH_SLOTS] || (n[GRAPH_SLOTS] & (n[GRAPH_SLOTS] - 1)))
        return false;
    for (uint64_t i = 0; i < n[GRAPH_FILES]; i++) {
        const struct graph_file *file = &graph->files[i];
        if (file->path >= n_strings || !whit_in_bounds(file->first_import, file->n_imports, n[GRAPH_IMPORTS]) ||
            !whit_in_bounds(file->first_order, file->n_order, n[GRAPH_ORDER]))
            return false;
    }
    for (uint64_t i = 0; i < n[GRAPH_NAMES]; i++) {
        const struct graph_name *name = &graph->names[i];
        if (!whit_in_bounds(name->text, (uint64_t)name->n_text + 1, n_strings) ||
            !whit_in_bounds(name->first_symbol, name->n_symbols, n[GRAPH_SYMBOLS]) ||
            !whit_in_bounds(name->first_mention, name->n_mentions, n[GRAPH_MENTIONS]))
            return false;
    }
    bool has_free = false;
    for (uint64_t i = 0; i < n[GRAPH_SLOTS]; i++) {
        if (graph->slots[i] > n[GRAPH_NAMES]) return false;
        has_free |= !graph->slots[i];
    }
    for (uint64_t i = 0; i < n[GRAPH_SYMBOLS]; i++) {
        const struct graph_symbol *symbol = &graph->symbols[i];
        if (symbol->name >= n[GRAPH_NAMES] || symbol->file >= n[GRAPH_FILES] ||
            (symbol->parent != WHIT_GRAPH_NONE && symbol->parent >= n[GRAPH_SYMBOLS]))
            return false;
    }
    for (uint64_t i = 0; i < n[GRAPH_MENTIONS]; i++)
        if (graph->mentions[i].file >= n[GRAPH_FILES] ||
            (graph->mentions[i].symbol != WHIT_GRAPH_NONE && graph->mentions[i].symbol >= n[GRAPH_SYMBOLS]))
            return false;
    for (uint64_t i = 0; i < n[GRAPH_IMPORTS]; i++)
        if (graph->imports[i].written >= n_strings ||
            (graph->imports[i].file != WHIT_GRAPH_NONE && graph->imports[i].file >= n_targets))
            return false;
    for (uint64_t i = 0; i < n[GRAPH_ORDER]; i++)
        if (graph->order[i] >= n[GRAPH_SYMBOLS]) return false;
    return has_free; /* a search for a name in the hash table ends at a free slot */
}

/* Makes the members of `graph` point to the sections in the bytes of a graph or of edits; returns false if the bytes
 * are not valid. base: for edits, the graph that they change; NULL for a graph itself. */
static bool attach(struct graph_part *graph, const uint8_t *data, size_t size_bytes, const struct graph_part *base)
{
    static const uint8_t no_edits[8] = {0};
    static const size_t elem_bytes[] = {1,
                                        sizeof(struct graph_file),
                                        sizeof(struct graph_name),
                                        4,
                                        sizeof(struct graph_symbol),
                                        sizeof(struct graph_mention),
                                        sizeof(struct graph_import),
                                        4};
    const struct graph_head *head = (const struct graph_head *)data;
    bool ok = size_bytes >= sizeof *head && !((uintptr_t)data & 7) && !memcmp(head->magic, GRAPH_MAGIC, 8) &&
        head->version == GRAPH_VERSION && head->n_sections == GRAPH_N_SECTIONS && head->size_bytes == size_bytes &&
        !memcmp(head->edits_of, base ? base->head->check : no_edits, sizeof head->edits_of);
    uint8_t check[8];
    const void *sections[GRAPH_N_SECTIONS];
    if (ok) {
        graph_check(data, size_bytes, check);
        ok = !memcmp(check, head->check, sizeof check);
    }
    for (int i = 0; i < GRAPH_N_SECTIONS && ok; i++) {
        uint64_t begin = head->sections[i].begin, n = head->sections[i].n;
        ok = begin >= sizeof *head && !(begin & 7) && n <= UINT32_MAX &&
            whit_in_bounds(begin, n * elem_bytes[i], size_bytes);
        sections[i] = ok ? data + begin : NULL;
        graph->n[i] = n;
    }
    if (ok) {
        graph->data = data;
        graph->head = head;
        graph->strings = sections[GRAPH_STRINGS];
        graph->files = sections[GRAPH_FILES];
        graph->names = sections[GRAPH_NAMES];
        graph->slots = sections[GRAPH_SLOTS];
        graph->symbols = sections[GRAPH_SYMBOLS];
        graph->mentions = sections[GRAPH_MENTIONS];
        graph->imports = sections[GRAPH_IMPORTS];
        graph->order = sections[GRAPH_ORDER];
        ok = is_sound(graph, base ? base->n[GRAPH_FILES] : graph->n[GRAPH_FILES]);
    }
    return ok;
}

whit_status graph_attach(whit_graph *graph, const void *data, size_t size_bytes, const char *path, whit_error *error)
{
    if (attach(&graph->base, data, size_bytes, NULL)) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_FORMAT,
                     "%s: the file is not a code graph, or is damaged: remove it, and 'whit graph' builds it again",
                     path);
}

bool graph_take_edits(whit_graph *graph, whit_buf *edits)
{
    struct graph_part part = {0};
    const struct graph_part *base = &graph->base;
    uint32_t *hidden = NULL;
    if (edits->size_bytes) {
        bool ok = attach(&part, edits->data, edits->size_bytes, base) && part.n[GRAPH_FILES] <= GRAPH_EDITS;
        for (uint64_t i = 0; ok && i < part.n[GRAPH_FILES]; i++) {
            const struct graph_file *file = &part.files[i];
            ok = file->number < base->n[GRAPH_FILES] && (!i || file->number > file[-1].number) &&
                !strcmp(part.strings + file->path, base->strings + base->files[file->number].path);
        }
        hidden = ok ? calloc(base->n[GRAPH_FILES] + 1, sizeof *hidden) : NULL;
        if (!hidden) return false;
        for (uint32_t i = 0; i < part.n[GRAPH_FILES]; i++) hidden[part.files[i].number] = i + 1;
    }
    whit_buf_free(&graph->own_edits);
    free(graph->hidden);
    graph->own_edits = *edits;
    graph->edits = part;
    graph->hidden = hidden;
    *edits = (whit_buf){0};
    return true;
}

void whit_graph_close(whit_graph *graph)
{
    if (!graph) return;
    whit_map_close(&graph->map);
    whit_buf_free(&graph->own);
    whit_buf_free(&graph->own_edits);
    free(graph->hidden);
    free(graph);
}

/* ---- looking up names ----------------------------------------------------------------------- */

const struct graph_name *graph_find(const struct graph_part *part, const char *name, size_t n)
{
    uint32_t mask = (uint32_t)part->n[GRAPH_SLOTS] - 1;
    for (uint32_t i = graph_hash(name, n) & mask; part->slots[i]; i = (i + 1) & mask) {
        const struct graph_name *at = &part->names[part->slots[i] - 1];
        if (at->n_text == n && !memcmp(part->strings + at->text, name, n)) return at;
    }
    return NULL;
}

whit_graph_run whit_graph_symbols_of(const whit_graph *graph, const char *name, size_t n)
{
    whit_graph_run run = {0};
    const struct graph_name *at = graph_find(&graph->base, name, n);
    if (at) run.end = (run.next = at->first_symbol) + at->n_symbols;
    at = graph->hidden ? graph_find(&graph->edits, name, n) : NULL;
    if (at) run.edits_end = (run.edits_next = at->first_symbol) + at->n_symbols;
    return run;
}

whit_graph_run whit_graph_all_symbols(const whit_graph *graph)
{
    return (whit_graph_run){.end = (uint32_t)graph->base.n[GRAPH_SYMBOLS],
                            .edits_end = (uint32_t)graph->edits.n[GRAPH_SYMBOLS]};
}

whit_graph_run whit_graph_mentions_of(const whit_graph *graph, const char *name, size_t n)
{
    whit_graph_run run = {0}, symbols;
    whit_graph_symbol symbol;
    const struct graph_name *at = graph_find(&graph->base, name, n);
    if (at) run.end = (run.next = at->first_mention) + at->n_mentions;
    if (!graph->hidden) return run;
    at = graph_find(&graph->edits, name, n);
    if (at) run.edits_end = (run.edits_next = at->first_mention) + at->n_mentions;
    /* no mentions without a definition: it may have been deleted, or may not be in the graph yet */
    symbols = whit_graph_symbols_of(graph, name, n);
    return whit_graph_next_symbol(graph, &symbols, &symbol) ? run : (whit_graph_run){0};
}

bool whit_graph_next_symbol(const whit_graph *graph, whit_graph_run *run, whit_graph_symbol *out)
{
    const struct graph_part *base = &graph->base, *edits = &graph->edits;
    if (!graph->hidden) return run->next < run->end && whit_graph_symbol_at(graph, run->next++, out);
    while (run->next < run->end && graph->hidden[base->symbols[run->next].file]) run->next++;
    bool has_base = run->next < run->end, has_edits = run->edits_next < run->edits_end;
    if (has_base && has_edits)
        has_base = base->symbols[run->next].file < edits->files[edits->symbols[run->edits_next].file].number;
    if (has_base) return whit_graph_symbol_at(graph, run->next++, out);
    return has_edits && whit_graph_symbol_at(graph, (uint32_t)base->n[GRAPH_SYMBOLS] + run->edits_next++, out);
}

bool whit_graph_next_mention(const whit_graph *graph, whit_graph_run *run, whit_graph_mention *out)
{
    const struct graph_part *base = &graph->base, *edits = &graph->edits;
    if (graph->hidden)
        while (run->next < run->end && graph->hidden[base->mentions[run->next].file]) run->next++;
    bool has_base = run->next < run->end, has_edits = run->edits_next < run->edits_end;
    if (has_base && has_edits)
        has_base = base->mentions[run->next].file < edits->files[edits->mentions[run->edits_next].file].number;
    if (!has_base && !has_edits) return false;
    const struct graph_mention *at = has_base ? &base->mentions[run->next++] : &edits->mentions[run->edits_next++];
    uint32_t file = has_base ? at->file : edits->files[at->file].number, symbol = at->symbol;
    if (!has_base && symbol != WHIT_GRAPH_NONE) symbol += (uint32_t)base->n[GRAPH_SYMBOLS];
    *out = (whit_graph_mention){whit_graph_file(graph, file), file, at->line_calls >> 1, symbol, at->line_calls & 1};
    return true;
}

bool whit_graph_symbol_at(const whit_graph *graph, uint32_t symbol, whit_graph_symbol *out)
{
    const struct graph_part *part = &graph->base;
    uint32_t first = 0;
    if (symbol >= part->n[GRAPH_SYMBOLS]) {
        first = (uint32_t)part->n[GRAPH_SYMBOLS];
        part = &graph->edits;
        if (symbol - first >= part->n[GRAPH_SYMBOLS]) return false;
    }
    const struct graph_symbol *at = &part->symbols[symbol - first];
    uint32_t file = part == &graph->edits ? part->files[at->file].number : at->file;
    *out = (whit_graph_symbol){.name = part->strings + part->names[at->name].text,
                               .file = whit_graph_file(graph, file),
                               .line = at->line,
                               .end_line = at->end_line,
                               .kind = (whit_symbol_kind)(at->kind & ~GRAPH_LOCAL),
                               .is_local = at->kind & GRAPH_LOCAL,
                               .parent = at->parent == WHIT_GRAPH_NONE ? at->parent : first + at->parent,
                               .number = symbol,
                               .file_number = file};
    return true;
}

/* ---- files and imports ---------------------------------------------------------------------- */

whit_graph_counts whit_graph_count(const whit_graph *graph)
{
    const struct graph_part *base = &graph->base, *edits = &graph->edits;
    whit_graph_counts counts = {.n_files = (uint32_t)base->n[GRAPH_FILES],
                                .n_symbols = (uint32_t)(base->n[GRAPH_SYMBOLS] + edits->n[GRAPH_SYMBOLS]),
                                .n_mentions = (uint32_t)base->n[GRAPH_MENTIONS],
                                .n_imports = (uint32_t)(base->n[GRAPH_IMPORTS] + edits->n[GRAPH_IMPORTS]),
                                .n_lines = base->head->n_lines,
                                .size_bytes = base->head->size_bytes + graph->own_edits.size_bytes,
                                .is_new = graph->is_new};
    if (!graph->hidden) return counts;
    counts.n_lines += edits->head->n_lines;
    for (uint64_t i = 0; i < edits->n[GRAPH_FILES]; i++) {
        const struct graph_file *was = &base->files[edits->files[i].number];
        counts.n_symbols -= was->n_order;
        counts.n_imports -= was->n_imports;
        counts.n_lines -= was->n_lines;
    }
    counts.n_mentions = 0;
    whit_graph_mention mention;
    for (uint64_t i = 0; i < base->n[GRAPH_NAMES] + edits->n[GRAPH_NAMES]; i++) {
        bool in_base = i < base->n[GRAPH_NAMES];
        const struct graph_part *part = in_base ? base : edits;
        const struct graph_name *name = &part->names[in_base ? i : i - base->n[GRAPH_NAMES]];
        const char *text = part->strings + name->text;
        if (!in_base && graph_find(base, text, name->n_text)) continue;
        whit_graph_run run = whit_graph_mentions_of(graph, text, name->n_text);
        while (whit_graph_next_mention(graph, &run, &mention)) counts.n_mentions++;
    }
    return counts;
}

const char *whit_graph_file(const whit_graph *graph, uint32_t file)
{
    return file < graph->base.n[GRAPH_FILES] ? graph->base.strings + graph->base.files[file].path : NULL;
}

uint32_t whit_graph_file_number(const whit_graph *graph, const char *path)
{
    for (uint32_t i = 0; i < graph->base.n[GRAPH_FILES]; i++)
        if (!strcmp(graph->base.strings + graph->base.files[i].path, path)) return i;
    return WHIT_GRAPH_NONE;
}

/* Returns the current entry of a file, or NULL if there is no such file. Sets *in_edits to whether the entry is in the
 * edits; symbols and imports of the edits are numbered after those of the graph. */
static const struct graph_file *file_at(const whit_graph *graph, uint32_t file, bool *in_edits)
{
    *in_edits = false;
    if (file >= graph->base.n[GRAPH_FILES]) return NULL;
    *in_edits = graph->hidden && graph->hidden[file];
    return *in_edits ? &graph->edits.files[graph->hidden[file] - 1] : &graph->base.files[file];
}

uint32_t whit_graph_imports_of(const whit_graph *graph, uint32_t file, uint32_t *n)
{
    bool in_edits;
    const struct graph_file *at = file_at(graph, file, &in_edits);
    *n = at ? at->n_imports : 0;
    if (at) return at->first_import + (in_edits ? (uint32_t)graph->base.n[GRAPH_IMPORTS] : 0);
    return 0;
}

bool whit_graph_import_at(const whit_graph *graph, uint32_t import, const char **written, uint32_t *file,
                          uint32_t *line)
{
    const struct graph_part *part = &graph->base;
    uint64_t at = import;
    if (at >= part->n[GRAPH_IMPORTS]) {
        at -= part->n[GRAPH_IMPORTS];
        part = &graph->edits;
        if (at >= part->n[GRAPH_IMPORTS]) return false;
    }
    *written = part->strings + part->imports[at].written;
    *file = part->imports[at].file;
    *line = part->imports[at].line;
    return true;
}
