/* SPDX-License-Identifier: MIT
 * Renders small templates in tests. */
#ifndef WHIT_TESTS_TEMPLATE_RENDER_H
#define WHIT_TESTS_TEMPLATE_RENDER_H

#include "test.h"

#include "template/chat.h"

typedef struct rendered {
    whit_status status;
    whit_buf text, segments;
    whit_template_error error;
} rendered;

/* Renders a template with a context in JSON. The caller frees the result with rendered_free. */
static inline rendered render_with(const char *source, const char *context, const whit_template_options *options)
{
    rendered r = {0};
    whit_template *template;
    whit_datum_pool pool = {0};
    whit_datum value;
    whit_error error;
    assert_ok(whit_datum_from_json(&pool, context, strlen(context), true, &value, &error), error);
    r.status = whit_template_open(source, strlen(source), NULL, &template, &r.error);
    if (r.status == WHIT_OK) r.status = whit_template_render(template, value, options, &r.text, &r.segments, &r.error);
    whit_template_close(template);
    whit_datum_pool_clear(&pool);
    return r;
}

static inline void rendered_free(rendered *r)
{
    whit_buf_free(&r->text);
    whit_buf_free(&r->segments);
    whit_template_error_free(&r->error);
}

static inline void assert_renders(const char *source, const char *context, const char *expected)
{
    rendered r = render_with(source, context, NULL);
    if (r.status != WHIT_OK) fail_msg("%s: %s", source, r.error.error.message);
    if (r.text.size_bytes != strlen(expected) ||
        memcmp(r.text.data ? r.text.data : (uint8_t *)"", expected, r.text.size_bytes))
        fail_msg("%s: '%.*s', expected '%s'", source, (int)r.text.size_bytes, (const char *)r.text.data, expected);
    rendered_free(&r);
}

static inline void assert_fails(const char *source, const char *context, const whit_template_options *options,
                                whit_status status, uint32_t line, uint32_t column)
{
    rendered r = render_with(source, context, options);
    if (r.status != status || r.error.line != line || r.error.column != column)
        fail_msg("%.60s: %s at %u:%u: %s", source, whit_status_name(r.status), r.error.line, r.error.column,
                 r.error.error.message);
    assert_int_equal(r.text.size_bytes, 0);
    assert_true(r.error.error.message[0] != 0);
    rendered_free(&r);
}

/* Checks that rendering fails with a message that contains `part`. */
static inline void assert_render_fails(const char *source, const char *context, const char *part)
{
    rendered r = render_with(source, context, NULL);
    if (r.status == WHIT_OK || !strstr(r.error.error.message, part))
        fail_msg("%s: %s: %s", source, whit_status_name(r.status), r.error.error.message);
    rendered_free(&r);
}

#endif
