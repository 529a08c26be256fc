/* SPDX-License-Identifier: MIT
 * Declares the table of commands, the keys bound to them, and the settings that change these bindings. */
#ifndef WHIT_EDITOR_COMMAND_H
#define WHIT_EDITOR_COMMAND_H

#include "editor/window.h"
#include "editor/keys.h"

typedef void ed_command_fn(ed *e);
struct ed_command {
    const char *name, *keys, *help;
    ed_command_fn *run;
    uint8_t flags;
};
/* Flags of commands. ED_MOVES: the command moves the cursors, so Shift with its key extends the selections; ED_EDITS:
 * it changes the text, so it is refused in a read-only text, and its edits are a step of undo; ED_JUMPS: the command
 * jump-back returns to the place before it; ED_ONE: it acts on one cursor, so further cursors are removed first. */
enum { ED_MOVES = 1, ED_EDITS = 2, ED_JUMPS = 4, ED_ONE = 8 };
extern const struct ed_command ed_commands[];
extern const size_t ed_n_commands;

struct ed_binding {
    whit_key key;
    int command;
    bool is_own; /* bound by the user's settings; with Ctrl or Alt it then takes precedence over vi's keys */
};

extern ed_command_fn ed_do_reflow, ed_do_reindent;

/* commands.c: return the offset to which a movement takes the cursor. */
uint64_t ed_to_right(ed *e, struct ed_cursor *cursor);
uint64_t ed_to_word_left(ed *e, struct ed_cursor *cursor);
uint64_t ed_to_word_right(ed *e, struct ed_cursor *cursor);

/* These commands are in commands_edit.c. */
extern ed_command_fn ed_do_delete, ed_do_backspace, ed_do_delete_word_left, ed_do_delete_word_right, ed_do_new_line,
    ed_do_tab, ed_do_indent, ed_do_outdent, ed_do_toggle_comment, ed_do_delete_line, ed_do_duplicate_line,
    ed_do_line_up, ed_do_line_down, ed_do_copy, ed_do_cut, ed_do_paste, ed_do_undo, ed_do_redo, ed_do_branch;

/* These functions are in config.c. */
void ed_config_read(ed *e, const char *text, const char *path);
int ed_config_command(const ed *e, whit_key key);
bool ed_config_is_own(const ed *e, whit_key key); /* returns whether the settings bind the key */
bool ed_bind(ed *e, whit_key key, int command, bool is_own);

#endif
