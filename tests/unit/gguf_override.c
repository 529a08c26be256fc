/* SPDX-License-Identifier: MIT
 * Tests metadata of GGUF files that the user replaces or adds. */
#include "test.h"

#include "failing_memory.h"
#include "gguf_sample.h"

static uint8_t *sample;
static size_t sample_bytes;

static int make_sample(void **state)
{
    (void)state;
    sample = make_sample_gguf(32, &sample_bytes);
    return 0;
}

static int free_sample(void **state)
{
    (void)state;
    free(sample);
    return 0;
}

static whit_gguf *open_sample(void)
{
    whit_gguf *gguf;
    whit_error error;
    assert_ok(whit_gguf_open_memory(sample, sample_bytes, "sample", NULL, &gguf, &error), error);
    return gguf;
}

static void assert_text(const whit_gguf *gguf, const char *name, const char *expected)
{
    const char *text = NULL;
    size_t n = 0;
    whit_error error;
    assert_ok(whit_gguf_string(gguf, name, &text, &n, &error), error);
    if (!text || n != strlen(expected) || memcmp(text, expected, n) != 0)
        fail_msg("%s is '%.*s', not '%s'", name, (int)n, text ? text : "", expected);
}

static int64_t read_integer(const whit_gguf *gguf, const char *name)
{
    int64_t value = 0;
    whit_error error;
    assert_non_null(whit_gguf_find(gguf, name));
    assert_ok(whit_gguf_i64(gguf, name, &value, &error), error);
    return value;
}

/* An override of any type may replace a key of any type or add a key; keys are found by name after that. */
static void values_replace_and_add(void **state)
{
    (void)state;
    static const char *const texts[] = {"a.u16=int:-9223372036854775808",       "z.new=int:+7",
                                        "a.f32=float:2.5e-3,a.bool=bool:false", "0.first=bool:true",
                                        "tokenizer.ggml.scores=str:no array",   "a.text=str:"};
    whit_gguf *gguf = open_sample();
    const size_t n_before = gguf->n_keys;
    whit_error error;
    double real = 0;
    bool truth = true;
    assert_ok(whit_gguf_override(gguf, texts, sizeof texts / sizeof *texts, &error), error);
    assert_int_equal(gguf->n_keys, n_before + 3);
    assert_true(read_integer(gguf, "a.u16") == INT64_MIN);
    assert_int_equal(read_integer(gguf, "z.new"), 7);
    assert_ok(whit_gguf_f64(gguf, "a.f32", &real, &error), error);
    assert_true(real == 2.5e-3);
    assert_ok(whit_gguf_bool(gguf, "a.bool", &truth, &error), error);
    assert_false(truth);
    assert_ok(whit_gguf_bool(gguf, "0.first", &truth, &error), error);
    assert_true(truth);
    assert_text(gguf, "tokenizer.ggml.scores", "no array");
    assert_text(gguf, "a.text", "");
    assert_text(gguf, "general.architecture", "llama"); /* other keys remain */
    assert_int_equal(read_integer(gguf, "a.u32"), 7);
    whit_gguf_close(gguf);
}

/* A comma ends a value only if another override follows it; of two values for a key the later one is used. */
static void commas_separate_overrides(void **state)
{
    (void)state;
    static const char *const texts[] = {"a=str:x,y,b=str:z=int:3,c=int:4,general.name=str:one, two", "c=int:5"};
    whit_gguf *gguf = open_sample();
    whit_error error;
    assert_ok(whit_gguf_override(gguf, texts, 2, &error), error);
    assert_text(gguf, "a", "x,y");
    assert_text(gguf, "b", "z=int:3");
    assert_text(gguf, "general.name", "one, two");
    assert_int_equal(read_integer(gguf, "c"), 5);
    whit_gguf_close(gguf);
}

static void bad_forms_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "an override is KEY=TYPE:VALUE"},
        {"a", "an override is KEY=TYPE:VALUE"},
        {"a=3", "not 'a=3'"},
        {"=int:3", "an override is KEY=TYPE:VALUE"},
        {"a b=int:3", "an override is KEY=TYPE:VALUE"},
        {"a=double:3", "int, float, bool or str"},
        {"a=int", "an override is KEY=TYPE:VALUE"},
        {"a=INT:3", "an override is KEY=TYPE:VALUE"},
        {"a=int:", "override of a: '' is not a value of type int"},
        {"a=int:3.5", "'3.5' is not a value of type int"},
        {"a=int:3x", "'3x' is not a value of type int"},
        {"a=int:9223372036854775808", "not a value of type int"},
        {"a=int:00000000000000000000000000000000000000000000000000000000000000000001", "not a value of type int"},
        {"a=int:1,b=double:2", "'1,b=double:2' is not a value of type int"},
        {"a=float:", "not a value of type float"},
        {"a=float:nan", "not a value of type float"},
        {"a=float:1e999", "not a value of type float"},
        {"a=float:0x1p3", "not a value of type float"},
        {"a=float: 1", "' 1' is not a value of type float"},
        {"a=int: 3", "' 3' is not a value of type int"},
        {"a=float:1,5", "'1,5' is not a value of type float"},
        {"a=bool:1", "'1' is not a value of type bool"},
        {"a=bool:True", "not a value of type bool"},
        {"general.alignment=int:64", "override of general.alignment"},
        {"a=int:1,split.count=int:2", "override of split.count"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_gguf *gguf = open_sample();
        whit_error error = {0};
        const whit_status status = whit_gguf_override(gguf, &cases[i].text, 1, &error);
        if (status != WHIT_ERROR_ARGUMENT || !strstr(error.message, cases[i].reason) || strchr(error.message, '\n'))
            fail_msg("'%s': status %d, \"%s\" lacks \"%s\"", cases[i].text, status, error.message, cases[i].reason);
        whit_gguf_close(gguf);
    }
    /* The longest name, and one that is a byte longer. */
    char text[160];
    memset(text, 'k', sizeof text);
    snprintf(text + 127, sizeof text - 127, "=int:3");
    const char *only = text;
    whit_error error;
    whit_gguf *gguf = open_sample();
    assert_ok(whit_gguf_override(gguf, &only, 1, &error), error);
    memset(text, 'k', sizeof text);
    snprintf(text + 128, sizeof text - 128, "=int:3");
    assert_int_equal(whit_gguf_override(gguf, &only, 1, &error), WHIT_ERROR_ARGUMENT);
    whit_gguf_close(gguf);
}

static void failing_allocations_end_cleanly(void **state)
{
    (void)state;
    static const char *const texts[] = {"a.u16=int:1,new.one=str:some text", "new.two=float:1"};
    whit_status status = WHIT_ERROR_MEMORY;
    for (long n = 0; status != WHIT_OK; n++) {
        struct failing failing = {.n_left = n};
        whit_allocator allocator = {failing_alloc, failing_free, &failing};
        whit_gguf *gguf = NULL;
        whit_error error;
        status = whit_gguf_open_memory(sample, sample_bytes, "sample", &allocator, &gguf, &error);
        if (status == WHIT_OK) status = whit_gguf_override(gguf, texts, 2, &error);
        if (status != WHIT_OK) assert_int_equal(status, WHIT_ERROR_MEMORY);
        whit_gguf_close(gguf);
        assert_int_equal(failing.n_live, 0);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_replace_and_add),
        cmocka_unit_test(commas_separate_overrides),
        cmocka_unit_test(bad_forms_are_refused),
        cmocka_unit_test(failing_allocations_end_cleanly),
    };
    return cmocka_run_group_tests(tests, make_sample, free_sample);
}
