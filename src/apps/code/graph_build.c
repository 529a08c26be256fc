/* SPDX-License-Identifier: MIT
 * Builds the bytes of a graph from all files of a folder, or the bytes of edits from some of the files. */
#include "base/hash.h"
#include "base/items.h"
#include "base/pinned.h"
#include "code/graph_file.h"
#include "code/walk.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Larger source files are not read: nobody writes them by hand. */
#define FILE_BYTES (16u << 20)
#define UNRESOLVED (UINT32_MAX - 1)

/* A mention as it is read, when it is not known yet whether the project defines its name. */
struct raw_mention {
    uint32_t name, file, line_calls, symbol;
};
struct raw_import {
    uint32_t written, file, line;
    uint32_t target; /* number of the imported file, or UNRESOLVED */
};

struct build {
    const char *folder;
    const struct graph_part *base; /* for edits: the graph that they modify; otherwise NULL */
    whit_parse parse;
    whit_buf strings, files, names, symbols, mentions, imports, sorted;
    uint32_t *slots;
    uint32_t n_slots, n_names, n_symbols, n_files;
    uint64_t n_lines;
    bool failed;
};

static uint32_t add_string(struct build *build, const char *text, size_t n)
{
    if (build->strings.size_bytes + n + 1 > UINT32_MAX) build->failed = true;
    uint32_t at = (uint32_t)build->strings.size_bytes;
    if (build->failed || !whit_buf_append(&build->strings, text, n) || !whit_buf_append(&build->strings, "", 1))
        build->failed = true;
    return at;
}

/* Adds an import's text to the strings and returns its offset there: for "from .. import name" the text is "..name". */
static uint32_t add_written(struct build *build, const char *bytes, const whit_parse_mention *at)
{
    uint32_t begin = (uint32_t)build->strings.size_bytes;
    for (uint32_t i = 0; i < at->n_dots; i++) build->failed |= !whit_buf_append(&build->strings, ".", 1);
    add_string(build, bytes + at->name, at->n_name);
    return begin;
}

static bool grow_slots(struct build *build)
{
    uint32_t n = build->n_slots ? 2 * build->n_slots : 4096;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots) return false;
    const struct graph_name *names = WHIT_ITEMS(const struct graph_name, &build->names);
    for (uint32_t k = 0; k < build->n_names; k++) {
        uint32_t i = graph_hash(WHIT_ITEMS(char, &build->strings) + names[k].text, names[k].n_text) & (n - 1);
        while (slots[i]) i = (i + 1) & (n - 1);
        slots[i] = k + 1;
    }
    free(build->slots);
    build->slots = slots;
    build->n_slots = n;
    return true;
}

static uint32_t add_name(struct build *build, const char *text, size_t n)
{
    if (build->failed || (2 * build->n_names >= build->n_slots && !grow_slots(build))) {
        build->failed = true;
        return 0;
    }
    uint32_t mask = build->n_slots - 1, i = graph_hash(text, n) & mask;
    for (; build->slots[i]; i = (i + 1) & mask) {
        const struct graph_name *name = WHIT_ITEMS(const struct graph_name, &build->names) + build->slots[i] - 1;
        if (name->n_text == n && !memcmp(build->strings.data + name->text, text, n)) return build->slots[i] - 1;
    }
    struct graph_name name = {.text = add_string(build, text, n), .n_text = (uint32_t)n};
    if (!whit_buf_append(&build->names, &name, sizeof name)) build->failed = true;
    if (build->failed) return 0;
    build->slots[i] = ++build->n_names;
    return build->n_names - 1;
}

/* Returns whether a file is C code but neither a header nor a .inc file: its types and macros are then local to it. */
static bool is_source(const char *path, whit_code_language language)
{
    const char *dot = strrchr(path, '.');
    return language == WHIT_CODE_C && dot && dot[1] != 'h' && strcmp(dot, ".inc");
}
static bool is_private(whit_symbol_kind kind)
{
    return kind == WHIT_SYMBOL_TYPE || kind == WHIT_SYMBOL_MACRO;
}

