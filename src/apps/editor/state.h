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

/* Settings from the settings file, options and commands. */
struct ed_settings {
    bool pairs; /* typing an opening bracket or quote also inserts the closing one */
    bool mouse, numbers, wrap, editorconfig;
    whit_theme theme;
    int text_columns;        /* width in columns at which paragraphs are reflowed, unless .editorconfig sets it */
    int tab_columns, indent; /* indent: 0: detected in each text; -1: tabs; n: n spaces */
    enum { ED_FIND_ASK, ED_FIND_NEVER, ED_FIND_ALWAYS } find_servers;
    char *make; /* command that :make runs; NULL: "make" */
    char path[512];
};

/* Recorded keys. */
struct ed_macro {
    whit_key *keys;
    size_t n, room;
    bool recording, playing;
};

struct whit_editor {
    whit_editor_options options;
    struct ed_settings settings;
    struct ed_doc *docs;
    struct ed_window *root, *window; /* root: root of the tree of windows; window: the current window */
    struct ed_prompt prompt;
    char message[600];
    bool message_is_error, done, quitting;
    bool shift; /* the current movement extends the selection */
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
    json_t *actions; /* code actions that the prompt offers, as the server sent them */
    /* server that is carrying out a chosen action and may send its changes, or NULL */
    struct ed_server *acting;
    uint64_t acting_number;    /* id of the action's request; its answer ends the action */
    uint64_t acting_n_sent;    /* value of the server's n_sent when that request was made */
    int64_t acting_sent_ns;    /* time of whit_file_now_ns() when that request was made */
    struct ed_doc *acting_doc; /* document in which the action was chosen; NULL: it was closed since */
    uint64_t servers_asked_ns; /* time of the question about language servers; 0: not asked in this run */
    struct ed_panel panel;
    struct ed_results results;
    struct ed_files files;
    struct ed_shell shell;
    ed_suggest suggest;
    struct ed_suggestion suggestion;
    /* movement of the cursor to a change that waits for git's answer */
    enum { ED_GIT_NOTHING, ED_GIT_NEXT, ED_GIT_PREVIOUS } git_wish;
    /* the project's code graph, an index of its definitions and mentions; NULL: not opened yet */
    whit_graph *graph;
};

/* These functions are in editor.c. */
void ed_say(ed *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ed_complain(ed *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ed_complain_error(ed *e, const whit_error *error);
/* Reports that the current text is read-only; in the agent's panel also names the usable commands. */
void ed_complain_read_only(ed *e);
void ed_place(ed *e, uint64_t line, uint64_t column); /* line and column are counted from 1 */
/* Replaces the current buffer's text by the content of its file. This can be undone, except in mapped files and
 * read-only texts. The cursor keeps its line and column. In a very long line, or while the lines are not counted yet,
 * it keeps its offset in the text. */
bool ed_read_again(ed *e);
void ed_jump_push(ed *e);
void ed_run(ed *e, int command);
int ed_command_find(const char *name);
void ed_check_journal(ed *e);
/* Runs a key or inserts a paste, as if it had been typed. */
void ed_take_key(ed *e, whit_key key, const char *paste, size_t n_paste);

/* These functions are in welcome.c. */
void ed_welcome_draw(ed *e, const struct ed_window *window, whit_screen *screen);
/* explains the editor's keys if vi's keys, such as ":q", seem to be typed into the text */
void ed_welcome_stranger(ed *e);

#endif
