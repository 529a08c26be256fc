/* SPDX-License-Identifier: MIT
 * Tests learning a vocabulary: an example worked out by hand, the counts of every step against a slow recount,
 * encoding and decoding of any text, special tokens, and invalid sizes. */
#include "test.h"

#include "base/rng.h"
#include "tokenizer/learn.h"
#include "tokenizer/learn_merges.h"
#include "tokenizer_open.h"

#define SPACE "\xE2\x96\x81"

static opened learn(const char *text, uint32_t n_tokens, const char *const *specials, size_t n_specials)
{
    whit_error error;
    whit_learner *learner;
    opened it = {0};
    whit_learn_options options = {n_tokens, specials, n_specials};
    assert_ok(whit_learner_open(&options, NULL, &learner, &error), error);
    assert_ok(whit_learner_add(learner, text, strlen(text), &error), error);
    assert_ok(whit_learner_finish(learner, &it.image, &error), error);
    whit_learner_close(learner);
    open_image(&it);
    return it;
}

static void expect_token(const opened *it, int32_t id, const char *text)
{
    size_t n;
    const uint8_t *got = whit_tokenizer_token_text(&it->view, id, &n);
    assert_non_null(got);
    if (n != strlen(text) || memcmp(got, text, n) != 0) fail_msg("token %d is '%.*s', not '%s'", id, (int)n, got, text);
}

/* The example of the paper; among pairs of equal frequency the order is that of the head of learn.h. */
static void an_example_by_hand(void **state)
{
    (void)state;
    static const char text[] =
        " low low low low low lower lower newest newest newest newest newest newest widest widest widest";
    static const char *const merges[] = {"es", "est",     SPACE "l", "ow",          SPACE "low",
                                         "ew", SPACE "n", "ewest",   SPACE "newest"};
    const int32_t first = 3 + 256;
    opened it = learn(text, 3 + 256 + 11 + 9, NULL, 0);
    assert_int_equal(whit_tokenizer_n_tokens(&it.view), 3 + 256 + 11 + 9);
    for (int32_t i = 0; i < 9; i++) expect_token(&it, first + i, merges[i]);
    expect_token(&it, first + 9, "e"); /* characters by frequency */
    expect_token(&it, first + 10, "w");
    expect_token(&it, first + 11, SPACE);
    expect_token(&it, 0, "<unk>");
    expect_token(&it, 3 + 'A', "<0x41>");
    assert_int_equal(it.view.header->bos, 1);
    assert_int_equal(it.view.header->eos, 2);
    assert_true(whit_tokenizer_is_end(&it.view, 2));

    static const char lowest[] = " lowest";
    const int32_t wanted[] = {first + 4, first + 1}; /* ids of " low" and "est" */
    whit_error error;
    whit_buf ids = {0};
    whit_encode_options options = {0};
    assert_ok(whit_tokenizer_encode(it.tokenizer, lowest, strlen(lowest), &options, &ids, &error), error);
    assert_int_equal(ids.size_bytes, sizeof wanted);
    assert_memory_equal(ids.data, wanted, sizeof wanted);
    whit_buf_free(&ids);
    close_tokenizer(&it);
}

/* ---- against a recount ---------------------------------------------------------------------- */

#define MAX_PIECES 64
struct slow {
    int word[400][24], length[400];
    uint64_t count[400];
    size_t n_words;
    char piece[MAX_PIECES][64];
    int n_pieces;
};

static int slow_piece(struct slow *slow, const char *text)
{
    for (int i = 0; i < slow->n_pieces; i++)
        if (!strcmp(slow->piece[i], text)) return i;
    strcpy(slow->piece[slow->n_pieces], text);
    return slow->n_pieces++;
}

