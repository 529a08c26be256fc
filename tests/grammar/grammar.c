/* SPDX-License-Identifier: MIT
 * Tests grammars with a vocabulary of bytes and a few words: masks, places of errors, and steps back. */
#include "test.h"

#include "../fuzz/grammar.h"

#include "base/items.h"
#include "base/rng.h"

static whit_grammar_vocabulary *vocabulary;

static int open_vocabulary(void **state)
{
    whit_error error;
    (void)state;
    return whit_token_trie_build(265, fuzz_bytes, NULL, NULL, &vocabulary, &error) == WHIT_OK ? 0 : -1;
}

static int close_vocabulary(void **state)
{
    (void)state;
    whit_token_trie_free(vocabulary);
    return 0;
}

static whit_grammar *gbnf(const char *text)
{
    whit_grammar *grammar;
    whit_error error;
    assert_ok(whit_grammar_open_gbnf(vocabulary, "test", text, strlen(text), &grammar, &error), error);
    return grammar;
}

/* Returns whether the grammar accepts the whole text, byte by byte, and the text may end there. */
static bool takes(whit_grammar *grammar, const char *text)
{
    whit_grammar_state *state;
    whit_error error;
    bool ok = true;
    assert_ok(whit_grammar_state_open(grammar, &state, &error), error);
    for (; *text && ok; text++) {
        const uint64_t *bits;
        uint8_t byte = (uint8_t)*text;
        ok = whit_grammar_mask(state, &bits, &error) == WHIT_OK;
        bool open = ok && (bits[byte / 64] >> byte % 64 & 1);
        whit_status status = whit_grammar_accept(state, byte, &error);
        if (ok) assert_int_equal(open, status == WHIT_OK);
        ok = status == WHIT_OK;
    }
    ok = ok && whit_grammar_is_complete(state);
    whit_grammar_state_close(state);
    return ok;
}

