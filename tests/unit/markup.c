/* SPDX-License-Identifier: MIT
 * Tests how the Markdown of an answer becomes pieces with styles, however the text arrives. */
#include "test.h"

#include "cli/markup.h"

/* The shown pieces; a styled one is written as its style's letter and brackets: "b[word]". Adjacent pieces of one style
 * are joined. */
struct shown {
    char text[8192], plain[8192];
    size_t n, n_plain;
    unsigned style;
    bool is_whole; /* every piece consists of whole characters */
};

static void add_char(struct shown *s, char c)
{
    assert_true(s->n + 1 < sizeof s->text);
    s->text[s->n++] = c;
}

static void switch_style(struct shown *s, unsigned style)
{
    static const char letters[] = "biCqkscn";
    if (style == s->style) return;
    if (s->style) add_char(s, ']');
    for (size_t i = 0; i < sizeof letters - 1; i++)
        if (style >> i & 1) add_char(s, letters[i]);
    if (style) add_char(s, '[');
    s->style = style;
}

static bool take_piece(void *user, const char *text, size_t n_bytes, unsigned style, bool verbatim)
{
    struct shown *s = user;
    assert_true(n_bytes > 0 && verbatim <= ((style & CLI_STYLE_CODE) != 0));
    s->is_whole &= ((unsigned char)text[0] & 0xC0) != 0x80;
    switch_style(s, style);
    for (size_t i = 0; i < n_bytes; i++) add_char(s, text[i]);
    for (size_t i = 0; i < n_bytes; i++) /* a bullet replaces a mark */
        if (n_bytes - i >= 3 && !memcmp(text + i, "\xe2\x80\xa2", 3))
            i += 2;
        else
            s->plain[s->n_plain++] = text[i];
    return true;
}

/* Shows a text that arrives in parts of at least `step` bytes, which consist of whole characters. */
static void show(const char *text, size_t n_bytes, size_t step, struct shown *s)
{
    *s = (struct shown){.is_whole = true};
    cli_markup markup = cli_markup_begin(take_piece, s);
    for (size_t i = 0; i < n_bytes;) {
        size_t n = step;
        while (i + n < n_bytes && ((unsigned char)text[i + n] & 0xC0) == 0x80) n++;
        if (n > n_bytes - i) n = n_bytes - i;
        assert_true(cli_markup_add(&markup, text + i, n));
        i += n;
    }
    assert_true(cli_markup_end(&markup));
    switch_style(s, 0);
    s->text[s->n] = 0;
}

static const struct {
    const char *text, *shown;
} rows[] = {
    {"plain text", "plain text"},
    {"a **bold** word, *slanted* or _so_, and __this__.", "a b[bold] word, i[slanted] or i[so], and b[this]."},
    {"# Title\ntext", "b[Title\n]text"},
    {"###### Six\n####### seven\n#tag", "b[Six\n]####### seven\n#tag"},
    {"- one\n  * two **b**\n+ three\n1. four\n",
     "\xe2\x80\xa2 one\n  \xe2\x80\xa2 two b[b]\n\xe2\x80\xa2 three\n1. four\n"},
    {"> said\nno", "q[> said\n]no"},
    {"use `a * b` and ``x ` y``", "use C[a * b] and C[x ` y]"},
    /* Characters that only look like a mark are kept. */
    {"2*3*4, a_b_c, 2 * 3 * 4, **, ****, f(*args, **kwargs)", "2*3*4, a_b_c, 2 * 3 * 4, **, ****, f(*args, **kwargs)"},
    {"an open **mark\nand *another", "an open **mark\nand *another"},
    {"**a\nb** `c\nd`", "**a\nb** `c\nd`"},
    {"---\n***\n* * *\n", "---\n***\n\xe2\x80\xa2 * *\n"},
    {"\\*not\\* `", "\\*not\\* `"},
    {"ends **bold**", "ends b[bold]"},
    {"**b** *i*", "b[b] i[i]"},
    /* Code keeps every byte; keywords, strings, numbers and comments are coloured. */
    {"```python\nif x == 1:  # why\n    s = 'a # b'\n```\n**b**",
     "Cc[```python]C[\n]Ck[if]C[ x == ]Cn[1]C[:  ]Cc[# why]C[\n    s = ]Cs['a # b']C[\n]Cc[```\n]b[b]"},
    {"```c\nreturn a / b; // x\n````\n```", "Cc[```c]C[\n]Ck[return]C[ a / b; ]Cc[// x]C[\n]Cc[````\n]C[```]"},
    {"~~~\n# no **mark**\n~~~\nx", "Cc[~~~]C[\n# no **mark**\n]Cc[~~~\n]x"},
    {"```one line``` then", "C[one line] then"},
    {"```sh\necho \xc3\xa9\xc3\xa9 \"\xe2\x82\xac\"\n",
     "Cc[```sh]C[\n]Ck[echo]C[ \xc3\xa9\xc3\xa9 ]Cs[\"\xe2\x82\xac\"]C[\n]"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t step = 1; step < 40; step++) {
            struct shown s;
            show(rows[i].text, strlen(rows[i].text), step, &s);
            assert_string_equal(s.text, rows[i].shown);
            assert_true(s.is_whole);
        }
}