/* Finds the most frequent pair, among equal ones the smallest, by counting all words anew. */
static bool slow_best(const struct slow *slow, int *left, int *right)
{
    static uint64_t counts[MAX_PIECES][MAX_PIECES];
    memset(counts, 0, sizeof counts);
    for (size_t w = 0; w < slow->n_words; w++)
        for (int i = 0; i + 1 < slow->length[w]; i++) counts[slow->word[w][i]][slow->word[w][i + 1]] += slow->count[w];
    uint64_t best = 1;
    for (int i = 0; i < slow->n_pieces; i++)
        for (int k = 0; k < slow->n_pieces; k++)
            if (counts[i][k] > best) {
                best = counts[i][k];
                *left = i;
                *right = k;
            }
    return best > 1;
}

static void slow_merge(struct slow *slow, int left, int right)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", slow->piece[left], slow->piece[right]);
    int piece = slow_piece(slow, text);
    for (size_t w = 0; w < slow->n_words; w++) {
        int n = 0, *word = slow->word[w];
        for (int i = 0; i < slow->length[w]; i++) {
            bool here = i + 1 < slow->length[w] && word[i] == left && word[i + 1] == right;
            word[n++] = here ? piece : word[i];
            i += here;
        }
        slow->length[w] = n;
    }
}

static void counts_stay_right(void **state)
{
    (void)state;
    whit_rng rng = {7};
    whit_error error;
    for (int round = 0; round < 30; round++) {
        /* With few letters and long words, pairs overlap, repeat, and arise in two ways. */
        static struct slow slow;
        memset(&slow, 0, sizeof slow);
        whit_text_table words = whit_text_table_init(NULL);
        for (int w = 0; w < 300; w++) {
            char text[16];
            size_t n = 1 + whit_rng_below(&rng, sizeof text - 1);
            for (size_t i = 0; i < n; i++) text[i] = (char)('a' + whit_rng_below(&rng, 1 + (uint64_t)round % 4));
            whit_text_table_add(&words, text, n)->count += 1 + whit_rng_below(&rng, 5);
        }
        whit_merges merges;
        assert_ok(whit_merges_learn(&merges, &words, 40, NULL, &error), error);
        for (size_t i = 0; i < merges.n_characters; i++) {
            char text[2] = {(char)merges.pieces.texts.data[whit_text_table_at(&merges.pieces, i)->offset], 0};
            slow_piece(&slow, text);
        }
        slow.n_words = words.n;
        for (size_t w = 0; w < words.n; w++) {
            const whit_text_entry *entry = whit_text_table_at(&words, w);
            slow.count[w] = entry->count;
            for (size_t i = 0; i < entry->n_bytes; i++) {
                char text[2] = {(char)words.texts.data[entry->offset + i], 0};
                slow.word[w][slow.length[w]++] = slow_piece(&slow, text);
            }
        }
        for (int left = 0, right = 0; slow.n_pieces < (int)merges.pieces.n;) {
            assert_true(slow_best(&slow, &left, &right));
            slow_merge(&slow, left, right);
        }
        for (size_t i = 0; i < merges.pieces.n; i++) {
            const whit_text_entry *piece = whit_text_table_at(&merges.pieces, i);
            assert_int_equal(piece->n_bytes, strlen(slow.piece[i]));
            assert_memory_equal(merges.pieces.texts.data + piece->offset, slow.piece[i], piece->n_bytes);
        }
        whit_merges_free(&merges);
        whit_text_table_free(&words);
    }
}

/* ---- there and back ------------------------------------------------------------------------- */

static size_t round_trip(const opened *it, const char *text)
{
    whit_error error;
    whit_buf ids = {0}, back = {0};
    whit_encode_options options = {0};
    assert_ok(whit_tokenizer_encode(it->tokenizer, text, strlen(text), &options, &ids, &error), error);
    size_t n = ids.size_bytes / sizeof(int32_t);
    assert_ok(whit_tokenizer_decode(&it->view, (const int32_t *)(const void *)ids.data, n, false, &back, &error),
              error);
    assert_int_equal(back.size_bytes, strlen(text));
    assert_memory_equal(back.data, text, back.size_bytes);
    whit_buf_free(&ids);
    whit_buf_free(&back);
    return n;
}