static void test_gbnf(void **state)
{
    (void)state;
    static const struct {
        const char *grammar, *good[4], *bad[4];
    } cases[] = {
        {"root ::= \"ab\" | \"ac\"+", {"ab", "ac", "acac"}, {"a", "abab", ""}},
        {"root ::= \"x\"{2,3} # three at most\n", {"xx", "xxx"}, {"x", "xxxx"}},
        {"root ::= [^a-z\\n]*", {"", "ABC 1", "\xC3\xA4"}, {"a", "\n", "\xC3"}},
        {"root ::= [\\u00e4-\\u00f6]{2}", {"\xC3\xA4\xC3\xB6"}, {"\xC3\xA4", "\xC3\xA3\xC3\xA4"}},
        {"root ::= \"(\" root? \")\"", {"()", "((()))"}, {"(", "(()"}},
        {"root ::= (a |\n b)*\na ::= \"a\" \"A\"\nb ::= \"b\"", {"", "aAb", "bbaA"}, {"a", "ab"}},
        {"root ::= .{1000000,2000000} \"x\"", {NULL}, {"x", "aaaa"}},
        {"root ::= (\"a\"? \"b\"?){3}", {"", "ab", "aab", "ababab"}, {"abababab", "c"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        whit_grammar *grammar = gbnf(cases[i].grammar);
        for (int k = 0; k < 4; k++) {
            if (cases[i].good[k] && !takes(grammar, cases[i].good[k]))
                fail_msg("%s must take '%s'", cases[i].grammar, cases[i].good[k]);
            if (cases[i].bad[k] && takes(grammar, cases[i].bad[k]))
                fail_msg("%s must not take '%s'", cases[i].grammar, cases[i].bad[k]);
        }
        whit_grammar_close(grammar);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"root ::= a", "test:1: rule a is used but not defined"},
        {"a ::= \"x\"", "test:1: rule root is used but not defined"},
        {"root ::= root \"a\" | \"b\"", "left recursion"},
        {"a ::= a \"x\" | \"y\"\nroot ::= a", "test:1: rule a calls itself"},
        {"root ::= \"a\" root", "no finite text"},
        {"root ::= \"a\nroot ::= \"b\"", "test:1: "},
        {"root ::= (\"a\"", "a group lacks its )"},
        {"root ::= [z-a]", "a range ends before it begins"},
        {"root ::= \"a\"\nroot ::= \"b\"", "test:2: this rule is defined already"},
        {"root ::= \"a\"{3,2}", "a repetition must be"},
        {"root ::= \"\\q\"", "this escape is not known"},
        {"root ::= (\"a\"?){0,100000}", "may be empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        whit_grammar *grammar;
        whit_error error = {0};
        assert_int_not_equal(
            whit_grammar_open_gbnf(vocabulary, "test", cases[i][0], strlen(cases[i][0]), &grammar, &error), WHIT_OK);
        assert_null(grammar);
        if (!strstr(error.message, cases[i][1])) fail_msg("%s: %s", cases[i][0], error.message);
    }
}

/* A chain of a thousand rules that ends in one letter must be accepted: its depth must not be mistaken for endless
 * recursion. */
static void test_rule_chain(void **state)
{
    (void)state;
    whit_buf text = {0};
    whit_buf_append_str(&text, "root ::= r0\n");
    for (int i = 0; i < 1000; i++) whit_buf_printf(&text, "r%d ::= r%d\n", i, i + 1);
    whit_buf_append_str(&text, "r1000 ::= \"a\"");
    assert_true(whit_buf_append(&text, "", 1));
    whit_grammar *grammar = gbnf(whit_chars(&text));
    assert_true(takes(grammar, "a"));
    assert_false(takes(grammar, "b"));
    assert_false(takes(grammar, "aa"));
    whit_grammar_close(grammar);
    whit_buf_free(&text);
}

/* Each mask must equal the result of trying each token, also for large repeat counts, and a rollback must restore the
 * earlier state. */
static void test_masks(void **state)
{
    (void)state;
    static const char *const grammars[] = {
        "{\"type\":\"string\",\"minLength\":3,\"maxLength\":9}",
        "{\"type\":\"string\",\"maxLength\":2}",
        "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":300},\"minItems\":2,\"maxItems\":5}",
        "{\"type\":\"object\",\"properties\":{\"abc\":{\"type\":\"boolean\"}},\"additionalProperties\":true}",
        "{\"type\":\"string\",\"pattern\":\"b[^c]*d$\"}",
        "{\"type\":\"string\",\"pattern\":\"^[^z]*$\",\"minLength\":2,\"maxLength\":9}",
        "{\"type\":\"string\",\"not\":{\"enum\":[\"abc\",\"true\"]}}",
        "{\"patternProperties\":{\"^a\":{\"type\":\"null\"}},\"additionalProperties\":{\"type\":\"boolean\"}}",
        "{\"type\":\"number\",\"minimum\":-1.5,\"maximum\":20.25}",
        "{\"type\":\"array\",\"contains\":{\"const\":\"abc\"},\"items\":{\"type\":[\"string\",\"null\"]},\"maxItems\":"
        "4}",
        /* tokens may extend beyond the repetition that they finish, or match fewer repetitions than they have
         * characters */
        "{\"type\":\"string\",\"pattern\":\"^[^\\n]{2}[a-z]$\"}",
        "root ::= [^\"\\\\\\x00-\\x1F]{2} [a-z]",
        "root ::= ([^\"\\\\\\x00-\\x1F] | \"ab\"){2}",
    };
    for (size_t i = 0; i < sizeof grammars / sizeof grammars[0]; i++) {
        whit_grammar *grammar;
        whit_grammar_state *now, *clone;
        whit_error error;
        whit_rng rng = {i + 1};
        fuzz_open_fn *open_text = grammars[i][0] == '{' ? whit_grammar_open_json_schema : whit_grammar_open_gbnf;
        assert_ok(open_text(vocabulary, "test", grammars[i], strlen(grammars[i]), &grammar, &error), error);
        assert_ok(whit_grammar_state_open(grammar, &now, &error), error);
        for (int step = 0; step < 60; step++) {
            const uint64_t *bits;
            uint64_t own[5], again[5];
            assert_ok(whit_grammar_mask(now, &bits, &error), error);
            memcpy(own, bits, sizeof own);
            int32_t picked = -1;
            for (int32_t id = 0; id < 265; id++) {
                assert_ok(whit_grammar_state_clone(now, &clone, &error), error);
                bool open = own[id / 64] >> id % 64 & 1;
                assert_int_equal(open, whit_grammar_accept(clone, id, &error) == WHIT_OK);
                whit_grammar_state_close(clone);
                if (open && id != 264 && (picked < 0 || whit_rng_below(&rng, 8) == 0)) picked = id;
            }
            if (picked < 0) break;
            assert_ok(whit_grammar_accept(now, picked, &error), error);
            assert_ok(whit_grammar_mask(now, &bits, &error), error);
            assert_ok(whit_grammar_rollback(now, 1, &error), error);
            assert_ok(whit_grammar_mask(now, &bits, &error), error);
            memcpy(again, bits, sizeof again);
            assert_memory_equal(own, again, sizeof own);
            assert_ok(whit_grammar_accept(now, picked, &error), error);
        }
        assert_int_equal(whit_grammar_rollback(now, WHIT_GRAMMAR_ROLLBACK_MAX + 1, &error), WHIT_ERROR_ARGUMENT);
        whit_grammar_state_close(now);
        whit_grammar_close(grammar);
    }
}

static whit_status open_schema(const char *schema, whit_grammar **grammar, whit_error *error)
{
    return whit_grammar_open_json_schema(vocabulary, "test", schema, strlen(schema), grammar, error);
}

/* A choice that contains itself as a branch equals its other branches; recursion through another choice is refused. */
static void test_choice_of_itself(void **state)
{
    (void)state;
    static const char itself[] = "{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"integer\"}]}",
                      in_turn[] = "{\"anyOf\":[{\"$ref\":\"#/$defs/b\"},{\"minimum\":3}],\"type\":[\"integer\","
                                  "\"string\"],\"$defs\":{\"b\":{\"anyOf\":[{\"$ref\":\"#\"}]}}}",
                      twice[] = "{\"$defs\":{\"a\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}},"
                                "\"allOf\":[{\"$ref\":\"#/$defs/a\"}],\"anyOf\":[{\"$ref\":\"#/$defs/a\"}]}";
    whit_grammar *grammar;
    whit_error error;
    assert_ok(open_schema(itself, &grammar, &error), error);
    assert_true(takes(grammar, "7"));
    assert_false(takes(grammar, "\"x\""));
    whit_grammar_close(grammar);
    assert_int_equal(open_schema(in_turn, &grammar, &error), WHIT_ERROR_UNSUPPORTED);
    assert_string_equal(
        error.message,
        "test: #/anyOf/0: the schema refers to itself with no property or element between: remove that reference");
    assert_ok(open_schema(twice, &grammar, &error), error);
    assert_true(takes(grammar, "7"));
    assert_false(takes(grammar, "\"x\""));
    whit_grammar_close(grammar);
}

/* Rule names may be longer than the prefix by which names are compared. */
static void test_long_name(void **state)
{
    (void)state;
    char name[301], text[700];
    whit_grammar *grammar;
    whit_error error;
    memset(name, 'n', 300);
    name[300] = 0;
    snprintf(text, sizeof text, "{\"properties\":{\"%s\":{\"type\":\"integer\"}},\"additionalProperties\":true}", name);
    assert_ok(open_schema(text, &grammar, &error), error);
    assert_true(takes(grammar, "{}"));
    assert_true(takes(grammar, "{\"nm\":null}"));
    snprintf(text, sizeof text, "{\"%s\":1}", name);
    assert_true(takes(grammar, text));
    snprintf(text, sizeof text, "{\"%s\":null}", name);
    assert_false(takes(grammar, text));
    whit_grammar_close(grammar);
}

/* unevaluatedProperties does not affect properties that $ref and allOf cover, and forbids all others. */
static void test_unevaluated(void **state)
{
    (void)state;
#define ALL_OF "\"allOf\":[{\"$ref\":\"#/$defs/base\"}],"
#define OWN    "\"properties\":{\"b\":{\"type\":\"integer\"}},\"required\":[\"b\",\"a\"],\"unevaluatedProperties\":"
#define BASE   ",\"$defs\":{\"base\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}"
    static const struct {
        const char *schema, *good, *bad;
    } cases[] = {
        {"{" ALL_OF OWN "false" BASE "}}}", "{\"b\":1,\"a\":\"x\"}", "{\"b\":1,\"a\":\"x\",\"c\":1}"},
        {"{" ALL_OF OWN "{\"type\":\"null\"}" BASE "}}}", "{\"b\":1,\"a\":\"x\",\"c\":null}",
         "{\"b\":1,\"a\":\"x\",\"c\":1}"},
        {"{" ALL_OF OWN "false" BASE ",\"additionalProperties\":{\"type\":\"integer\"}}}}",
         "{\"b\":1,\"a\":\"x\",\"c\":1}", "{\"b\":1,\"a\":\"x\",\"c\":null}"},
    };
    whit_grammar *grammar;
    whit_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(open_schema(cases[i].schema, &grammar, &error), error);
        if (!takes(grammar, cases[i].good)) fail_msg("%s must take %s", cases[i].schema, cases[i].good);
        if (takes(grammar, cases[i].bad)) fail_msg("%s must not take %s", cases[i].schema, cases[i].bad);
        whit_grammar_close(grammar);
    }
    /* a chosen branch evaluates its properties; a required property that is not evaluated makes the schema
     * unsatisfiable */
    assert_int_equal(open_schema("{\"anyOf\":[{\"required\":[\"b\"]}]," OWN "false}", &grammar, &error),
                     WHIT_ERROR_FORMAT);
}

