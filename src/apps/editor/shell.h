/* SPDX-License-Identifier: MIT
 * Runs commands of the shell: one at a time, in the project's folder, without a key ever waiting for it. Only state.h
 * includes this header. */
#ifndef WHIT_EDITOR_SHELL_H
#define WHIT_EDITOR_SHELL_H

#include "base/piped.h"
#include "base/mem.h"
#include "editor/text.h"

struct ed_doc;
typedef struct whit_editor ed;

/* tells how a command's output is used */
typedef enum ed_shell_kind {
    ED_SHELL_SHOW,
    ED_SHELL_MAKE,   /* the output is shown, and its places become the list of results */
    ED_SHELL_INSERT, /* the output is inserted after a line */
    ED_SHELL_FORMAT, /* the output becomes the text, if the command succeeds */
    ED_SHELL_FILTER, /* the output replaces the lines that were the command's input, if it succeeds */
} ed_shell_kind;

struct ed_shell {
    whit_piped child;
    ed_shell_kind kind;
    whit_buf input, output;
    size_t n_sent;
    struct ed_doc *doc; /* text whose `range` is replaced, if the text still has this version */
    whit_range range;
    uint64_t version;
    char command[600];
    bool stopped;
    struct ed_doc *pad; /* output of the last command */
};

/* Starts a command. `range` is a part of the current text: the input for ED_SHELL_FILTER and, if it is not empty, for
 * ED_SHELL_SHOW; a place for ED_SHELL_INSERT. */
void ed_shell_start(ed *e, ed_shell_kind kind, const char *command, whit_range range);
bool ed_shell_runs(const ed *e);
void ed_shell_stop(ed *e);
bool ed_shell_pump(ed *e); /* true: the screen must be redrawn */
void ed_shell_forget(ed *e, const struct ed_doc *doc);
void ed_shell_close(ed *e);
void ed_make(ed *e, const char *arguments);

#endif
