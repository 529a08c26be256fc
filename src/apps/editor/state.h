/* SPDX-License-Identifier: MIT
 * Declares the editor as a struct of parts, each with its own header. This header is private to its folder; its names
 * begin with ed_. */
#ifndef WHIT_EDITOR_STATE_H
#define WHIT_EDITOR_STATE_H

#include "code/graph.h"
#include "editor/agent.h"
#include "editor/change.h"
#include "editor/command.h"
#include "editor/editor.h"
#include "editor/find.h"
#include "editor/prompt.h"
#include "editor/results.h"
#include "editor/servers.h"
#include "editor/shell.h"
#include "editor/suggest.h"
#include "editor/vi_change.h"
#include "editor/vi_motion.h"
#include "editor/window.h"

#define ED_JUMPS_MAX 64

/* holds the settings from files, options and commands */
struct ed_settings {
    bool pairs; /* typing an opening bracket or quote also inserts the closing one */
    bool mouse, numbers, wrap, editorconfig;
    whit_theme theme;
    int text_columns;        /* width of reflowed paragraphs */
    int tab_columns, indent; /* indent: 0: detected, -1: tabs, n: number of spaces */
    enum { ED_FIND_ASK, ED_FIND_NEVER, ED_FIND_ALWAYS } find_servers;
    char *make; /* command of :make; NULL: make */
    char path[512];
};

/* holds recorded keys */
struct ed_macro {
    whit_key *keys;
    size_t n, room;
    bool recording, playing;
};

struct whit_editor {
    whit_editor_options options;
    struct ed_settings settings;
    struct ed_doc *docs;
    struct ed_window *root, *window; /* root: tree of all windows; window: the current one */
    struct ed_prompt prompt;
    char message[600];
    bool message_is_error, done, quitting;
    bool shift; /* the movement extends the selection */
    int n_columns, n_rows;
    struct ed_binding *bindings;
    size_t n_bindings;
    struct ed_clipboard clipboard;
    struct ed_find find;
    struct ed_macro macro;
    struct ed_jump jumps[ED_JUMPS_MAX];
    size_t n_jumps;
    struct ed_vi vi;
    struct ed_server servers[ED_SERVERS_MAX];
    size_t n_servers;
    struct ed_asked asked;
    json_t *actions; /* code actions that the prompt offers */
    /* server that carries out a chosen action, and may send its changes; NULL: no server does */
    struct ed_server *acting;
    uint64_t acting_number;    /* number of the action's request, whose answer ends the action */
    uint64_t acting_n_sent;    /* number of texts that the server had been sent before that request */
    struct ed_doc *acting_doc; /* text at which the action was chosen; NULL: the text was closed since */
    uint64_t servers_asked_ns; /* time of the last question about servers; 0: no question in this run */
    struct ed_panel panel;
    struct ed_results results;
    struct ed_files files;
    struct ed_shell shell;
    ed_suggest suggest;
    struct ed_suggestion suggestion;
    /* tells to which change the cursor moves when git has answered */
    enum { ED_GIT_NOTHING, ED_GIT_NEXT, ED_GIT_PREVIOUS } git_wish;
    /* the code graph, an index of the project's definitions; NULL: it was not asked for yet */
    whit_graph *graph;
};

/* These functions are in editor.c. */
void ed_say(ed *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ed_complain(ed *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ed_complain_error(ed *e, const whit_error *error);
/* Says that the current text is read-only; in the agent's panel it also names the commands that can be used. */
void ed_complain_read_only(ed *e);
void ed_place(ed *e, uint64_t line, uint64_t column); /* line and column are counted from 1 */
/* Replaces the shown buffer's text by the content of its file, which can be undone (except for mapped files); the
 * cursor keeps line and column. */
bool ed_read_again(ed *e);
void ed_jump_push(ed *e);
void ed_run(ed *e, int command);
int ed_command_find(const char *name);
void ed_check_journal(ed *e);
/* Handles a key or paste as if it had been typed. */
void ed_take_key(ed *e, whit_key key, const char *paste, size_t n_paste);

/* These functions are in welcome.c. */
void ed_welcome_draw(ed *e, const struct ed_window *window, whit_screen *screen);
void ed_welcome_stranger(ed *e); /* shows the editor's keys for a command of vi that was typed as text */

#endif
