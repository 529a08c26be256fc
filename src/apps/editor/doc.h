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

/* Lines changed since the last commit or, if the text is compared with another (ed_compared), the lines that differ;
 * computed for one version of the text. */
struct ed_git {
    whit_git_file *file;
    bool asked; /* git was already asked for the committed text */
    uint64_t version;
    whit_git_change *changes;
    size_t n_changes;
};

/* The document with which this one is compared, and the differing runs of lines (whit_diff_run[]), computed for the
 * given versions of both. */
struct ed_compared {
    struct ed_doc *with; /* NULL: no comparison */
    whit_buf runs;
    uint64_t version, other_version;
};

/* A buffer with the editor's data about it. */
struct ed_doc {
    struct ed_doc *next;
    whit_buffer *buffer;
    whit_syntax *syntax;
    whit_syntax_states states;
    int tab_columns, indent_columns;
    bool indent_tabs, told;    /* told: the person has been told that another editor has the file open */
    whit_editorconfig project; /* settings from .editorconfig files */
    struct ed_git git;
    struct ed_compared compared;
    struct ed_language language;
    ed_tree *tree; /* syntax tree; NULL: not requested yet */
    bool conflict_shown, looked_for_server;
    bool server_agreed; /* the person or the setting find_servers allows that servers found on PATH get this text */
    /* cursor's offset in the last window that stopped showing the text; a new window begins there */
    uint64_t last_offset;
    /* marks of vi; ED_NONE: the mark is not set */
    uint64_t marks[ED_VI_MARKS], mark_jump, mark_change, mark_begin, mark_end;
    /* the editor appends to this text (see pad.c) */
    bool grows;
};

/* These functions are in editor.c. */
struct ed_doc *ed_doc_add(ed *e, whit_buffer *buffer); /* takes ownership of the buffer, also on failure */
struct ed_doc *ed_doc_find(const ed *e, const char *path);
/* returns the file's document, which is opened unless it is open already */
struct ed_doc *ed_open_file(ed *e, const char *path, whit_error *error);
/* Opens a file read-only, without a journal and without adding it to the list of documents. The caller frees it by
 * ed_doc_free(). Returns NULL on failure. */
struct ed_doc *ed_doc_peek(ed *e, const char *path);
void ed_doc_free(struct ed_doc *doc);
void ed_show(ed *e, struct ed_doc *doc);
void ed_close_doc(ed *e, struct ed_doc *doc);

/* pad.c: pads are texts that the editor writes. `like` is a file name that determines the syntax colours; if *pad is
 * NULL, the pad is created. */
struct ed_doc *ed_pad_open(ed *e, struct ed_doc **pad, const char *name, const char *like);
void ed_pad_append(ed *e, struct ed_doc *doc, const char *text, size_t n);
void ed_pad_clear(struct ed_doc *doc);
/* returns a window that shows the document, or NULL */
struct ed_window *ed_pad_window(const ed *e, const struct ed_doc *doc);
/* Makes a window current that shows the document, at its end: one that shows it already or a new one, beside the
 * current window (`beside`) or below it; without room for a new one the current window. Returns false, and shows
 * nothing, if that window's text is the subject of an open prompt. */
bool ed_pad_show(ed *e, struct ed_doc *doc, bool beside);
/* Makes a pad that was saved as a file an ordinary text, which the editor no longer writes. */
void ed_pad_release(ed *e, struct ed_doc *doc);

/* These functions are in git.c. */
void ed_git_forget(struct ed_doc *doc); /* drops git's answer, so that the committed text is read again */
bool ed_git_update(struct ed_doc *doc); /* updates the marks; returns true if they may have changed */
/* Reads the available part of git's answer. Returns true if the screen must be redrawn. */
bool ed_git_answer(ed *e);
/* Returns a line's mark "+" (added), "~" (changed) or "-" (the lines just before it were removed), or NULL. `line` is
 * counted from 1. */
const char *ed_git_mark(const struct ed_doc *doc, uint64_t line, whit_style *style);
void ed_git_next(ed *e);
void ed_git_previous(ed *e);

/* These functions are in compare.c. */
void ed_compare(ed *e, struct ed_doc *a, struct ed_doc *b);
void ed_compare_forget(struct ed_doc *doc);
/* updates the marks of a compared text; returns true if they may have changed */
bool ed_compare_update(struct ed_doc *doc);
/* Scrolls the other compared window to the lines that correspond to the current window's. */
void ed_compare_scroll(ed *e);

#endif
