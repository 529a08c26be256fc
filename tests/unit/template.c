/* SPDX-License-Identifier: MIT
 * Tests templates: their language, values, marks of the user's text, and conversations. */
#include "template_render.h"

static void language(void **state)
{
    (void)state;
    assert_renders("{{ 1 + 2 * 3 ** 2 }}|{{ -2 ** 2 }}|{{ 7 // -2 }}|{{ -7 % 3 }}|{{ 'a' ~ 1 * 2 }}", "{}",
                   "19|4|-4|2|a2");
    assert_renders("{% for a, b in [(1, 2), (3, 4)] if a > 1 %}{{ loop.index }}{{ a }}{{ b }}{% "
                   "else %}no{% endfor %}",
                   "{}", "134");
    assert_renders("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 "
                   "%}{% break %}{% endif %}{{ i }}{% endfor %}",
                   "{}", "013");
    assert_renders("{% set ns = namespace(n=0) %}{% for i in x %}{% set ns.n = ns.n + i %}{% "
                   "endfor %}{{ ns.n }}",
                   "{\"x\": [1, 2, 3]}", "6");
    assert_renders("{% macro m(a, b='y') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(b=2, a=3) }}", "{}", "1y32");
    assert_renders("{% macro m() %}[{{ caller(1) }}]{% endmacro %}{% call(x) m() %}{{ x + 1 }}{% endcall %}", "{}",
                   "[2]");
    assert_renders("{% for x in t recursive %}{{ x.n }}{{ loop(x.c) }}{{ loop.depth }}{% endfor %}",
                   "{\"t\": [{\"n\": 1, \"c\": [{\"n\": 2, \"c\": []}]}]}", "1221");
    assert_renders("{% set x %}  a {% endset %}{{ x | trim }}|{% filter upper %}b{{ x }}{% endfilter %}", "{}",
                   "a|B  A ");
    assert_renders("{{ x.items is defined }}{{ x['items'] }}{{ x.get('q', 3) }}{{ none.y is defined }}",
                   "{\"x\": {\"items\": 1}}", "True13False");
    assert_renders("{{ 'q' | list }}{{ ('<' | safe) | list }}{{ range(1, 8, 2) }}{{ ' a b  c "
                   "'.split(none, 1) }}",
                   "{}", "['q']['<']range(1, 8, 2)['a', 'b  c ']");
    assert_renders("{{ [1, [2.0, 'q\\'s', none]] }}{{ {'a': true} }}{{ (1,) }}{{ 1e16 }}{{ 1e-7 }}", "{}",
                   "[1, [2.0, \"q's\", None]]{'a': True}(1,)1e+161e-07");
    assert_renders("{{ x[::-1] }}{{ x[1:3] }}{{ x[-1] }}{{ 'abc'[5:] }}", "{\"x\": \"a\\u00e9\\ud83d\\ude00z\"}",
                   "z\xF0\x9F\x98\x80\xC3\xA9"
                   "a\xC3\xA9\xF0\x9F\x98\x80z");
    assert_renders("{{ x }}", "{\"x\": 123456789012345678901234567890}", "123456789012345678901234567890");
    /* Integers of more than 64 bits allow no arithmetic, and none is replaced by the default of a filter. */
    assert_render_fails("{{ x | float(1.5) }}", "{\"x\": 12345678901234567890}", "64 bits");
    assert_renders("{{ x < 1e30 }}{{ x == 2.0 ** 64 }}{{ x > 2.0 ** 64 }}{{ y < x }}{{ y > -1e300 }}",
                   "{\"x\": 18446744073709551616, \"y\": -99999999999999999999}", "TrueTrueFalseTrueTrue");
}

/* Attributes that the sandbox hides are undefined; reading an attribute of them fails. */
/* An integer and a float are compared exactly, also where a double or a long double of 64 bits cannot hold the
 * integer. */
static void numbers_of_two_kinds(void **state)
{
    (void)state;
    assert_renders("{{ x == 2.0 ** 53 }}{{ x > 2.0 ** 53 }}{{ 2.0 ** 53 < x }}{{ x - 1 == 2.0 ** 53 }}",
                   "{\"x\": 9007199254740993}", "FalseTrueTrueTrue");
    assert_renders("{{ x == y }}{{ x < y }}{{ y > x }}{{ -x == -y }}{{ -x > -y }}{{ -x - 1 == -y }}",
                   "{\"x\": 9223372036854775807, \"y\": 9223372036854775808.0}", "FalseTrueTrueFalseTrueTrue");
    assert_renders("{{ 0 > -0.5 }}{{ -1 < -0.5 }}{{ 1 > 0.5 }}{{ 2 == 2.0 }}{{ -2 > -2.5 }}{{ 3 < 1e300 }}", "{}",
                   "TrueTrueTrueTrueTrueTrue");
    assert_renders("{{ x == 1 }}{{ 1 < x }}{{ x < 1 }}{{ x == x }}", "{\"x\": NaN}", "FalseFalseFalseFalse");
    assert_renders("{{ 1 < x }}{{ -x < 1 }}{{ x == 1 }}", "{\"x\": Infinity}", "TrueTrueFalse");
    assert_renders("{{ {x: 'a'}[y] is defined }}", "{\"x\": 9007199254740993, \"y\": 9007199254740992.0}", "False");
}