/* Bounds must be exact to the last digit. Exclusive bounds of draft 4 also apply to lists of values. */
static void test_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *good, *bad;
    } cases[] = {
        {"{\"type\":\"integer\",\"minimum\":1000000000,\"maximum\":1000000000.7}", "1000000000", "1000000001"},
        {"{\"type\":\"integer\",\"minimum\":300000000.4,\"maximum\":300000002}", "300000001", "300000000"},
        {"{\"type\":\"integer\",\"minimum\":123456789012.5,\"maximum\":123456789014}", "123456789013", "123456789012"},
        {"{\"type\":\"integer\",\"minimum\":1000000000.0000001,\"maximum\":1000000002}", "1000000001", "1000000000"},
        {"{\"type\":\"number\",\"minimum\":0.30000000000000004,\"maximum\":0.9}", "0.31", "0.30"},
        {"{\"type\":\"number\",\"minimum\":0.29,\"maximum\":0.57}", "0.29", "0.28"},
        {"{\"type\":\"number\",\"minimum\":0.29,\"maximum\":0.57}", "0.57", "0.58"},
        {"{\"type\":\"number\",\"minimum\":0.1,\"exclusiveMaximum\":0.3}", "0.10", "0.30"},
        {"{\"type\":\"string\",\"maxLength\":1e30}", "\"x\"", "1"},
        {"{\"enum\":[1,2],\"minimum\":1,\"exclusiveMinimum\":true}", "2", "1"},
        {"{\"enum\":[1,2],\"minimum\":1,\"exclusiveMinimum\":false}", "1", "3"},
        {"{\"enum\":[1,2],\"maximum\":2,\"exclusiveMaximum\":true}", "1", "2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        whit_grammar *grammar;
        whit_error error;
        assert_ok(whit_grammar_open_json_schema(vocabulary, "test", cases[i].schema, strlen(cases[i].schema), &grammar,
                                                &error),
                  error);
        if (!takes(grammar, cases[i].good)) fail_msg("%s must take %s", cases[i].schema, cases[i].good);
        if (takes(grammar, cases[i].bad)) fail_msg("%s must not take %s", cases[i].schema, cases[i].bad);
        whit_grammar_close(grammar);
    }
}

