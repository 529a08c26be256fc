/* SPDX-License-Identifier: MIT
 * Stores and queries the code graph, which lists what a project's code defines, calls and imports. It is one mapped
 * file in the cache folder, which any number of processes read through pointers, without locks. A new graph is written
 * to a new file, which is then renamed over the old one, so that a reader keeps the file that it has open. A second,
 * small file contains new entries for the source files that have changed since, and is written at each edit.
 *
 * Symbols (definitions) and files have numbers. The symbols, mentions and imports that belong to a name or file are
 * consecutive entries of arrays. */
#ifndef WHIT_CODE_GRAPH_H
#define WHIT_CODE_GRAPH_H

#include "base/file.h"
#include "code/parse.h"

#define WHIT_GRAPH_NONE UINT32_MAX

typedef struct whit_graph whit_graph;

/* Describes a symbol; all pointers stay valid until the graph is updated or closed. */
typedef struct whit_graph_symbol {
    const char *name, *file; /* file: path relative to the project */
    uint32_t line, end_line; /* first and last line, counted from 1 */
    whit_symbol_kind kind;
    uint32_t parent; /* number of the symbol that contains this one, or WHIT_GRAPH_NONE */
    bool is_local;   /* only its own file can refer to it */
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
    bool is_new; /* the last call that opened or refreshed the graph had to read source files */
} whit_graph_counts;

/* Opens the graph of a folder as its files are now. If no file has changed, the graph comes from the cache. If up to 64
 * files have changed, these are read again; if more have changed, if files were added or removed, or if a file now
 * defines a name whose mentions the graph has not stored, all files are read. The cache is then updated. cache_folder
 * NULL means $XDG_CACHE_HOME/whit/graphs or ~/.cache/whit/graphs. If the cache cannot be written, the graph is only in
 * memory. The caller owns *graph. */
whit_status whit_graph_open(const char *folder, const char *cache_folder, whit_graph **graph, whit_error *error);
/* Updates an open graph to the current files; its numbers and pointers become invalid. Returns false, with the graph
 * unchanged, if it must be opened anew, for example because too many files have changed or files were added or
 * removed. */
bool whit_graph_refresh(whit_graph *graph, const char *folder, const char *cache_folder);
/* Updates the graph after a change of the one file `path`, which is relative to the folder: no other file is examined.
 * Returns false, with the graph unchanged, if it must be opened anew, for example because it does not have the file. */
bool whit_graph_follow(whit_graph *graph, const char *folder, const char *cache_folder, const char *path);
void whit_graph_close(whit_graph *graph);
whit_graph_counts whit_graph_count(const whit_graph *graph);

/* Iterates over symbols or mentions: those of one name come in the order of files and lines, all symbols in no
 * particular order. `next` and `end` are numbers in the graph, edits_next and edits_end in its edits. */
typedef struct whit_graph_run {
    uint32_t next, end, edits_next, edits_end;
} whit_graph_run;

/* Return all symbols with this name, and all symbols of the graph. */
whit_graph_run whit_graph_symbols_of(const whit_graph *graph, const char *name, size_t n);
whit_graph_run whit_graph_all_symbols(const whit_graph *graph);
/* Returns the mentions of a name. Only names that the project defines have mentions. */
whit_graph_run whit_graph_mentions_of(const whit_graph *graph, const char *name, size_t n);
/* Advances to the next symbol of a run; returns false at its end. */
bool whit_graph_next_symbol(const whit_graph *graph, whit_graph_run *run, whit_graph_symbol *out);
bool whit_graph_next_mention(const whit_graph *graph, whit_graph_run *run, whit_graph_mention *out);
/* Looks up a symbol by its number, such as that of a parent; returns false if there is no such symbol. */
bool whit_graph_symbol_at(const whit_graph *graph, uint32_t symbol, whit_graph_symbol *out);
const char *whit_graph_file(const whit_graph *graph, uint32_t file);
/* Returns the number of a file, given by its path in the project, or WHIT_GRAPH_NONE. */
uint32_t whit_graph_file_number(const whit_graph *graph, const char *path);
/* Returns the number of the first import of a file, and sets *n to how many consecutive imports the file has. */
uint32_t whit_graph_imports_of(const whit_graph *graph, uint32_t file, uint32_t *n);
/* Looks up an import by its number. *written: its text in the file (".name" for "from . import name"); *file: the
 * number of the imported file, WHIT_GRAPH_NONE if it is not in the project; *line: the line of the import. Returns
 * false if there is no such import. */
bool whit_graph_import_at(const whit_graph *graph, uint32_t import, const char **written, uint32_t *file,
                          uint32_t *line);

const char *whit_symbol_kind_name(whit_symbol_kind kind);

typedef struct whit_graph_hit {
    uint32_t symbol;
    double likeness; /* 1: identical; 0: unrelated */
} whit_graph_hit;

/* Finds the k functions and types that are most similar to the first function or type called `name`, most similar
 * first; this one is among them. Names are compared by their letters, functions also by the functions that they call
 * and that call them. If the project has no such symbol, only the words of `name` are compared. The vectors of the
 * symbols are stored in an associative memory in the cache folder, which the first query of a new graph builds. *n is
 * set to the number of hits, which may be below k. */
whit_status whit_graph_like(const whit_graph *graph, const char *folder, const char *cache_folder, const char *name,
                            whit_graph_hit *hits, uint32_t k, uint32_t *n, whit_error *error);

/* Returns whether the outline should leave out a file. */
typedef bool whit_graph_skip_fn(void *user, const char *file);
/* Returns whether the outline may quote lines of a file with this text; else it has only the names of the symbols. */
typedef bool whit_graph_quote_fn(void *user, const char *text, size_t n_bytes);
/* Appends an outline of the project to `out`: files with the lines that define their most mentioned symbols other than
 * variables. `out`, with what it had before, gets at most n_tokens tokens of about four bytes each. skip: NULL includes
 * all files. may_quote: NULL quotes all files. */
whit_status whit_graph_map(const whit_graph *graph, const char *folder, size_t n_tokens, whit_graph_skip_fn *skip,
                           whit_graph_quote_fn *may_quote, void *user, whit_buf *out, whit_error *error);

#endif
