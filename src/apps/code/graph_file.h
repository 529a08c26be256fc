/* SPDX-License-Identifier: MIT
 * Declares the layout of a graph's file, for this folder alone. All numbers are little-endian; sections begin at
 * multiples of 8 bytes. docs/use/graph.md describes the layout.
 *
 * There may be a second file of the same layout, the edits: it has the entries of the source files that have
 * changed since, which replace those of the first file. */
#ifndef WHIT_CODE_GRAPH_FILE_H
#define WHIT_CODE_GRAPH_FILE_H

#include "code/graph.h"

#include <limits.h>

#define GRAPH_MAGIC   "whitgrph"
#define GRAPH_VERSION 6u
#define GRAPH_EDITS   64u /* maximum number of files that may differ; with more the graph is built again */

enum graph_section {
    GRAPH_STRINGS, /* each string ends with a zero byte */
    GRAPH_FILES,
    GRAPH_NAMES,    /* in no particular order */
    GRAPH_SLOTS,    /* hash table of names, whose size is a power of two: number of the name + 1, or 0 */
    GRAPH_SYMBOLS,  /* in the order of names */
    GRAPH_MENTIONS, /* in the order of names */
    GRAPH_IMPORTS,  /* in the order of files */
    GRAPH_ORDER,    /* symbols in the order of files and lines */
    GRAPH_N_SECTIONS,
};

struct graph_head {
    char magic[8];
    uint32_t version, n_sections;
    uint64_t size_bytes, n_lines;
    uint8_t edits_of[8]; /* in edits: the `check` of the graph; otherwise 0 */
    /* checksum of the head; it was computed while this field held the checksum of all bytes after the head */
    uint8_t check[8];
    struct {
        uint64_t begin, n;
    } sections[GRAPH_N_SECTIONS];
};

struct graph_file {
    uint64_t stamp; /* hash of the file's size, times and inode */
    uint32_t path, first_import, n_imports, first_order, n_order, n_lines;
    uint32_t number, unused; /* number: the file's number; in edits: number of that file in the graph */
};
struct graph_name {
    uint32_t text, n_text, first_symbol, n_symbols, first_mention, n_mentions;
};
struct graph_symbol {
    uint32_t name, file, line, end_line, parent;
    uint32_t kind; /* kind, with GRAPH_LOCAL added if only its own file can refer to it */
};
#define GRAPH_LOCAL 256u
struct graph_mention {
    uint32_t file, line_calls, symbol; /* line_calls: line << 1 | calls */
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

/* Holds a graph. Symbols, mentions, imports and order entries of the edits are numbered after those of the graph; a
 * file has the same number in both. */
struct whit_graph {
    whit_map map;
    whit_buf own; /* the bytes of a graph that is in memory only */
    whit_buf own_edits;
    struct graph_part base, edits; /* edits.head is NULL if there are no edits */
    uint32_t *hidden;              /* for each file, if there are edits: its number in the edits + 1, or 0 */
    bool is_new;
};

/* Identifies the current content of a file, for edits. */
struct graph_changed {
    uint32_t number;
    uint64_t stamp;
};

uint32_t graph_hash(const char *text, size_t n);
void graph_check(const uint8_t *data, size_t size_bytes, uint8_t check[8]);
/* Makes the path of a folder's cache file of a kind: "graph", "edits" or "memory". Returns false if there is no cache
 * folder. */
bool graph_cache_path(const char *folder, const char *cache_folder, const char *kind, char path[PATH_MAX]);
/* Hashes a file's size, times and inode; returns false if the file does not exist. */
bool graph_stamp(const char *folder, const char *path, uint64_t *stamp);
/* Builds the folder's graph as bytes. */
whit_status graph_build(const char *folder, whit_buf *out, whit_error *error);
/* Builds the edits of a graph as bytes, for n files in the order of their numbers. Files that the present edits have
 * with the same stamp are copied from there, the others are read. Returns false if edits would be wrong: a file is
 * gone, or a file defines a name whose mentions the graph has not kept. */
bool graph_build_edits(const whit_graph *graph, const char *folder, const struct graph_changed *changed, size_t n,
                       whit_buf *out);
/* Attaches the bytes, which must outlive the graph; returns WHIT_ERROR_FORMAT if they are not a graph. */
whit_status graph_attach(whit_graph *graph, const void *data, size_t size_bytes, const char *path, whit_error *error);
/* Takes ownership of the bytes of the edits and leaves `edits` empty; size 0 drops the present edits. Returns false,
 * with both unchanged, if the bytes are not edits of this graph. */
bool graph_take_edits(whit_graph *graph, whit_buf *edits);
const struct graph_name *graph_find(const struct graph_part *part, const char *name, size_t n);

#endif
