/* SPDX-License-Identifier: MIT
 * Tests templates that would take too much time or memory: each must end with a clear error. Also tests failing
 * allocations. */
#include "base/clock.h"
#include "failing_memory.h"
#include "template_render.h"

static void endless_work_ends(void **state)
{
    (void)state;
    whit_template_options options = {.limits = {.n_steps = 1000 * 1000, .memory_bytes = 16 << 20}};
    assert_fails("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "{}", &options,
                 WHIT_ERROR_LIMIT, 1, 31);
    assert_fails("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}", &options, WHIT_ERROR_LIMIT, 1, 16);
    assert_fails("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "{}", &options, WHIT_ERROR_LIMIT, 1, 32);
    assert_fails("{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ "
                 "ns.x %}{% endfor %}",
                 "{}", &options, WHIT_ERROR_LIMIT, 1, 73);
    assert_fails("{{ 'a' * 999999999999 }}", "{}", &options, WHIT_ERROR_LIMIT, 1, 8);
    assert_fails("{{ [0] * 999999999999 }}", "{}", &options, WHIT_ERROR_LIMIT, 1, 8);
    assert_fails("{{ range(999999999) }}", "{}", &options, WHIT_ERROR_LIMIT, 1, 4);
    assert_fails("{{ '%999999d' % 1 ~ '%999999999d' % 1 }}", "{}", &options, WHIT_ERROR_LIMIT, 1, 35);
}

/* Returns a template: begin, n pieces (printf formats of a number), end. The caller frees it. */
static char *repeated(const char *begin, const char *piece, size_t n, const char *end)
{
    char *source = malloc(strlen(begin) + n * (strlen(piece) + 24) + strlen(end) + 1), *at = source;
    at = stpcpy(at, begin);
    for (size_t i = 0; i < n; i++) at += sprintf(at, piece, (int)i);
    stpcpy(at, end);
    return source;
}

/* Checks that rendering ends within two seconds of processor time, with a result or at a limit, also if no loop steps
 * are counted. */
static void assert_quick(const char *source, const char *context)
{
    uint64_t begin_ns = whit_thread_cpu_ns();
    rendered r = render_with(source, context, NULL);
    if (r.status != WHIT_OK && r.status != WHIT_ERROR_LIMIT) fail_msg("%.60s: %s", source, r.error.error.message);
    uint64_t took_ns = whit_thread_cpu_ns() - begin_ns;
    rendered_free(&r);
    if (took_ns > TEST_SLOWER * 2000000000u) fail_msg("%.60s: %llu ms", source, (unsigned long long)took_ns / 1000000);
}

static void work_without_loops_is_bounded(void **state)
{
    (void)state;
    /* Searches for the last occurrence of a long text in a longer one. */
    assert_quick("{% set a = 'a' * 1000000 %}{{ a.rfind('b' ~ 'a' * 500000) }}", "{}");
    assert_quick("{% set a = 'a' * 1000000 %}{{ a.rpartition('b' ~ 'a' * 500000) | length }}", "{}");
    assert_quick("{% set a = 'a' * 1000000 %}{{ a.rsplit('b' ~ 'a' * 500000) | length }}", "{}");
    /* Many names in one scope. */
    char *source = repeated("", "{%% set v%d = 1 %%}", 60000, "{{ v0 }}");
    assert_quick(source, "{}");
    free(source);
    /* Keys that are long texts, nested tuples, or tuples with a common beginning. */
    source = repeated("{% set d = {", "(1, %d): 1, ", 40000, "} %}{{ d | length }}");
    assert_quick(source, "{}");
    free(source);
    source = repeated("{% set t = (1, 2) %}", "{%% set t = (t, t) %%}", 60, "{{ {t: 1} | length }}");
    rendered r = render_with(source, "{}", NULL);
    assert_int_not_equal(r.status, WHIT_OK); /* the key is too large to be hashed */
    rendered_free(&r);
    free(source);
    assert_quick("{% set k = 'k' * 1000000 %}{% set d = {k: 1} %}{% for i in range(99999) %}{% set x = d[k] %}"
                 "{% endfor %}",
                 "{}");
}

static void self_reference_ends(void **state)
{
    (void)state;
    whit_template_options options = {.limits = {.n_steps = 1000 * 1000, .memory_bytes = 16 << 20}};
    assert_fails("{% set ns = namespace() %}{% set ns.a = [ns, ns] %}{{ ns }}", "{}", &options, WHIT_ERROR_LIMIT, 1,
                 52);
    assert_fails("{% set n = namespace(l=[]) %}{% for i in range(2000) %}{% set n.l = [n.l] %}{% "
                 "endfor %}{{ n.l | tojson }}",
                 "{}", &options, WHIT_ERROR_LIMIT, 1, 98);
    assert_fails("{% set n = namespace(l=[]) %}{% for i in range(2000) %}{% set n.l = [n.l] %}{% "
                 "endfor %}{{ n.l == [n.l] }}",
                 "{}", &options, WHIT_ERROR_LIMIT, 1, 96);
}

static void output_is_bounded(void **state)
{
    (void)state;
    whit_template_options options = {.limits = {.output_bytes = 1000}};
    assert_fails("{% for i in range(99999) %}xxxxxxxxxx{% endfor %}", "{}", &options, WHIT_ERROR_LIMIT, 1, 28);
}

static void nested(char *source, size_t n, const char *open, const char *middle, const char *close)
{
    *source = 0;
    char *at = source;
    for (size_t i = 0; i < n; i++) at = stpcpy(at, open);
    at = stpcpy(at, middle);
    for (size_t i = 0; i < n; i++) at = stpcpy(at, close);
}

static void deep_source_is_refused(void **state)
{
    (void)state;
    static const char *const shapes[][3] = {
        {"{% if 1 %}", "", "{% endif %}"},
        {"{% for x in y %}", "", "{% endfor %}"},
        {"{{ (", "1", ") }}"},
        {"[", "", "]"},
    };
    char *source = malloc(1 << 20), *inner = malloc(1 << 20);
    for (size_t i = 0; i < 2; i++) {
        nested(source, 20000, shapes[i][0], shapes[i][1], shapes[i][2]);
        rendered r = render_with(source, "{}", NULL);
        assert_int_equal(r.status, WHIT_ERROR_FORMAT);
        rendered_free(&r);
    }
    static const char *const brackets[][2] = {{"(", ")"}, {"[", "]"},           {"{1:", "}"}, {"not ", ""},
                                              {"-", ""},  {"x if y else ", ""}, {"x(", ")"},  {"x[", "]"}};
    for (size_t i = 0; i < sizeof brackets / sizeof *brackets; i++) {
        nested(inner, 20000, brackets[i][0], "1", brackets[i][1]);
        snprintf(source, 1 << 20, "{{ %s }}", inner);
        rendered r = render_with(source, "{}", NULL);
        assert_true(r.status == WHIT_ERROR_FORMAT || r.status == WHIT_ERROR_LIMIT);
        rendered_free(&r);
    }
    /* Postfix chains are not nested when they are parsed; their evaluation has the limit. */
    static const char *const chains[] = {".a", "[0]", " | string", " + 1", "()"};
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        nested(inner, 20000, "", "x", chains[i]);
        snprintf(source, 1 << 20, "{{ %s }}", inner);
        rendered r = render_with(source, "{\"x\": 1}", NULL);
        assert_int_equal(r.status, WHIT_ERROR_LIMIT);
        rendered_free(&r);
    }
    free(source);
    free(inner);
}

