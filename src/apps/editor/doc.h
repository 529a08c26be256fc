/* SPDX-License-Identifier: MIT
 * Holds a text with the editor's data about it: syntax, indentation, changes since the last commit, marks. */
#ifndef WHIT_EDITOR_DOC_H
#define WHIT_EDITOR_DOC_H

#include "code/git.h"
#include "editor/buffer.h"
#include "editor/editorconfig.h"
#include "editor/language.h"
#include "editor/syntax.h"
#include "editor/tree.h"
#include "editor/vi.h"

#define ED_NONE            UINT64_MAX
#define ED_GIT_CHANGES_MAX 4096

/* holds the changes since the last commit, which belong to one version of the text */
struct ed_git {
    whit_git_file *file;
    bool asked; /* git was asked whether the file is in the last commit */
    uint64_t version;
    whit_git_change *changes;
    size_t n_changes;
};

/* holds the text with which a document is compared, and the runs of lines that differ (whit_diff_run), which belong to
 * two versions */
struct ed_compared {
    struct ed_doc *with; /* NULL: the document is not compared */
    whit_buf runs;
    uint64_t version, other_version;
};

/* holds a buffer with the editor's data about it */
struct ed_doc {
    struct ed_doc *next;
    whit_buffer *buffer;
    whit_syntax *syntax;
    whit_syntax_states states;
    int tab_columns, indent_columns;
    bool indent_tabs, told;    /* told: the person was told that another editor has the file open */
    whit_editorconfig project; /* the project's settings for the text */
    struct ed_git git;
    struct ed_compared compared;
    struct ed_language language;
    ed_tree *tree; /* syntax tree; NULL: it was not looked for yet */
    bool conflict_shown, looked_for_server;
    bool server_agreed;   /* the person agreed that servers that were found on PATH get this text */
    uint64_t last_offset; /* cursor of a view that was closed */
    /* marks of vi; ED_NONE: the mark is not set */
    uint64_t marks[ED_VI_MARKS], mark_jump, mark_change, mark_begin, mark_end;
    /* the editor itself appends to the text (pad.c) */
    bool grows;
};

/* These functions are in editor.c. */
struct ed_doc *ed_doc_add(ed *e, whit_buffer *buffer); /* takes ownership of the buffer, also on failure */
struct ed_doc *ed_doc_find(const ed *e, const char *path);
struct ed_doc *ed_open_file(ed *e, const char *path, whit_error *error); /* opens a file, or finds its open document */
/* Returns a copy of a file that is in no list of buffers and has no journal; the caller frees it by ed_doc_free. */
struct ed_doc *ed_doc_peek(ed *e, const char *path);
void ed_doc_free(struct ed_doc *doc);
void ed_show(ed *e, struct ed_doc *doc);
void ed_close_doc(ed *e, struct ed_doc *doc);

/* The functions of pad.c handle pads, which are texts that the editor writes. `like` is a file name that selects the
 * colours; *pad NULL: the pad is created. */
struct ed_doc *ed_pad_open(ed *e, struct ed_doc **pad, const char *name, const char *like);
void ed_pad_append(ed *e, struct ed_doc *doc, const char *text, size_t n);
void ed_pad_clear(struct ed_doc *doc);
struct ed_window *ed_pad_window(const ed *e, const struct ed_doc *doc); /* returns NULL if no window shows the pad */
/* Shows the document's end in a window, which becomes the current one. */
void ed_pad_show(ed *e, struct ed_doc *doc, bool beside);

/* These functions are in git.c. */
void ed_git_forget(struct ed_doc *doc); /* drops git's answer, so that HEAD is read again */
bool ed_git_update(struct ed_doc *doc); /* true: the marks may have changed */
/* Reads the part of git's answer that has arrived; returns true if the screen must be redrawn. */
bool ed_git_answer(ed *e);
/* Returns the mark "+", "~" or "-" of a line (counted from 1), or NULL for an unchanged line. */
const char *ed_git_mark(const struct ed_doc *doc, uint64_t line, whit_style *style);
void ed_git_next(ed *e);
void ed_git_previous(ed *e);

/* These functions are in compare.c. */
void ed_compare(ed *e, struct ed_doc *a, struct ed_doc *b);
void ed_compare_forget(struct ed_doc *doc);
bool ed_compare_update(struct ed_doc *doc); /* updates a compared text; returns true if its marks may have changed */
/* Scrolls the other window to the lines that correspond to the current window's. */
void ed_compare_scroll(ed *e);

#endif
