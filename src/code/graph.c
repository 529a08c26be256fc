/* SPDX-License-Identifier: MIT */
#include "code/graph.h"

#include "base/hash.h"
#include "code/graph_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t graph_hash(const char *text, size_t n)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    hash ^= hash >> 16;
    return hash * 0x7FEB352Du ^ hash >> 13;
}

void graph_check(const uint8_t *data, size_t size_bytes, uint8_t check[8])
{
    static const uint8_t key[crypto_shorthash_KEYBYTES] = "whit graph 1";
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

/* Every number in it leads to something that is there; readers need not look again. */
static bool is_sound(const struct whit_graph *graph)
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
            (graph->imports[i].file != WHIT_GRAPH_NONE && graph->imports[i].file >= n[GRAPH_FILES]))
            return false;
    for (uint64_t i = 0; i < n[GRAPH_ORDER]; i++)
        if (graph->order[i] >= n[GRAPH_SYMBOLS]) return false;
    return has_free; /* a search ends */
}

static whit_status attach(struct whit_graph *graph, const uint8_t *data, size_t size_bytes, const char *path,
                          whit_error *error)
{
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
        head->version == GRAPH_VERSION && head->n_sections == GRAPH_N_SECTIONS && head->size_bytes == size_bytes;
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
        ok = is_sound(graph);
    }
    return ok ? WHIT_OK : whit_fail(error, WHIT_ERROR_FORMAT, "%s: no code graph, or a damaged one", path);
}

static bool cache_path(const char *folder, const char *cache_folder, char path[PATH_MAX])
{
    char real[PATH_MAX], cache[PATH_MAX], name[2 * WHIT_HASH_BYTES + 1];
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (!realpath(folder, real)) return false;
    int n = cache_folder       ? snprintf(cache, sizeof cache, "%s", cache_folder)
        : xdg && *xdg == '/'   ? snprintf(cache, sizeof cache, "%s/whit/graphs", xdg)
        : home && *home == '/' ? snprintf(cache, sizeof cache, "%s/.cache/whit/graphs", home)
                               : -1;
    if (n < 0 || n > PATH_MAX - 100) return false;
    for (char *at = cache + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(cache, 0700);
        *at = '/';
    }
    if (mkdir(cache, 0700) && errno != EEXIST) return false;
    whit_hash hash;
    uint8_t digest[WHIT_HASH_BYTES];
    whit_hash_begin(&hash, "whit code graph");
    whit_hash_add(&hash, real, strlen(real));
    whit_hash_end(&hash, digest);
    whit_hash_hex(digest, name);
    return snprintf(path, PATH_MAX, "%s/%.32s.graph", cache, name) < PATH_MAX;
}

static whit_status new_graph(whit_graph **graph, whit_error *error)
{
    *graph = calloc(1, sizeof **graph);
    return *graph ? WHIT_OK : whit_fail_memory(error, "a code graph", sizeof **graph);
}

whit_status whit_graph_open_cached(const char *folder, const char *cache_folder, whit_graph **graph, whit_error *error)
{
    char path[PATH_MAX];
    *graph = NULL;
    if (!cache_path(folder, cache_folder, path) || access(path, R_OK))
        return whit_fail(error, WHIT_ERROR_IO, "%s: no code graph was built yet", folder);
    WHIT_TRY(new_graph(graph, error));
    whit_status status = whit_map_open(path, NULL, &(*graph)->map, error);
    if (status == WHIT_OK) status = attach(*graph, (*graph)->map.data, (*graph)->map.size_bytes, path, error);
    if (status != WHIT_OK) {
        whit_graph_close(*graph);
        *graph = NULL;
    }
    return status;
}

whit_status whit_graph_open_memory(const void *data, size_t size_bytes, whit_graph **graph, whit_error *error)
{
    WHIT_TRY(new_graph(graph, error));
    whit_status status = attach(*graph, data, size_bytes, "memory", error);
    if (status != WHIT_OK) {
        whit_graph_close(*graph);
        *graph = NULL;
    }
    return status;
}

whit_status whit_graph_open(const char *folder, const char *cache_folder, whit_graph **graph, whit_error *error)
{
    struct stat about;
    char path[PATH_MAX];
    *graph = NULL;
    if (stat(folder, &about)) return whit_fail_errno(error, folder, "open");
    if (!S_ISDIR(about.st_mode))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: a code graph wants a folder", folder);
    uint64_t stamp = graph_stamp(folder);
    if (whit_graph_open_cached(folder, cache_folder, graph, NULL) == WHIT_OK) {
        if ((*graph)->head->stamp == stamp) return WHIT_OK;
        whit_graph_close(*graph);
        *graph = NULL;
    }
    WHIT_TRY(new_graph(graph, error));
    whit_status status = graph_build(folder, stamp, &(*graph)->own, error);
    if (status == WHIT_OK) status = attach(*graph, (*graph)->own.data, (*graph)->own.size_bytes, folder, error);
    if (status != WHIT_OK) {
        whit_graph_close(*graph);
        *graph = NULL;
        return status;
    }
    (*graph)->is_new = true;
    if (!cache_path(folder, cache_folder, path)) return WHIT_OK;
    /* What is shared with other processes need not be in this one's own memory as well. */
    whit_graph *mapped;
    if (whit_write_file(path, (*graph)->own.data, (*graph)->own.size_bytes, NULL) == WHIT_OK &&
        whit_graph_open_cached(folder, cache_folder, &mapped, NULL) == WHIT_OK) {
        mapped->is_new = true;
        whit_graph_close(*graph);
        *graph = mapped;
    }
    return WHIT_OK;
}

