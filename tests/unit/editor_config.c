/* SPDX-License-Identifier: MIT
 * Tests .editorconfig files and their globs, and the themes. */
#include "test.h"

#include "editor/editorconfig.h"
#include "editor/theme.h"

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
        /* Two stars match any string, also one with slashes; a glob without a slash may match in any folder. */
        {"b**y.h", "b/y.h", true},
        {"b**y.h", "bx/ny.h", true},
        {"b**y.h", "b/xny.h", true},
        {"b**y.h", "bxn/y.h", true},
        {"b**y.h", "b/xn/y.h", true},
        {"b**y.h", "in/b/x/y.h", true},
        {"b**y.h", "a/y.h", false},
        {"b*y.h", "b/y.h", false},
        {"e/**y.h", "e/x/y.h", true},
        {"e/**y.h", "ex/y.h", false},
        {"e**/y.h", "ex/y.h", true},
        {"e**/y.h", "e/xy.h", false},
        {"e/**/y.h", "e/y.h", true},
        {"e/**/y.h", "exy.h", false},
        /* Lists may have empty words; a glob may end with a list. */
        {"o{p,}", "o", true},
        {"o{p,}", "op", true},
        {"o{,p,,q,}.e", "o.e", true},
        {"o{,p,,q,}.e", "opq.e", false},
        {"{one,{two},three}.g", "{two}.g", true},
        {"{one,{two},three}.g", "two.g", false},
        {"{{m,n},o}.k", "n.k", true},
        {"{m,{n,o}}.l", "o.l", true},
        {"{{m,n}}", "m", true},
        {"{{m,n}}", "{m}", false},
        /* If the braces of a glob are not paired, all of them match themselves. */
        {"{},m}.h", "{},m}.h", true},
        {"{},m}.h", "m}.h", false},
        {"{{,m,n{o}.i", "{{,m,n{o}.i", true},
        {"{{,m,n{o}.i", "m.i", false},
        {"}{m,n}", "}m", false},
        {"{m\\,n,op}.t", "m,n.t", true},
        {"{m\\,n,op}.t", "n.t", false},
        {"{q,\\},r}.t", "}.t", true},
        {"{s,\\\\,u}.t", "\\.t", true},
        {"{any,m{*o,n}[qr]}.j", "mxor.j", true},
        {"{any,m{*o,n}[qr]}.j", "mn.j", false},
        {"{first..last}", "{first..last}", true},
        {"{first..last}", "good", false},
        {"[-mn].f", "-.f", true},
        {"[\\]mn].g", "].g", true},
        {"[!\\]mn].g", "].g", false},
        {"mn[q/]op.i", "mn[q/]op.i", true},
        {"mn[q/]op.i", "mnqop.i", false},
        {"mn[/o", "mn[/o", true},
        {"\xE8\xAA\x9E.t", "\xE8\xAA\x9E.t", true},
        /* Globs that would take exponential time: matching must end after a bounded number of steps. */
        {"*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
        {"{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{a,b},c}", "a", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        whit_editorconfig config = {0};
        int n = snprintf(text, sizeof text, "[%s]\ntab_width = 3\n", cases[i].glob);
        whit_editorconfig_apply(text, (size_t)n, cases[i].path, &config);
        if ((config.tab_columns == 3) != cases[i].match)
            fail_msg("glob '%s' and path '%s'", cases[i].glob, cases[i].path);
    }
}

static void properties(void **state)
{
    static const char text[] = "\xEF\xBB\xBF; a comment\n"
                               "Root = TRUE\r\n"
                               "indent_style = space\n" /* before any section: ignored */
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

/* All globs of a file share one limit of steps: sections after the globs that use it up are skipped. A megabyte of such
 * globs must not take long. */
static void hostile_globs(void **state)
{
    (void)state;
    char *text = calloc(1, 1 << 20), path[200] = {0};
    size_t n = 0;
    whit_editorconfig config = {0};
    assert_non_null(text);
    memset(path, 'a', sizeof path - 1);
    for (int i = 0; i < 100; i++) {
        n += (size_t)sprintf(text + n, "[");
        for (int k = 0; k < 100; k++) n += (size_t)sprintf(text + n, "{a,aa}");
        n += (size_t)sprintf(text + n, "b]\n");
    }
    n += (size_t)sprintf(text + n, "[*]\ntab_width = 3\n");
    whit_editorconfig_apply(text, n, path, &config);
    assert_int_equal(config.tab_columns, 0);
    whit_editorconfig_apply(text, n, "b", &config);
    assert_int_equal(config.tab_columns, 3);
    free(text);
}

static void themes(void **state)
{
    whit_theme theme, before;
    char why[200];
    (void)state;
    assert_true(whit_theme_named("dark", &theme));
    assert_int_equal(whit_color_256(theme.looks[WHIT_STYLE_KEYWORD].ink), 75);
    assert_int_equal(whit_color_256(theme.looks[WHIT_STYLE_COMMENT].ink), 245);
    assert_int_equal(whit_color_256(0x010203), 16);
    assert_int_equal(whit_color_256(WHIT_COLOR_NONE), WHIT_COLOR_NONE);
    assert_int_equal(whit_color_8(theme.looks[WHIT_STYLE_KEYWORD].ink), 4);
    assert_int_equal(whit_color_8(theme.looks[WHIT_STYLE_FUNCTION].ink), 3);
    assert_int_equal(whit_color_8(theme.looks[WHIT_STYLE_COMMENT].ink), WHIT_COLOR_NONE);
    for (int code = 16; code < 256; code++) { /* each of the colours 16 to 255 maps to itself */
        static const int levels[] = {0, 0x5F, 0x87, 0xAF, 0xD7, 0xFF};
        int cube = code - 16, grey = 8 + 10 * (code - 232);
        int color =
            code < 232 ? levels[cube / 36] << 16 | levels[cube / 6 % 6] << 8 | levels[cube % 6] : grey * 0x10101;
        assert_int_equal(whit_color_256(color), code);
    }
    assert_true(whit_theme_set(&theme, "match", "white on #102030 bold", why, sizeof why));
    assert_int_equal(theme.match.ink, 0xFFFFFF);
    assert_int_equal(theme.match.paper, 0x102030);
    assert_int_equal(theme.match.attributes, WHIT_LOOK_BOLD);
    before = theme;
    static const char *const wrong[] = {"#12345", "#1234567", "on", "red green", "red on", "red on blue on", "bright"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(whit_theme_set(&theme, "text", wrong[i], why, sizeof why));
    assert_false(whit_theme_set(&theme, "texts", "red", why, sizeof why));
    assert_false(whit_theme_named("solarized", &theme));
    assert_memory_equal(&theme, &before, sizeof theme);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(globs), cmocka_unit_test(properties),
                                       cmocka_unit_test(hostile_globs), cmocka_unit_test(themes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
