/* SPDX-License-Identifier: MIT
 * What a project's code defines, calls and imports: a graph in one mapped file under the cache folder,
 * read by any number of processes through pointers, without locks. It is written anew beside the old
 * one and renamed over it, so that a reader keeps what it has open. Files that have changed since lie in a
 * second, small file, which is written for each edit.
 *
 * Symbols (definitions) and files have numbers; neighbours are runs of arrays. */
#ifndef WHIT_CODE_GRAPH_H
#define WHIT_CODE_GRAPH_H

#include "base/file.h"
#include "code/parse.h"

#define WHIT_GRAPH_NONE UINT32_MAX

typedef struct whit_graph whit_graph;

/* All pointers stay good until the graph is closed. */
typedef struct whit_graph_symbol {
    const char *name, *file; /* the file's path is relative to the project */
    uint32_t line, end_line; /* from 1 */
    whit_symbol_kind kind;
    uint32_t parent; /* a symbol that contains it, or WHIT_GRAPH_NONE */
    bool is_local;   /* only the file that defines it can refer to it */
    uint32_t number, file_number;
} whit_graph_symbol;

typedef struct whit_graph_mention {
    const char *file;
    uint32_t file_number, line;
    uint32_t symbol; /* the symbol that contains it, or WHIT_GRAPH_NONE */
    bool calls;
} whit_graph_mention;

typedef struct whit_graph_counts {
    uint32_t n_files, n_symbols, n_mentions, n_imports;
    uint64_t n_lines, size_bytes;
    bool is_new; /* this call read files */
} whit_graph_counts;

/* The graph of a folder as its files are now: from the cache where nothing has changed since. Up to 64 files that have
 * changed are read again, beyond that, and where files have come or gone, all of them; the cache is brought up to
 * date. cache_folder NULL: $XDG_CACHE_HOME/whit or ~/.cache/whit; where it cannot be written the graph is kept in
 * memory alone. *graph is the caller's. */
whit_status whit_graph_open(const char *folder, const char *cache_folder, whit_graph **graph, whit_error *error);
/* Refreshes an open graph; its numbers and pointers become invalid. False, with the graph unchanged, if it must be
 * opened anew. */
bool whit_graph_refresh(whit_graph *graph, const char *folder, const char *cache_folder);
/* Updates the graph after a change of one known file, given by its path in the folder: only this file is examined. */
bool whit_graph_follow(whit_graph *graph, const char *folder, const char *cache_folder, const char *path);
void whit_graph_close(whit_graph *graph);
whit_graph_counts whit_graph_count(const whit_graph *graph);

/* Neighbours, in the order of files and lines. */
typedef struct whit_graph_run {
    uint32_t next, end, edits_next, edits_end;
} whit_graph_run;

/* The symbols of a name, and all of them. */
whit_graph_run whit_graph_symbols_of(const whit_graph *graph, const char *name, size_t n);
whit_graph_run whit_graph_all_symbols(const whit_graph *graph);
/* Returns the mentions of a name; only names that the project defines have mentions. */
whit_graph_run whit_graph_mentions_of(const whit_graph *graph, const char *name, size_t n);
/* Advances to the next symbol of a run; false at its end. */
bool whit_graph_next_symbol(const whit_graph *graph, whit_graph_run *run, whit_graph_symbol *out);
bool whit_graph_next_mention(const whit_graph *graph, whit_graph_run *run, whit_graph_mention *out);
/* Looks a symbol up by its number, such as a parent's; false if there is no such symbol. */
bool whit_graph_symbol_at(const whit_graph *graph, uint32_t symbol, whit_graph_symbol *out);
const char *whit_graph_file(const whit_graph *graph, uint32_t file);
/* Returns the number of a file, given by its path in the project. */
uint32_t whit_graph_file_number(const whit_graph *graph, const char *path);
/* Returns the imports of a file: the text as written there ("from . import name" is ".name") and the project's file
 * that it means (WHIT_GRAPH_NONE: not in the project). */
uint32_t whit_graph_imports_of(const whit_graph *graph, uint32_t file, uint32_t *n);
bool whit_graph_import_at(const whit_graph *graph, uint32_t import, const char **written, uint32_t *file,
                          uint32_t *line);

const char *whit_symbol_kind_name(whit_symbol_kind kind);

typedef struct whit_graph_hit {
    uint32_t symbol;
    double likeness; /* 1: the same, 0: nothing in common */
} whit_graph_hit;

/* The k functions and types most like the named one, most similar first: by the letters of their names, by what they
 * call and by what calls them. If the name is unknown, they are compared with its words. They are kept in an
 * associative memory in the cache folder, which is built by the first query of a new graph. */
whit_status whit_graph_like(const whit_graph *graph, const char *folder, const char *cache_folder, const char *name,
                            whit_graph_hit *hits, uint32_t k, uint32_t *n, whit_error *error);

/* Is a file to be left out? */
typedef bool whit_graph_skip_fn(void *user, const char *file);
/* Appends an outline of the project in at most n_tokens (of about four bytes each) to `out`: files with their most
 * mentioned symbols. */
whit_status whit_graph_map(const whit_graph *graph, const char *folder, size_t n_tokens, whit_graph_skip_fn *skip,
                           void *user, whit_buf *out, whit_error *error);

#endif