static void hidden_attributes(void **state)
{
    (void)state;
    assert_renders("{{ s.__class__ is defined }}|{{ s.__class__ }}|{{ s.foo.__class__ }}|{{ s.__mro__ }}",
                   "{\"s\": \"x\"}", "False|||");
    assert_render_fails("{{ s.__class__.__mro__ }}", "{\"s\": \"x\"}", "__class__");
    assert_render_fails("{{ s.foo.__mro__ }}", "{\"s\": \"x\"}", "foo");
    assert_renders(
        "{{ x.update }}|{{ x.pop is defined }}|{{ x['update'] }}|{{ x.clear }}{{ x.popitem }}"
        "{{ x.setdefault }}|{{ x.append }}",
        "{\"x\": {\"update\": 1, \"pop\": 2, \"clear\": 3, \"popitem\": 4, \"setdefault\": 5, \"append\": 6}}",
        "|False|1||6");
    assert_renders("{{ lipsum is defined }}", "{}", "False");
    assert_render_fails("{{ 'x' | urlize }}", "{}", "urlize");
}

/* rfind, rsplit and rpartition use the last occurrence of a text. */
static void last_places(void **state)
{
    (void)state;
    assert_renders(
        "{{ 'abcabc'.rfind('abc') }}|{{ 'abcabc'.rfind('c') }}|{{ 'abc'.rfind('') }}|{{ 'abc'.rfind('abcd') }}|"
        "{{ 'aaab'.rfind('aa') }}|{{ 'abcabc'.rfind('bc', 0, 5) }}|{{ ''.rfind('') }}|{{ 'abc'.rfind('abc') }}",
        "{}", "3|5|3|-1|1|1|0|0");
    assert_renders("{{ 'a.b.c'.rsplit('.', 1) }}|{{ 'a..b'.rpartition('..') }}", "{}", "['a.b', 'c']|('a', '..', 'b')");
}

/* The autoescape block is a scope, and text that was escaped in it is not escaped again. */
static void autoescape(void **state)
{
    (void)state;
    assert_renders("{% autoescape false %}{% set x = 1 %}{% endautoescape %}[{{ x }}]", "{}", "[]");
    assert_renders("{% autoescape true %}{% macro m() %}<b>{{ '<' }}{% endmacro %}{{ m() }}{% endautoescape %}", "{}",
                   "<b>&lt;");
    assert_renders("{% autoescape true %}{% set x %}<b>{{ '<' }}{% endset %}{{ x }}{% endautoescape %}", "{}",
                   "<b>&lt;");
    assert_renders("{% autoescape true %}{% macro m() %}<b>{{ caller() }}{{ '<' }}{% endmacro %}"
                   "{% call m() %}<i>{% endcall %}{% filter upper %}<b>{% endfilter %}{% endautoescape %}",
                   "{}", "<b><i>&lt;<B>");
    assert_renders("{% autoescape true %}{% for x in t recursive %}<{{ x.n }}{{ loop(x.c) }}{% endfor %}"
                   "{% endautoescape %}",
                   "{\"t\": [{\"n\": \"<\", \"c\": [{\"n\": 2, \"c\": []}]}]}", "<&lt;<2");
    assert_renders("{% for i in [1, 2, 3] %}{% autoescape true %}{% if i == 2 %}{% break %}{% endif %}{{ '<' }}"
                   "{% endautoescape %}{{ '<' }}{% endfor %}",
                   "{}", "&lt;<");
    assert_renders("{% set x %}<{% endset %}{% autoescape true %}{{ x }}{% endautoescape %}", "{}", "&lt;");
}

