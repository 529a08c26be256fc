/* SPDX-License-Identifier: MIT
 * Opens and renders templates, and computes the positions of errors. */
#include "template/template.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/items.h"
#include "base/utf8.h"
#include "template/machine.h"

enum { MAX_SOURCE_BYTES = 4 << 20, PARSE_BYTES_PER_BYTE = 1024, PARSE_BYTES_LEAST = 1 << 20 };

void whit_template_error_free(whit_template_error *error)
{
    whit_buf_free(&error->message);
    error->message.failed = false;
}

static whit_template_limits template_limits_default(void)
{
    return (whit_template_limits){.memory_bytes = (size_t)256 << 20,
                                  .output_bytes = (size_t)64 << 20,
                                  .n_steps = 50 * 1000 * 1000,
                                  .depth = 1500};
}

bool whit_template_time_parse(const char *iso, whit_template_time *time)
{
    static const int lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    whit_template_time t = {0};
    int n = 0;
    if (sscanf(iso, "%4d-%2d-%2d%n", &t.year, &t.month, &t.day, &n) != 3 || n != 10) return false;
    if (iso[10] &&
        (sscanf(iso + 10, "%*1[T ]%2d:%2d:%2d%n", &t.hour, &t.minute, &t.second, &n) != 3 || n != 9 || iso[19]))
        return false;
    bool leap = t.year % 4 == 0 && (t.year % 100 != 0 || t.year % 400 == 0);
    if (t.year < 1 || t.month < 1 || t.month > 12 || t.day < 1 || t.day > lengths[t.month - 1] ||
        (t.month == 2 && t.day == 29 && !leap) || t.hour < 0 || t.hour > 23 || t.minute < 0 || t.minute > 59 ||
        t.second < 0 || t.second > 59)
        return false;
    *time = t;
    return true;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Sets `error` to a position and a message: `whole` (of raise_exception) if it is not NULL, else the message of
 * `reason`. */
static whit_status place_error(const char *source, size_t offset, const whit_text *whole, const whit_error *reason,
                               whit_template_error *error)
{
    if (!error) return reason->status;
    error->line = error->column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (source[i] == '\n') {
            error->line++;
            error->column = 1;
        } else if (((unsigned char)source[i] & 0xC0) != 0x80) {
            error->column++;
        }
    }
    whit_buf *message = &error->message;
    message->size_bytes = 0;
    bool kept =
        whole ? whit_buf_append(message, whole->bytes, whole->n_bytes) : whit_buf_append_str(message, reason->message);
    if (!kept || !whit_buf_append(message, "", 1)) return whit_fail_memory(&error->error, "an error message", 0);
    message->size_bytes--;
    error->raised = whole != NULL;
    return whit_fail(&error->error, reason->status, "line %u, column %u: %.*s", error->line, error->column,
                     (int)(message->size_bytes < 480 ? message->size_bytes : 480), whit_chars(message));
}

