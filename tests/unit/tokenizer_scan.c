/* SPDX-License-Identifier: MIT
 * Compares the hand-written scanners with PCRE2, and tests the translation of patterns. */
#include "test.h"

#include "base/rng.h"
#include "base/utf8.h"
#include "tokenizer/regex.h"
#include "tokenizer/scan.h"

/* Characters that matter to the patterns, and some of every category. */
static const uint32_t characters[] = {
    ' ',    ' ',    ' ',     '\n',    '\n',    '\r',    '\t',    '\v',     '\f',   '\'',   '\'',   's',    'S',
    't',    'T',    'r',     'e',     'E',     'v',     'V',     'm',      'l',    'L',    'd',    'D',    'a',
    'z',    'Z',    '0',     '1',     '9',     '.',     ',',     '-',      '_',    '$',    0,      0x1F,   0x7F,
    0x85,   0xA0,   0xAD,    0xB2,    0xBD,    0xE9,    0xC0,    0x130,    0x17F,  0x1C5,  0x2B0,  0x301,  0x345,
    0x3A3,  0x430,  0x5D0,   0x660,   0x661,   0x903,   0x1680,  0x180E,   0x2003, 0x200B, 0x200D, 0x2019, 0x2028,
    0x2029, 0x202F, 0x205F,  0x2160,  0x24B6,  0x3000,  0x3042,  0x4E00,   0xAC00, 0xE000, 0xFB05, 0xFEFF, 0xFF10,
    0xFFFD, 0xFFFF, 0x10400, 0x1D7CE, 0x1F600, 0x20000, 0xE0100, 0x10FFFF, 0x212A,
};

static size_t random_text(whit_rng *rng, uint8_t *text, size_t n_chars)
{
    size_t n = 0;
    for (size_t i = 0; i < n_chars; i++) {
        uint64_t pick = whit_rng_below(rng, sizeof characters / sizeof characters[0]);
        n += whit_utf8_encode(characters[pick], text + n);
    }
    return n;
}

static void check_pattern(const char *pattern, whit_scan_fn *scan, uint64_t seed)
{
    whit_rng rng = {seed};
    whit_regex *regex;
    whit_error error;
    uint8_t text[4 * 40];
    assert_ok(whit_regex_compile((const uint8_t *)pattern, strlen(pattern), NULL, &regex, &error), error);
    assert_ptr_equal(whit_scan_for((const uint8_t *)pattern, strlen(pattern)), scan);
    for (int i = 0; i < 60000; i++) {
        size_t n = random_text(&rng, text, 1 + whit_rng_below(&rng, 39)), at = 0;
        whit_match match = {0};
        bool found = true;
        while (found) {
            assert_ok(whit_regex_next(regex, text, n, &match, &found, &error), error);
            if (!found) break;
            size_t end = at < n ? scan(text, n, at) : at;
            if (match.start != at || match.end != end) {
                for (size_t k = 0; k < n; k++) print_message("%02x ", text[k]);
                fail_msg("seed %llu, text %d: PCRE2 %zu..%zu, scanner %zu..%zu", (unsigned long long)seed, i,
                         match.start, match.end, at, end);
            }
            at = end;
        }
        assert_int_equal(at, n);
    }
    whit_regex_close(regex);
}

static void gpt2_is_equal(void **state)
{
    (void)state;
    check_pattern(WHIT_PATTERN_GPT2, whit_scan_gpt2, 1);
}

static void llama3_is_equal(void **state)
{
    (void)state;
    check_pattern(WHIT_PATTERN_LLAMA3, whit_scan_llama3, 2);
}

static void qwen2_is_equal(void **state)
{
    (void)state;
    check_pattern(WHIT_PATTERN_QWEN2, whit_scan_qwen2, 3);
}

/* Returns whether a pattern's first match is the whole text. */
static bool matches(const char *pattern, const char *text)
{
    whit_regex *regex;
    whit_error error;
    whit_match match = {0};
    bool found;
    assert_ok(whit_regex_compile((const uint8_t *)pattern, strlen(pattern), NULL, &regex, &error), error);
    assert_ok(whit_regex_next(regex, (const uint8_t *)text, strlen(text), &match, &found, &error), error);
    whit_regex_close(regex);
    return found && match.start == 0 && match.end == strlen(text);
}

