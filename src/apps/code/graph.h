/* SPDX-License-Identifier: MIT
 * Keeps the code graph, which lists what a project's code defines, calls and imports. It is one mapped file under the
 * cache folder, which any number of processes read through pointers, without locks. A new graph is written to a new
 * file that is renamed over the old one, so that a reader keeps the file that it has open. A second, small file has the
 * entries of the source files that have changed since, and is written for each edit.
 *
 * Symbols (definitions) and files have numbers; the neighbours of a symbol or file are runs of arrays. */
#ifndef WHIT_CODE_GRAPH_H
#define WHIT_CODE_GRAPH_H

#include "base/file.h"
#include "code/parse.h"

#define WHIT_GRAPH_NONE UINT32_MAX

typedef struct whit_graph whit_graph;

/* Describes a symbol; all pointers stay valid until the graph is closed. */
typedef struct whit_graph_symbol {
    const char *name, *file; /* the file's path is relative to the project */
    uint32_t line, end_line; /* lines, counted from 1 */
    whit_symbol_kind kind;
    uint32_t parent; /* number of the symbol that contains this one, or WHIT_GRAPH_NONE */
    bool is_local;   /* only the file that defines it can refer to it */
    uint32_t number, file_number;
} whit_graph_symbol;

typedef struct whit_graph_mention {
    const char *file;
    uint32_t file_number, line;
    uint32_t symbol; /* number of the symbol that contains the mention, or WHIT_GRAPH_NONE */
    bool calls;
} whit_graph_mention;

typedef struct whit_graph_counts {
    uint32_t n_files, n_symbols, n_mentions, n_imports;
    uint64_t n_lines, size_bytes;
    bool is_new; /* the call that opened or last refreshed the graph has read files */
} whit_graph_counts;

/* Opens the graph of a folder as its files are now. If no file has changed, the graph comes from the cache. Up to 64
 * changed files are read again; if more have changed, or files were added or removed, all files are read. The cache is
 * then updated. cache_folder NULL means $XDG_CACHE_HOME/whit or ~/.cache/whit; if it cannot be written, the graph is
 * kept in memory alone. The caller owns *graph. */
whit_status whit_graph_open(const char *folder, const char *cache_folder, whit_graph **graph, whit_error *error);
/* Refreshes an open graph; its numbers and pointers become invalid. Returns false, with the graph unchanged, if the
 * graph must be opened anew. */
bool whit_graph_refresh(whit_graph *graph, const char *folder, const char *cache_folder);
/* Updates the graph after a change of one known file, given by its path in the folder: only this file is examined. */
bool whit_graph_follow(whit_graph *graph, const char *folder, const char *cache_folder, const char *path);
void whit_graph_close(whit_graph *graph);
whit_graph_counts whit_graph_count(const whit_graph *graph);

/* Holds a run of neighbours, in the order of files and lines. */
typedef struct whit_graph_run {
    uint32_t next, end, edits_next, edits_end;
} whit_graph_run;

/* Return the symbols of a name, and all symbols. */
whit_graph_run whit_graph_symbols_of(const whit_graph *graph, const char *name, size_t n);
whit_graph_run whit_graph_all_symbols(const whit_graph *graph);
/* Returns the mentions of a name; only names that the project defines have mentions. */
whit_graph_run whit_graph_mentions_of(const whit_graph *graph, const char *name, size_t n);
/* Advances to the next symbol of a run; returns false at its end. */
bool whit_graph_next_symbol(const whit_graph *graph, whit_graph_run *run, whit_graph_symbol *out);
bool whit_graph_next_mention(const whit_graph *graph, whit_graph_run *run, whit_graph_mention *out);
/* Looks a symbol up by its number, such as a parent's; returns false if there is no such symbol. */
bool whit_graph_symbol_at(const whit_graph *graph, uint32_t symbol, whit_graph_symbol *out);
const char *whit_graph_file(const whit_graph *graph, uint32_t file);
/* Returns the number of a file, given by its path in the project, or WHIT_GRAPH_NONE. */
uint32_t whit_graph_file_number(const whit_graph *graph, const char *path);
/* Returns the number of the first import of a file, and sets *n to the number of its imports. */
uint32_t whit_graph_imports_of(const whit_graph *graph, uint32_t file, uint32_t *n);
/* Looks an import up by its number: *written is its text in the file ("from . import name" is ".name"), *file the
 * project's file that it means (WHIT_GRAPH_NONE: the file is not in the project). */
bool whit_graph_import_at(const whit_graph *graph, uint32_t import, const char **written, uint32_t *file,
                          uint32_t *line);

const char *whit_symbol_kind_name(whit_symbol_kind kind);

typedef struct whit_graph_hit {
    uint32_t symbol;
    double likeness; /* 1: the same; 0: without any likeness */
} whit_graph_hit;

/* Finds the k functions and types that are most like the named one, most similar first: by the letters of their
 * names, by the functions that they call and by the functions that call them. If the name is unknown, they are
 * compared with its words. They are kept in an associative memory in the cache folder, which the first query of a
 * new graph builds. */
whit_status whit_graph_like(const whit_graph *graph, const char *folder, const char *cache_folder, const char *name,
                            whit_graph_hit *hits, uint32_t k, uint32_t *n, whit_error *error);

/* Returns whether a file should be left out. */
typedef bool whit_graph_skip_fn(void *user, const char *file);
/* Appends an outline of the project in at most n_tokens (of about four bytes each) to `out`: files with their most
 * mentioned symbols. */
whit_status whit_graph_map(const whit_graph *graph, const char *folder, size_t n_tokens, whit_graph_skip_fn *skip,
                           void *user, whit_buf *out, whit_error *error);

#endif
