/* SPDX-License-Identifier: MIT
 * The layout of a graph's file; for this room alone. All numbers are little-endian; sections begin at
 * multiples of 8 bytes. docs/editor.md describes it. */
#ifndef WHIT_CODE_GRAPH_FILE_H
#define WHIT_CODE_GRAPH_FILE_H

#include "code/graph.h"

#define GRAPH_MAGIC   "whitgrph"
#define GRAPH_VERSION 1u

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
    uint64_t size_bytes, n_lines, stamp; /* stamp: of the files' names, sizes and times */
    uint8_t check[8];                    /* of the head, where the checksum of all behind it stands in this place */
    struct {
        uint64_t begin, n;
    } sections[GRAPH_N_SECTIONS];
};

struct graph_file {
    uint32_t path, first_import, n_imports, first_order, n_order, unused;
};
struct graph_name {
    uint32_t text, n_text, first_symbol, n_symbols, first_mention, n_mentions;
};
struct graph_symbol {
    uint32_t name, file, line, end_line, parent;
    uint32_t kind;       /* and GRAPH_LOCAL */
    uint32_t n_mentions; /* that can mean it */
};
#define GRAPH_LOCAL 256u
struct graph_mention {
    uint32_t file, line_calls, symbol; /* line << 1 | calls */
};
struct graph_import {
    uint32_t written, file, line;
};

struct whit_graph {
    whit_map map;
    whit_buf own; /* where it is in memory alone */
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
    bool is_new;
};

uint32_t graph_hash(const char *text, size_t n);
/* The folder's graph as bytes. */
whit_status graph_build(const char *folder, uint64_t stamp, whit_buf *out, whit_error *error);
/* Of the files' paths, sizes and times of change. */
uint64_t graph_stamp(const char *folder);
void graph_check(const uint8_t *data, size_t size_bytes, uint8_t check[8]);

#endif