static void patterns_mean_what_oniguruma_means(void **state)
{
    (void)state;
    assert_false(matches("\\s", "\xE1\xA0\x8E")); /* U+180E */
    assert_true(matches("\\S", "\xE1\xA0\x8E"));
    assert_true(matches("[\\S]", "\xE1\xA0\x8E"));
    assert_true(matches("\\s", "\xC2\x85"));
    assert_false(matches("[^\\s]", "\xE3\x80\x80"));
    assert_true(matches("\\w", "\xCC\x81")); /* a mark */
    assert_false(matches("\\W", "\xCC\x81"));
    assert_false(matches("\\w", "\xC2\xBD")); /* one half */
    assert_true(matches("[\\W_]", "\xC2\xBD"));
    assert_true(matches("[\\W_]", "_"));
    assert_false(matches("[\\W_]", "a"));
    assert_true(matches("[^\\W\\d]", "a"));
    assert_false(matches("[^\\W\\d]", "1"));
    assert_true(matches("[^\\S\\n]", " "));
    assert_false(matches("[^\\S\\n]", "\n"));
    assert_true(matches("\\h+", "0aF"));
    assert_true(matches("\\v", "\x0B"));
    assert_false(matches("\\v", "\n"));
    assert_true(matches("a{1,2}+", "aaaaa")); /* repeated, not possessive */
    assert_true(matches("(?:ab){1,1}+", "ababab"));
    assert_true(matches("x{,2}", "xx"));
    assert_true(matches("xa{2}?", "xaa")); /* greedy: both or none */
    assert_true(matches("xa{2}?", "x"));
    assert_true(matches("x(?:ab){2}?y", "xababy"));
    assert_true(matches("(?i)a|b", "B"));
    assert_true(matches("(?i)(?m)a|.", "\n"));
    assert_true(matches("x(?:(?i)a|b)", "xB"));
    assert_true(matches("x|(?i)c|d", "D"));
    assert_true(matches("a(?i)b", "aB"));
    assert_true(matches("(?:a(?i)b)|c", "c")); /* (?i) applies only to its group */
    assert_false(matches("(?:a(?i)b)|c", "C"));
    assert_true(matches("a{b", "a{b"));
    assert_true(matches("[a[bc]]+", "abc"));
    assert_true(matches("[a[^b]]+", "acd"));
    assert_true(matches("[]a]+", "]a"));
    assert_true(matches("[[:alpha:]]+", "\u0915\u093F")); /* a letter and its vowel sign */
    assert_false(matches("[[:alpha:]]", "1"));
    assert_true(matches("[[:alnum:]]+", "\u0915\u093F1"));
    assert_false(matches("[^[:alpha:]]", "\u093F"));
    assert_true(matches("[[:^alpha:]]", "1"));
    assert_false(matches("[[:^alpha:]]", "a"));
    assert_true(matches("[[:word:]]", "\xCC\x81"));
    assert_false(matches("[[:space:]]", "\xE1\xA0\x8E"));
    assert_true(matches("[[:space:]x]+", "\tx\u3000"));
    assert_false(matches("[[:punct:]]", "$"));
    assert_true(matches("[[:punct:]]+", "-!\u3001"));
    assert_true(matches("[[:xdigit:]]+", "0aF"));
    assert_false(matches("[[:xdigit:]]", "\uFF21")); /* a wide A */
    assert_true(matches("[[:lower:][:upper:][:digit:]]+", "aA1"));
    assert_true(matches("(?i:'s|'t)", "'\xC5\xBF"));
    assert_true(matches("(?m:.)", "\n"));
    assert_false(matches(".", "\n"));
    assert_true(matches("^b$", "b"));
    assert_true(matches("\\u0041", "A"));
    assert_true(matches("\\p{Letter}\\p{^Lu}", "aa"));
    assert_true(matches("\\p{Han}", "\xE4\xB8\x80"));
    assert_false(matches("\\p{Han}", "\u3001")); /* a comma that several scripts share */
    assert_true(matches("\\P{Han}", "\u3001"));
    assert_true(matches("[\\p{^Han}]", "\u3001"));
    assert_false(matches("[\\p{katakana}\\p{Hiragana}]", "\u30FC"));
    assert_true(matches("[\\p{katakana}\\p{Hiragana}]+", "\u3042\u30A2"));
    assert_true(matches("\\p{Yi}", "\uA000"));
    assert_true(matches("\\p{L}", "\xF0\x90\x90\x80"));
}

static void bad_patterns_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "a(",          "[a",           "a\\",  "(*FAIL)",  "(?R)",           "(?(1)a)",       "[a&&b]",
        "\\p{",        "\\p{Nothing}", "*",    "\\g<1>",   "[[:alpha",       "\xFF",          "\\C",
        "[[:graph:]]", "[[:^print:]]", "[[:]", "a(?i)b|c", "(?:x|a(?i)b|c)", "(?<n>a(?-i)|b)"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        whit_regex *regex;
        whit_error error;
        assert_int_equal(whit_regex_compile((const uint8_t *)bad[i], strlen(bad[i]), NULL, &regex, &error),
                         WHIT_ERROR_UNSUPPORTED);
        assert_null(regex);
    }
}

static void empty_matches_move_on(void **state)
{
    (void)state;
    whit_regex *regex;
    whit_error error;
    whit_match match = {0};
    bool found;
    size_t starts[8], n = 0;
    assert_ok(whit_regex_compile((const uint8_t *)"a*", 2, NULL, &regex, &error), error);
    for (;;) {
        assert_ok(whit_regex_next(regex,
                                  (const uint8_t *)"b\xC3\xA9"
                                                   "aa",
                                  5, &match, &found, &error),
                  error);
        if (!found) break;
        assert_true(n < 8);
        starts[n++] = match.start;
    }
    assert_int_equal(n, 3); /* before b, before the accent, "aa"; not the empty one after it */
    assert_int_equal(starts[0], 0);
    assert_int_equal(starts[1], 1);
    assert_int_equal(starts[2], 3);
    whit_regex_close(regex);
}

static void endless_backtracking_ends(void **state)
{
    (void)state;
    static const char *const patterns[] = {"(a+)+[bc]", "(a|aa)+[bc]", "(.*a){20}[bc]", "a*a*a*a*a*a*[bc]"};
    char text[20001];
    memset(text, 'a', 20000);
    text[20000] = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        whit_regex *regex;
        whit_error error;
        whit_match match = {0};
        bool found;
        assert_ok(whit_regex_compile((const uint8_t *)patterns[i], strlen(patterns[i]), NULL, &regex, &error), error);
        assert_int_equal(whit_regex_next(regex, (const uint8_t *)text, 20000, &match, &found, &error),
                         WHIT_ERROR_LIMIT);
        whit_regex_close(regex);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_is_equal),
        cmocka_unit_test(llama3_is_equal),
        cmocka_unit_test(qwen2_is_equal),
        cmocka_unit_test(patterns_mean_what_oniguruma_means),
        cmocka_unit_test(bad_patterns_are_refused),
        cmocka_unit_test(empty_matches_move_on),
        cmocka_unit_test(endless_backtracking_ends),
    };
    return cmocka_run_group_tests_name("tokenizer_scan", tests, NULL, NULL);
}
