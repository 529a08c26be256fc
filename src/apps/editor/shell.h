/* SPDX-License-Identifier: MIT
 * Runs commands of the shell: one at a time, in the project's folder, without a key ever waiting for a command. Only
 * state.h includes this header. */
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
    ED_SHELL_MAKE,   /* shows the output, and makes the places in it the list of results */
    ED_SHELL_INSERT, /* inserts the output after a line if the command succeeds */
    ED_SHELL_FORMAT, /* replaces the text by the output if the command succeeds */
    ED_SHELL_FILTER, /* replaces the lines that were the command's input by its output if it succeeds */
} ed_shell_kind;

struct ed_shell {
    whit_piped child;
    ed_shell_kind kind;
    whit_buf input, output;
    size_t n_sent;
    struct ed_doc *doc; /* document whose `range` the output replaces if it still has `version` */
    whit_range range;
    uint64_t version, cursor; /* cursor: its offset when the command was started */
    char command[600];
    bool stopped;
    struct ed_doc *pad; /* pad with the output of the last command */
};

/* Starts a command. `range` in the current text is: for ED_SHELL_FILTER, ED_SHELL_FORMAT and, if not empty,
 * ED_SHELL_SHOW the command's input; for ED_SHELL_INSERT the place; for ED_SHELL_MAKE empty. */
void ed_shell_start(ed *e, ed_shell_kind kind, const char *command, whit_range range);
bool ed_shell_runs(const ed *e);
void ed_shell_stop(ed *e);
bool ed_shell_pump(ed *e); /* returns true if the screen must be redrawn */
void ed_shell_forget(ed *e, const struct ed_doc *doc);
void ed_shell_close(ed *e);
void ed_make(ed *e, const char *arguments);

#endif
