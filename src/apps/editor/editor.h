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
    const char *journal_folder;      /* folder of journals; NULL: unsaved text is not kept */
    const char *config_path;         /* path of the settings file; NULL: no settings file */
    const char *config;              /* text of the settings; NULL: read from config_path if that file exists */
    const char *project;             /* folder in which files and symbols are found; NULL: the current folder */
    const whit_suggester *suggester; /* NULL: no suggestions */
    bool read_only;
    /* Called with each copied text, to put it into the terminal's clipboard; may be NULL. */
    void (*copy)(void *user, const char *text, size_t n);
    void *user;
    const whit_panel *panel; /* the agent, which must outlive the editor; NULL: no agent */
} whit_editor_options;

whit_status whit_editor_open(const whit_editor_options *options, whit_editor **editor, whit_error *error);
void whit_editor_close(whit_editor *editor);

/* Opens FILE, FILE:LINE or FILE:LINE:COLUMN. An error is also shown on the screen. */
whit_status whit_editor_add_file(whit_editor *editor, const char *name, whit_error *error);
/* Adds a text without a file, such as input from a pipe. */
whit_status whit_editor_add_text(whit_editor *editor, const char *name, const void *data, size_t n, whit_error *error);

/* How the windows show the opened files. */
typedef enum whit_arrangement {
    WHIT_ARRANGE_TABS, /* all files in one window */
    WHIT_ARRANGE_BESIDE,
    WHIT_ARRANGE_BELOW,
    WHIT_ARRANGE_COMPARED, /* two files side by side, with their differing lines marked */
} whit_arrangement;
void whit_editor_arrange(whit_editor *editor, whit_arrangement how, int n_columns, int n_rows);
/* Runs a line as typed after vi's ':', such as "%s/a/b/ | w", even if vi's keys are off. */
void whit_editor_line(whit_editor *editor, const char *line);

/* Runs the command of a key, or inserts its character. For WHIT_KEY_PASTE `paste` is the pasted text, or NULL if it was
 * too long; for all other keys it is NULL. */
void whit_editor_key(whit_editor *editor, whit_key key, const char *paste, size_t n_paste);
void whit_editor_draw(whit_editor *editor, whit_screen *screen);
bool whit_editor_is_done(const whit_editor *editor);
/* Does one or two milliseconds of background work; call it while no key waits. Returns true while there is more to do.
 * *redraw becomes true if the screen must be redrawn. */
bool whit_editor_idle(whit_editor *editor, bool *redraw);
/* Returns after how many milliseconds without a key whit_editor_idle() should be called; -1: never. */
int whit_editor_wait_ms(const whit_editor *editor);
/* whit_editor_fds lists the descriptors to poll together with the keys (language servers, the agent, git, a command,
 * the suggester), at most WHIT_EDITOR_FDS. whit_editor_ready must be called when one of them is ready; it returns true
 * if the screen must be redrawn. */
#define WHIT_EDITOR_FDS 38
size_t whit_editor_fds(const whit_editor *editor, struct pollfd *fds, size_t max);
bool whit_editor_ready(whit_editor *editor);
/* Checks whether other programs have changed the current file. Returns false while a question is open; call it again
 * after the answer. */
bool whit_editor_check_files(whit_editor *editor);
/* Writes unsaved text to the journals. */
void whit_editor_flush(whit_editor *editor);
bool whit_editor_wants_mouse(const whit_editor *editor);
const whit_theme *whit_editor_theme(const whit_editor *editor);
/* Returns the path of the current buffer, or NULL if it has no file. The pointer is valid until another buffer becomes
 * current or this one gets another path. */
const char *whit_editor_path(const whit_editor *editor);

/* Gets the name, keys ("C-s") and help of command i, for the documentation. Returns false if there is no command i. */
bool whit_editor_command(size_t i, const char **name, const char **keys, const char **help);

#endif
