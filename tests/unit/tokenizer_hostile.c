/* SPDX-License-Identifier: MIT
 * Tests tokenizer files that are damaged, absurd or made to be slow: each must give a clear one-line error in
 * reasonable time. */
#include "test.h"

#include "base/clock.h"
#include "tokenizer/normalize.h"

#include "base/rng.h"
#include "tokenizer/from_json.h"
#include "tokenizer/from_sentencepiece.h"
#include "tokenizer/from_tiktoken.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer_sample.h"

static void refuse_json(const char *text, const char *message)
{
    whit_buf image = {0};
    whit_error error = {0};
    whit_status status = whit_tokenizer_from_json("t", text, strlen(text), NULL, &image, &error);
    if (status == WHIT_OK) fail_msg("accepted: %s", text);
    if (!strstr(error.message, message)) fail_msg("'%s', not '%s'", error.message, message);
    assert_int_equal(image.size_bytes, 0);
    whit_buf_free(&image);
}

#define MODEL(members) "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"a\": 0}}, " members "}"

static void broken_json_is_refused(void **state)
{
    (void)state;
    refuse_json("", "t:1:1");
    refuse_json("[]", "not a tokenizer.json");
    refuse_json("{\"model\": 5}", "not a tokenizer.json");
    refuse_json("{\"model\": {\"type\": \"Magic\"}}", "kind of model");
    refuse_json("{\"model\": {\"type\": \"BPE\"}}", "no vocab");
    refuse_json("{\"model\": {\"type\": \"BPE\", \"vocab\": {}}}", "empty");
    refuse_json("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 0}}}", "two tokens have the id 0");
    refuse_json("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}}}", "is not in the range from 0 to");
    refuse_json("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 4000000000}}}", "is not in the range from 0 to");
    refuse_json("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": \"x\"}}}", "t:1:43: a token id");
    refuse_json("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a a\"]}}", "merge 0");
    refuse_json("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"aa\"]}}", "one space");
    refuse_json("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [7]}}", "merge was expected");
    refuse_json("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"dropout\": 0.1}}", "dropout");
    refuse_json("{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}", "[text, score]");
    refuse_json("{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 1]], \"unk_id\": 1}}", "unk_id");
    refuse_json(MODEL("\"normalizer\": {\"type\": \"Magic\"}"), "normalizer 'Magic' is not supported");
    refuse_json(MODEL("\"normalizer\": {\"type\": \"Replace\", \"content\": \"\"}"), "the pattern");
    refuse_json(MODEL("\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAA\"}"), "base64");
    refuse_json(MODEL("\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"/////w==\"}"),
                "damaged");
    refuse_json(MODEL("\"pre_tokenizer\": {\"type\": \"Magic\"}"), "pre-tokenizer 'Magic'");
    refuse_json(MODEL("\"pre_tokenizer\": {\"type\": \"Punctuation\", \"behavior\": \"x\"}"), "behavior");
    refuse_json(MODEL("\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\", "
                      "\"add_prefix_space\": false, \"prepend_scheme\": \"always\"}"),
                "contradicts add_prefix_space");
    refuse_json(MODEL("\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"_\", "
                      "\"add_prefix_space\": false, \"prepend_scheme\": \"first\"}"),
                "contradicts add_prefix_space");
    refuse_json(MODEL("\"decoder\": {\"type\": \"CTC\"}"), "decoder 'CTC'");
    refuse_json(MODEL("\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": []}"), "no place");
    refuse_json(MODEL("\"added_tokens\": [{\"id\": 0, \"content\": \"b\"}]"), "two tokens have the id 0");
    refuse_json(MODEL("\"added_tokens\": [{\"content\": \"b\"}]"), "content and an id");
}

/* A template of 64 pieces is accepted, one of more is refused. */
static void long_templates_are_refused(void **state)
{
    (void)state;
    for (int n = 64; n <= 65; n++) {
        whit_buf json = {0}, image = {0};
        whit_error error = {0};
        whit_buf_append_str(&json,
                            "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"a\": 0}}, "
                            "\"post_processor\": {\"type\": \"TemplateProcessing\", \"special_tokens\": "
                            "{\"a\": {\"ids\": [0]}}, \"single\": [{\"Sequence\": {\"id\": \"A\"}}");
        for (int i = 1; i < n; i++) whit_buf_append_str(&json, ", {\"SpecialToken\": {\"id\": \"a\"}}");
        whit_buf_append(&json, "]}}", 4);
        if (n == 65) {
            refuse_json((const char *)json.data, "more than 64 pieces");
        } else {
            assert_ok(whit_tokenizer_from_json("t", (const char *)json.data, json.size_bytes - 1, NULL, &image, &error),
                      error);
        }
        whit_buf_free(&json);
        whit_buf_free(&image);
    }
}

/* Encodes `text` with a tokenizer.json; *n_ids becomes the number of ids. */
static whit_status encode_with(const char *json, const char *text, size_t n, size_t *n_ids, whit_error *error)
{
    whit_buf image = {0}, ids = {0};
    whit_tokenizer_view view;
    whit_tokenizer *tokenizer;
    const whit_encode_options options = {.parse_special = true};
    assert_ok(whit_tokenizer_from_json("t", json, strlen(json), NULL, &image, error), *error);
    assert_ok(whit_tokenizer_check(image.data, image.size_bytes, &view, error), *error);
    assert_ok(whit_tokenizer_open(&view, NULL, &tokenizer, error), *error);
    whit_status status = whit_tokenizer_encode(tokenizer, text, n, &options, &ids, error);
    *n_ids = ids.size_bytes / 4;
    whit_tokenizer_close(tokenizer);
    whit_buf_free(&image);
    whit_buf_free(&ids);
    return status;
}

static void slow_patterns_end(void **state)
{
    (void)state;
    static const char json[] = "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"a\": "
                               "0}}, \"pre_tokenizer\": "
                               "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a+)+[bc]\"}, "
                               "\"behavior\": \"Isolated\"}}";
    char text[5000];
    size_t n_ids;
    whit_error error = {0};
    memset(text, 'a', sizeof text);
    assert_int_equal(encode_with(json, text, sizeof text, &n_ids, &error), WHIT_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "regular expression"));
    assert_int_equal(n_ids, 0);
}

static void growing_normalizers_end(void **state)
{
    (void)state;
    whit_buf json = {0};
    whit_buf_append_str(&json,
                        "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"a\": 0}}, "
                        "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [");
    for (int i = 0; i < 20; i++)
        whit_buf_printf(&json,
                        "%s{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": "
                        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
                        i ? "," : "");
    whit_buf_append(&json, "]}}", 4);
    char text[1000];
    size_t n_ids;
    whit_error error = {0};
    memset(text, 'a', sizeof text);
    assert_int_equal(encode_with((const char *)json.data, text, sizeof text, &n_ids, &error), WHIT_ERROR_LIMIT);
    whit_buf_free(&json);
}

/* A vocabulary with one entry of 100,000 equal characters, which is compared to the end of the text from every
 * position: encoding must end at a limit. */
static void slow_vocabularies_end(void **state)
{
    (void)state;
    size_t n_word = 100000, n_ids;
    char *word = malloc(n_word + 1), *json = malloc(n_word + 200);
    whit_error error = {0};
    assert_non_null(word);
    assert_non_null(json);
    memset(word, 'a', n_word);
    word[n_word] = 0;
    snprintf(json, n_word + 200,
             "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"u\", 0], [\"%s\", 0]]}}", word);
    assert_int_equal(encode_with(json, word, n_word - 1, &n_ids, &error), WHIT_ERROR_LIMIT);
    snprintf(json, n_word + 200, MODEL("\"added_tokens\": [{\"id\": 1, \"content\": \"%s\"}]"), word);
    assert_int_equal(encode_with(json, word, n_word - 1, &n_ids, &error), WHIT_ERROR_LIMIT);
    free(word);
    free(json);
}

/* A vocabulary of a, aa, aaa ...: each merge in a run of a's looks at thousands of bytes, so encoding must end at a
 * limit. */
static void slow_merges_end(void **state)
{
    (void)state;
    enum { LONGEST = 2048, N_TEXT = 150000, FIRST = 3 + 256 + 11 };
    static char piece[LONGEST + 1], text[N_TEXT];
    whit_buf model = {0}, image = {0}, ids = {0};
    whit_error error;
    whit_tokenizer_view view;
    whit_tokenizer *tokenizer;
    const whit_encode_options options = {0};
    memset(text, 'a', N_TEXT);
    sample_sentencepiece(&model, 2);
    for (int k = 0; k < LONGEST; k++) {
        piece[k] = 'a';
        sample_proto_piece(&model, piece, (float)k, 1);
    }
    assert_ok(whit_tokenizer_from_sentencepiece("t", model.data, model.size_bytes, NULL, &image, &error), error);
    assert_ok(whit_tokenizer_check(image.data, image.size_bytes, &view, &error), error);
    assert_ok(whit_tokenizer_open(&view, NULL, &tokenizer, &error), error);
    assert_true(whit_tokenizer_token_flags(&view, FIRST + 100) & WHIT_TOKEN_WHOLE);
    /* pieces of this length are not tested for the flag */
    assert_false(whit_tokenizer_token_flags(&view, FIRST + LONGEST - 1) & WHIT_TOKEN_WHOLE);
    assert_ok(whit_tokenizer_encode(tokenizer, text, LONGEST, &options, &ids, &error), error);
    assert_int_equal(ids.size_bytes, 2 * sizeof(int32_t)); /* the first id is U+2581 */
    assert_int_equal(((const int32_t *)(const void *)ids.data)[1], FIRST + LONGEST - 1);
    assert_int_equal(whit_tokenizer_encode(tokenizer, text, N_TEXT, &options, &ids, &error), WHIT_ERROR_LIMIT);
    whit_tokenizer_close(tokenizer);
    whit_buf_free(&model);
    whit_buf_free(&image);
    whit_buf_free(&ids);
}

static void broken_models_are_refused(void **state)
{
    (void)state;
    whit_buf model = {0}, image = {0};
    whit_error error;
    sample_sentencepiece(&model, 2);
    for (size_t n = 0; n < model.size_bytes; n += n < 64 ? 1 : 37) {
        whit_status status = whit_tokenizer_from_sentencepiece("t", model.data, n, NULL, &image, &error);
        if (status == WHIT_OK)
            image.size_bytes = 0; /* a cut between two fields gives a valid file */
        else
            assert_true(status == WHIT_ERROR_FORMAT || status == WHIT_ERROR_UNSUPPORTED);
    }
    whit_buf_free(&model);
    sample_sentencepiece(&model, 4);
    assert_int_equal(whit_tokenizer_from_sentencepiece("t", model.data, model.size_bytes, NULL, &image, &error),
                     WHIT_ERROR_UNSUPPORTED);
    static const char *const ranks[] = {"AA== 0\nAQ== 2\n", "A=== 0\n", "AA== x\n", " 0\n", "AA== 0\n"};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        assert_int_not_equal(
            whit_tokenizer_from_tiktoken("t", (const uint8_t *)ranks[i], strlen(ranks[i]), NULL, &image, &error),
            WHIT_OK);
    assert_int_equal(image.size_bytes, 0);
    whit_buf_free(&model);
    whit_buf_free(&image);
}

/* Settings of SentencePiece that would change all ids are refused by name; their defaults are accepted. */
static void other_spaces_are_refused(void **state)
{
    (void)state;
    static const struct {
        int field; /* 2 trainer_spec, 3 normalizer_spec */
        uint8_t bytes[3];
        size_t n_bytes;
        const char *name; /* NULL: accepted */
    } settings[] = {{2, {0xC0, 0x01, 1}, 3, "treat_whitespace_as_suffix"},
                    {2, {0xC0, 0x01, 0}, 3, NULL},
                    {3, {5 << 3, 0}, 2, "escape_whitespaces"},
                    {3, {5 << 3, 1}, 2, NULL}};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        whit_buf model = {0}, image = {0};
        whit_error error = {0};
        sample_sentencepiece(&model, 2);
        sample_proto_bytes(&model, settings[i].field, settings[i].bytes, settings[i].n_bytes);
        whit_status status = whit_tokenizer_from_sentencepiece("t", model.data, model.size_bytes, NULL, &image, &error);
        assert_int_equal(status, settings[i].name ? WHIT_ERROR_UNSUPPORTED : WHIT_OK);
        if (settings[i].name) assert_non_null(strstr(error.message, settings[i].name));
        whit_buf_free(&model);
        whit_buf_free(&image);
    }
}