static bool is_whole(const struct build *build)
{
    return !build->failed && !build->files.failed && !build->symbols.failed && !build->mentions.failed &&
        !build->imports.failed;
}

static void put_file(struct build *build, const char *path, uint64_t stamp, uint32_t number, uint32_t n_lines)
{
    struct graph_file file = {
        .stamp = stamp, .path = add_string(build, path, strlen(path)), .number = number, .n_lines = n_lines};
    whit_buf_append(&build->files, &file, sizeof file);
    build->n_lines += n_lines;
    build->n_files++;
}

static void add_text(struct build *build, const char *path, uint64_t stamp, uint32_t number, const whit_buf *text)
{
    const char *bytes = whit_chars(text);
    size_t n_bytes = text->size_bytes;
    whit_code_language language = whit_code_language_of(path);
    whit_parse_text(&build->parse, language, bytes, n_bytes);
    const whit_parse *parse = &build->parse;
    bool source = is_source(path, language);
    uint32_t file = build->n_files, first_symbol = build->n_symbols, n_lines = 0;
    for (const char *feed = bytes; n_bytes && (feed = memchr(feed, '\n', (size_t)(bytes + n_bytes - feed))); feed++)
        n_lines++;
    put_file(build, path, stamp, number, n_lines);
    for (size_t i = 0; i < parse->n_definitions; i++) {
        const whit_parse_definition *at = &parse->definitions[i];
        struct graph_symbol symbol = {
            .name = add_name(build, bytes + at->name, at->n_name),
            .file = file,
            .line = at->line,
            .end_line = at->end_line,
            .kind = (uint32_t)at->kind | (at->is_local || (source && is_private(at->kind)) ? GRAPH_LOCAL : 0),
            .parent = at->parent == WHIT_PARSE_NONE ? WHIT_GRAPH_NONE : first_symbol + at->parent};
        whit_buf_append(&build->symbols, &symbol, sizeof symbol);
        build->n_symbols++;
    }
    for (size_t i = 0; i < parse->n_mentions; i++) {
        const whit_parse_mention *at = &parse->mentions[i];
        if (at->imports) {
            struct raw_import import = {add_written(build, bytes, at), file, at->line, UNRESOLVED};
            whit_buf_append(&build->imports, &import, sizeof import);
        } else {
            struct raw_mention mention = {add_name(build, bytes + at->name, at->n_name), file,
                                          at->line << 1 | at->calls,
                                          at->inside == WHIT_PARSE_NONE ? WHIT_GRAPH_NONE : first_symbol + at->inside};
            whit_buf_append(&build->mentions, &mention, sizeof mention);
        }
    }
    build->failed |= parse->failed;
}

static bool add_file(void *user, const char *path)
{
    struct build *build = user;
    bool replaced;
    uint64_t stamp;
    whit_buf text = {0};
    if (whit_code_language_of(path) == WHIT_CODE_NONE || !graph_stamp(build->folder, path, &stamp)) return true;
    /* A file that was deleted meanwhile or is too large is treated as empty. */
    if (!graph_read(build->folder, path, &text, &replaced) && replaced) stamp = 0; /* it is read again the next time */
    add_text(build, path, stamp, build->n_files, &text);
    whit_buf_free(&text);
    return is_whole(build);
}

bool graph_stamp(const char *folder, const char *path, uint64_t *stamp)
{
    char full[PATH_MAX];
    struct stat about;
    if (snprintf(full, sizeof full, "%s/%s", folder, path) >= (int)sizeof full || lstat(full, &about) ||
        !S_ISREG(about.st_mode))
        return false;
    uint64_t of[] = {(uint64_t)about.st_size, (uint64_t)about.st_mtim.tv_sec, (uint64_t)about.st_mtim.tv_nsec,
                     about.st_ino};
    static const uint8_t key[crypto_shorthash_KEYBYTES] = "whit file stamp";
    crypto_shorthash((uint8_t *)stamp, (const uint8_t *)of, sizeof of, key);
    return true;
}

bool graph_read(const char *folder, const char *path, whit_buf *text, bool *replaced)
{
    const bool ok = whit_read_below(folder, path, FILE_BYTES, text, replaced);
    if (!ok) text->size_bytes = 0;
    return ok;
}

