/* SPDX-License-Identifier: MIT
 * Renders chat templates: Jinja2 as Hugging Face's transformers runs it (3.1, immutable sandbox, trim_blocks,
 * lstrip_blocks, loop controls, `generation`, raise_exception, strftime_now, json.dumps as tojson).
 *
 * A template is parsed once and then only read: threads may share it. A render is bounded in
 * memory, steps, depth and output, and never changes the context. Text that came from the user
 * keeps its mark through every string operation; the output's marked ranges are handed out, so that
 * special tokens written by a user need not be honoured. */
#ifndef WHIT_TEMPLATE_TEMPLATE_H
#define WHIT_TEMPLATE_TEMPLATE_H

#include "template/value.h"

typedef struct whit_template whit_template;

/* Describes an error and its place. Zero-initialise; free with whit_template_error_free. */
typedef struct whit_template_error {
    whit_error error;      /* one line: "line 3, column 7: ..." */
    uint32_t line, column; /* from 1, columns in code points; 0: no place in the source */
    whit_buf message;      /* without the place, whole and verbatim; terminated by a zero that
                              size_bytes does not count */
    bool raised;           /* by the template's raise_exception */
} whit_template_error;

void whit_template_error_free(whit_template_error *error);
/* Sets an error without a place in the source; returns `status`. */
whit_status whit_template_fail(whit_template_error *error, whit_status status, const char *line);

typedef struct whit_template_limits {
    size_t memory_bytes; /* memory of one render's values; default 256 MiB, at most 2 GiB */
    size_t output_bytes; /* size of the output and of every string; default 64 MiB */
    uint64_t n_steps;    /* nodes visited and items or 64-byte blocks handled; default 50 million */
    uint32_t depth;      /* nesting of evaluation, macro calls included; default 1,500 */
} whit_template_limits;

/* Holds local time for strftime_now. */
typedef struct whit_template_time {
    int32_t year, month, day, hour, minute, second; /* month and day from 1 */
} whit_template_time;

/* Parses "2026-01-02T03:04:05", with an optional time; false if malformed or not a valid date. */
bool whit_template_time_parse(const char *iso, whit_template_time *time);

typedef struct whit_template_options {
    whit_template_limits limits;   /* 0 means the default */
    const whit_template_time *now; /* NULL: the clock, local time */
} whit_template_options;

/* Describes a range of output bytes that came from the user. */
typedef struct whit_template_segment {
    size_t begin, end;
} whit_template_segment;

/* Parses UTF-8 source of at most 4 MiB. `error` may be NULL. */
whit_status whit_template_open(const char *source, size_t n_bytes, const whit_allocator *allocator,
                               whit_template **template, whit_template_error *error);
void whit_template_close(whit_template *template);

/* Appends the rendering to `out` and, if `segments` is not NULL, the user's ranges to it as whit_template_segment
 * (sorted; offsets count from the end that `out` had before). `context` is a dict whose keys are the variables. On
 * failure both buffers are as before. */
whit_status whit_template_render(const whit_template *template, whit_datum context,
                                 const whit_template_options *options, whit_buf *out, whit_buf *segments,
                                 whit_template_error *error);

#endif
