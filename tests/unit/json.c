/* SPDX-License-Identifier: MIT
 * Tests the JSON reader: what it accepts, the places of errors, and how it writes strings. */
#include "test.h"

#include "base/json.h"
#include "base/utf8.h"

static whit_json parse(const char *text)
{
    whit_json json;
    whit_error error;
    assert_ok(whit_json_parse("test", text, strlen(text), NULL, &json, &error), error);
    return json;
}

static void values_are_read(void **state)
{
    (void)state;
    whit_json json = parse(" {\"a\": [1, -2.5e1, true, null, {}, []], \"b\\n\": \"x\\u0000\\uD83D\\uDE00\","
                           "\"big\": 1000000000000000019884624838656, \"a\": {\"k\": false},"
                           "\"min\": -9223372036854775808, \"inf\": [Infinity, -Infinity, NaN]} ");
    uint32_t a = whit_json_get(&json, WHIT_JSON_ROOT, "a");
    assert_int_equal(whit_json_type_of(&json, a), WHIT_JSON_OBJECT); /* of two equal keys the last counts */
    assert_false(whit_json_bool(&json, whit_json_get(&json, a, "k"), true));
    assert_true(whit_json_bool(&json, whit_json_get(&json, a, "absent"), true));
    uint32_t list = whit_json_first(&json, WHIT_JSON_ROOT) + 1;
    assert_int_equal(whit_json_count(&json, list), 6);
    assert_int_equal(whit_json_count(&json, WHIT_JSON_ROOT), 6);
    int64_t integer;
    double number;
    uint32_t at = whit_json_first(&json, list);
    assert_true(whit_json_i64(&json, at, &integer));
    assert_int_equal(integer, 1);
    at = whit_json_next(&json, list, at);
    assert_false(whit_json_i64(&json, at, &integer));
    assert_true(whit_json_f64(&json, at, &number));
    assert_true(number == -25.0);
    size_t n;
    const char *text = whit_json_string(&json, whit_json_get(&json, 0, "b\n"), &n);
    assert_int_equal(n, 6);
    assert_memory_equal(text, "x\0\xF0\x9F\x98\x80", 6);
    uint32_t big = whit_json_get(&json, 0, "big");
    assert_false(whit_json_i64(&json, big, &integer));
    assert_true(whit_json_f64(&json, big, &number));
    assert_true(number == 1e30);
    assert_true(whit_json_i64(&json, whit_json_get(&json, 0, "min"), &integer));
    assert_true(integer == INT64_MIN);
    uint32_t inf = whit_json_get(&json, 0, "inf");
    assert_false(whit_json_f64(&json, whit_json_first(&json, inf), &number));
    assert_int_equal(whit_json_get(&json, WHIT_JSON_NONE, "x"), WHIT_JSON_NONE);
    assert_int_equal(whit_json_type_of(&json, WHIT_JSON_NONE), WHIT_JSON_MISSING);
    whit_json_close(&json);
}

static void errors_name_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t:1:1: the text ends too early: a value or a closing bracket is missing"},
        {"[1,\n  2,]", "t:2:5: a value was expected here"},
        {"{\"\xC3\xA4\" 1}", "t:1:6: ':' was expected here"},
        {"{\"a\":1,}", "t:1:8: a key in quotes was expected here"},
        {"[1 2]", "t:1:4: ',' or ']' was expected here"},
        {"{\"a\":1]", "t:1:7: ',' or '}' was expected here"},
        {"\"abc", "t:1:1: this string is not closed"},
        {"\"\\ud800\"", "t:1:2: this \\u escape is half of a surrogate pair: its partner is missing"},
        {"\"\\ud800\\u0041\"", "t:1:2: this \\u escape is half of a surrogate pair: its partner is missing"},
        {"\"\\x\"", "t:1:2: this escape is not known in JSON"},
        {"\"\\u12g4\"", "t:1:2: \\u needs four hexadecimal digits"},
        {"\"a\tb\"", "t:1:3: a string must not contain a control character: escape it"},
        {"\"\xC0\x80\"", "t:1:2: this byte is not UTF-8"},
        {"01", "t:1:1: this is not a number"},
        {"1.", "t:1:1: this is not a number"},
        {"-", "t:1:1: this is not a number"},
        {"1e", "t:1:1: this is not a number"},
        {"tru", "t:1:1: a value was expected here"},
        {"1 1", "t:1:3: the text must end after its value"},
        {"[", "t:1:2: the text ends too early: a value or a closing bracket is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        whit_json json;
        whit_error error;
        assert_int_equal(whit_json_parse("t", cases[i].text, strlen(cases[i].text), NULL, &json, &error),
                         WHIT_ERROR_FORMAT);
        assert_string_equal(error.message, cases[i].message);
    }
    whit_json json = parse("{\"a\":\n [\"\\t\", 5]}");
    whit_error error;
    uint32_t list = whit_json_get(&json, 0, "a");
    whit_json_fail(&json, whit_json_next(&json, list, whit_json_first(&json, list)), &error, "no %d", 5);
    assert_string_equal(error.message, "test:2:9: no 5");
    whit_json_close(&json);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    char deep[600];
    memset(deep, '[', 256);
    memset(deep + 256, ']', 256);
    whit_json json;
    whit_error error;
    assert_ok(whit_json_parse("t", deep, 512, NULL, &json, &error), error);
    whit_json_close(&json);
    memset(deep, '[', 600);
    assert_int_equal(whit_json_parse("t", deep, 600, NULL, &json, &error), WHIT_ERROR_FORMAT);
    assert_string_equal(error.message, "t:1:257: the values are nested more than 256 deep, the limit");
}

