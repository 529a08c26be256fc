/* SPDX-License-Identifier: MIT
 * Commands of the shell: one at a time, in the project's folder, without a key ever waiting for it. Included
 * by state.h alone. */
#ifndef WHIT_EDITOR_SHELL_H
#define WHIT_EDITOR_SHELL_H

#include "base/piped.h"
#include "base/mem.h"
#include "editor/text.h"

struct ed_doc;
typedef struct whit_editor ed;

/* How a command's output is used. */
typedef enum ed_shell_kind {
    ED_SHELL_SHOW,
    ED_SHELL_MAKE,   /* shown, and its places become the list of results */
    ED_SHELL_INSERT, /* put in after a line */
    ED_SHELL_FORMAT, /* becomes the text, if the command succeeds */
    ED_SHELL_FILTER, /* replaces the lines that were its input, if the command succeeds */
} ed_shell_kind;

struct ed_shell {
    whit_piped child;
    ed_shell_kind kind;
    whit_buf input, output;
    size_t n_sent;
    struct ed_doc *doc; /* the text whose `range` is replaced, if it still has this version */
    whit_range range;
    uint64_t version;
    char command[600];
    bool stopped;
    struct ed_doc *pad; /* output of the last command */
};

/* Starts a command. `range` is of the current text: its input for ED_SHELL_FILTER and, if it is not empty,
 * for ED_SHELL_SHOW; a place for ED_SHELL_INSERT. */
void ed_shell_start(ed *e, ed_shell_kind kind, const char *command, whit_range range);
bool ed_shell_runs(const ed *e);
void ed_shell_stop(ed *e);
bool ed_shell_pump(ed *e); /* true: the screen may be another */
void ed_shell_forget(ed *e, const struct ed_doc *doc);
void ed_shell_close(ed *e);
void ed_make(ed *e, const char *arguments);

#endif
