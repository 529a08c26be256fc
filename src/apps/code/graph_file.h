/* SPDX-License-Identifier: MIT
 * Declares the layout of a graph's file, for use in this folder only. All numbers are little-endian; sections begin at
 * multiples of 8 bytes. docs/use/graph.md describes the layout.
 *
 * There may be a second file of the same layout, the edits: it has entries for the source files that have changed since
 * the graph was built. These entries replace those of the graph. */
#ifndef WHIT_CODE_GRAPH_FILE_H
#define WHIT_CODE_GRAPH_FILE_H

#include "code/graph.h"

#include <limits.h>

#define GRAPH_MAGIC   "whitgrph"
#define GRAPH_VERSION 7u
#define GRAPH_EDITS   64u /* maximum number of changed files in the edits; beyond it the graph is rebuilt */

enum graph_section {
    GRAPH_STRINGS, /* zero-terminated texts, to which other sections refer by offset */
    GRAPH_FILES,
    GRAPH_NAMES,    /* in no particular order */
    GRAPH_SLOTS,    /* hash table of names: number of the name + 1, or 0 if free; the number of slots is a power of
                     * two */
    GRAPH_SYMBOLS,  /* sorted by name */
    GRAPH_MENTIONS, /* sorted by name */
    GRAPH_IMPORTS,  /* sorted by file */
    GRAPH_ORDER,    /* numbers of symbols, sorted by file and line */
    GRAPH_N_SECTIONS,
};

struct graph_head {
    char magic[8];
    uint32_t version, n_sections;
    uint64_t size_bytes, n_lines;
    uint8_t edits_of[8]; /* in edits: `check` of the graph that they change; in a graph: 0 */
    /* checksum of the head, computed while this field contained the checksum of all bytes after the head */
    uint8_t check[8];
    struct {
        uint64_t begin, n;
    } sections[GRAPH_N_SECTIONS];
};

struct graph_file {
    uint64_t stamp; /* hash of the file's size, modification time and inode */
    uint32_t path, first_import, n_imports, first_order, n_order, n_lines;
    uint32_t number, unused; /* number: the file's own number; in edits: the file's number in the graph */
};
struct graph_name {
    uint32_t text, n_text, first_symbol, n_symbols, first_mention, n_mentions;
};
struct graph_symbol {
    uint32_t name, file, line, end_line, parent;
    uint32_t kind; /* whit_symbol_kind, plus GRAPH_LOCAL if only its own file can refer to the symbol */
};
#define GRAPH_LOCAL 256u
struct graph_mention {
    uint32_t file, line_calls, symbol; /* line_calls: 2 * line, plus 1 if the mention is a call */
};
struct graph_import {
    uint32_t written, file, line;
};

struct graph_part {
    const uint8_t *data;
    const struct graph_head *head;
    const char *strings;
    const struct graph_file *files;
    const struct graph_name *names;
    const uint32_t *slots, *order;
    const struct graph_symbol *symbols;
    const struct graph_mention *mentions;
    const struct graph_import *imports;
    uint64_t n[GRAPH_N_SECTIONS];
};

/* A graph with its edits. Symbols, mentions, imports and order entries of the edits are numbered after those of the
 * graph. Files have their numbers in the graph. */
struct whit_graph {
    whit_map map;
    whit_buf own; /* bytes of the graph if it is not mapped from a file */
    whit_buf own_edits;
    struct graph_part base, edits; /* edits.head is NULL without edits */
    uint32_t *hidden;              /* for each file: its number in the edits + 1, or 0; NULL without edits */
    bool is_new;
};

/* Identifies a changed file and its current content, for building edits. */
struct graph_changed {
    uint32_t number;
    uint64_t stamp;
};

uint32_t graph_hash(const char *text, size_t n);
void graph_check(const uint8_t *data, size_t size_bytes, uint8_t check[8]);
/* Makes the path of a folder's cache file; kind: "graph", "edits" or "memory". Returns false if there is no cache
 * folder. */
bool graph_cache_path(const char *folder, const char *cache_folder, const char *kind, char path[PATH_MAX]);
/* Hashes a file's size, modification time and inode; returns false if it is not a regular file. Links are not files of
 * the graph: their targets may be outside the folder. */
bool graph_stamp(const char *folder, const char *path, uint64_t *stamp);
/* Reads a source file of the folder, and follows no link. Returns false, with no text, if the file was deleted or
 * replaced, or is too large; then *replaced (may be NULL) is whether its path has a link now. */
bool graph_read(const char *folder, const char *path, whit_buf *text, bool *replaced);
/* Builds the folder's graph as bytes. */
whit_status graph_build(const char *folder, whit_buf *out, whit_error *error);
/* Builds the bytes of new edits of a graph, for the n changed files, sorted by number. The entries of a file are copied
 * from the present edits if these have them with the same stamp; otherwise the file is read. Returns false if the edits
 * would be wrong, because a file was deleted or defines a name whose mentions the graph has not stored. */
bool graph_build_edits(const whit_graph *graph, const char *folder, const struct graph_changed *changed, size_t n,
                       whit_buf *out);
/* Makes the graph use the bytes, which must outlive it. Returns WHIT_ERROR_FORMAT if they are not a valid graph; `path`
 * is for the message. */
whit_status graph_attach(whit_graph *graph, const void *data, size_t size_bytes, const char *path, whit_error *error);
/* Makes the graph use these edits: takes ownership of the bytes and leaves `edits` empty. Size 0 drops the present
 * edits. Returns false, with graph and `edits` unchanged, if the bytes are not edits of this graph or memory runs
 * out. */
bool graph_take_edits(whit_graph *graph, whit_buf *edits);
const struct graph_name *graph_find(const struct graph_part *part, const char *name, size_t n);

#endif