/* Adds a file with its symbols, mentions and imports as the present edits have recorded them. */
static void add_again(struct build *build, const struct graph_part *part, uint32_t k)
{
    const struct graph_file *file = &part->files[k];
    uint32_t first_symbol = build->n_symbols, number = build->n_files;
    /* new number of each symbol that is in this file, indexed by the symbol's old number */
    uint32_t *now = malloc(((size_t)part->n[GRAPH_SYMBOLS] + 1) * sizeof *now);
    if (!now) {
        build->failed = true;
        return;
    }
    for (uint64_t i = 0; i < part->n[GRAPH_SYMBOLS]; i++) now[i] = WHIT_GRAPH_NONE;
    for (uint32_t i = 0; i < file->n_order; i++) now[part->order[file->first_order + i]] = first_symbol + i;
    put_file(build, part->strings + file->path, file->stamp, file->number, file->n_lines);
    for (uint32_t i = 0; i < file->n_order; i++) {
        struct graph_symbol symbol = part->symbols[part->order[file->first_order + i]];
        const struct graph_name *name = &part->names[symbol.name];
        symbol.name = add_name(build, part->strings + name->text, name->n_text);
        symbol.file = number;
        if (symbol.parent != WHIT_GRAPH_NONE) symbol.parent = now[symbol.parent];
        whit_buf_append(&build->symbols, &symbol, sizeof symbol);
        build->n_symbols++;
    }
    for (uint64_t i = 0; i < part->n[GRAPH_NAMES]; i++) {
        const struct graph_name *name = &part->names[i];
        for (uint32_t m = name->first_mention; m < name->first_mention + name->n_mentions; m++) {
            const struct graph_mention *mention = &part->mentions[m];
            if (mention->file != k) continue;
            struct raw_mention raw = {add_name(build, part->strings + name->text, name->n_text), number,
                                      mention->line_calls,
                                      mention->symbol == WHIT_GRAPH_NONE ? WHIT_GRAPH_NONE : now[mention->symbol]};
            whit_buf_append(&build->mentions, &raw, sizeof raw);
        }
    }
    for (uint32_t i = file->first_import; i < file->first_import + file->n_imports; i++) {
        const char *written = part->strings + part->imports[i].written;
        struct raw_import import = {add_string(build, written, strlen(written)), number, part->imports[i].line,
                                    part->imports[i].file};
        whit_buf_append(&build->imports, &import, sizeof import);
    }
    free(now);
}

/* ---- sorting symbols and mentions ------------------------------------------------------------ */

/* Sorts the symbols by the numbers of their names (counting sort); `moved` maps old symbol numbers to new ones. Returns
 * false if memory runs out. */
static bool order_symbols(struct build *build, uint32_t *moved)
{
    struct graph_name *names = WHIT_ITEMS(struct graph_name, &build->names);
    const struct graph_symbol *symbols = WHIT_ITEMS(const struct graph_symbol, &build->symbols);
    struct graph_symbol *sorted = malloc(((size_t)build->n_symbols + 1) * sizeof *sorted);
    if (!sorted) return false;
    for (uint32_t i = 0; i < build->n_symbols; i++) names[symbols[i].name].n_symbols++;
    uint32_t first = 0;
    for (uint32_t i = 0; i < build->n_names; i++) {
        names[i].first_symbol = first;
        first += names[i].n_symbols;
        names[i].n_symbols = 0;
    }
    for (uint32_t i = 0; i < build->n_symbols; i++) {
        struct graph_name *name = &names[symbols[i].name];
        moved[i] = name->first_symbol + name->n_symbols++;
        sorted[moved[i]] = symbols[i];
    }
    for (uint32_t i = 0; i < build->n_symbols; i++)
        if (sorted[i].parent != WHIT_GRAPH_NONE) sorted[i].parent = moved[sorted[i].parent];
    if (build->n_symbols) memcpy(build->symbols.data, sorted, (size_t)build->n_symbols * sizeof *sorted);
    free(sorted);
    return true;
}

/* Sorts the mentions by the numbers of their names. Edits keep all mentions, a graph only those of names that the
 * project defines. Returns false if memory runs out. */
