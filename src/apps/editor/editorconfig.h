/* SPDX-License-Identifier: MIT
 * Reads the `.editorconfig` files in the folders above a file: the settings that a project wants for its texts,
 * whatever editor is used. The rules are those of https://spec.editorconfig.org (0.17). */
#ifndef WHIT_EDITOR_EDITORCONFIG_H
#define WHIT_EDITOR_EDITORCONFIG_H

#include "base/mem.h"

typedef enum whit_said { WHIT_UNSAID, WHIT_NO, WHIT_YES } whit_said;

typedef struct whit_editorconfig {
    whit_said tabs; /* indent_style: YES is "tab", NO is "space" */
    /* indent_size and tab_width; 0: not set; indent_columns is -1 for "indent_size = tab" until
     * whit_editorconfig_read() replaces it by the tab width; with tabs, it also replaces an unset tab width by
     * indent_columns */
    int indent_columns, tab_columns;
    int line_columns;          /* max_line_length; 0: not set */
    whit_said carriage_return; /* end_of_line: YES is "crlf", NO is "lf" */
    whit_said trim, final_newline;
} whit_editorconfig;

/* Applies the properties that one file's text sets for `path` (relative to the file's folder) to `config`, replacing
 * earlier values. Returns whether the file says "root = true", so that folders above are not searched. Invalid lines
 * and unknown properties are ignored, as the specification requires. */
bool whit_editorconfig_apply(const char *text, size_t n_bytes, const char *path, whit_editorconfig *config);

/* Reads the properties that the .editorconfig files in the folders above `path` (absolute) set for it, up to the first
 * that says "root = true" and at most 64; a nearer file takes precedence. Files that cannot be read or exceed 1 MiB are
 * ignored. */
void whit_editorconfig_read(const char *path, whit_editorconfig *config);

#endif