#define STORY "Once upon a time, a fox didn't want to go home. \"Why not?\" said the fox's friend. 12 days\tpassed.\n"

static void any_text_comes_back(void **state)
{
    (void)state;
    opened it = learn(STORY STORY STORY, 420, NULL, 0);
    assert_true(round_trip(&it, STORY) < strlen(STORY) / 2);
    round_trip(&it, "  two spaces  and an end ");
    /* characters that were never seen become bytes */
    round_trip(&it, "na\xC3\xAFve \xE4\xB8\x96\xE7\x95\x8C \xF0\x9F\xA6\x8A!");
    assert_int_equal(round_trip(&it, "\xE4\xB8\x96"), 3);
    round_trip(&it, "<0x41> is text");
    round_trip(&it, "");
    close_tokenizer(&it);
}

static void special_tokens_are_not_learned(void **state)
{
    (void)state;
    static const char *const specials[] = {"<|user|>"};
    opened it = learn("<s><|user|>hello hello<|user|>hello</s><s>hello</s>", 300, specials, 1), again;
    expect_token(&it, 3, "<|user|>");
    expect_token(&it, 4 + 'A', "<0x41>");
    assert_int_equal(find_token(&it.view, "us"), -1);
    assert_true(find_token(&it.view, "hello") > 0);
    whit_error error;
    whit_buf ids = {0};
    whit_encode_options options = {.parse_special = true};
    assert_ok(whit_tokenizer_encode(it.tokenizer, "<s><|user|>hello</s>", 20, &options, &ids, &error), error);
    const int32_t wanted[] = {1, 3, find_token(&it.view, "hello"), 2};
    assert_int_equal(ids.size_bytes, sizeof wanted);
    assert_memory_equal(ids.data, wanted, sizeof wanted);
    whit_buf_free(&ids);

    again = learn("<s><|user|>hello hello<|user|>hello</s><s>hello</s>", 300, specials, 1);
    assert_int_equal(it.image.size_bytes, again.image.size_bytes);
    assert_memory_equal(it.image.data, again.image.data, it.image.size_bytes);
    close_tokenizer(&again);
    close_tokenizer(&it);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_learner *learner;
    whit_buf image = {0};
    whit_learn_options options = {259, NULL, 0}; /* no room for a single piece */
    assert_int_equal(whit_learner_open(&options, NULL, &learner, &error), WHIT_ERROR_ARGUMENT);
    assert_null(learner);
    static const char *const specials[][2] = {
        {"<a>", ""}, {"<a>", "<a>"}, {"<a>", "<unk>"}, {"<s>", "<a>"}, {"</s>", "<a>"}};
    static const char *const reasons[] = {"special token 2 is empty", "'<a>' is given twice", "'<unk>' is in every",
                                          "'<s>' is in every", "'</s>' is in every"};
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        options = (whit_learn_options){300, specials[i], 2};
        assert_int_equal(whit_learner_open(&options, NULL, &learner, &error), WHIT_ERROR_ARGUMENT);
        assert_null(learner);
        assert_non_null(strstr(error.message, reasons[i]));
    }
    options = (whit_learn_options){300, NULL, 0};
    assert_ok(whit_learner_open(&options, NULL, &learner, &error), error);
    assert_int_equal(whit_learner_finish(learner, &image, &error), WHIT_ERROR_ARGUMENT); /* no text was added */
    assert_ok(whit_learner_add(learner, "\xFF\xC0x\xED\xA0\x80", 6, &error), error);     /* only the x is valid UTF-8 */
    assert_ok(whit_learner_finish(learner, &image, &error), error);
    whit_learner_close(learner);
    whit_learner_close(NULL);
    whit_buf_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_example_by_hand),  cmocka_unit_test(counts_stay_right),
        cmocka_unit_test(any_text_comes_back), cmocka_unit_test(special_tokens_are_not_learned),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("learning a vocabulary", tests, NULL, NULL);
}