static bool order_mentions(struct build *build, const uint32_t *moved)
{
    struct graph_name *names = WHIT_ITEMS(struct graph_name, &build->names);
    const struct raw_mention *raw = WHIT_ITEMS(const struct raw_mention, &build->mentions);
    size_t n = build->mentions.size_bytes / sizeof *raw, n_kept = 0;
    for (size_t i = 0; i < n; i++)
        if (build->base || names[raw[i].name].n_symbols) {
            names[raw[i].name].n_mentions++;
            n_kept++;
        }
    uint32_t first = 0;
    for (uint32_t i = 0; i < build->n_names; i++) {
        names[i].first_mention = first;
        first += names[i].n_mentions;
        names[i].n_mentions = 0;
    }
    if (!whit_buf_reserve(&build->sorted, n_kept * sizeof(struct graph_mention))) return false;
    struct graph_mention *sorted = WHIT_ITEMS(struct graph_mention, &build->sorted);
    build->sorted.size_bytes = n_kept * sizeof *sorted;
    for (size_t i = 0; i < n; i++) {
        struct graph_name *name = &names[raw[i].name];
        if (!build->base && !name->n_symbols) continue;
        sorted[name->first_mention + name->n_mentions++] = (struct graph_mention){
            raw[i].file, raw[i].line_calls, raw[i].symbol == WHIT_GRAPH_NONE ? WHIT_GRAPH_NONE : moved[raw[i].symbol]};
    }
    return true;
}

/* An open hash table of files. The key is the last part of a path, or the last two parts for the __init__.py of a
 * Python package. A slot has the file's number + 1; 0: it is free. */
struct by_base {
    const struct graph_file *files;
    const char *strings;
    uint32_t *slots, mask;
};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Returns the part of a path that is its key in the table. Every Python package has an __init__.py, so for these files
 * the folder's name belongs to the key. */
static const char *key_of(const char *path)
{
    const char *base = base_of(path);
    if (base == path || strcmp(base, "__init__.py")) return base;
    for (base--; base > path && base[-1] != '/';) base--;
    return base;
}

/* Given a folder as the first n bytes of a path, ending in a slash, returns the length of its parent folder; SIZE_MAX
 * if the parent is outside the project. */
static size_t folder_above(const char *path, size_t n)
{
    if (!n || n == SIZE_MAX) return SIZE_MAX;
    for (n--; n && path[n - 1] != '/';) n--;
    return n;
}

/* Finds the imported file. The first choice is `wanted` in the folder that is the first n_first bytes of the importing
 * file's path `from`. Otherwise the file is chosen among those whose path ends in `wanted`. *is_first: the first choice
 * exists. */
static uint32_t nearest(const struct by_base *all, const char *from, size_t n_first, const char *wanted, bool *is_first)
{
    const char *key = key_of(wanted);
    size_t n_folder = (size_t)(base_of(from) - from), n_wanted = strlen(wanted), best_common = 0;
    uint32_t best = WHIT_GRAPH_NONE;
    for (uint32_t i = graph_hash(key, strlen(key)) & all->mask; all->slots[i]; i = (i + 1) & all->mask) {
        const char *file = all->strings + all->files[all->slots[i] - 1].path;
        size_t n_file = strlen(file);
        if (n_file < n_wanted || strcmp(file + n_file - n_wanted, wanted) ||
            (n_file > n_wanted && file[n_file - n_wanted - 1] != '/'))
            continue;
        size_t common = 0; /* the file whose path shares most bytes with the importer's folder is chosen */
        while (common < n_folder && from[common] == file[common]) common++;
        if (common >= n_first && n_file == n_first + n_wanted) common = SIZE_MAX;
        if (best == WHIT_GRAPH_NONE || common > best_common) {
            best = all->slots[i] - 1;
            best_common = common;
        }
    }
    *is_first = best_common == SIZE_MAX;
    return best;
}

/* Finds the imported file. "./", "../" and Python's leading dots determine the folder that is searched first; without
 * them it is the importer's folder. */