static void white_space(void **state)
{
    (void)state;
    assert_renders("a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "{}", "a\n  b\nc");
    assert_renders("a  {%- set x = 1 -%}  \n b {{- x -}}  c", "{}", "ab1c");
    assert_renders(" {%+ if true +%}\nx{% endif %}\r\ny", "{}", " \nxy");
    assert_renders("{% raw %}{{ x }}{% endraw %}{# {{ #}|", "{}", "{{ x }}|");
}

static void filters(void **state)
{
    (void)state;
    assert_renders("{{ x | tojson }}|{{ x | tojson(indent=1) }}",
                   "{\"x\": {\"b\": [1.0, null, \"\\u00e9\\n\"], \"a\": {}}}",
                   "{\"b\": [1.0, null, \"\xC3\xA9\\n\"], \"a\": {}}|{\n \"b\": [\n  1.0,\n  "
                   "null,\n  \"\xC3\xA9\\n\"\n ],\n \"a\": {}\n}");
    assert_renders("{{ m | selectattr('r', 'eq', 'u') | map(attribute='c') | join(',') }}",
                   "{\"m\": [{\"r\": \"u\", \"c\": 1}, {\"r\": \"a\", \"c\": 2}, {\"r\": \"u\", \"c\": 3}]}", "1,3");
    assert_renders("{{ ['b', 'A', 'c'] | sort | join }}{{ {'b': 1, 'a': 2} | dictsort }}", "{}",
                   "Abc[('a', 2), ('b', 1)]");
    assert_renders("{% set g = [1, 2] | map('string') %}{{ g | list }}{{ g | list }}", "{}", "['1', '2'][]");
    assert_renders("{{ '%s=%05.1f' % ('a', 2.25) }}|{{ '{0[k]:>4}{1!r}'.format({'k': 7}, 'x') }}", "{}",
                   "a=002.2|   7'x'");
    assert_renders("{{ 'stra\xC3\x9F"
                   "e' | upper }}{{ 'hELLO' | capitalize }}{{ '\xCE\x91\xCE\xA3'.lower() }}",
                   "{}", "STRASSEHello\xCE\xB1\xCF\x82");
    assert_renders("{{ '<a>' | e }}{{ ('<' | safe) + '<' }}{{ 2.5 | round }}{{ '12' | int + 1 }}", "{}",
                   "&lt;a&gt;<&lt;2.013");
}

static void errors(void **state)
{
    (void)state;
    assert_fails("a\n{{ 1 + 'x' }}", "{}", NULL, WHIT_ERROR_ARGUMENT, 2, 6);
    assert_fails("{{ none.x.y }}", "{}", NULL, WHIT_ERROR_ARGUMENT, 1, 10);
    assert_fails("\xC3\xA9{% if %}{% endif %}", "{}", NULL, WHIT_ERROR_FORMAT, 1, 8);
    assert_fails("{% for x in y %}", "{}", NULL, WHIT_ERROR_FORMAT, 1, 17);
    assert_fails("{{ x | nope }}", "{}", NULL, WHIT_ERROR_FORMAT, 1, 8);
    assert_fails("{{ 9223372036854775807 + 1 }}", "{}", NULL, WHIT_ERROR_ARGUMENT, 1, 24);
    assert_fails("{{ x[1:] }}", "{\"x\": null}", NULL, WHIT_ERROR_ARGUMENT, 1, 5);
    assert_fails("{{ 'abc }}", "{}", NULL, WHIT_ERROR_FORMAT, 1, 4);
    rendered r = render_with("\n {{ raise_exception('a\\n\"b\" ' ~ x) }}", "{\"x\": \"\\u0000c\"}", NULL);
    assert_true(r.error.raised);
    assert_int_equal(r.error.message.size_bytes, 8);
    assert_memory_equal(r.error.message.data, "a\n\"b\" \0c", 8);
    assert_int_equal(r.error.line, 2);
    rendered_free(&r);
    whit_template *template;
    assert_int_equal(whit_template_open("\xFF", 1, NULL, &template, NULL), WHIT_ERROR_FORMAT);
    assert_null(template);
}

/* Renders and compares the text, in which ranges marked as the user's are put in brackets. */
static void assert_marks(const char *source, const char *context, const char *expected)
{
    rendered r = render_with(source, context, NULL);
    whit_buf shown = {0};
    if (r.status != WHIT_OK) fail_msg("%s: %s", source, r.error.error.message);
    const whit_template_segment *segment = (const whit_template_segment *)r.segments.data;
    size_t n = r.segments.size_bytes / sizeof *segment, i = 0;
    for (size_t at = 0; at <= r.text.size_bytes; at++) {
        if (i < n && segment[i].end == at) {
            whit_buf_append_str(&shown, "]");
            i++;
        }
        if (i < n && segment[i].begin == at) whit_buf_append_str(&shown, "[");
        if (at < r.text.size_bytes) whit_buf_append(&shown, r.text.data + at, 1);
    }
    whit_buf_append(&shown, "", 1);
    assert_string_equal((const char *)shown.data, expected);
    whit_buf_free(&shown);
    rendered_free(&r);
}

static void marks(void **state)
{
    (void)state;
    const char *context = "{\"u\": \" <|x|> \", \"l\": [\"a,b\", 1], \"d\": {\"k\": \"v\"}}";
    assert_marks("a{{ u }}b", context, "a[ <|x|> ]b");
    assert_marks("{{ 'a' + u | trim + 'b' }}", context, "a[<|x|>]b");
    assert_marks("{{ ('<' ~ u ~ '>')[2:5] }}{{ u[::-1] | upper }}", context, "[<|x >|X|< ]");
    assert_marks("{{ u.replace('x', 'yy') }}", context, "[ <|]yy[|> ]");
    assert_marks("{{ l[0].split(',') | join('-') }}{{ l }}", context, "[a]-[b][['a,b'], 1]");
    assert_marks("{{ d | tojson }}{{ d.k.format() }}", context, "{[\"k\"]: [\"v\"]}[v]");
    assert_marks("{% set x %}<{{ u }}>{% endset %}{{ x | replace('|', '!') }}", context, "<[ <]![x]![> ]>");
    assert_marks("{% for c in d.k ~ 'w' %}{{ c }}.{% endfor %}", context, "[v].w.");
}

static void conversations(void **state)
{
    (void)state;
    static const char source[] =
        "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>{% "
        "endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}{{ tools is none }}";
    whit_template *template;
    whit_template_error error = {0};
    whit_buf out = {0}, segments = {0};
    whit_error reason;
    assert_ok(whit_template_open(source, strlen(source), NULL, &template, &error), error.error);
    const char line[] = "{\"messages\": [{\"role\": \"user\", \"content\": \" hi\\u2028\\u0000\"}], "
                        "\"add_generation_prompt\": true, \"bos_token\": \"<s>\"}";
    assert_ok(whit_template_jsonl_line(template, NULL, line, strlen(line), NULL, &out, &reason), reason);
    whit_buf_append(&out, "", 1);
    assert_string_equal((const char *)out.data,
                        "{\"text\": \"<s><|user|>hi\xE2\x80\xA8\\u0000<|end|><|assistant|>True\"}\n");
    out.size_bytes = 0;
    assert_int_equal(whit_template_jsonl_line(template, NULL, "[1]", 3, NULL, &out, &reason), WHIT_ERROR_FORMAT);
    assert_ok(whit_template_jsonl_line(NULL, NULL, "{\"source\": \"\\n{{ x.y }}\"}", 25, NULL, &out, &reason), reason);
    whit_buf_append(&out, "", 1);
    assert_string_equal((const char *)out.data,
                        "{\"error\": \"the line is not a JSON object\", \"line\": 0, \"column\": 0}\n"
                        "{\"error\": \"'x' is undefined\", \"line\": 2, \"column\": 5}\n");
    /* Roles are marked as the template's, so that "<|user|>" can be one special token; content is marked as the
     * user's. */
    whit_datum_pool pool = {0};
    const char json[] = "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
                        "\"content\": \"b  \"}]";
    whit_chat chat = {.continue_final_message = true};
    assert_ok(whit_datum_from_json(&pool, json, strlen(json), true, &chat.messages, &reason), reason);
    out.size_bytes = 0;
    assert_ok(whit_template_chat(template, &chat, NULL, &out, &segments, &error), error.error);
    assert_int_equal(out.size_bytes, strlen("<|user|>a<|end|><|assistant|>b"));
    const whit_template_segment *s = (const whit_template_segment *)segments.data;
    assert_int_equal(segments.size_bytes, 2 * sizeof *s);
    assert_true(s[0].begin == 8 && s[0].end == 9 && s[1].begin == 29 && s[1].end == 30);
    whit_datum_pool_clear(&pool);
    whit_buf_free(&out);
    whit_buf_free(&segments);
    whit_template_error_free(&error);
    whit_template_close(template);
}

static void times(void **state)
{
    (void)state;
    whit_template_time t;
    assert_true(whit_template_time_parse("2024-02-29T23:59:58", &t));
    whit_template_options options = {.now = &t};
    rendered r = render_with("{{ strftime_now('%d %b %Y %-d %B %A %j %I:%M %p %V %%') }}", "{}", &options);
    assert_int_equal(r.status, WHIT_OK);
    const char *expected = "29 Feb 2024 29 February Thursday 060 11:59 PM 09 %";
    assert_int_equal(r.text.size_bytes, strlen(expected));
    assert_memory_equal(r.text.data, expected, strlen(expected));
    rendered_free(&r);
    assert_true(whit_template_time_parse("2026-01-02", &t));
    assert_false(whit_template_time_parse("2025-02-29", &t));
    assert_false(whit_template_time_parse("2025-02-2", &t));
    assert_false(whit_template_time_parse("2026-01-02T03:04:05Z", &t));
    assert_false(whit_template_time_parse("", &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(language),
        cmocka_unit_test(hidden_attributes),
        cmocka_unit_test(last_places),
        cmocka_unit_test(white_space),
        cmocka_unit_test(filters),
        cmocka_unit_test(errors),
        cmocka_unit_test(marks),
        cmocka_unit_test(conversations),
        cmocka_unit_test(times),
        cmocka_unit_test(autoescape),
        cmocka_unit_test(numbers_of_two_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
