/* SPDX-License-Identifier: MIT
 * Shows suggestions at the cursor: text that a model would put there, which the callbacks below deliver. The editor
 * asks for one suggestion at a time and polls for the answer; it never waits. */
#ifndef WHIT_EDITOR_SUGGEST_H
#define WHIT_EDITOR_SUGGEST_H

#include "editor/panel.h"

typedef enum whit_suggestion_state {
    WHIT_SUGGESTION_NONE, /* no suggestion is being asked for */
    WHIT_SUGGESTION_WORKING,
    WHIT_SUGGESTION_DONE,
    WHIT_SUGGESTION_FAILED,
} whit_suggestion_state;

/* describes a request for the text between two texts */
typedef struct whit_suggestion_question {
    const char *path; /* path of the text, links resolved; NULL: the text has no path yet */
    const char *name; /* name by which the text was opened */
    const char *before, *behind;
    size_t before_bytes, behind_bytes;
    const char *around; /* longer text on both sides, to detect a secret key of which `before` contains only the end */
    size_t around_bytes;
    whit_panel_wish settings; /* model in the settings, unless the command line names one */
    /* the user allows the text to be sent to an endpoint, too, not only to a model in this process */
    bool anywhere;
} whit_suggestion_question;

/* Holds the callbacks. All functions return at once, and are called on the editor's thread. */
typedef struct whit_suggester {
    void *user;
    int fd; /* descriptor that is readable when there is a result */
    /* Asks for a suggestion. All texts are copied; an earlier question is cancelled. Returns false if no suggestion
     * will come, or if memory runs out. */
    bool (*ask)(void *user, const whit_suggestion_question *question);
    void (*cancel)(void *user);
    /* Appends the text that arrived since the last call to `text`; `why` receives the message of a failure. DONE and
     * FAILED are reported once. */
    whit_suggestion_state (*take)(void *user, whit_buf *text, char *why, size_t why_bytes);
} whit_suggester;

/* ---- for this room alone ---------------------------------------------------------------------- */

struct ed_doc;
struct whit_editor;

/* Text is sent to an endpoint, a model server with a URL, only if the user allows it. */
typedef enum ed_suggest { ED_SUGGEST_LOCALLY, ED_SUGGEST_ANYWHERE, ED_SUGGEST_NEVER } ed_suggest;

struct ed_suggestion {
    struct ed_doc *doc;       /* NULL: no suggestion is asked for or shown */
    uint64_t version, offset; /* version of the text, and offset of the cursor */
    whit_buf text;            /* the part of the suggestion that was not typed yet */
    size_t n_shown;           /* number of bytes of `text` that were drawn last and can be accepted */
    bool done;
    uint64_t due_ns; /* time of the next request; 0: no request is planned */
};

/* Reads a range of the current text with longer text on both sides, in which the guard of secrets looks for keys;
 * returns false if memory runs out. */
bool ed_read_around(struct whit_editor *e, uint64_t begin, uint64_t end, whit_buf *around);
/* Updates the suggestion or drops it, and plans when to ask for another. It is called after every key; the arguments
 * are the text, version and cursor from before the key. */
void ed_suggest_key(struct whit_editor *e, const struct ed_doc *doc, uint64_t version, uint64_t offset);
/* Inserts the part of the suggestion that is shown; returns false if no suggestion is shown. */
bool ed_suggest_accept(struct whit_editor *e);
void ed_suggest_drop(struct whit_editor *e);
/* Returns the suggestion that is shown at the cursor of this text; *n is 0 if no suggestion is shown. */
const char *ed_suggestion(const struct whit_editor *e, const struct ed_doc *doc, size_t *n);
void ed_suggest_idle(struct whit_editor *e); /* requests a suggestion after a long enough pause */
bool ed_suggest_take(struct whit_editor *e); /* returns true if the screen must be redrawn */
void ed_suggest_close(struct whit_editor *e);

#endif
