/* SPDX-License-Identifier: MIT
 * The layout of a graph's file; for this room alone. All numbers are little-endian; sections begin at
 * multiples of 8 bytes. docs/graph.md describes it.
 *
 * Beside it may lie a second one of the same layout, the edits: the files that have changed since, which hide
 * what the first has of them. */
#ifndef WHIT_CODE_GRAPH_FILE_H
#define WHIT_CODE_GRAPH_FILE_H

#include "code/graph.h"

#include <limits.h>

#define GRAPH_MAGIC   "whitgrph"
#define GRAPH_VERSION 6u
#define GRAPH_EDITS   64u /* files that may differ; beyond, the graph is built again */

enum graph_section {
    GRAPH_STRINGS, /* terminated */
    GRAPH_FILES,
    GRAPH_NAMES,    /* in the order of their hashes' first symbols: any */
    GRAPH_SLOTS,    /* hash table of names, a power of two: number + 1, or 0 */
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
    uint8_t edits_of[8]; /* of edits: the graph's check; else 0 */
    uint8_t check[8];    /* of the head, where the checksum of all behind it stands in this place */
    struct {
        uint64_t begin, n;
    } sections[GRAPH_N_SECTIONS];
};

struct graph_file {
    uint64_t stamp; /* of its size, times and inode */
    uint32_t path, first_import, n_imports, first_order, n_order, n_lines;
    uint32_t number, unused; /* its number; of edits: that of the file in the graph */
};
struct graph_name {
    uint32_t text, n_text, first_symbol, n_symbols, first_mention, n_mentions;
};
struct graph_symbol {
    uint32_t name, file, line, end_line, parent;
    uint32_t kind; /* and GRAPH_LOCAL */
};
#define GRAPH_LOCAL 256u
struct graph_mention {
    uint32_t file, line_calls, symbol; /* line << 1 | calls */
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

/* Numbers of symbols, mentions, imports and entries of the order go on from the graph's to those of the edits;
 * files have one number in both. */
struct whit_graph {
    whit_map map;
    whit_buf own; /* where it is in memory alone */
    whit_buf own_edits;
    struct graph_part base, edits; /* edits.head is NULL where there are none */
    uint32_t *hidden;              /* with edits, by file: its number in them + 1, or 0 */
    bool is_new;
};

/* A file as it is now, for edits. */
struct graph_changed {
    uint32_t number;
    uint64_t stamp;
};

uint32_t graph_hash(const char *text, size_t n);
void graph_check(const uint8_t *data, size_t size_bytes, uint8_t check[8]);
/* Where the cache has what it keeps of a folder: "graph", "edits", "memory". False where it has nowhere. */
bool graph_cache_path(const char *folder, const char *cache_folder, const char *kind, char path[PATH_MAX]);
/* Of a file's size, times and inode; false where there is none. */
bool graph_stamp(const char *folder, const char *path, uint64_t *stamp);
/* The folder's graph as bytes. */
whit_status graph_build(const char *folder, whit_buf *out, whit_error *error);
/* The edits of a graph as bytes: n files, in the order of their numbers; those that the graph's edits have with that
 * stamp are taken from there, the others read. False where they would not tell the truth: a file is gone, or one
 * defines a name that files mention which the graph has not kept. */
bool graph_build_edits(const whit_graph *graph, const char *folder, const struct graph_changed *changed, size_t n,
                       whit_buf *out);
/* The bytes, which outlive it, as the graph; WHIT_ERROR_FORMAT where they are none. */
whit_status graph_attach(whit_graph *graph, const void *data, size_t size_bytes, const char *path, whit_error *error);
/* Takes edits and leaves `edits` empty; without any (size 0) those that are there are dropped. False where the bytes
 * are none of this graph; then nothing has changed. */
bool graph_take_edits(whit_graph *graph, whit_buf *edits);
const struct graph_name *graph_find(const struct graph_part *part, const char *name, size_t n);

#endif
