/* SPDX-License-Identifier: MIT
 * Patches as models write them: SEARCH/REPLACE blocks, "*** Begin Patch" envelopes, unified diffs.
 *
 * A patch is parsed into hunks of lines to keep, to remove and to add. A hunk is applied only where
 * its old lines are found in exactly one place; it never guesses. Lines to keep stay the file's own
 * bytes. Texts of a parsed patch point into the source, which outlives it. */
#ifndef WHIT_AGENT_PATCH_H
#define WHIT_AGENT_PATCH_H

#include "base/mem.h"

#define WHIT_PATCH_MARK "\xEF\xBB\xBF" /* UTF-8's byte order mark, which editors show nobody */

/* How a hunk's old lines were matched: the first grade with a match. */
typedef enum whit_patch_grade {
    WHIT_PATCH_EXACT,
    WHIT_PATCH_TRAILING,    /* but for blanks at the ends of lines */
    WHIT_PATCH_INDENTATION, /* but for blanks at both ends; added lines are indented alike */
    WHIT_PATCH_UNICODE,     /* and for typographic variants of quotes, dashes and spaces */
    WHIT_PATCH_GRADES
} whit_patch_grade;
const char *whit_patch_grade_name(whit_patch_grade grade);

typedef struct whit_patch_line {
    char kind; /* ' ' keep, '-' remove, '+' add */
    const char *text;
    size_t n_bytes; /* without the line end */
} whit_patch_line;

typedef struct whit_patch_hunk {
    size_t first, n_lines; /* index in the patch's lines */
    const char *anchor;    /* a line that must precede the hunk's place; NULL: no anchor */
    size_t anchor_bytes;
    bool no_final_newline; /* the new text ends the file without one */
    bool final_newline;    /* only the old text ended the file without one; its last line is deleted */
    bool is_block;         /* SEARCH/REPLACE block: may change lines that an earlier block inserted */
    uint32_t source_line;  /* line of the patch, for messages */
} whit_patch_hunk;

typedef enum whit_patch_action { WHIT_PATCH_CHANGE, WHIT_PATCH_ADD, WHIT_PATCH_DELETE } whit_patch_action;

typedef struct whit_patch_file {
    whit_patch_action action;
    char *path;            /* as written, without a/ and b/; NULL: the caller's default */
    char *move_to;         /* NULL: stays */
    size_t first, n_hunks; /* index in the patch's hunks */
} whit_patch_file;

/* Zero-initialise with the allocator of the three lists set; free with whit_patch_free. */
typedef struct whit_patch {
    whit_buf lines, hunks, files; /* whit_patch_line, whit_patch_hunk, whit_patch_file */
} whit_patch;

size_t whit_patch_n_files(const whit_patch *patch);
const whit_patch_file *whit_patch_file_at(const whit_patch *patch, size_t i);

/* `text` in any of the three forms. Errors: format (with the line of the patch), memory, limit. */
whit_status whit_patch_parse(const char *text, size_t n_bytes, whit_patch *patch, whit_error *error);
void whit_patch_free(whit_patch *patch);

typedef struct whit_patch_result {
    whit_patch_grade grade; /* the loosest grade of matching among the hunks */
    bool already_applied;   /* all new lines of every hunk are in the file and none of the old ones */
    uint32_t n_hunks;
} whit_patch_result;

/* Appends the content of a file after the hunks of `file` to `out`. A byte order mark before line 1 is not part of it
 * and stays, unless a hunk removes line 1 with the mark and adds it without. On failure (WHIT_ERROR_FORMAT) `out` is
 * unchanged and the message says which hunk, the first differing line at the nearest place, or the places where the
 * hunk is ambiguous, and the hash of the content. */
whit_status whit_patch_apply(const whit_patch *patch, const whit_patch_file *file, const char *name,
                             const char *content, size_t n_bytes, whit_buf *out, whit_patch_result *result,
                             whit_error *error);

#endif
