/* SPDX-License-Identifier: MIT
 * The globs and the files of .editorconfig. */
#include "test.h"

#include "editor/editorconfig.h"

static void globs(void **state)
{
    static const struct {
        const char *glob, *path;
        bool match;
    } cases[] = {
        {"*.c", "a.c", true},
        {"*.c", "folder/a.c", true},
        {"*.c", "a.cc", false},
        {"*", "folder/deep/a", true},
        {"src/*.c", "src/a.c", true},
        {"src/*.c", "src/deep/a.c", false},
        {"src/**.c", "src/deep/a.c", true},
        {"/a.c", "a.c", true},
        {"/a.c", "folder/a.c", false},
        {"a/**/b", "a/b", true},
        {"a/**/b", "a/x/y/b", true},
        {"**/b", "b", true},
        {"**/b", "x/b", true},
        {"?.c", "a.c", true},
        {"?.c", "\xC3\xA4.c", true},
        {"?.c", ".c", false},
        {"[abc].c", "b.c", true},
        {"[!abc].c", "b.c", false},
        {"[a-c].c", "c.c", true},
        {"[ab", "[ab", true},
        {"*.{c,h}", "a.h", true},
        {"*.{c,h}", "a.o", false},
        {"{a,b{1,2}}.c", "b2.c", true},
        {"{a,b{1,2}}.c", "b.c", false},
        {"{,x}y", "y", true},
        {"{single}", "{single}", true},
        {"{single}", "single", false},
        {"{}.c", "{}.c", true},
        {"a{1..12}", "a12", true},
        {"a{1..12}", "a13", false},
        {"a{1..12}", "a07", false},
        {"a{-3..3}", "a-2", true},
        {"a{3..1}", "a2", true},
        {"\\*.c", "*.c", true},
        {"\\*.c", "a.c", false},
        {"Makefile", "x/Makefile", true},
        {"", "a", false},
        /* Hostile: ends after a bounded number of steps. */
        {"*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
        {"{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{a,b},c}", "a", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (whit_editorconfig_match(cases[i].glob, cases[i].path) != cases[i].match)
            fail_msg("glob '%s' and path '%s'", cases[i].glob, cases[i].path);
}

static void properties(void **state)
{
    static const char text[] = "\xEF\xBB\xBF; a comment\n"
                               "Root = TRUE\r\n"
                               "indent_style = space\n" /* in no section */
                               "[*]\n"
                               "indent_style = tab\n"
                               "indent_size = tab\n"
                               "tab_width = 3\n"
                               "[*.py]\n"
                               "indent_style=space\n"
                               "indent_size = 4\n"
                               "end_of_line = crlf\n"
                               "trim_trailing_whitespace = True\n"
                               "[*.md]\n"
                               "tab_width = unset\n"
                               "indent_size = 1000000000000\n"
                               "nonsense\n"
                               "insert_final_newline = false";
    whit_editorconfig config = {0};
    (void)state;
    assert_true(whit_editorconfig_apply(text, sizeof text - 1, "a.c", &config));
    assert_int_equal(config.tabs, WHIT_YES);
    assert_int_equal(config.tab_columns, 3);
    assert_int_equal(config.trim, WHIT_UNSAID);
    memset(&config, 0, sizeof config);
    whit_editorconfig_apply(text, sizeof text - 1, "deep/a.py", &config);
    assert_int_equal(config.tabs, WHIT_NO);
    assert_int_equal(config.indent_columns, 4);
    assert_int_equal(config.carriage_return, WHIT_YES);
    assert_int_equal(config.trim, WHIT_YES);
    memset(&config, 0, sizeof config);
    whit_editorconfig_apply(text, sizeof text - 1, "a.md", &config);
    assert_int_equal(config.tab_columns, 0);
    assert_int_equal(config.indent_columns, -1);
    assert_int_equal(config.final_newline, WHIT_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(globs), cmocka_unit_test(properties)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