static void memory_failures_are_clean(void **state)
{
    (void)state;
    static const char source[] = "{% macro m(a) %}{{ a | upper }}{% endmacro %}{% for x in l %}{{ "
                                 "m(x) }}{{ '%s' % x }}{% endfor %}{{ l | tojson }}";
    static const char json[] = "{\"l\": [\"a\", \"b\", {\"c\": [1, 2.5]}]}";
    for (long n = 0;; n++) {
        struct failing failing = {.n_left = n};
        whit_allocator allocator = {failing_alloc, failing_free, &failing};
        whit_datum_pool pool = {.allocator = &allocator};
        whit_template *template = NULL;
        whit_template_error error = {0};
        whit_error reason;
        whit_buf out = {.allocator = &allocator}, segments = {.allocator = &allocator};
        whit_datum context;
        whit_status status = whit_datum_from_json(&pool, json, strlen(json), true, &context, &reason);
        if (status == WHIT_OK) status = whit_template_open(source, strlen(source), &allocator, &template, &error);
        if (status == WHIT_OK) status = whit_template_render(template, context, NULL, &out, &segments, &error);
        bool done = status == WHIT_OK;
        assert_true(done || status == WHIT_ERROR_MEMORY);
        whit_template_close(template);
        whit_template_error_free(&error);
        whit_buf_free(&out);
        whit_buf_free(&segments);
        whit_datum_pool_clear(&pool);
        assert_int_equal(failing.n_live, 0);
        if (done) break;
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endless_work_ends),      cmocka_unit_test(work_without_loops_is_bounded),
        cmocka_unit_test(self_reference_ends),    cmocka_unit_test(output_is_bounded),
        cmocka_unit_test(deep_source_is_refused), cmocka_unit_test(memory_failures_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
