/* SPDX-License-Identifier: MIT
 * Reads patches in the forms that models write: SEARCH/REPLACE blocks, "*** Begin Patch" envelopes, unified diffs.
 *
 * A patch is parsed into hunks of lines to keep, to remove and to add. A hunk is applied only if its old lines are
 * found in exactly one place (after its anchor, if it has one); without old lines it needs an anchor or an empty file.
 * Lines to keep stay the file's own bytes. Texts of a parsed patch point into the source text, which must outlive the
 * patch. */
#ifndef WHIT_AGENT_PATCH_H
#define WHIT_AGENT_PATCH_H

#include "base/mem.h"

#define WHIT_PATCH_MARK "\xEF\xBB\xBF" /* UTF-8 byte order mark, which editors do not show */

/* How loosely a hunk's old lines may match the file. The grades are tried in this order. */
typedef enum whit_patch_grade {
    WHIT_PATCH_EXACT,
    WHIT_PATCH_TRAILING, /* like EXACT, but blanks at the ends of lines may differ */
    /* blanks at both ends of lines may differ; added lines are indented to match the file */
    WHIT_PATCH_INDENTATION,
    WHIT_PATCH_UNICODE, /* like INDENTATION, and typographic variants of quotes, dashes and spaces match, too */
    WHIT_PATCH_GRADES
} whit_patch_grade;
const char *whit_patch_grade_name(whit_patch_grade grade);

typedef struct whit_patch_line {
    char kind; /* ' ': keep, '-': remove, '+': add */
    const char *text;
    size_t n_bytes; /* bytes without the line end */
} whit_patch_line;

typedef struct whit_patch_hunk {
    size_t first, n_lines; /* first: index in the patch's `lines` */
    const char *anchor;    /* line of the file after which the hunk must match; NULL: no anchor */
    size_t anchor_bytes;
    bool no_final_newline; /* the file ends without a line end after the hunk */
    bool final_newline;    /* the last old line, which the hunk removes, had no line end */
    /* the hunk comes from a SEARCH/REPLACE block, which may change lines that an earlier block added */
    bool is_block;
    uint32_t source_line; /* number of the patch's line at which the hunk begins, for messages */
} whit_patch_hunk;

typedef enum whit_patch_action { WHIT_PATCH_CHANGE, WHIT_PATCH_ADD, WHIT_PATCH_DELETE } whit_patch_action;

typedef struct whit_patch_file {
    whit_patch_action action;
    char *path;            /* path without a/ or b/; NULL: the caller supplies it */
    char *move_to;         /* new path of a file that the patch moves; NULL: the file is not moved */
    size_t first, n_hunks; /* first: index in the patch's `hunks` */
} whit_patch_file;

/* A parsed patch. Zero-initialise it, or set only the allocator of the three lists; free it with whit_patch_free(). */
typedef struct whit_patch {
    whit_buf lines, hunks, files; /* whit_patch_line[], whit_patch_hunk[], whit_patch_file[] */
} whit_patch;

size_t whit_patch_n_files(const whit_patch *patch);
const whit_patch_file *whit_patch_file_at(const whit_patch *patch, size_t i);

/* Parses a patch in any of the three forms. Errors: format (with the line of the patch), memory, limit. */
whit_status whit_patch_parse(const char *text, size_t n_bytes, whit_patch *patch, whit_error *error);
void whit_patch_free(whit_patch *patch);

typedef struct whit_patch_result {
    whit_patch_grade grade; /* the loosest grade that a hunk needed */
    /* no hunk's old lines were found as a whole, but the file already contains all hunks' new lines */
    bool already_applied;
    uint32_t n_hunks;
} whit_patch_result;

/* Applies the hunks of `file` to `content` and appends the new content to `out`. A byte order mark before line 1 is not
 * part of the line and stays, unless a hunk removes line 1 with the mark and adds it without. On failure `out` is
 * unchanged. The message of WHIT_ERROR_FORMAT names the hunk and, if it matches nowhere, the hash of the content and
 * the first differing line at the best place; if it matches several times, the first two places. Errors: format, limit,
 * memory. */
whit_status whit_patch_apply(const whit_patch *patch, const whit_patch_file *file, const char *name,
                             const char *content, size_t n_bytes, whit_buf *out, whit_patch_result *result,
                             whit_error *error);

#endif
