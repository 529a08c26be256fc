/* SPDX-License-Identifier: MIT
 * The `.editorconfig` files above a file: what a project wants of its texts, whatever editor is used.
 * The rules are those of https://spec.editorconfig.org (0.17). */
#ifndef WHIT_EDITOR_EDITORCONFIG_H
#define WHIT_EDITOR_EDITORCONFIG_H

#include "base/mem.h"

typedef enum whit_said { WHIT_UNSAID, WHIT_NO, WHIT_YES } whit_said;

typedef struct whit_editorconfig {
    whit_said tabs;                  /* indent_style */
    int indent_columns, tab_columns; /* 0 unsaid */
    int line_columns;                /* max_line_length; 0: not said */
    whit_said carriage_return;       /* end_of_line = crlf */
    whit_said trim, final_newline;
} whit_editorconfig;

/* Whether the glob of a section matches `path`, which is relative to the folder of the file that has the
 * section: *, **, ?, [abc], [!abc], {one,two}, {1..9}, and \ before what is meant as it is. False where
 * a pattern takes more than 100,000 steps. */
bool whit_editorconfig_match(const char *glob, const char *path);

/* Takes what one file says of `path` (relative to its folder) over what `config` holds.
 * Returns whether the file says that none above it counts ("root = true"). Lines that make no sense and
 * properties of other editors are passed over, as the rules want. */
bool whit_editorconfig_apply(const char *text, size_t n_bytes, const char *path, whit_editorconfig *config);

/* What all of them say of `path`, which is absolute; nearer files win. Files that cannot be read, and
 * those over 1 MiB, say nothing. */
void whit_editorconfig_read(const char *path, whit_editorconfig *config);

#endif
