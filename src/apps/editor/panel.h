/* SPDX-License-Identifier: MIT
 * Attaches an agent to the editor by callbacks: the editor knows the agent's questions and answers, and nothing of
 * models, patches and journals.
 *
 * The agent works in threads of its own; all functions here are called on the editor's thread. */
#ifndef WHIT_EDITOR_PANEL_H
#define WHIT_EDITOR_PANEL_H

#include "base/mem.h"

struct whit_editor;

/* names the model that the settings choose; NULL: the setting is absent */
typedef struct whit_panel_wish {
    const char *model, *url, *name, *key_file;
} whit_panel_wish;

typedef enum whit_panel_kind {
    WHIT_PANEL_TASK,
    WHIT_PANEL_UNDO, /* undoes the latest turn */
    WHIT_PANEL_REDO,
    WHIT_PANEL_EXPLAIN, /* explains the selection */
    WHIT_PANEL_REWRITE, /* rewrites the selection as the text asks */
} whit_panel_kind;

typedef struct whit_panel_request {
    whit_panel_kind kind;
    const char *text;      /* the task, or the instruction for the selection */
    const char *selection; /* NULL: there is no selection */
    size_t selection_bytes;
    const char *name, *language; /* name and language of the text that contains the selection */
    const char *path;            /* path of that text, links resolved; NULL: the text has no path yet */
    const char *around;          /* the selection with longer text on both sides, to detect a secret key */
    size_t around_bytes;
    whit_panel_wish wish;
} whit_panel_request;

/* describes a hunk for approval: lines of a diff */
typedef struct whit_panel_hunk {
    const char *path, *reason; /* reason: reason why the hunk needs approval even if edits are allowed, or NULL */
    const char *text;
    size_t n_bytes;
} whit_panel_hunk;

typedef struct whit_panel {
    /* Begins a job; all texts are copied. Fails with a message if the job cannot begin, for example while another
     * runs. */
    whit_status (*begin)(void *user, const whit_panel_request *request, whit_error *error);
    void (*stop)(void *user); /* ends the job soon */
    /* These functions take the person's answers to whit_editor_agent_hunks (a byte for each hunk) and to a question
     * (NULL: no answer). */
    void (*choose)(void *user, const uint8_t *taken, size_t n);
    void (*reply)(void *user, const char *text);
    /* descriptor that is readable when `pump` should be called; -1: there is no descriptor yet */
    int (*fd)(void *user);
    bool (*pump)(void *user, struct whit_editor *editor); /* returns true if the screen must be redrawn */
    void *user;
} whit_panel;

/* ---- for pump -------------------------------------------------------------------------------------- */

/* These functions append a piece of an answer, and a line of progress. */
void whit_editor_agent_text(struct whit_editor *editor, const char *text, size_t n_bytes);
void whit_editor_agent_note(struct whit_editor *editor, const char *line);
/* Reports that the job has ended; `line` describes the result. */
void whit_editor_agent_done(struct whit_editor *editor, const char *line, bool is_error);
/* Shows hunks for approval; the caller keeps ownership, and the hunks must stay valid until they are answered. */
void whit_editor_agent_hunks(struct whit_editor *editor, const whit_panel_hunk *hunks, size_t n);
void whit_editor_agent_question(struct whit_editor *editor, const char *question);
/* Replaces the selection of the latest WHIT_PANEL_REWRITE; returns false if its text has changed meanwhile, or on
 * failure. */
bool whit_editor_agent_replace(struct whit_editor *editor, const char *text, size_t n_bytes);

/* Returns whether the file is open and not saved; its text is then appended to `content`. `path` must be resolved. */
bool whit_editor_unsaved(struct whit_editor *editor, const char *path, whit_buf *content);
/* Appends the paths of unsaved texts inside a folder, relative to it, each terminated by a zero byte. */
bool whit_editor_unsaved_paths(const struct whit_editor *editor, const char *folder, whit_buf *paths);
/* Replaces the content of an open text, as one step of undo. Returns WHIT_ERROR_ARGUMENT if the content is not `before`
 * any more. */
whit_status whit_editor_patch(struct whit_editor *editor, const char *path, const char *before, size_t before_bytes,
                              const char *after, size_t after_bytes, whit_error *error);
/* Reports that a file was written: if it is open without unsaved edits, it is read again, as one step of undo. */
void whit_editor_written(struct whit_editor *editor, const char *path);

#endif
