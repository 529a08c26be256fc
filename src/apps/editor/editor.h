/* SPDX-License-Identifier: MIT
 * Runs the editor without a terminal: it takes keys and draws a screen. The loop around it (terminal.h) reads a
 * terminal and shows the screen; tests and fuzzers need no terminal. */
#ifndef WHIT_EDITOR_EDITOR_H
#define WHIT_EDITOR_EDITOR_H

#include "editor/keys.h"
#include "editor/panel.h"
#include "editor/suggest.h"
#include "editor/theme.h"

#include <poll.h>

typedef struct whit_editor whit_editor;

typedef struct whit_editor_options {
    const char *journal_folder;      /* NULL: unsaved text is not kept */
    const char *config_path;         /* path of the settings; NULL: there is no file of settings */
    const char *config;              /* text of the settings; NULL: read from the path, if the file exists */
    const char *project;             /* folder of the file finder and of the code graph; NULL: the current folder */
    const whit_suggester *suggester; /* NULL: there are no suggestions */
    bool read_only;
    /* Receives copied text for the terminal's clipboard, too; may be NULL. */
    void (*copy)(void *user, const char *text, size_t n);
    void *user;
    const whit_panel *panel; /* agent, which must outlive the editor; NULL: there is no agent */
} whit_editor_options;

whit_status whit_editor_open(const whit_editor_options *options, whit_editor **editor, whit_error *error);
void whit_editor_close(whit_editor *editor);

/* Opens FILE or FILE:LINE in a buffer of its own; an error is shown on the screen, too. */
whit_status whit_editor_add_file(whit_editor *editor, const char *name, whit_error *error);
/* Adds a text that has no file, such as input from a pipe. */
whit_status whit_editor_add_text(whit_editor *editor, const char *name, const void *data, size_t n, whit_error *error);

/* tells how the windows show the opened files, on a screen of that size */
typedef enum whit_arrangement {
    WHIT_ARRANGE_TABS, /* all files in one window */
    WHIT_ARRANGE_BESIDE,
    WHIT_ARRANGE_BELOW,
    WHIT_ARRANGE_COMPARED, /* two files, side by side */
} whit_arrangement;
void whit_editor_arrange(whit_editor *editor, whit_arrangement how, int n_columns, int n_rows);
/* Runs a line of vi's ':', such as "%s/a/b/ | w", also if vi's keys are not in use. */
void whit_editor_line(whit_editor *editor, const char *line);

/* Handles a key. `paste` is the text of a WHIT_KEY_PASTE, or NULL if that text was too long; it is NULL for all other
 * keys. */
void whit_editor_key(whit_editor *editor, whit_key key, const char *paste, size_t n_paste);
void whit_editor_draw(whit_editor *editor, whit_screen *screen);
bool whit_editor_is_done(const whit_editor *editor);
/* Does a millisecond or two of work, for times when no key waits; returns true while there is more to do. *redraw
 * becomes true if the screen must be redrawn. */
bool whit_editor_idle(whit_editor *editor, bool *redraw);
/* Returns the milliseconds without a key after which whit_editor_idle should be called; -1: never. */
int whit_editor_wait_ms(const whit_editor *editor);
/* The first function lists the file descriptors to poll together with the keys (language servers, the agent, git, a
 * command, the suggester), at most WHIT_EDITOR_FDS. The second must be called when one of them is ready, and returns
 * true if the screen must be redrawn. */
#define WHIT_EDITOR_FDS 38
size_t whit_editor_fds(const whit_editor *editor, struct pollfd *fds, size_t max);
bool whit_editor_ready(whit_editor *editor);
/* Checks whether other programs have changed the current file. Returns false while a question is open, and must then be
 * called again afterwards. */
bool whit_editor_check_files(whit_editor *editor);
/* Writes the typed text to the journals, which keep unsaved text. */
void whit_editor_flush(whit_editor *editor);
bool whit_editor_wants_mouse(const whit_editor *editor);
const whit_theme *whit_editor_theme(const whit_editor *editor);
/* Returns the path of the current buffer, or NULL if it has no file. The pointer changes with the buffer. */
const char *whit_editor_path(const whit_editor *editor);

/* Gives the i-th command for documentation: its name, its keys ("C-s") and its help; returns false after the last. */
bool whit_editor_command(size_t i, const char **name, const char **keys, const char **help);

#endif
