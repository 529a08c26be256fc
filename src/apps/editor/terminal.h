/* SPDX-License-Identifier: MIT
 * Runs the editor on a terminal, in a loop over keys and events. */
#ifndef WHIT_EDITOR_TERMINAL_H
#define WHIT_EDITOR_TERMINAL_H

#include "editor/editor.h"
#include "editor/suggest.h"

typedef struct whit_edit_options {
    const char *const *files; /* FILE, FILE:LINE, or "-" for stdin */
    size_t n_files;
    const char *config_path;         /* NULL: $XDG_CONFIG_HOME/whit/edit.conf */
    const whit_suggester *suggester; /* NULL: there are no suggestions */
    bool read_only, no_journal;
    whit_arrangement arrangement;
    const char *line;               /* a line of vi's ':' that is run at the start; NULL: there is no such line */
    const struct whit_panel *panel; /* agent; NULL: there is no agent */
    const volatile bool *stop;      /* set by a signal; the journals are then written, and the editor ends */
} whit_edit_options;

/* Runs until the user quits. *stopped becomes true if a signal ended the editor. Returns WHIT_ERROR_UNSUPPORTED if
 * there is no terminal. */
whit_status whit_edit_run(const whit_edit_options *options, bool *stopped, whit_error *error);

#endif
