/* SPDX-License-Identifier: MIT
 * Tests prompts with fill-in-the-middle tokens, in the order with which each model family was trained. */
#include "test.h"

#include "model_folder.h"
#include "test_folder.h"

#include <string.h>

enum { PREFIX = 20, SUFFIX, MIDDLE };

static whit_model *open_with(const char *prefix, const char *suffix, const char *middle)
{
    folder_model model = folder_reduce(folder_find("qwen3-0.6b"), 1, 8, 300);
    memset(model.specials, 0, sizeof model.specials);
    model.specials[0] = (struct folder_special){2, "</s>"};
    if (prefix) {
        model.specials[1] = (struct folder_special){PREFIX, prefix};
        model.specials[2] = (struct folder_special){SUFFIX, suffix};
        if (middle) model.specials[3] = (struct folder_special){MIDDLE, middle};
    }
    assert_true(folder_write(&model, in_folder("model"), 1, NULL, NULL));
    return open_model_at(in_folder("model"));
}

static size_t tokenize(const whit_model *model, const char *text, int32_t *ids)
{
    whit_error error;
    size_t n;
    assert_ok(whit_tokenize(model, text, strlen(text), false, false, ids, 64, &n, &error), error);
    return n;
}

static void texts_lie_where_the_model_expects_them(void **state)
{
    (void)state;
    const struct {
        const char *prefix, *suffix, *middle;
        bool suffix_first;
    } styles[] = {
        {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", false},
        {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", false},
        {"[PREFIX]", "[SUFFIX]", NULL, true},
    };
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        whit_model *model = open_with(styles[i].prefix, styles[i].suffix, styles[i].middle);
        /* Text that looks like a fill-in token must be encoded as plain text. */
        char before[64];
        snprintf(before, sizeof before, "a%sb", styles[i].suffix);
        const char *after = "cd";
        int32_t expected[160], ids[160], piece[2][64];
        size_t n_piece[2] = {tokenize(model, before, piece[0]), tokenize(model, after, piece[1])}, n = 0, n_ids;
        for (int k = 0; k < 2; k++) {
            int which = styles[i].suffix_first ? 1 - k : k;
            expected[n++] = which ? SUFFIX : PREFIX;
            for (size_t j = 0; j < n_piece[which]; j++) expected[n++] = piece[which][j];
        }
        if (styles[i].middle) expected[n++] = MIDDLE;
        whit_error error;
        assert_ok(whit_tokenize_infill(model, before, strlen(before), after, strlen(after), ids, 160, &n_ids, &error),
                  error);
        assert_int_equal(n_ids, n);
        assert_memory_equal(ids, expected, n * sizeof *ids);
        assert_int_equal(
            whit_tokenize_infill(model, before, strlen(before), after, strlen(after), ids, 2, &n_ids, &error),
            WHIT_ERROR_LIMIT);
        assert_int_equal(n_ids, n);
        assert_ok(whit_tokenize_infill(model, NULL, 0, NULL, 0, ids, 160, &n_ids, &error), error);
        assert_int_equal(n_ids, styles[i].middle ? 3 : 2);
        whit_model_close(model);
    }
}

static void models_without_such_tokens_say_so(void **state)
{
    (void)state;
    whit_model *model = open_with(NULL, NULL, NULL);
    int32_t ids[16];
    size_t n_ids;
    whit_error error;
    assert_int_equal(whit_tokenize_infill(model, "a", 1, "b", 1, ids, 16, &n_ids, &error), WHIT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "fill-in-the-middle"));
    whit_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_lie_where_the_model_expects_them),
        cmocka_unit_test(models_without_such_tokens_say_so),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
