/* SPDX-License-Identifier: MIT
 * Runs every case of ../shared/templates: conversations as lines of JSON, as on the command line, and small Jinja
 * cases through the engine itself. */
#include "test.h"

#include "json_lines.h"
#include "template/chat.h"

static const whit_template_time now = {.year = 2026, .month = 1, .day = 2, .hour = 3, .minute = 4, .second = 5};
static const whit_template_options options = {.now = &now};

static whit_buf read_whole(const char *path)
{
    whit_buf buf = {0};
    whit_error error;
    assert_ok(whit_read_file(path, 64 << 20, &buf, &error), error);
    return buf;
}

static bool contains(const char *text, size_t n, const char *part, size_t n_part)
{
    return n_part == 0 || memmem(text, n, part, n_part) != NULL;
}

/* Compares a result with "expected", or an error with "error", of the case. Prints the case's line if they differ. */
static bool is_expected(const whit_json *json, whit_status status, const char *text, size_t n, size_t i_line)
{
    size_t n_expected, n_error;
    const char *expected = whit_json_string(json, whit_json_get(json, 0, "expected"), &n_expected);
    const char *error = whit_json_string(json, whit_json_get(json, 0, "error"), &n_error);
    bool same = expected ? status == WHIT_OK && n == n_expected && (n == 0 || memcmp(text, expected, n) == 0)
                         : status != WHIT_OK && contains(text, n, error, n_error);
    if (!same)
        print_message("line %zu: expected %s '%.*s'\n  got %s '%.*s'\n", i_line, expected ? "text" : "error",
                      (int)(expected ? n_expected : n_error), expected ? expected : error,
                      status == WHIT_OK ? "text" : "error", (int)n, text);
    return same;
}

static bool jinja_case(const whit_json *json, const char *line, size_t n_bytes, size_t i_line)
{
    size_t n_source;
    const char *source = whit_json_string(json, whit_json_get(json, 0, "template"), &n_source);
    whit_datum_pool pool = {0};
    whit_datum object;
    whit_error error;
    whit_template *template;
    whit_template_error reason = {0};
    whit_buf text = {0};
    assert_non_null(source);
    assert_ok(whit_datum_from_json(&pool, line, n_bytes, true, &object, &error), error);
    const whit_datum *context = whit_dict_get_str(object.dict, "context");
    whit_status status = whit_template_open(source, n_source, NULL, &template, &reason);
    if (status == WHIT_OK) status = whit_template_render(template, *context, &options, &text, NULL, &reason);
    const whit_buf *answer = status == WHIT_OK ? &text : &reason.message;
    if (status != WHIT_OK) assert_true(reason.line > 0 && reason.column > 0);
    bool same = is_expected(json, status, (const char *)answer->data, answer->size_bytes, i_line);
    whit_template_close(template);
    whit_template_error_free(&reason);
    whit_buf_free(&text);
    whit_datum_pool_clear(&pool);
    return same;
}

/* opened templates, by the name in the cases */
static struct {
    char name[128];
    whit_template *template;
} known[64];

static const whit_template *open_named(const char *name, size_t n)
{
    char path[256];
    size_t i = 0;
    while (known[i].template && !(strlen(known[i].name) == n && memcmp(known[i].name, name, n) == 0)) i++;
    assert_true(i + 1 < sizeof known / sizeof *known && n < sizeof known[i].name);
    if (known[i].template) return known[i].template;
    memcpy(known[i].name, name, n);
    const char *suffix = n > 6 && memcmp(name + n - 6, ".jinja", 6) == 0 ? "" : ".jinja";
    snprintf(path, sizeof path, "templates/%.*s%s", (int)n, name, suffix);
    whit_buf source = read_whole(shared_path(path));
    whit_template_error error = {0};
    assert_ok(whit_template_open((const char *)source.data, source.size_bytes, NULL, &known[i].template, &error),
              error.error);
    whit_template_error_free(&error);
    whit_buf_free(&source);
    return known[i].template;
}

static bool conversation(const whit_json *json, const char *line, size_t n_bytes, size_t i_line)
{
    size_t n_name, n_text;
    const char *name = whit_json_string(json, whit_json_get(json, 0, "template"), &n_name);
    whit_buf out = {0};
    whit_error error;
    whit_json answer;
    assert_non_null(name);
    assert_ok(whit_template_jsonl_line(open_named(name, n_name), &options, line, n_bytes, NULL, &out, &error), error);
    assert_ok(whit_json_parse("answer", (const char *)out.data, out.size_bytes, NULL, &answer, &error), error);
    const char *text = whit_json_string(&answer, whit_json_get(&answer, 0, "text"), &n_text);
    whit_status status = text ? WHIT_OK : WHIT_ERROR_ARGUMENT;
    if (!text) text = whit_json_string(&answer, whit_json_get(&answer, 0, "error"), &n_text);
    assert_non_null(text);
    bool same = is_expected(json, status, text, n_text, i_line);
    whit_json_close(&answer);
    whit_buf_free(&out);
    return same;
}

typedef bool case_fn(const whit_json *json, const char *line, size_t n_bytes, size_t i_line);

struct cases {
    case_fn *run;
    size_t n, n_failed;
};

static void run_line(void *user, const whit_json *json, const char *line, size_t n_bytes, size_t number)
{
    struct cases *cases = user;
    cases->n_failed += !cases->run(json, line, n_bytes, number);
    cases->n++;
}

static void run_file(const char *path, case_fn *run, size_t n_wanted)
{
    struct cases cases = {.run = run};
    each_json_line(shared_path(path), run_line, &cases);
    print_message("%zu cases of %s\n", cases.n, path);
    assert_true(cases.n >= n_wanted);
    assert_int_equal(cases.n_failed, 0);
}

static void jinja_cases(void **state)
{
    (void)state;
    run_file("templates/jinja-cases.jsonl", jinja_case, 332);
}

static void conversations(void **state)
{
    (void)state;
    run_file("templates/cases.jsonl", conversation, 323);
    for (size_t i = 0; known[i].template; i++) whit_template_close(known[i].template);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(jinja_cases), cmocka_unit_test(conversations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
