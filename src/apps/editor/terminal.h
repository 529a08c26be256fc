/* SPDX-License-Identifier: MIT
 * Runs the editor on a terminal, in a loop over keys and events. */
#ifndef WHIT_EDITOR_TERMINAL_H
#define WHIT_EDITOR_TERMINAL_H

#include "editor/editor.h"
#include "editor/suggest.h"

typedef struct whit_edit_options {
    const char *const *files; /* FILE, FILE:LINE, FILE:LINE:COLUMN, or "-" for standard input */
    size_t n_files;
    /* settings file; NULL: $XDG_CONFIG_HOME/whit/edit.conf or ~/.config/whit/edit.conf */
    const char *config_path;
    const whit_suggester *suggester; /* NULL: no suggestions */
    bool read_only, no_journal;
    whit_arrangement arrangement;
    const char *line;               /* line of vi's ':' to run at the start, or NULL */
    const struct whit_panel *panel; /* NULL: no agent */
    const volatile bool *stop;      /* becomes true at a signal: the journals are then written, and the editor ends */
} whit_edit_options;

/* Runs the editor until the user quits. *stopped becomes true if a signal ended it. Returns WHIT_ERROR_UNSUPPORTED if
 * there is no terminal. */
whit_status whit_edit_run(const whit_edit_options *options, bool *stopped, whit_error *error);

#endif
