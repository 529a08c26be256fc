/* SPDX-License-Identifier: MIT
 * Reads the `.editorconfig` files in the folders above a file: the settings that a project wants for its texts,
 * whatever editor is used. The rules are those of https://spec.editorconfig.org (0.17). */
#ifndef WHIT_EDITOR_EDITORCONFIG_H
#define WHIT_EDITOR_EDITORCONFIG_H

#include "base/mem.h"

typedef enum whit_said { WHIT_UNSAID, WHIT_NO, WHIT_YES } whit_said;

typedef struct whit_editorconfig {
    whit_said tabs;                  /* indent_style */
    int indent_columns, tab_columns; /* 0: not set */
    int line_columns;                /* max_line_length; 0: not set */
    whit_said carriage_return;       /* end_of_line = crlf */
    whit_said trim, final_newline;
} whit_editorconfig;

/* Applies the properties that one file sets for `path` (relative to its folder) over those in `config`.
 * Returns whether the file stops the search in the folders above ("root = true"). Invalid lines and
 * properties of other editors are ignored, as the specification requires. */
bool whit_editorconfig_apply(const char *text, size_t n_bytes, const char *path, whit_editorconfig *config);

/* Reads the properties that all `.editorconfig` files above `path` (absolute) set for it; nearer files win. Files that
 * cannot be read, and files over 1 MiB, are ignored. */
void whit_editorconfig_read(const char *path, whit_editorconfig *config);

#endif