/* Whatever an image contains, using it may not read outside it (AddressSanitizer checks). */
static void damaged_images_are_harmless(void **state)
{
    (void)state;
    whit_buf json = {0}, image = {0};
    whit_error error;
    whit_rng rng = {11};
    sample_byte_level_json(&json, "\"\\\\w+|[^\\\\w]\"");
    assert_ok(whit_tokenizer_from_json("t", (const char *)json.data, json.size_bytes, NULL, &image, &error), error);
    uint8_t *copy = aligned_alloc(64, (image.size_bytes + 63) / 64 * 64);
    assert_non_null(copy);
    for (int round = 0; round < 3000; round++) {
        memcpy(copy, image.data, image.size_bytes);
        for (int k = 0; k < 4; k++) {
            size_t reach = round % 2 ? sizeof(whit_tokenizer_header) : image.size_bytes;
            copy[whit_rng_below(&rng, reach)] = (uint8_t)whit_rng_next(&rng);
        }
        whit_tokenizer_view view;
        whit_tokenizer *tokenizer;
        whit_buf ids = {0}, text = {0};
        const whit_encode_options options = {.add_special = true, .parse_special = true};
        if (whit_tokenizer_check(copy, image.size_bytes, &view, &error) != WHIT_OK) continue;
        if (whit_tokenizer_open(&view, NULL, &tokenizer, &error) == WHIT_OK) {
            (void)whit_tokenizer_encode(tokenizer, "the tool<s> aaaaaaaa\xC3\xA9", 22, &options, &ids, &error);
            whit_tokenizer_close(tokenizer);
        }
        int32_t all[300];
        for (int32_t i = 0; i < 300; i++) all[i] = i;
        (void)whit_tokenizer_decode(&view, all, 300, true, &text, &error);
        whit_buf_free(&ids);
        whit_buf_free(&text);
    }
    free(copy);
    whit_buf_free(&json);
    whit_buf_free(&image);
}

