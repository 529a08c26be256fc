/* SPDX-License-Identifier: MIT
 * Tests differences of texts as hunks: each separate change can be applied or omitted. */
#include "test.h"

#include "code/diff.h"

#include <stdio.h>

/* Writes n lines "1" to "n"; line N is "N new" if bit N is set in `changed`. */
static size_t numbered(char *text, int n, unsigned changed)
{
    size_t at = 0;
    for (int i = 1; i <= n; i++) at += (size_t)sprintf(text + at, changed >> i & 1 ? "%d new\n" : "%d\n", i);
    return at;
}

static size_t make_hunks(unsigned changed, whit_buf *text, whit_buf *hunks)
{
    char old_text[400], new_text[400];
    size_t n_old = numbered(old_text, 20, 0), n_new = numbered(new_text, 20, changed);
    whit_error error;
    assert_int_equal(whit_diff_hunks("a", old_text, n_old, "b", new_text, n_new, text, hunks, &error), WHIT_OK);
    return hunks->size_bytes / sizeof(whit_diff_hunk);
}

static void each_alone(void **state)
{
    (void)state;
    /* changes at 4, 8 and 14; then at 5 and 7, which form one change */
    static const struct {
        unsigned changed, first;
        size_t n;
    } cases[] = {{1u << 4 | 1u << 8 | 1u << 14, 1u << 4, 3}, {1u << 5 | 1u << 7 | 1u << 11, 1u << 5 | 1u << 7, 2}};
    for (size_t i = 0; i < 2; i++) {
        whit_buf text = {0}, hunks = {0}, taken_text = {0};
        size_t n = make_hunks(cases[i].changed, &text, &hunks);
        assert_int_equal(n, cases[i].n);
        char old_text[400], new_text[400], wanted[400];
        size_t n_old = numbered(old_text, 20, 0), n_wanted = numbered(wanted, 20, cases[i].first);
        numbered(new_text, 20, cases[i].changed);
        const uint8_t taken[3] = {1};
        const whit_diff_hunk *list = (const whit_diff_hunk *)(const void *)hunks.data;
        assert_true(whit_diff_take(old_text, n_old, new_text, list, n, taken, &taken_text));
        assert_int_equal(taken_text.size_bytes, n_wanted);
        assert_memory_equal(taken_text.data, wanted, n_wanted);
        whit_buf_free(&text);
        whit_buf_free(&hunks);
        whit_buf_free(&taken_text);
    }
}

/* Each hunk's text contains its own change with three lines of context. */
static void shown(void **state)
{
    (void)state;
    whit_buf text = {0}, hunks = {0};
    make_hunks(1u << 4 | 1u << 8, &text, &hunks);
    assert_true(whit_buf_append(&text, "", 1));
    assert_string_equal((const char *)text.data,
                        "--- a\n+++ b\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+4 new\n 5\n 6\n 7\n"
                        "@@ -5,7 +5,7 @@\n 5\n 6\n 7\n-8\n+8 new\n 9\n 10\n 11\n");
    whit_buf_free(&text);
    whit_buf_free(&hunks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_alone), cmocka_unit_test(shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
