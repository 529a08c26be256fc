/* SPDX-License-Identifier: MIT
 * Reads patches in the forms that models write: SEARCH/REPLACE blocks, "*** Begin Patch" envelopes, unified diffs.
 *
 * A patch is parsed into hunks of lines to keep, to remove and to add. A hunk is applied only if its old lines are
 * found in exactly one place; a place is never guessed. Lines to keep stay the file's own bytes. Texts of a parsed
 * patch point into the source text, which must outlive the patch. */
#ifndef WHIT_AGENT_PATCH_H
#define WHIT_AGENT_PATCH_H

#include "base/mem.h"

#define WHIT_PATCH_MARK "\xEF\xBB\xBF" /* UTF-8's byte order mark, which editors do not show */

/* Lists the grades by which a hunk's old lines are matched, in the order in which they are tried. */
typedef enum whit_patch_grade {
    WHIT_PATCH_EXACT,
    WHIT_PATCH_TRAILING, /* the lines match except for blanks at their ends */
    /* the lines match except for blanks at both ends; added lines are indented like the file's */
    WHIT_PATCH_INDENTATION,
    WHIT_PATCH_UNICODE, /* the lines match also except for typographic variants of quotes, dashes and spaces */
    WHIT_PATCH_GRADES
} whit_patch_grade;
const char *whit_patch_grade_name(whit_patch_grade grade);

typedef struct whit_patch_line {
    char kind; /* ' ': keep, '-': remove, '+': add */
    const char *text;
    size_t n_bytes; /* bytes without the line end */
} whit_patch_line;

typedef struct whit_patch_hunk {
    size_t first, n_lines; /* index in the patch's lines */
    const char *anchor;    /* a line that must precede the hunk's place; NULL: no anchor */
    size_t anchor_bytes;
    bool no_final_newline; /* the new text ends the file without one */
    bool final_newline;    /* only the old text ended the file without a line end, and its last line is removed */
    /* the hunk is a SEARCH/REPLACE block, which may change lines that an earlier block inserted */
    bool is_block;
    uint32_t source_line; /* number of the hunk's line in the patch, for messages */
} whit_patch_hunk;

typedef enum whit_patch_action { WHIT_PATCH_CHANGE, WHIT_PATCH_ADD, WHIT_PATCH_DELETE } whit_patch_action;

typedef struct whit_patch_file {
    whit_patch_action action;
    char *path;            /* path as written, without a/ and b/; NULL: the caller's default */
    char *move_to;         /* NULL: the file is not moved */
    size_t first, n_hunks; /* index in the patch's hunks */
} whit_patch_file;

/* Holds a parsed patch; zero-initialise it with the allocator of the three lists set, and free it with
 * whit_patch_free. */
typedef struct whit_patch {
    whit_buf lines, hunks, files; /* whit_patch_line, whit_patch_hunk, whit_patch_file */
} whit_patch;

size_t whit_patch_n_files(const whit_patch *patch);
const whit_patch_file *whit_patch_file_at(const whit_patch *patch, size_t i);

/* Parses a patch in any of the three forms. Errors: format (with the line of the patch), memory, limit. */
whit_status whit_patch_parse(const char *text, size_t n_bytes, whit_patch *patch, whit_error *error);
void whit_patch_free(whit_patch *patch);

typedef struct whit_patch_result {
    whit_patch_grade grade; /* the loosest grade of matching among the hunks */
    bool already_applied;   /* all new lines of every hunk are in the file, and its old lines are not */
    uint32_t n_hunks;
} whit_patch_result;

/* Appends the content that a file has after the hunks of `file` to `out`. A byte order mark before line 1 is not part
 * of the line and stays, unless a hunk removes line 1 with the mark and adds it without. On failure (WHIT_ERROR_FORMAT)
 * `out` is unchanged, and the message names the hunk, the first differing line at the nearest place or the places where
 * the hunk is ambiguous, and the hash of the content. */
whit_status whit_patch_apply(const whit_patch *patch, const whit_patch_file *file, const char *name,
                             const char *content, size_t n_bytes, whit_buf *out, whit_patch_result *result,
                             whit_error *error);

#endif