/* A limit of word length that is too large is refused, because in a trie with a cycle a word would never end. */
static void words_without_end_are_refused(void **state)
{
    (void)state;
    static const char json[] = "{\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"u\", "
                               "\"max_input_chars_per_word\": 4096, \"vocab\": {\"u\": 0, \"a\": 1}}}";
    whit_buf image = {0};
    whit_error error;
    whit_tokenizer_view view;
    assert_ok(whit_tokenizer_from_json("t", json, strlen(json), NULL, &image, &error), error);
    assert_ok(whit_tokenizer_check(image.data, image.size_bytes, &view, &error), error);
    ((whit_tokenizer_header *)(void *)image.data)->max_word_chars = UINT32_MAX;
    assert_int_equal(whit_tokenizer_check(image.data, image.size_bytes, &view, &error), WHIT_ERROR_FORMAT);
    whit_buf_free(&image);
}

/* A character map whose trie has a cycle on 'a': a lookup must end at the longest sensible key. */
static void charsmap_with_a_cycle(void **state)
{
    (void)state;
    enum { N_UNITS = 256, N_TEXT = 1 << 20 };
    whit_buf map = {0}, out = {0}, codes = {0};
    uint32_t units[1 + N_UNITS] = {N_UNITS * 4};
    units[1 + 'a'] = (uint32_t)'a' << 10 | 'a';
    whit_buf_append(&map, units, sizeof units);
    whit_buf_append_zeros(&map, 1);
    char *text = malloc(N_TEXT);
    memset(text, 'a', N_TEXT);
    whit_tokenizer_step step = {.kind = WHIT_STEP_PRECOMPILED, .text_bytes = (uint32_t)map.size_bytes};
    whit_regex *regex = NULL;
    whit_error error;
    uint64_t begin_ns = whit_thread_cpu_ns();
    assert_ok(whit_normalize(&step, map.data, NULL, &regex, &codes, (const uint8_t *)text, N_TEXT, &out, &error),
              error);
    assert_true(whit_thread_cpu_ns() - begin_ns < TEST_SLOWER * 5000000000u);
    assert_int_equal(out.size_bytes, N_TEXT);
    assert_memory_equal(out.data, text, N_TEXT);
    free(text);
    whit_buf_free(&map);
    whit_buf_free(&out);
    whit_buf_free(&codes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(charsmap_with_a_cycle),
        cmocka_unit_test(broken_json_is_refused),
        cmocka_unit_test(slow_patterns_end),
        cmocka_unit_test(growing_normalizers_end),
        cmocka_unit_test(slow_vocabularies_end),
        cmocka_unit_test(broken_models_are_refused),
        cmocka_unit_test(damaged_images_are_harmless),
        cmocka_unit_test(other_spaces_are_refused),
        cmocka_unit_test(words_without_end_are_refused),
        cmocka_unit_test(slow_merges_end),
        cmocka_unit_test(long_templates_are_refused),
    };
    return cmocka_run_group_tests_name("tokenizer_hostile", tests, NULL, NULL);
}