void whit_graph_close(whit_graph *graph)
{
    if (!graph) return;
    whit_map_close(&graph->map);
    whit_buf_free(&graph->own);
    free(graph);
}

whit_graph_counts whit_graph_count(const whit_graph *graph)
{
    return (whit_graph_counts){.n_files = (uint32_t)graph->n[GRAPH_FILES],
                               .n_names = (uint32_t)graph->n[GRAPH_NAMES],
                               .n_symbols = (uint32_t)graph->n[GRAPH_SYMBOLS],
                               .n_mentions = (uint32_t)graph->n[GRAPH_MENTIONS],
                               .n_imports = (uint32_t)graph->n[GRAPH_IMPORTS],
                               .n_lines = graph->head->n_lines,
                               .size_bytes = graph->head->size_bytes,
                               .is_new = graph->is_new};
}

uint32_t whit_graph_name(const whit_graph *graph, const char *name, size_t n)
{
    uint32_t mask = (uint32_t)graph->n[GRAPH_SLOTS] - 1;
    for (uint32_t i = graph_hash(name, n) & mask; graph->slots[i]; i = (i + 1) & mask) {
        const struct graph_name *at = &graph->names[graph->slots[i] - 1];
        if (at->n_text == n && !memcmp(graph->strings + at->text, name, n)) return graph->slots[i] - 1;
    }
    return WHIT_GRAPH_NONE;
}

uint32_t whit_graph_symbols_of(const whit_graph *graph, uint32_t name, uint32_t *n)
{
    bool known = name < graph->n[GRAPH_NAMES];
    *n = known ? graph->names[name].n_symbols : 0;
    return known ? graph->names[name].first_symbol : 0;
}

uint32_t whit_graph_mentions_of(const whit_graph *graph, uint32_t name, uint32_t *n)
{
    bool known = name < graph->n[GRAPH_NAMES];
    *n = known ? graph->names[name].n_mentions : 0;
    return known ? graph->names[name].first_mention : 0;
}

const char *whit_graph_file(const whit_graph *graph, uint32_t file)
{
    return file < graph->n[GRAPH_FILES] ? graph->strings + graph->files[file].path : NULL;
}

bool whit_graph_symbol_at(const whit_graph *graph, uint32_t symbol, whit_graph_symbol *out)
{
    if (symbol >= graph->n[GRAPH_SYMBOLS]) return false;
    const struct graph_symbol *at = &graph->symbols[symbol];
    const struct graph_name *name = &graph->names[at->name];
    *out = (whit_graph_symbol){.name = graph->strings + name->text,
                               .file = whit_graph_file(graph, at->file),
                               .line = at->line,
                               .end_line = at->end_line,
                               .kind = (whit_symbol_kind)(at->kind & ~GRAPH_LOCAL),
                               .is_local = at->kind & GRAPH_LOCAL,
                               .parent = at->parent,
                               .n_mentions = at->n_mentions,
                               .name_number = at->name,
                               .file_number = at->file};
    return true;
}

bool whit_graph_mention_at(const whit_graph *graph, uint32_t mention, whit_graph_mention *out)
{
    if (mention >= graph->n[GRAPH_MENTIONS]) return false;
    const struct graph_mention *at = &graph->mentions[mention];
    *out = (whit_graph_mention){whit_graph_file(graph, at->file), at->line_calls >> 1, at->symbol, at->line_calls & 1};
    return true;
}

uint32_t whit_graph_file_number(const whit_graph *graph, const char *path)
{
    for (uint32_t i = 0; i < graph->n[GRAPH_FILES]; i++)
        if (!strcmp(graph->strings + graph->files[i].path, path)) return i;
    return WHIT_GRAPH_NONE;
}

uint32_t whit_graph_file_symbols(const whit_graph *graph, uint32_t file, uint32_t *n)
{
    bool known = file < graph->n[GRAPH_FILES];
    *n = known ? graph->files[file].n_order : 0;
    return known ? graph->files[file].first_order : 0;
}

uint32_t whit_graph_file_symbol(const whit_graph *graph, uint32_t entry)
{
    return entry < graph->n[GRAPH_ORDER] ? graph->order[entry] : WHIT_GRAPH_NONE;
}

uint32_t whit_graph_imports_of(const whit_graph *graph, uint32_t file, uint32_t *n)
{
    bool known = file < graph->n[GRAPH_FILES];
    *n = known ? graph->files[file].n_imports : 0;
    return known ? graph->files[file].first_import : 0;
}

bool whit_graph_import_at(const whit_graph *graph, uint32_t import, const char **written, uint32_t *file,
                          uint32_t *line)
{
    if (import >= graph->n[GRAPH_IMPORTS]) return false;
    *written = graph->strings + graph->imports[import].written;
    *file = graph->imports[import].file;
    *line = graph->imports[import].line;
    return true;
}
