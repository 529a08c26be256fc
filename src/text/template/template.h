/* SPDX-License-Identifier: MIT
 * Renders chat templates: Jinja2 3.1 as Hugging Face's transformers runs it (immutable sandbox, trim_blocks,
 * lstrip_blocks, loop controls, `generation`, raise_exception, strftime_now, tojson as json.dumps).
 *
 * A template is parsed once and then only read: threads may share it. A rendering is limited in memory, steps, depth
 * and output, and never changes the context. Text from the user is marked, and keeps the mark through every string
 * operation. The marked ranges of the output are returned, so that the tokenizer need not recognise special tokens in
 * them. */
#ifndef WHIT_TEMPLATE_TEMPLATE_H
#define WHIT_TEMPLATE_TEMPLATE_H

#include "template/value.h"

typedef struct whit_template whit_template;

/* An error and its position. Zero-initialise it, and free it with whit_template_error_free. */
typedef struct whit_template_error {
    whit_error error;      /* one line: "line 3, column 7: REASON" */
    uint32_t line, column; /* from 1, columns in code points; 0: the error has no position */
    whit_buf message;      /* the complete message without the position; followed by a zero byte that size_bytes does
                            * not count */
    bool raised;           /* the template has called raise_exception */
} whit_template_error;

void whit_template_error_free(whit_template_error *error);
/* Sets an error without a position. Returns `status`. */
whit_status whit_template_fail(whit_template_error *error, whit_status status, const char *line);

typedef struct whit_template_limits {
    size_t memory_bytes; /* memory of one rendering's values; default 256 MiB, at most 2 GiB */
    size_t output_bytes; /* size of the output, and of every string; default 64 MiB, at most 2 GiB */
    uint64_t n_steps;    /* limit of visited nodes and processed items or 64-byte blocks; default 50 million */
    uint32_t depth;      /* nesting of evaluations, including macro calls; default 1,500 */
} whit_template_limits;

/* Local time for strftime_now. */
typedef struct whit_template_time {
    int32_t year, month, day, hour, minute, second; /* month and day from 1 */
} whit_template_time;

/* Parses "2026-01-02T03:04:05"; the time of day is optional, and a space may stand in place of the T. Returns false if
 * it is malformed or not a valid date. */
bool whit_template_time_parse(const char *iso, whit_template_time *time);

typedef struct whit_template_options {
    whit_template_limits limits;   /* members that are 0 have the default */
    const whit_template_time *now; /* NULL: the current local time */
} whit_template_options;

/* A range [begin, end) of output bytes that came from the user. */
typedef struct whit_template_segment {
    size_t begin, end;
} whit_template_segment;

/* Parses a template's source, UTF-8 of at most 4 MiB. `error` may be NULL. */
whit_status whit_template_open(const char *source, size_t n_bytes, const whit_allocator *allocator,
                               whit_template **template, whit_template_error *error);
void whit_template_close(whit_template *template);

/* Renders the template and appends the result to `out`. If `segments` is not NULL, the user's ranges are appended to it
 * as whit_template_segment, sorted; their offsets count from the former end of `out`. `context` is a dict whose keys
 * are the names of variables. On failure both buffers are unchanged. */
whit_status whit_template_render(const whit_template *template, whit_datum context,
                                 const whit_template_options *options, whit_buf *out, whit_buf *segments,
                                 whit_template_error *error);

#endif
