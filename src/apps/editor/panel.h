/* SPDX-License-Identifier: MIT
 * Attaches an agent to the editor by callbacks: the editor knows the agent's questions and answers, and nothing of
 * models, patches and journals.
 *
 * The agent works in threads of its own; all functions here are called on the editor's thread. */
#ifndef WHIT_EDITOR_PANEL_H
#define WHIT_EDITOR_PANEL_H

#include "base/mem.h"

struct whit_editor;

/* Settings that choose the agent's model; NULL: not set. */
typedef struct whit_panel_wish {
    const char *model, *url, *name, *key_file;
} whit_panel_wish;

typedef enum whit_panel_kind {
    WHIT_PANEL_TASK,
    WHIT_PANEL_UNDO, /* undo the latest turn of the agent */
    WHIT_PANEL_REDO,
    WHIT_PANEL_EXPLAIN, /* explain the selection */
    WHIT_PANEL_REWRITE, /* rewrite the selection as `text` demands */
} whit_panel_kind;

typedef struct whit_panel_request {
    whit_panel_kind kind;
    const char *text;      /* the task, or the instruction for the selection; "" for EXPLAIN, NULL for UNDO and REDO */
    const char *selection; /* for EXPLAIN and REWRITE the selected text, or the line of the cursor; NULL otherwise */
    size_t selection_bytes;
    const char *name, *language; /* name and language of the text that contains the selection */
    const char *path;            /* path of that text, links resolved; NULL: the text has no path yet */
    const char *around;          /* the selection with longer text on both sides, to detect a secret key */
    size_t around_bytes;
    whit_panel_wish wish;
} whit_panel_request;

/* A hunk for approval; `text` is its lines of the diff. */
typedef struct whit_panel_hunk {
    const char *path, *reason; /* reason: why the hunk always needs approval, or NULL */
    const char *text;
    size_t n_bytes;
} whit_panel_hunk;

typedef struct whit_panel {
    /* Begins a job with copies of all strings. Fails with a message if the job cannot begin, for example while another
     * runs. */
    whit_status (*begin)(void *user, const whit_panel_request *request, whit_error *error);
    void (*stop)(void *user); /* asks the job to end */
    /* `choose` gets the person's decisions on the hunks of whit_editor_agent_hunks() (taken[i] != 0: approved), `reply`
     * the answer to a question (NULL: no answer). */
    void (*choose)(void *user, const uint8_t *taken, size_t n);
    void (*reply)(void *user, const char *text);
    /* returns the descriptor that is readable when `pump` should be called, or -1 if there is no descriptor yet */
    int (*fd)(void *user);
    /* reports the agent's events to the editor by the functions below; returns true if the screen must be redrawn */
    bool (*pump)(void *user, struct whit_editor *editor);
    void *user;
} whit_panel;

/* ---- called by `pump` ---------------------------------------------------------------------------------- */

/* Append a piece of an answer, and a line of progress. */
void whit_editor_agent_text(struct whit_editor *editor, const char *text, size_t n_bytes);
void whit_editor_agent_note(struct whit_editor *editor, const char *line);
/* Reports the end of the job; `line` describes the result. */
void whit_editor_agent_done(struct whit_editor *editor, const char *line, bool is_error);
/* Shows hunks for approval. The caller keeps ownership and must keep them valid until `choose` or `stop` is called, or
 * until it calls whit_editor_agent_done(). */
void whit_editor_agent_hunks(struct whit_editor *editor, const whit_panel_hunk *hunks, size_t n);
void whit_editor_agent_question(struct whit_editor *editor, const char *question);
/* Replaces the selection of the last WHIT_PANEL_REWRITE. Returns false if its document has changed meanwhile, or on
 * failure. */
bool whit_editor_agent_replace(struct whit_editor *editor, const char *text, size_t n_bytes);

/* Appends the text of a file that is open with unsaved changes to `content`. Returns false if it is not open with
 * unsaved changes, or if memory runs out. `path` must be absolute with links resolved. */
bool whit_editor_unsaved(struct whit_editor *editor, const char *path, whit_buf *content);
/* Appends the paths of unsaved documents inside a folder, relative to it, each ended by a zero byte. Returns false if
 * memory runs out. */
bool whit_editor_unsaved_paths(const struct whit_editor *editor, const char *folder, whit_buf *paths);
/* Replaces the content of an open document with unsaved changes, as one step of undo. Returns WHIT_ERROR_ARGUMENT if
 * there is no such document or its content is not `before`. */
whit_status whit_editor_patch(struct whit_editor *editor, const char *path, const char *before, size_t before_bytes,
                              const char *after, size_t after_bytes, whit_error *error);
/* Reports that a file was written. If it is open without unsaved changes, it is read again, as one step of undo. */
void whit_editor_written(struct whit_editor *editor, const char *path);

#endif