static uint32_t resolve_import(const struct by_base *all, const char *written, uint32_t importer)
{
    char path[PATH_MAX];
    const char *from = all->strings + all->files[importer].path;
    size_t n_first = (size_t)(base_of(from) - from);
    bool is_first; /* the file is in the folder that is searched first */
    if (whit_code_language_of(from) != WHIT_CODE_PYTHON) {
        for (; !strncmp(written, "../", 3) || !strncmp(written, "./", 2); written += written[1] == '/' ? 2 : 3)
            if (written[1] == '.') n_first = folder_above(from, n_first);
        return nearest(all, from, n_first, written, &is_first);
    }
    for (; *written == '.'; written++)
        if (written[1] == '.') n_first = folder_above(from, n_first);
    snprintf(path, sizeof path - 16, "%s", written);
    for (char *dot = path; (dot = strchr(dot, '.'));) *dot = '/';
    size_t n_path = strlen(path);
    strcpy(path + n_path, ".py");
    uint32_t module = nearest(all, from, n_first, path, &is_first);
    if (is_first) return module;
    strcpy(path + n_path, "/__init__.py");
    uint32_t package = nearest(all, from, n_first, path, &is_first);
    return is_first || module == WHIT_GRAPH_NONE ? package : module;
}

static bool resolve_imports(struct build *build, whit_buf *out)
{
    struct graph_file *files = WHIT_ITEMS(struct graph_file, &build->files);
    const struct raw_import *raw = WHIT_ITEMS(const struct raw_import, &build->imports);
    /* Imports in edits refer to the numbers of files in the graph. */
    const struct graph_file *all = build->base ? build->base->files : files;
    const char *strings = build->base ? build->base->strings : whit_chars(&build->strings);
    uint32_t n_all = build->base ? (uint32_t)build->base->n[GRAPH_FILES] : build->n_files;
    uint32_t n_slots = 64, n = (uint32_t)(build->imports.size_bytes / sizeof *raw);
    while (n_slots < 2 * n_all) n_slots *= 2;
    struct by_base by_base = {all, strings, calloc(n_slots, sizeof *by_base.slots), n_slots - 1};
    if (!by_base.slots) return false;
    for (uint32_t i = 0; i < n_all; i++) {
        const char *key = key_of(strings + all[i].path);
        uint32_t at = graph_hash(key, strlen(key)) & by_base.mask;
        while (by_base.slots[at]) at = (at + 1) & by_base.mask;
        by_base.slots[at] = i + 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct graph_file *file = &files[raw[i].file];
        if (!file->n_imports++) file->first_import = i;
        const char *written = whit_chars(&build->strings) + raw[i].written;
        struct graph_import import = {raw[i].written, raw[i].target, raw[i].line};
        if (import.file == UNRESOLVED) import.file = resolve_import(&by_base, written, file->number);
        whit_buf_append(out, &import, sizeof import);
    }
    free(by_base.slots);
    return !out->failed;
}

static bool put_section(whit_buf *out, struct graph_head *head, enum graph_section section, const void *data,
                        uint64_t n, size_t elem_bytes)
{
    whit_buf_align(out, 8);
    head->sections[section].begin = out->size_bytes;
    head->sections[section].n = n;
    return !n || whit_buf_append(out, data, n * elem_bytes);
}

