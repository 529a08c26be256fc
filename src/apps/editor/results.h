/* SPDX-License-Identifier: MIT
 * Declares lists of places, the tree of files, and jumps between files. */
#ifndef WHIT_EDITOR_RESULTS_H
#define WHIT_EDITOR_RESULTS_H

#include "editor/command.h"
#include "editor/prompt.h"

/* The tree of the project's files. */
struct ed_files {
    struct ed_doc *doc; /* pad that shows the tree; NULL: not open */
    /* paths: all files; open: the unfolded folders, each with a final slash; lines: path of each row of the tree */
    char **paths, **open, **lines;
    size_t n_paths, n_open, n_lines;
};

/* The last list of places, and the preview of the list that is open now. */
struct ed_results {
    char label[64];
    struct ed_item *items;
    size_t n, at;
    bool was_at; /* place `at` has been visited */
    /* from: document to which the preview returns, NULL: no preview; peeked: copy of a file for the preview */
    struct ed_doc *from, *peeked;
    struct ed_cursor from_cursor;
    uint64_t from_top;
};

struct ed_jump {
    struct ed_doc *doc;
    uint64_t offset;
};

/* These functions are in results.c. */
void ed_results_begin(ed *e, const char *label); /* begins a new list that is not shown in a prompt yet */
bool ed_results_add(ed *e, const char *label, const char *path, uint64_t line);
void ed_results_go(ed *e, size_t at);
void ed_results_preview(ed *e); /* shows the place selected in the prompt */
void ed_results_keep(ed *e);    /* keeps the list of a closing prompt as the last list */
void ed_results_close(ed *e);
extern ed_command_fn ed_results_next, ed_results_previous, ed_results_list;

/* files.c: the part of an absolute path below the project, NULL: the file is outside. `real` must have its links
 * resolved. */
const char *ed_project_part(const ed *e, const char *real);
/* files.c: the tree of files. ed_files_enter returns true if it has handled the key. */
extern ed_command_fn ed_files_toggle;
bool ed_files_enter(ed *e);
void ed_files_forget(ed *e, const struct ed_doc *doc);
void ed_files_close(ed *e);

/* These functions are in jump.c. */
void ed_symbols_open(ed *e);
void ed_definition(ed *e);
void ed_definition_by_graph(ed *e);
void ed_references(ed *e);
/* updates the code graph after the document was saved */
void ed_graph_saved(ed *e, const struct ed_doc *doc);
void ed_graph_close(ed *e);

#endif
