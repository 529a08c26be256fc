/* SPDX-License-Identifier: MIT
 * Tests the search patterns that a model gives: what they find, and that each costs a bounded number of steps and
 * bytes. */
#include "test.h"

#include <malloc.h>

#include "agent/search.h"

static whit_search *open_search(const char *pattern)
{
    char why[200];
    whit_search *search = whit_search_open(pattern, why, sizeof why);
    if (!search) fail_msg("%s: %s", pattern, why);
    return search;
}

static void test_finds(void **state)
{
    static const struct {
        const char *pattern, *line;
        bool is_found;
    } cases[] = {
        {"main", "int main(void)", true},
        {"^int\\s+\\w+\\(", "int main(void)", true},
        {"[[:digit:]]{3}$", "x 123", true},
        {"[[:digit:]]{3}$", "x 12", false},
        {"(?i)MAIN", "int main(void)", true},
        {"foo {", "if foo {", true},
        {"a{2}b{2}", "aabb", true},
        {"(a)(b)(c)", "abc", true}, /* more groups than the search stores */
        {"(.)\\1", "hello", true},
        {"h\xc3\xa4", "h\xc3\xa4user", true},
        {"x$", "\xff\xfe x", true}, /* a line that is not UTF-8 */
        {"", "", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_search *search = open_search(cases[i].pattern);
        whit_search_found found = whit_search_line(search, cases[i].line, strlen(cases[i].line));
        if (found != (cases[i].is_found ? WHIT_SEARCH_YES : WHIT_SEARCH_NO))
            fail_msg("'%s' in '%s': %d", cases[i].pattern, cases[i].line, found);
        whit_search_close(search);
    }
}

/* Each of these patterns took seconds to minutes, or gigabytes, with regcomp or regexec. */
static void test_bounds(void **state)
{
    static const char *const patterns[] = {
        "((a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r|s|t|u|v|w|x|y|z|0|1|2|3|4|5|6|7|8|9)+){32000}",
        "(a?){3000}b",
        "((a{1,99}){1,99}){1,99}b",
        "(((((((a|b){30}){30}){30}){30}){30}){30}){30}",
        "(a*)*b",
        "(a|aa)+$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(a|b)*a(a|b){20}c",
        "(?R)?a(?R)?b",
        "(?=(a+))a*b\\1",
    };
    char line[2000], why[200];
    (void)state;
    memset(line, 'a', sizeof line);
    line[sizeof line - 1] = '!';
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        size_t before = mallinfo2().uordblks;
        whit_search *search = whit_search_open(patterns[i], why, sizeof why);
        if (!search) {
            assert_true(strlen(why) > 4);
            continue;
        }
        assert_int_not_equal(whit_search_line(search, line, sizeof line), WHIT_SEARCH_YES);
        assert_true(mallinfo2().uordblks < before + ((size_t)8 << 20));
        whit_search_close(search);
    }
    memset(line, 'a', 201);
    line[201] = 0;
    assert_null(whit_search_open(line, why, sizeof why));
    assert_non_null(strstr(why, "200 bytes"));
    assert_null(whit_search_open("(", why, sizeof why));
}

/* The number of expensive lines is limited, too. */
static void test_sum(void **state)
{
    static const char line[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";
    size_t n_costly = 0;
    whit_search_found found;
    (void)state;
    whit_search *search = open_search("(a|aa)+$");
    while ((found = whit_search_line(search, line, sizeof line - 1)) == WHIT_SEARCH_COSTLY)
        assert_true(++n_costly <= 10000);
    assert_int_equal(found, WHIT_SEARCH_SPENT);
    assert_true(n_costly >= 1000); /* a few expensive lines of a project must not end a search */
    whit_search_close(search);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