static bool write_out(struct build *build, whit_buf *out)
{
    struct graph_head head = {.version = GRAPH_VERSION, .n_sections = GRAPH_N_SECTIONS, .n_lines = build->n_lines};
    if (build->base) memcpy(head.edits_of, build->base->head->check, sizeof head.edits_of);
    uint32_t *moved = malloc(((size_t)build->n_symbols + 1) * sizeof *moved);
    whit_buf imports = {0};
    struct graph_file *files = WHIT_ITEMS(struct graph_file, &build->files);
    const struct graph_symbol *symbols = WHIT_ITEMS(const struct graph_symbol, &build->symbols);
    if (!moved || !build->slots) build->failed = !grow_slots(build) || !moved;
    for (uint32_t i = 0; i < build->n_symbols && !build->failed; i++) { /* at this point symbols are sorted by file */
        struct graph_file *file = &files[symbols[i].file];
        if (!file->n_order++) file->first_order = i;
    }
    bool ok = !build->failed && order_symbols(build, moved) && order_mentions(build, moved);
    whit_buf_free(&build->mentions);
    ok = ok && resolve_imports(build, &imports);
    memcpy(head.magic, GRAPH_MAGIC, 8);
    ok = ok && whit_buf_append(out, &head, sizeof head) &&
        put_section(out, &head, GRAPH_STRINGS, build->strings.data, build->strings.size_bytes, 1) &&
        put_section(out, &head, GRAPH_FILES, files, build->n_files, sizeof *files) &&
        put_section(out, &head, GRAPH_NAMES, build->names.data, build->n_names, sizeof(struct graph_name)) &&
        put_section(out, &head, GRAPH_SLOTS, build->slots, build->n_slots, 4) &&
        put_section(out, &head, GRAPH_SYMBOLS, symbols, build->n_symbols, sizeof *symbols) &&
        put_section(out, &head, GRAPH_MENTIONS, build->sorted.data,
                    build->sorted.size_bytes / sizeof(struct graph_mention), sizeof(struct graph_mention)) &&
        put_section(out, &head, GRAPH_IMPORTS, imports.data, imports.size_bytes / sizeof(struct graph_import),
                    sizeof(struct graph_import)) &&
        put_section(out, &head, GRAPH_ORDER, moved, build->n_symbols, 4);
    if (ok) {
        head.size_bytes = out->size_bytes;
        memcpy(out->data, &head, sizeof head);
        graph_check(out->data, out->size_bytes, head.check);
        memcpy(out->data, &head, sizeof head);
    }
    whit_buf_free(&imports);
    free(moved);
    return ok;
}

static void free_build(struct build *build)
{
    whit_parse_free(&build->parse);
    whit_buf_free(&build->strings);
    whit_buf_free(&build->files);
    whit_buf_free(&build->names);
    whit_buf_free(&build->symbols);
    whit_buf_free(&build->mentions);
    whit_buf_free(&build->imports);
    whit_buf_free(&build->sorted);
    free(build->slots);
}

whit_status graph_build(const char *folder, whit_buf *out, whit_error *error)
{
    struct build build = {.folder = folder};
    add_string(&build, "", 0);
    whit_walk_files(folder, add_file, &build);
    bool ok = is_whole(&build) && write_out(&build, out);
    free_build(&build);
    return ok ? WHIT_OK : whit_fail_memory(error, "a code graph", out->size_bytes);
}

/* Returns whether an edited file now defines a name that the graph knows only as a mentioned name. The graph has stored
 * mentions only of names that were defined when it was built, so it must be built again. */
static bool defines_what_was_left_out(const struct build *build)
{
    const struct graph_name *names = WHIT_ITEMS(const struct graph_name, &build->names);
    for (uint32_t i = 0; i < build->n_names; i++) {
        const struct graph_name *name = &names[i];
        const struct graph_name *known =
            name->n_symbols ? graph_find(build->base, whit_chars(&build->strings) + name->text, name->n_text) : NULL;
        if (known && !known->n_symbols) return true;
    }
    return false;
}

bool graph_build_edits(const whit_graph *graph, const char *folder, const struct graph_changed *changed, size_t n,
                       whit_buf *out)
{
    struct build build = {.folder = folder, .base = &graph->base};
    bool ok = true;
    add_string(&build, "", 0);
    for (size_t i = 0; i < n && ok; i++) {
        const char *path = graph->base.strings + graph->base.files[changed[i].number].path;
        uint32_t known = graph->hidden ? graph->hidden[changed[i].number] : 0;
        whit_buf text = {0};
        if (known && graph->edits.files[known - 1].stamp == changed[i].stamp) {
            add_again(&build, &graph->edits, known - 1);
            continue;
        }
        ok = graph_read(folder, path, &text, NULL);
        if (ok) add_text(&build, path, changed[i].stamp, changed[i].number, &text);
        whit_buf_free(&text);
    }
    ok = ok && is_whole(&build) && write_out(&build, out) && !defines_what_was_left_out(&build);
    free_build(&build);
    return ok;
}