static void strings_are_written(void **state)
{
    (void)state;
    whit_buf out = {0};
    assert_true(whit_json_write_string(&out, "a\"\\\n\x01\0\xC3\xA9\xFF", 9));
    static const char expected[] = "\"a\\\"\\\\\\n\\u0001\\u0000\xC3\xA9\xEF\xBF\xBD\"";
    assert_int_equal(out.size_bytes, sizeof expected - 1);
    assert_memory_equal(out.data, expected, sizeof expected - 1);
    whit_buf_free(&out);
}

static void utf8_is_strict(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n, length;
        uint32_t code;
    } cases[] = {
        {"\xE2\x82\xAC", 3, 3, 0x20AC},
        {"\xF4\x8F\xBF\xBF", 4, 4, 0x10FFFF},
        {"\xF4\x90\x80\x80", 4, 1, WHIT_UTF8_INVALID},
        {"\xED\xA0\x80", 3, 1, WHIT_UTF8_INVALID},
        {"\xE2\x82", 2, 2, WHIT_UTF8_INVALID},
        {"\xE2\x82\x41", 3, 2, WHIT_UTF8_INVALID},
        {"\xF0\x9F\x98", 3, 3, WHIT_UTF8_INVALID},
        {"\xC1\x81", 2, 1, WHIT_UTF8_INVALID},
        {"\x80", 1, 1, WHIT_UTF8_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length;
        assert_int_equal(whit_utf8_decode((const uint8_t *)cases[i].bytes, cases[i].n, &length), cases[i].code);
        assert_int_equal(length, cases[i].length);
    }
    for (uint32_t code = 0; code < 0x110000; code++) {
        if (code >= 0xD800 && code < 0xE000) continue;
        uint8_t bytes[4];
        size_t n = whit_utf8_encode(code, bytes), length;
        if (whit_utf8_decode(bytes, n, &length) != code || length != n) fail_msg("U+%04X", code);
    }
    assert_int_equal(whit_utf8_valid_bytes((const uint8_t *)"0123456789\xFFz", 12), 10);
}

static void numbers_are_decimal(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0}, {"-2.5e3", -2500}, {"+7", 7}, {"1.", 1}, {".5", 0.5}, {"1E-2", 0.01}, {"1e308", 1e308}};
    static const char *const bad[] = {"",      " 1",     "\t1", "1 ",  "1x",       "0x10", "0x1p3", "inf",
                                      "-inf",  "nan",    "NaN", "+-1", "Infinity", "1e",   "e1",    "1e999",
                                      "1e1e1", "nan(1)", "1,5", ".",   "1..2",     "-"};
    double value = 0;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!whit_parse_f64(good[i].text, &value) || value != good[i].value) fail_msg("'%s'", good[i].text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (whit_parse_f64(bad[i], &value)) fail_msg("'%s' is %g", bad[i], value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),  cmocka_unit_test(errors_name_the_place),
        cmocka_unit_test(depth_is_bounded), cmocka_unit_test(strings_are_written),
        cmocka_unit_test(utf8_is_strict),   cmocka_unit_test(numbers_are_decimal),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