/* A long text must not need more memory than a short one, since unused states are dropped. */
static void test_long_text(void **state)
{
    (void)state;
    whit_grammar *grammar = gbnf("root ::= item{1000000}\nitem ::= \"a\" | \"(\" item \")\"");
    whit_grammar_state *now;
    whit_error error;
    assert_ok(whit_grammar_state_open(grammar, &now, &error), error);
    size_t most = 0;
    for (int i = 0; i < 200000; i++) {
        const char *text = "a(a)((a))";
        const uint64_t *bits;
        assert_ok(whit_grammar_accept(now, text[i % 9], &error), error);
        if (i % 16 == 0) assert_ok(whit_grammar_mask(now, &bits, &error), error);
        if (grammar->exact.frames.capacity_bytes > most) most = grammar->exact.frames.capacity_bytes;
    }
    assert_true(most < (16u << 20));
    whit_grammar_state_close(now);
    whit_grammar_close(grammar);
}

/* Nor must a large number of parse states at every position end a long text, even if the limit is reached inside a
 * token. */
static void test_many_ways(void **state)
{
    (void)state;
    whit_buf text = {0};
    whit_grammar_state *now;
    whit_error error;
    whit_buf_append_str(&text, "root ::= ([a-c]");
    for (int i = 1; i < 500; i++) whit_buf_append_str(&text, "|[a-c]");
    whit_buf_append_str(&text, "){100000}");
    whit_buf_append_zeros(&text, 1);
    whit_grammar *grammar = gbnf((const char *)text.data);
    assert_ok(whit_grammar_state_open(grammar, &now, &error), error);
    /* 2,098 states of 500 threads exceed 8 MiB; the letter `a` moves the point at which they do into a token */
    assert_ok(whit_grammar_accept(now, 'a', &error), error);
    for (int i = 0; i < 800; i++) assert_ok(whit_grammar_accept(now, 260, &error), error); /* abc */
    whit_grammar_state_close(now);
    whit_grammar_close(grammar);
    whit_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gbnf),        cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_rule_chain),  cmocka_unit_test(test_masks),
                                       cmocka_unit_test(test_bounds),      cmocka_unit_test(test_choice_of_itself),
                                       cmocka_unit_test(test_unevaluated), cmocka_unit_test(test_long_name),
                                       cmocka_unit_test(test_long_text),   cmocka_unit_test(test_many_ways)};
    return cmocka_run_group_tests(tests, open_vocabulary, close_vocabulary);
}