whit_status whit_template_fail(whit_template_error *error, whit_status status, const char *line)
{
    if (!error) return status;
    error->line = error->column = 0;
    error->raised = false;
    error->message.size_bytes = 0;
    if (whit_buf_append(&error->message, line, strlen(line) + 1)) error->message.size_bytes--;
    return whit_fail(&error->error, status, "%s", line);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Copies the source with "\r\n" and "\r" replaced by "\n", and without a "\n" at its very end. */
static void normalise(whit_template *t, const char *source, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        if (source[i] == '\r' && i + 1 < n_bytes && source[i + 1] == '\n') continue;
        t->source[n++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (n && t->source[n - 1] == '\n') n--;
    t->n_bytes = n;
}

whit_status whit_template_open(const char *source, size_t n_bytes, const whit_allocator *allocator,
                               whit_template **template, whit_template_error *error)
{
    *template = NULL;
    if (error) error->message.allocator = allocator;
    if (n_bytes > MAX_SOURCE_BYTES)
        return whit_template_fail(error, WHIT_ERROR_LIMIT, "the template is longer than 4 MiB");
    if (whit_utf8_valid_bytes((const uint8_t *)source, n_bytes) != n_bytes)
        return whit_template_fail(error, WHIT_ERROR_FORMAT, "the template is not UTF-8");
    whit_template *t = whit_zalloc(allocator, sizeof *t);
    if (!t) return whit_template_fail(error, WHIT_ERROR_MEMORY, "not enough memory for the template");
    t->pool.allocator = allocator;
    t->pool.limit_bytes = PARSE_BYTES_LEAST + n_bytes * PARSE_BYTES_PER_BYTE;
    t->source = whit_datum_pool_alloc(&t->pool, n_bytes);
    whit_status status;
    if (t->source) {
        whit_error reason = {0};
        size_t offset = 0;
        normalise(t, source, n_bytes);
        status = whit_template_parse(t, &offset, &reason);
        if (status != WHIT_OK) status = place_error(t->source, offset, NULL, &reason, error);
    } else {
        status = whit_template_fail(error, WHIT_ERROR_MEMORY, "not enough memory for the template");
    }
    if (status == WHIT_OK)
        *template = t;
    else
        whit_template_close(t);
    return status;
}

void whit_template_close(whit_template *template)
{
    if (!template) return;
    const whit_allocator *allocator = template->pool.allocator;
    whit_datum_pool_clear(&template->pool);
    whit_free(allocator, template, sizeof *template);
}

/* ---- render ---------------------------------------------------------------------------------- */

static whit_template_limits effective_limits(const whit_template_options *options)
{
    whit_template_limits limits = template_limits_default();
    if (!options) return limits;
    const whit_template_limits *wanted = &options->limits;
    if (wanted->memory_bytes) limits.memory_bytes = wanted->memory_bytes;
    if (wanted->output_bytes) limits.output_bytes = wanted->output_bytes;
    if (wanted->n_steps) limits.n_steps = wanted->n_steps;
    if (wanted->depth) limits.depth = wanted->depth;
    /* Offsets in texts have 32 bits. */
    if (limits.memory_bytes > (size_t)2 << 30) limits.memory_bytes = (size_t)2 << 30;
    if (limits.output_bytes > (size_t)2 << 30) limits.output_bytes = (size_t)2 << 30;
    return limits;
}

static whit_template_time clock_time(void)
{
    time_t seconds = time(NULL);
    struct tm local = {0};
    localtime_r(&seconds, &local);
    return (whit_template_time){local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                                local.tm_hour,        local.tm_min,     local.tm_sec > 59 ? 59 : local.tm_sec};
}

static bool hand_out(const whit_text *text, whit_buf *out, whit_buf *segments)
{
    size_t out_before = out->size_bytes, segments_before = segments ? segments->size_bytes : 0;
    bool ok = whit_buf_append(out, text->bytes, text->n_bytes);
    for (size_t i = 0; ok && segments && i < text->n_spans; i++) {
        whit_template_segment segment = {text->spans[i].begin, text->spans[i].end};
        ok = whit_buf_append(segments, &segment, sizeof segment);
    }
    if (ok) return true;
    out->size_bytes = out_before;
    out->failed = false;
    if (segments) {
        segments->size_bytes = segments_before;
        segments->failed = false;
    }
    return false;
}

whit_status whit_template_render(const whit_template *template, whit_datum context,
                                 const whit_template_options *options, whit_buf *out, whit_buf *segments,
                                 whit_template_error *error)
{
    if (error) error->message.allocator = template->pool.allocator;
    if (context.kind != WHIT_DATUM_DICT)
        return whit_template_fail(error, WHIT_ERROR_ARGUMENT, "the context is not a dict");
    whit_template_limits limits = effective_limits(options);
    whit_datum_pool pool = {.allocator = template->pool.allocator, .limit_bytes = limits.memory_bytes};
    whit_machine m = {.template = template,
                      .pool = &pool,
                      .limits = limits,
                      .context = context,
                      .n_steps_left = limits.n_steps,
                      .now = options && options->now ? *options->now : clock_time(),
                      .rng = {whit_now_ns()}};
    whit_builder b = whit_machine_build(&m);
    m.out = &b;
    m.scope = m.root = whit_machine_new_scope(&m, NULL);
    whit_datum text;
    whit_status status = m.root ? whit_machine_execute(&m, template->body) : whit_machine_raise_memory(&m);
    if (status == WHIT_OK) status = whit_machine_build_end(&m, &b, &text);
    if (status == WHIT_OK && !hand_out(text.text, out, segments)) status = whit_machine_raise_memory(&m);
    if (status != WHIT_OK && m.has_place)
        status = place_error(template->source, m.offset, m.raised, &m.error, error);
    else if (status != WHIT_OK)
        status = whit_template_fail(error, status, m.error.message);
    whit_datum_pool_clear(&pool);
    return status;
}
