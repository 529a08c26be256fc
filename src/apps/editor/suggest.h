/* SPDX-License-Identifier: MIT
 * Shows suggestions at the cursor: text that a model would put there, which the callbacks below deliver. The editor
 * asks for one suggestion at a time and polls for the answer; it never waits. */
#ifndef WHIT_EDITOR_SUGGEST_H
#define WHIT_EDITOR_SUGGEST_H

#include "editor/panel.h"

typedef enum whit_suggestion_state {
    WHIT_SUGGESTION_NONE, /* no suggestion was requested */
    WHIT_SUGGESTION_WORKING,
    WHIT_SUGGESTION_DONE,
    WHIT_SUGGESTION_FAILED,
} whit_suggestion_state;

/* A request for the text at the cursor, between the texts before it and after it. */
typedef struct whit_suggestion_question {
    const char *path; /* path of the document, links resolved; NULL: no path yet */
    const char *name; /* name by which the document was opened */
    const char *before, *behind;
    size_t before_bytes, behind_bytes;
    /* longer text around the cursor, to detect a secret key of which `before` contains only the end */
    const char *around;
    size_t around_bytes;
    whit_panel_wish settings; /* model chosen by the settings; used unless the command line names one */
    /* the user allows sending the text to an endpoint, not only to a model in this process */
    bool anywhere;
} whit_suggestion_question;

/* Callbacks of the program that produces suggestions. They must return at once; they are called on the editor's
 * thread. */
typedef struct whit_suggester {
    void *user;
    int fd; /* descriptor that is readable when `take` should be called */
    /* Requests a suggestion; all strings are copied, and an earlier request is cancelled. Returns false if no
     * suggestion will come, or if memory runs out. */
    bool (*ask)(void *user, const whit_suggestion_question *question);
    void (*cancel)(void *user);
    /* Appends to `text` what was generated since the last call; `why` gets the message of a failure. DONE and FAILED
     * are returned once. */
    whit_suggestion_state (*take)(void *user, whit_buf *text, char *why, size_t why_bytes);
} whit_suggester;

/* ---- for src/apps/editor only --------------------------------------------------------------- */

struct ed_doc;
struct whit_editor;

/* Where text may be sent for suggestions: to a model in this process only, to an endpoint (a model server with a URL),
 * too, or nowhere. */
typedef enum ed_suggest { ED_SUGGEST_LOCALLY, ED_SUGGEST_ANYWHERE, ED_SUGGEST_NEVER } ed_suggest;

struct ed_suggestion {
    struct ed_doc *doc;       /* document of the suggestion; NULL: nothing is requested or shown */
    uint64_t version, offset; /* version of the document and offset of the cursor for which the suggestion is valid */
    whit_buf text;            /* the part of the suggestion that the person has not typed */
    size_t n_shown;           /* number of bytes of `text` that were drawn last; only these can be accepted */
    bool done;
    uint64_t due_ns; /* time of the next request; 0: none is planned */
};

/* Reads a range of the current text with 32 KiB more on both sides, in which the guard of secrets looks for keys;
 * returns false if memory runs out. */
bool ed_read_around(struct whit_editor *e, uint64_t begin, uint64_t end, whit_buf *around);
/* Updates the suggestion or drops it, and plans when to ask for another. It is called after every key; the arguments
 * are the text, version and cursor from before the key. */
void ed_suggest_key(struct whit_editor *e, const struct ed_doc *doc, uint64_t version, uint64_t offset);
/* Inserts the visible part of the suggestion. Returns false if no suggestion is visible. */
bool ed_suggest_accept(struct whit_editor *e);
void ed_suggest_drop(struct whit_editor *e);
/* Returns the suggestion to draw at the cursor of this document; *n is its length in bytes, 0 if there is no
 * suggestion. */
const char *ed_suggestion(const struct whit_editor *e, const struct ed_doc *doc, size_t *n);
void ed_suggest_idle(struct whit_editor *e); /* makes the scheduled request when its time has come */
bool ed_suggest_take(struct whit_editor *e); /* returns true if the screen must be redrawn */
void ed_suggest_close(struct whit_editor *e);

#endif