/* Returns whether `small` is `large` with some bytes left out. */
static bool is_rest_of(const char *small, size_t n_small, const char *large, size_t n_large)
{
    size_t k = 0;
    for (size_t i = 0; i < n_large && k < n_small; i++) k += large[i] == small[k];
    return k == n_small;
}

/* Random texts with marks: the pieces must not depend on how the text arrives, and consist of whole characters; the
 * plain text may only lack marks and blanks. */
static void test_random(void **state)
{
    static const char *const parts[] = {"*",        "**",           "_",  "`",   "```", "#",  " ", "\n", "a",  "word",
                                        "\xc3\xa4", "\xe2\x82\xac", "> ", "~~~", "'",   "\"", "/", "1",  "if", "\\"};
    uint32_t random = 12345;
    (void)state;
    for (int round = 0; round < 4000; round++) {
        char text[2048];
        size_t n = 0;
        struct shown whole, s;
        for (int i = 0; i < 120; i++) {
            random = random * 1664525u + 1013904223u;
            const char *part = parts[(random >> 16) % (sizeof parts / sizeof parts[0])];
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
        }
        show(text, n, n, &whole);
        show(text, n, 1 + random % 7, &s);
        assert_string_equal(s.text, whole.text);
        assert_true(whole.is_whole && s.is_whole);
        assert_true(is_rest_of(whole.plain, whole.n_plain, text, n));
        char kept[2][2048];
        size_t n_kept[2] = {0};
        for (int side = 0; side < 2; side++) {
            const char *from = side ? whole.plain : text;
            size_t n_from = side ? whole.n_plain : n;
            for (size_t i = 0; i < n_from; i++)
                if (!strchr("*_`#", from[i])) kept[side][n_kept[side]++] = from[i];
        }
        /* A heading loses the blank after its marks. */
        assert_true(is_rest_of(kept[1], n_kept[1], kept[0], n_kept[0]));
        size_t n_blanks = 0;
        for (size_t i = 0; i < n_kept[0]; i++) n_blanks += kept[0][i] == ' ';
        for (size_t i = 0; i < n_kept[1]; i++) n_blanks -= kept[1][i] == ' ';
        assert_int_equal(n_kept[0] - n_kept[1], n_blanks);
    }
}

/* A mark that is not closed soon is shown as text, so the text that is held back is bounded. */
static void test_bound(void **state)
{
    char text[3000] = "**";
    struct shown s;
    (void)state;
    memset(text + 2, 'a', 2000);
    memcpy(text + 2002, "** b", 4);
    show(text, 2006, 3, &s);
    assert_int_equal(s.n, 2006);
    assert_memory_equal(s.text, text, 2006);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
