/* SPDX-License-Identifier: MIT
 * Declares language servers in the editor: the server of each language, its diagnostics, and requests to it. This
 * header is private to its folder. */
#ifndef WHIT_EDITOR_LANGUAGE_H
#define WHIT_EDITOR_LANGUAGE_H

#include "editor/lsp.h"
#include "editor/text.h"

struct ed_doc;
struct whit_editor;

#define ED_DIAGNOSTICS_MAX 2000
#define ED_SERVERS_MAX     16

typedef enum ed_severity { ED_SEVERITY_ERROR = 1, ED_SEVERITY_WARNING, ED_SEVERITY_NOTE, ED_SEVERITY_HINT } ed_severity;

struct ed_diagnostic {
    whit_range range;
    ed_severity severity;
    char *message; /* message in one line */
    json_t *said;  /* the diagnostic object that the server sent */
};

/* State of a document at its language server. */
struct ed_language {
    bool is_open;                      /* the server has opened the document, and has version `sent` of it */
    uint64_t sent;                     /* version of the buffer at the last transmission */
    uint64_t order;                    /* value of the server's n_sent right after this text was last sent */
    json_int_t number;                 /* version number of the text in the protocol */
    struct ed_diagnostic *diagnostics; /* sorted by their beginnings */
    size_t n_diagnostics;
};

#define ED_RESTARTS_MAX 3 /* how often a server that has ended is started again within a minute */

struct ed_server {
    char *language, *command;
    whit_lsp *lsp;
    bool tried, ready, utf8, formats, has_signatures;
    bool is_found;     /* found on PATH, not named by the settings */
    uint64_t greeting; /* number of the initialize request */
    uint64_t n_sent;   /* number of texts that the server was sent */
    /* number of restarts, and the times of the last ones; restart i is at i % ED_RESTARTS_MAX */
    uint64_t n_restarts, restarted_ns[ED_RESTARTS_MAX];
};

typedef enum ed_question {
    ED_ASK_NOTHING,
    ED_ASK_COMPLETION,
    ED_ASK_HOVER,
    ED_ASK_RENAME,
    ED_ASK_DEFINITION,
    ED_ASK_FORMAT,
    ED_ASK_ACTIONS,
    ED_ASK_SIGNATURE,
} ed_question;

/* The current request: it waits for its answer, or for its server to become ready. A new request replaces it. */
struct ed_asked {
    ed_question question;
    /* number: id of the request, 0: not sent yet; version and offset: version of the document and offset of its cursor
     * when the request was made */
    uint64_t number, version, offset;
    uint64_t n_sent; /* value of the server's n_sent when the request was made */
    int64_t sent_ns; /* time of whit_file_now_ns() when the request was made */
    struct ed_doc *doc;
    struct ed_server *server;
    char name[1024]; /* the new name, for ED_ASK_RENAME */
};

/* Adds a server, for the setting "server LANGUAGE COMMAND". Returns false if memory runs out or there are too many
 * servers. */
bool ed_language_add(struct whit_editor *e, const char *language, const char *command);
void ed_language_close(struct whit_editor *e);
/* Starts the current document's server and sends it the changed text (over 128 KiB only once it is saved, over 16 MiB
 * never). Returns true if it did one of both. */
bool ed_language_update(struct whit_editor *e);
/* Reads the servers' messages and carries them out. Returns true if the screen must be redrawn. */
bool ed_language_pump(struct whit_editor *e);
/* Carries out one message of a server. Declared here for fuzzers, too. */
void ed_language_message(struct whit_editor *e, struct ed_server *server, const json_t *message);

/* Must be called when the document has changed, when it was saved, and before it is freed. */
void ed_language_changed(struct ed_doc *doc, uint64_t offset, uint64_t n_removed, uint64_t n_inserted);
void ed_language_saved(struct whit_editor *e, struct ed_doc *doc);
void ed_language_forget(struct whit_editor *e, struct ed_doc *doc);

/* ed_language_worst returns the most severe diagnostic that begins in [begin, end], or NULL. ed_language_is_wrong
 * returns whether `offset` is inside an error or a warning. */
const struct ed_diagnostic *ed_language_worst(const struct ed_doc *doc, uint64_t begin, uint64_t end);
bool ed_language_is_wrong(const struct ed_doc *doc, uint64_t offset);

/* These functions run commands. ed_language_definition returns false if no server can answer; the caller then asks the
 * code graph. */
void ed_complete(struct whit_editor *e);
void ed_hover(struct whit_editor *e);
void ed_rename(struct whit_editor *e);
void ed_rename_to(struct whit_editor *e, const char *name);
void ed_diagnostic_next(struct whit_editor *e);
void ed_diagnostic_previous(struct whit_editor *e);
bool ed_language_definition(struct whit_editor *e);

/* These functions are in language_edit.c. */
/* Makes the changes of a WorkspaceEdit, but none of them if one is invalid. `done` and `verb` name the change in
 * messages ("renamed", "rename"). The server must have computed the edit for the request e->asked. */
void ed_language_apply(struct whit_editor *e, const json_t *edit, const char *done, const char *verb);
void ed_format(struct whit_editor *e);
void ed_code_actions(struct whit_editor *e);
void ed_signature(struct whit_editor *e);
/* Requests the signature after a typed "(" or ",". Does nothing if no ready server offers signatures, or while a
 * request or a message is there. */
void ed_signature_typed(struct whit_editor *e);
void ed_language_ask(struct whit_editor *e, ed_question question, const char *name);
/* Adds the members that a request for formatting or for code actions has besides the position. */
void ed_language_extend(struct whit_editor *e, json_t *params);
void ed_language_format(struct whit_editor *e, const json_t *result);
void ed_language_offer_actions(struct whit_editor *e, const json_t *result);
void ed_language_act(struct whit_editor *e, uint64_t number);
void ed_language_show_signature(struct whit_editor *e, const json_t *result);

#endif
