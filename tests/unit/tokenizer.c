/* SPDX-License-Identifier: MIT
 * Tests tokenizers with small data of the project: encoding, marked text, streams, canonical images, failing
 * allocations, and merges, which may not take quadratic time. */
#include "test.h"

#include "base/clock.h"
#include "base/rng.h"
#include "gguf_sample.h"
#include "tokenizer/from_gguf.h"
#include "tokenizer/from_json.h"
#include "tokenizer/from_sentencepiece.h"
#include "tokenizer/from_tiktoken.h"
#include "tokenizer/models.h"
#include "tokenizer/scan.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer_open.h"
#include "tokenizer_sample.h"

static opened open_json_text(const char *text, size_t n)
{
    opened it = {0};
    whit_error error;
    assert_ok(whit_tokenizer_from_json("test", text, n, NULL, &it.image, &error), error);
    open_image(&it);
    return it;
}

static opened open_byte_level(void)
{
    whit_buf text = {0}, pattern = {0};
    whit_json_write_string(&pattern, WHIT_PATTERN_LLAMA3, strlen(WHIT_PATTERN_LLAMA3));
    whit_buf_append(&pattern, "", 1);
    sample_byte_level_json(&text, (const char *)pattern.data);
    opened it = open_json_text((const char *)text.data, text.size_bytes);
    whit_buf_free(&text);
    whit_buf_free(&pattern);
    return it;
}

static opened open_sentencepiece_with(uint8_t model_type, const whit_tokenizer_config *config)
{
    opened it = {0};
    whit_buf model = {0};
    whit_error error;
    sample_sentencepiece(&model, model_type);
    assert_ok(whit_tokenizer_from_sentencepiece("test", model.data, model.size_bytes, config, &it.image, &error),
              error);
    whit_buf_free(&model);
    open_image(&it);
    return it;
}

static opened open_sentencepiece(uint8_t model_type)
{
    return open_sentencepiece_with(model_type, NULL);
}

static opened open_vocabulary(const whit_vocabulary *vocabulary)
{
    opened it = {0};
    whit_error error;
    assert_ok(whit_tokenizer_from_vocabulary(vocabulary, &it.image, &error), error);
    open_image(&it);
    return it;
}

static whit_json parse(const char *text)
{
    whit_json json;
    whit_error error;
    assert_ok(whit_json_parse("test", text, strlen(text), NULL, &json, &error), error);
    return json;
}

static void expect(const opened *it, const char *text, const whit_encode_options *options, const int32_t *ids, size_t n)
{
    whit_buf got = {0};
    whit_error error;
    assert_ok(whit_tokenizer_encode(it->tokenizer, text, strlen(text), options, &got, &error), error);
    const int32_t *values = (const int32_t *)(const void *)got.data;
    bool same = got.size_bytes == 4 * n && (n == 0 || memcmp(values, ids, 4 * n) == 0);
    if (!same) {
        for (size_t i = 0; i < got.size_bytes / 4; i++) print_message("%d ", values[i]);
        fail_msg("these are not the ids of '%s'", text);
    }
    whit_buf_free(&got);
}
#define EXPECT(it, text, options, ...)                                                                                 \
    do {                                                                                                               \
        const int32_t expect_ids_[] = {__VA_ARGS__};                                                                   \
        expect(it, text, options, expect_ids_, sizeof expect_ids_ / sizeof expect_ids_[0]);                            \
    } while (0)

static void byte_level_encodes(void **state)
{
    (void)state;
    opened it = open_byte_level();
    const whit_encode_options plain = {.parse_special = true}, full = {.add_special = true, .parse_special = true};
    const whit_encode_options text = {0};
    EXPECT(&it, "the the", &plain, 257, 258);
    EXPECT(&it, "the<s>the</s>", &full, 262, 257, 262, 257, 263);
    EXPECT(&it, "<s>", &text, '<', 's', '>');
    EXPECT(&it, "tool tools tool", &text, 264, ' ', 't', 'o', 'o', 'l', 's', ' ', 264);
    EXPECT(&it, "aaaaaaa", &text, 260, 259, 'a');
    EXPECT(&it, "\xFFo", &text, 0xEF, 0xBF, 0xBD, 'o'); /* U+FFFD */
    expect(&it, "", &full, (const int32_t[]){262}, 1);
    assert_int_equal(whit_tokenizer_n_tokens(&it.view), 265);
    assert_int_equal(find_token(&it.view, "</s>"), 263);
    assert_int_equal(find_token(&it.view, "th"), 256);
    assert_int_equal(find_token(&it.view, "nothing"), -1);
    close_tokenizer(&it);
}

/* Special tokens in the user's text are encoded as text, those of the template around it as special tokens. */
static void user_text_is_only_text(void **state)
{
    (void)state;
    opened it = open_byte_level();
    const whit_text_range user[] = {{3, 6}};
    const whit_encode_options marked = {.parse_special = true, .plain = user, .n_plain = 1};
    EXPECT(&it, "<s><s></s>", &marked, 262, '<', 's', '>', 263);
    const whit_text_range edge[] = {{1, 2}};
    const whit_encode_options across = {.parse_special = true, .plain = edge, .n_plain = 1};
    EXPECT(&it, "<s></s>", &across, '<', 's', '>', 263);
    EXPECT(&it, "tool", &across, 264); /* not special: recognised anywhere */
    /* Bytes that are not UTF-8 become U+FFFD and thus longer; the user's range must be moved accordingly. */
    const whit_text_range late[] = {{2, 5}};
    const whit_encode_options moved = {.parse_special = true, .plain = late, .n_plain = 1};
    EXPECT(&it, "\xFF\xFF<s><s>", &moved, 0xEF, 0xBF, 0xBD, 0xEF, 0xBF, 0xBD, '<', 's', '>', 262);
    const whit_text_range bad[] = {{4, 3}};
    const whit_encode_options wrong = {.plain = bad, .n_plain = 1};
    whit_buf ids = {0};
    whit_error error;
    assert_int_equal(whit_tokenizer_encode(it.tokenizer, "abcdef", 6, &wrong, &ids, &error), WHIT_ERROR_ARGUMENT);
    close_tokenizer(&it);
}

/* The user's text must not become special tokens that the vocabulary contains, neither as a piece of Unigram nor by
 * merging. */
static void user_text_gets_no_special_pieces(void **state)
{
    (void)state;
    static const char json[] =
        "{\"added_tokens\": [{\"id\": 1, \"content\": \"<s>\", \"special\": true, \"normalized\": "
        "false}], \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], "
        "[\"<s>\", 0], [\"<\", -3], [\"s\", -3], [\">\", -3]]}}";
    static const whit_text_range user[] = {{3, 6}};
    opened it = open_json_text(json, strlen(json));
    const whit_encode_options marked = {.parse_special = true, .plain = user, .n_plain = 1};
    EXPECT(&it, "<s><s><s>", &marked, 1, 2, 3, 4, 1);
    close_tokenizer(&it);
    static const char merging[] =
        "{\"added_tokens\": [{\"id\": 4, \"content\": \"<s>\", \"special\": true, \"normalized\": false}], "
        "\"model\": {\"type\": \"BPE\", \"vocab\": {\"<\": 0, \"s\": 1, \">\": 2, \"<s\": 3, \"<s>\": 4}, "
        "\"merges\": [\"< s\", \"<s >\"]}}";
    it = open_json_text(merging, strlen(merging));
    EXPECT(&it, "<s><s><s>", &marked, 4, 3, 2, 4);
    close_tokenizer(&it);
}

/* Words that a tokenizer caches for the user's text may not be used for other text, and vice versa. */
static void roles_do_not_share_words(void **state)
{
    (void)state;
    static const char json[] =
        "{\"added_tokens\": [{\"id\": 0, \"content\": \"<s>\", \"special\": true, \"normalized\": false}], "
        "\"model\": {\"type\": \"BPE\", \"ignore_merges\": true, \"merges\": [], "
        "\"vocab\": {\"<s>\": 0, \"<\": 1, \"s\": 2, \">\": 3}}}";
    static const whit_text_range user[] = {{0, 3}};
    const whit_encode_options marked = {.parse_special = true, .plain = user, .n_plain = 1}, unmarked = {0};
    opened it = open_json_text(json, strlen(json));
    for (int i = 0; i < 2; i++) {
        EXPECT(&it, "<s>", &marked, 1, 2, 3);
        EXPECT(&it, "<s>", &unmarked, 0);
    }
    close_tokenizer(&it);
    it = open_json_text(json, strlen(json));
    EXPECT(&it, "<s>", &unmarked, 0);
    EXPECT(&it, "<s>", &marked, 1, 2, 3);
    close_tokenizer(&it);
}

static void sentencepiece_encodes(void **state)
{
    (void)state;
    const whit_encode_options full = {.add_special = true, .parse_special = true};
    const int first = 3 + 256; /* first id of the vocabulary's words */
    opened it = open_sentencepiece(2);
    EXPECT(&it, "hello hello", &full, 1, first + 9, first + 9);
    EXPECT(&it, "lhello", &full, 1, first, first + 3, first + 8);
    EXPECT(&it, "\xC3\xA9", &full, 1, first, 3 + 0xC3, 3 + 0xA9);
    close_tokenizer(&it);
    it = open_sentencepiece(1);
    const whit_encode_options plain = {.parse_special = true};
    EXPECT(&it, "hello", &plain, first + 9);
    EXPECT(&it, "hellhello", &plain, first, first + 7, first + 8);
    close_tokenizer(&it);
}

/* The tokens that are put around a text are those that the files beside a tokenizer.model name. */
static void documents_decide_what_surrounds_a_text(void **state)
{
    (void)state;
    whit_json json = parse("{\"add_bos_token\": true, \"add_eos_token\": true, \"bos_token\": \"<|begin|>\", "
                           "\"eos_token\": {\"content\": \"<|stop|>\"}, \"added_tokens_decoder\": {"
                           "\"270\": {\"content\": \"<|begin|>\", \"special\": true}, "
                           "\"271\": {\"content\": \"<|stop|>\", \"special\": true}}}");
    const whit_tokenizer_config config = {.tokenizer_config = &json};
    const whit_encode_options full = {.add_special = true, .parse_special = true};
    opened it = open_sentencepiece_with(2, &config);
    EXPECT(&it, "hello", &full, 270, 3 + 256 + 9, 271);
    assert_true(whit_tokenizer_is_end(&it.view, 271));
    close_tokenizer(&it);
    whit_json_close(&json);
}

/* These files rename reserved tokens, say which tokens are special and which spaces a token includes, and add tokens as
 * long as the model has rows for them. */
static void documents_amend_a_vocabulary(void **state)
{
    (void)state;
    whit_json tokens = parse("{\"added_tokens_decoder\": {"
                             "\"0\": {\"content\": \"<unk>\", \"special\": true}, "
                             "\"2\": {\"content\": \"<|stop|>\", \"special\": true}, "
                             "\"265\": {\"content\": \"ll\", \"special\": true}, "
                             "\"268\": {\"content\": \"another\", \"special\": true}, "
                             "\"270\": {\"content\": \"<tool>\", \"lstrip\": true, \"rstrip\": true}, "
                             "\"271\": {\"content\": \"[PAD]\", \"special\": true}}}");
    whit_json model = parse("{\"vocab_size\": 271}");
    const whit_tokenizer_config config = {.tokenizer_config = &tokens, .config = &model};
    static const whit_text_range user[] = {{0, 2}};
    const whit_encode_options parsed = {.parse_special = true};
    const whit_encode_options marked = {.parse_special = true, .plain = user, .n_plain = 1};
    opened it = open_sentencepiece_with(2, &config);
    assert_int_equal(whit_tokenizer_n_tokens(&it.view), 271);
    assert_int_equal(whit_tokenizer_token_flags(&it.view, 0) & WHIT_TOKEN_TYPE, WHIT_TOKEN_UNKNOWN);
    EXPECT(&it, "<|stop|>", &parsed, 2);
    assert_int_equal(find_token(&it.view, "</s>"), -1);
    EXPECT(&it, "ho  <tool> ho", &parsed, 259, 260, 263, 270, 259, 260, 263);
    EXPECT(&it, "ll", &parsed, 265);
    EXPECT(&it, "ll", &marked, 259, 262, 262);
    assert_int_equal(find_token(&it.view, "\u2581hello"), 268);
    assert_int_equal(find_token(&it.view, "[PAD]"), -1);
    close_tokenizer(&it);
    whit_json_close(&tokens);
    whit_json_close(&model);
}

static whit_buf decode(const opened *it, const int32_t *ids, size_t n, bool skip)
{
    whit_buf text = {0};
    whit_error error;
    assert_ok(whit_tokenizer_decode(&it->view, ids, n, skip, &text, &error), error);
    whit_buf_append(&text, "", 1);
    return text;
}

static void streams_hold_back_parts_of_characters(void **state)
{
    (void)state;
    opened it = open_byte_level();
    const int32_t ids[] = {262, 0xE2, 0x82, 0xAC, 0xC3, 'x', 9999, -1, 0xF0};
    static const char *const pieces[] = {"", "", "", "\xE2\x82\xAC", "", "\xEF\xBF\xBDx", "", "", ""};
    whit_token_decoder *decoder;
    whit_error error;
    const char *text;
    size_t n;
    assert_ok(
        whit_token_decoder_open(&it.view, (whit_token_decoder_options){.skip_special = true}, NULL, &decoder, &error),
        error);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        assert_ok(whit_token_decoder_push(decoder, ids[i], &text, &n, &error), error);
        assert_int_equal(n, strlen(pieces[i]));
        assert_memory_equal(text, pieces[i], n);
    }
    assert_ok(whit_token_decoder_flush(decoder, &text, &n, &error), error);
    assert_int_equal(n, 3);
    whit_token_decoder_close(decoder);
    close_tokenizer(&it);
}

static void expect_inner(const opened *it, int32_t id, const char *bytes, size_t n)
{
    whit_token_decoder *decoder;
    whit_buf found = {0};
    whit_error error;
    const char *text;
    size_t n_text;
    assert_ok(
        whit_token_decoder_open(&it->view, (whit_token_decoder_options){.is_inner = true}, NULL, &decoder, &error),
        error);
    assert_ok(whit_token_decoder_push(decoder, id, &text, &n_text, &error), error);
    whit_buf_append(&found, text, n_text);
    assert_ok(whit_token_decoder_flush(decoder, &text, &n_text, &error), error);
    whit_buf_append(&found, text, n_text);
    assert_int_equal(found.size_bytes, n);
    if (n) assert_memory_equal(found.data, bytes, n);
    whit_buf_free(&found);
    whit_token_decoder_close(decoder);
}

static void inner_tokens_are_their_bytes(void **state)
{
    (void)state;
    opened it = open_byte_level();
    for (int32_t id = 0; id < 256; id++) {
        char byte = (char)id;
        expect_inner(&it, id, &byte, 1);
    }
    expect_inner(&it, 9999, NULL, 0);
    expect_inner(&it, -1, NULL, 0);
    close_tokenizer(&it);
    it = open_sentencepiece(2);
    for (int32_t id = 0; id < 256; id++) {
        char byte = (char)id;
        expect_inner(&it, 3 + id, &byte, 1);
    }
    expect_inner(&it, 3 + 256 + 9, " hello", 6); /* the token keeps its space */
    expect_inner(&it, 3 + 256 + 8, "hello", 5);
    close_tokenizer(&it);
}

static void byte_runs_are_replaced_as_a_whole(void **state)
{
    (void)state;
    opened it = open_sentencepiece(2);
    const int32_t good[] = {1, 3 + 0xE2, 3 + 0x82, 3 + 0xAC, 3 + 256 + 9};
    whit_buf text = decode(&it, good, 5, true);
    assert_string_equal((char *)text.data, "\xE2\x82\xAC hello");
    whit_buf_free(&text);
    const int32_t bad[] = {3 + 'a', 3 + 0xE2, 3 + 'b', 3 + 256 + 8};
    text = decode(&it, bad, 4, true);
    assert_string_equal((char *)text.data, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDhello");
    whit_buf_free(&text);
    close_tokenizer(&it);
}

static opened open_gguf(const char *model, const char *const *tokens, const int32_t *types, size_t n)
{
    opened it = {0};
    whit_gguf_writer writer;
    whit_writer file;
    whit_gguf *gguf;
    whit_error error;
    float scores[8];
    size_t size_bytes;
    bool found;
    assert_true(n <= 8);
    whit_gguf_writer_init(&writer, WHIT_GGUF_ALIGNMENT_BYTES, NULL);
    whit_gguf_put_string(&writer, "tokenizer.ggml.model", model, strlen(model));
    whit_gguf_put_strings(&writer, "tokenizer.ggml.tokens", n);
    for (size_t i = 0; i < n; i++) {
        whit_gguf_put_element(&writer, tokens[i], strlen(tokens[i]));
        scores[i] = -(float)i;
    }
    whit_gguf_put_array(&writer, "tokenizer.ggml.scores", WHIT_GGUF_F32, scores, n);
    whit_gguf_put_array(&writer, "tokenizer.ggml.token_type", WHIT_GGUF_I32, types, n);
    assert_ok(whit_writer_open(NULL, NULL, &file, &error), error);
    assert_ok(whit_gguf_write_head(&writer, &file, &error), error);
    assert_ok(whit_gguf_write_end(&writer, &error), error);
    whit_gguf_writer_close(&writer);
    uint8_t *bytes = take_memory_file(&file, &size_bytes);
    assert_ok(whit_gguf_open_memory(bytes, size_bytes, "test", NULL, &gguf, &error), error);
    assert_ok(whit_tokenizer_from_gguf(gguf, "test", &found, &it.image, &error), error);
    assert_true(found);
    whit_gguf_close(gguf);
    free(bytes);
    open_image(&it);
    return it;
}

/* In GGUF files without the ids of special tokens, the defaults of their architecture apply. */
static void absent_gguf_keys_have_defaults(void **state)
{
    (void)state;
    static const char *const llama[] = {"<unk>", "<s>", "</s>", "\u2581", "a"};
    static const int32_t llama_types[] = {2, 3, 3, 1, 1};
    static const char *const t5[] = {"<pad>", "</s>", "<unk>", "\u2581", "a"};
    static const int32_t t5_types[] = {3, 3, 2, 1, 1};
    const whit_encode_options full = {.add_special = true, .parse_special = true};
    opened it = open_gguf("llama", llama, llama_types, 5);
    EXPECT(&it, "ab", &full, 1, 3, 4, 0);
    assert_int_equal(it.view.header->eos, 2);
    assert_true(whit_tokenizer_is_end(&it.view, 2));
    assert_int_equal(it.view.header->pad, -1);
    close_tokenizer(&it);
    it = open_gguf("t5", t5, t5_types, 5);
    EXPECT(&it, "ab", &full, 3, 4, 2, 1);
    assert_int_equal(it.view.header->bos, -1);
    assert_int_equal(it.view.header->pad, 0);
    assert_true(whit_tokenizer_is_end(&it.view, 1));
    close_tokenizer(&it);
    /* BERT's default ids are beyond this small vocabulary: nothing is put around a text. */
    static const char *const bert[] = {"[UNK]", "\u2581a", "b"};
    static const int32_t bert_types[] = {2, 1, 1};
    it = open_gguf("bert", bert, bert_types, 3);
    EXPECT(&it, "AB a", &full, 1, 2, 1);
    close_tokenizer(&it);
}

/* A merge that is listed twice has its first rank in GGUF files, and its last in a tokenizer.json. */
static void repeated_merges_have_one_rank(void **state)
{
    (void)state;
    static const whit_text tokens[] = {{"a", 1}, {"b", 1}, {"c", 1}, {"ab", 2}, {"bc", 2}};
    static const whit_text merges[] = {{"a b", 3}, {"b c", 3}, {"a b", 3}};
    static const char json[] =
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"ab\": 3, \"bc\": 4}, "
        "\"merges\": [\"a b\", \"b c\", \"a b\"]}}";
    const whit_encode_options plain = {.parse_special = true};
    whit_vocabulary v = whit_vocabulary_init("test", WHIT_VOCABULARY_BYTE_LEVEL);
    v.pre = (whit_text){"gpt-2", 5};
    v.tokens = tokens;
    v.n_tokens = 5;
    v.merges = merges;
    v.n_merges = 3;
    opened it = open_vocabulary(&v);
    EXPECT(&it, "abc", &plain, 3, 2);
    close_tokenizer(&it);
    it = open_json_text(json, strlen(json));
    EXPECT(&it, "abc", &plain, 0, 4);
    close_tokenizer(&it);
}

/* A token that is known to end turns ends the text whatever type its file gives it, and users' text never becomes
 * it. */
static void ends_of_turns_are_special(void **state)
{
    (void)state;
    static const whit_text tokens[] = {{"<|im_end|>", 10}, {"<", 1}, {"|", 1}, {"im", 2}, {"i", 1}, {"m", 1},
                                       {"_", 1},           {"e", 1}, {"n", 1}, {"d", 1},  {">", 1}, {"[EOT]", 5}};
    enum { N = sizeof tokens / sizeof tokens[0] };
    static const whit_text merges[] = {{"i m", 3}};
    static const whit_text_range user[] = {{0, 10}};
    const whit_encode_options marked = {.parse_special = true, .plain = user, .n_plain = 1};
    const whit_encode_options template = {.parse_special = true};
    int32_t types[N];
    for (size_t i = 0; i < N; i++) types[i] = WHIT_TOKEN_NORMAL;
    for (int32_t type = WHIT_TOKEN_NORMAL; type <= WHIT_TOKEN_USER; type++) {
        types[0] = types[N - 1] = type;
        whit_vocabulary v = whit_vocabulary_init("test", WHIT_VOCABULARY_BYTE_LEVEL);
        v.pre = (whit_text){"gpt-2", 5};
        v.tokens = tokens;
        v.types = types;
        v.n_tokens = N;
        v.merges = merges;
        v.n_merges = 1;
        opened it = open_vocabulary(&v);
        assert_true(whit_tokenizer_is_end(&it.view, 0));
        assert_true(whit_tokenizer_is_end(&it.view, N - 1));
        assert_false(whit_tokenizer_is_end(&it.view, 3));
        EXPECT(&it, "<|im_end|>", &template, 0);
        EXPECT(&it, "<|im_end|>", &marked, 1, 2, 3, 6, 7, 8, 9, 2, 10);
        close_tokenizer(&it);
    }
}

/* The low scores of unused pieces must not make unknown characters cost more. */
static void unused_pieces_do_not_score(void **state)
{
    (void)state;
    static const whit_text tokens[] = {{"<unk>", 5}, {"he", 2}, {"h", 1}, {"ex", 2}, {"[PAD]", 5}};
    static const float scores[] = {0, -1, -12, -12, -10000};
    static const int32_t types[] = {WHIT_TOKEN_UNKNOWN, WHIT_TOKEN_NORMAL, WHIT_TOKEN_NORMAL, WHIT_TOKEN_NORMAL,
                                    WHIT_TOKEN_UNUSED};
    const whit_encode_options plain = {.parse_special = true};
    whit_vocabulary v = whit_vocabulary_init("test", WHIT_VOCABULARY_UNIGRAM);
    v.tokens = tokens;
    v.scores = scores;
    v.types = types;
    v.n_tokens = sizeof tokens / sizeof tokens[0];
    v.unk = v.add_space_prefix = 0;
    opened it = open_vocabulary(&v);
    EXPECT(&it, "hex", &plain, 1, 0);
    close_tokenizer(&it);
}

/* After Fuse a text is one token: only the whole of it may be the name of a byte. */
static void fused_bytes_come_once(void **state)
{
    (void)state;
    static const char json[] = "{\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, "
                               "{\"type\": \"ByteFallback\"}]}, \"model\": {\"type\": \"BPE\", \"merges\": [], "
                               "\"vocab\": {\"a\": 0, \"b\": 1, \"<0x41>\": 2}}}";
    static const int32_t ids[] = {0, 1, 2};
    opened it = open_json_text(json, strlen(json));
    whit_buf text = decode(&it, ids, 2, false);
    assert_string_equal((char *)text.data, "ab");
    whit_buf_free(&text);
    text = decode(&it, ids + 2, 1, false);
    assert_string_equal((char *)text.data, "A");
    whit_buf_free(&text);
    close_tokenizer(&it);
}

/* Appends n bytes, 1 to 3, as four base64 digits. */
static void append_base64(whit_buf *out, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; i++) bits = bits << 8 | (i < n ? bytes[i] : 0);
    const char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], n > 1 ? digits[bits >> 6 & 63] : '=',
                          n > 2 ? digits[bits & 63] : '='};
    whit_buf_append(out, four, 4);
}

/* As many ranks as Qwen has: all texts of one and two bytes, and some of three. Qwen's special tokens have the next
 * ids. */
static void ranks_of_qwen_have_its_special_tokens(void **state)
{
    (void)state;
    enum { N_RANKS = 151643, SINGLE = 256, DOUBLE = SINGLE + 65536 };
    static const struct {
        const char *text;
        int32_t id;
    } specials[] = {{"<|endoftext|>", N_RANKS},
                    {"<|im_start|>", N_RANKS + 1},
                    {"<|im_end|>", N_RANKS + 2},
                    {"<|extra_0|>", N_RANKS + 3},
                    {"<|extra_204|>", N_RANKS + 207}};
    const whit_encode_options options = {.parse_special = true};
    whit_buf ranks = {0};
    whit_error error;
    opened it = {0};
    for (uint32_t id = 0; id < N_RANKS; id++) {
        const uint32_t n = id < SINGLE ? 1 : id < DOUBLE ? 2 : 3, i = id - (n == 1 ? 0 : n == 2 ? SINGLE : DOUBLE);
        const uint8_t bytes[3] = {(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16)};
        append_base64(&ranks, bytes, n);
        whit_buf_printf(&ranks, " %u\n", id);
    }
    assert_ok(whit_tokenizer_from_tiktoken("test", ranks.data, ranks.size_bytes, NULL, &it.image, &error), error);
    open_image(&it);
    assert_int_equal(whit_tokenizer_n_tokens(&it.view), N_RANKS + 208);
    assert_int_equal(it.view.header->eos, N_RANKS);
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        assert_true(whit_tokenizer_token_flags(&it.view, specials[i].id) & WHIT_TOKEN_SPECIAL);
        expect(&it, specials[i].text, &options, &specials[i].id, 1);
    }
    assert_true(whit_tokenizer_is_end(&it.view, N_RANKS));
    assert_true(whit_tokenizer_is_end(&it.view, N_RANKS + 2));
    whit_buf_free(&ranks);
    close_tokenizer(&it);
}

/* Tests WordPiece with unknown words and its decoder's clean-up. */
static void wordpiece_works(void **state)
{
    (void)state;
    static const char json[] =
        "{\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"decoder\": {\"type\": "
        "\"WordPiece\", "
        "\"prefix\": \"##\", \"cleanup\": true}, \"model\": {\"type\": \"WordPiece\", "
        "\"unk_token\": "
        "\"[UNK]\", \"continuing_subword_prefix\": \"##\", \"vocab\": {\"[UNK]\": 0, \"hell\": 1, "
        "\"##o\": 2, \"the\": 3, \".\": 4, \"do\": 5, \"not\": 6}}}";
    const whit_encode_options plain = {.parse_special = true};
    opened it = open_json_text(json, strlen(json));
    EXPECT(&it, "hello the hellx.", &plain, 1, 2, 3, 0, 4);
    const int32_t ids[] = {1, 2, 3, 4, 5};
    whit_buf text = decode(&it, ids, 5, false);
    assert_string_equal((char *)text.data, "hello the. do");
    whit_buf_free(&text);
    close_tokenizer(&it);
}

/* Compares BERT's tokenizer in a tokenizer.json with the same vocabulary as a GGUF file has it. */
static void bert_is_one_tokenizer_in_both_forms(void **state)
{
    (void)state;
    static const char json[] =
        "{\"added_tokens\": [{\"id\": 1, \"content\": \"[CLS]\", \"special\": true, \"normalized\": false}, "
        "{\"id\": 2, \"content\": \"[SEP]\", \"special\": true, \"normalized\": false}], "
        "\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
        "\"strip_accents\": null, \"lowercase\": true}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "
        "\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 2], \"cls\": [\"[CLS]\", 1]}, "
        "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\", "
        "\"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, \"[SEP]\": 2, \"hell\": 3, \"##o\": 4, \"\u4e2d\": 5, \"$\": 6, "
        "\"a\": 7}}}";
    static const char *const texts[] = {"[UNK]", "[CLS]",        "[SEP]",   "\u2581hell",
                                        "o",     "\u2581\u4e2d", "\u2581$", "\u2581a"};
    static const int32_t types[] = {2, 3, 3, 1, 1, 1, 1, 1};
    whit_text tokens[8];
    const whit_encode_options full = {.add_special = true, .parse_special = true};
    whit_vocabulary v = whit_vocabulary_init("test", WHIT_VOCABULARY_WORDPIECE);
    for (int i = 0; i < 8; i++) tokens[i] = (whit_text){texts[i], strlen(texts[i])};
    v.tokens = tokens;
    v.types = types;
    v.n_tokens = 8;
    v.unk = 0;
    v.bos = 1;
    v.eos = 2;
    v.add_bos = v.add_eos = 1;
    for (int form = 0; form < 2; form++) {
        opened it = form ? open_vocabulary(&v) : open_json_text(json, strlen(json));
        EXPECT(&it, "Hello A", &full, 1, 3, 4, 7, 2);
        EXPECT(&it, "H\u00c9LLO\ta\u4e2da$a", &full, 1, 3, 4, 7, 5, 7, 6, 7, 2); /* accents, blanks, marks */
        /* controls are removed, q is unknown */
        EXPECT(&it, "a\u200bq\u0301 \x01 a", &full, 1, 0, 7, 2);
        EXPECT(&it, "", &full, 1, 2);
        close_tokenizer(&it);
    }
}

/* BPE that has neither an unknown token nor byte tokens drops unknown characters, and then merges the characters that
 * have become neighbours, as `tokenizers` does: its word consists of the remaining characters. */
static void neighbours_of_dropped_characters_merge(void **state)
{
    (void)state;
    static const char *const models[] = {"", "\"byte_fallback\": true, ", "\"fuse_unk\": true, "};
    const whit_encode_options plain = {.parse_special = true};
    for (int i = 0; i < 3; i++) {
        char json[400], word[200];
        whit_error error;
        snprintf(json, sizeof json,
                 "{\"model\": {\"type\": \"BPE\", %s\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"abab\": 3, \"c\": 4, "
                 "\"<0xE2>\": 5}, \"merges\": [\"a b\", \"ab ab\"]}}",
                 models[i]);
        opened it = open_json_text(json, strlen(json));
        EXPECT(&it,
               "a\xE2\x98\x83"
               "b",
               &plain, 2);
        EXPECT(&it,
               "\xE2\x98\x83"
               "a\xE2\x98\x83\xE2\x98\x83"
               "bab\xE2\x98\x83",
               &plain, 3);
        EXPECT(&it,
               "b\xE2\x98\x83"
               "a",
               &plain, 1, 0);
        /* Long words are merged by another algorithm. */
        memset(word, 'c', 100);
        strcpy(word + 100,
               "a\xE2\x98\x83"
               "b\xE2\x98\x83"
               "ab");
        whit_buf ids = {0};
        assert_ok(whit_tokenizer_encode(it.tokenizer, word, strlen(word), &plain, &ids, &error), error);
        assert_int_equal(ids.size_bytes, 101 * sizeof(int32_t));
        assert_int_equal(((const int32_t *)(const void *)ids.data)[100], 3);
        whit_buf_free(&ids);
        ids = (whit_buf){0};
        assert_ok(whit_tokenizer_encode(it.tokenizer, "\xE2\x98\x83", 3, &plain, &ids, &error), error);
        assert_int_equal(ids.size_bytes, 0);
        whit_buf_free(&ids);
        close_tokenizer(&it);
    }
    /* The neighbours may also be U+2581, before which long texts of other tokenizers are cut. */
    static const char spaces[] = "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"\u2581\": 0, \"\u2581\u2581\": 1}, "
                                 "\"merges\": [\"\u2581 \u2581\"]}}";
    opened it = open_json_text(spaces, strlen(spaces));
    EXPECT(&it, "\u2581\u2603\u2581", &plain, 1);
    close_tokenizer(&it);
}

/* The canonical order of Lao marks (Unicode 15): U+0EBA has class 9, U+0EB8 and U+0EB9 have 118, U+0EC8 to U+0ECB 122.
 * The cancellation mark, the niggahita and U+0ECE have class 0, so no mark is moved across them. */
static void lao_marks_have_unicodes_order(void **state)
{
    (void)state;
    static const char *const forms[] = {"NFC", "NFD", "NFKC", "NFKD"};
    const whit_encode_options plain = {.parse_special = true};
    for (int i = 0; i < 4; i++) {
        char json[600];
        snprintf(json, sizeof json,
                 "{\"normalizer\": {\"type\": \"%s\"}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"\\u0e81\": 0, "
                 "\"\\u0eb8\": 1, \"\\u0eb9\": 2, \"\\u0eba\": 3, \"\\u0ec8\": 4, \"\\u0ecb\": 5, \"\\u0ecc\": 6, "
                 "\"\\u0ecd\": 7, \"\\u0ece\": 8}, \"merges\": []}}",
                 forms[i]);
        opened it = open_json_text(json, strlen(json));
        EXPECT(&it, "\u0e81\u0ec8\u0eb8\u0eba", &plain, 0, 3, 1, 4);
        EXPECT(&it, "\u0e81\u0ecb\u0eb9\u0ec8\u0eb8", &plain, 0, 2, 1, 5, 4);
        EXPECT(&it, "\u0e81\u0ec8\u0ecc\u0eb8", &plain, 0, 4, 6, 1);
        EXPECT(&it, "\u0e81\u0ec8\u0ecd\u0eba\u0ece\u0eb8", &plain, 0, 4, 7, 3, 8, 1);
        close_tokenizer(&it);
    }
}

static void images_are_canonical(void **state)
{
    (void)state;
    opened a = open_byte_level(), b = open_byte_level();
    assert_int_equal(a.image.size_bytes, b.image.size_bytes);
    assert_memory_equal(a.image.data, b.image.data, a.image.size_bytes);
    close_tokenizer(&a);
    close_tokenizer(&b);
}

/* Merging with the array and with the heap must give the same tokens: random words, of lengths on both sides of the
 * limit. */
static void both_ways_of_merging_are_equal(void **state)
{
    (void)state;
    opened it = open_byte_level();
    whit_model_scratch scratch;
    whit_model_scratch_init(&scratch, NULL);
    whit_rng rng = {7};
    whit_error error;
    for (int round = 0; round < 500; round++) {
        uint8_t text[200];
        size_t n = 1 + whit_rng_below(&rng, 60);
        for (size_t i = 0; i < n; i++) text[i] = (uint8_t) "aather"[whit_rng_below(&rng, 6)];
        /* After 100 characters that merge with nothing, the word is long enough for the heap. */
        memmove(text + 100, text, n);
        memset(text, '.', 100);
        whit_buf few = {0}, many = {0};
        assert_ok(whit_tokenizer_merge_piece(&it.view, &scratch, text + 100, n < 40 ? n : 40, &few, &error), error);
        assert_ok(whit_tokenizer_merge_piece(&it.view, &scratch, text, 100 + (n < 40 ? n : 40), &many, &error), error);
        assert_int_equal(many.size_bytes, 400 + few.size_bytes);
        assert_memory_equal(many.data + 400, few.data, few.size_bytes);
        whit_buf_free(&few);
        whit_buf_free(&many);
    }
    whit_model_scratch_free(&scratch);
    close_tokenizer(&it);
}

static void long_words_are_not_quadratic(void **state)
{
    (void)state;
    opened it = open_byte_level();
    size_t n = 1 << 18;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'a', n);
    whit_buf ids = {0};
    whit_error error;
    const whit_encode_options options = {0};
    uint64_t start = whit_thread_cpu_ns();
    assert_ok(whit_tokenizer_encode(it.tokenizer, text, n, &options, &ids, &error), error);
    assert_int_equal(ids.size_bytes / 4, n / 4);
    assert_true(whit_thread_cpu_ns() - start < 60000000000u); /* quadratic time would be hours */
    whit_buf_free(&ids);
    free(text);
    close_tokenizer(&it);
}

static void trimmed_ones_encode_the_same(void **state)
{
    (void)state;
    opened it = open_byte_level();
    static const char text[] = "the cat and the hat and a band of hands";
    whit_error error;
    const whit_encode_options options = {0};
    whit_buf first = {0}, second = {0};
    assert_ok(whit_tokenizer_encode(it.tokenizer, text, strlen(text), &options, &first, &error), error);
    for (size_t keep_bytes = 0; keep_bytes <= 1 << 21; keep_bytes = keep_bytes * 8 + 1) {
        whit_tokenizer_trim(it.tokenizer, keep_bytes);
        second.size_bytes = 0;
        assert_ok(whit_tokenizer_encode(it.tokenizer, text, strlen(text), &options, &second, &error), error);
        assert_int_equal(second.size_bytes, first.size_bytes);
        assert_memory_equal(second.data, first.data, first.size_bytes);
    }
    whit_buf_free(&first);
    whit_buf_free(&second);
    close_tokenizer(&it);
}

/* ---- memory that fails --------------------------------------------------------------------- */

typedef struct failing {
    size_t n_left, n_live;
} failing;

static void *failing_alloc(void *user, size_t size_bytes, size_t align_bytes)
{
    failing *f = user;
    if (f->n_left == 0) return NULL;
    f->n_left--;
    f->n_live++;
    return aligned_alloc(align_bytes, (size_bytes + align_bytes - 1) / align_bytes * align_bytes);
}

static void failing_free(void *user, void *memory, size_t size_bytes)
{
    (void)size_bytes;
    ((failing *)user)->n_live--;
    free(memory);
}

static whit_status build_and_use(const whit_buf *json, const whit_allocator *allocator, whit_error *error)
{
    whit_buf image = {.allocator = allocator}, ids = {.allocator = allocator}, text = {.allocator = allocator};
    whit_tokenizer_view view;
    whit_tokenizer *tokenizer = NULL;
    const whit_encode_options options = {.add_special = true, .parse_special = true};
    whit_status status =
        whit_tokenizer_from_json("test", (const char *)json->data, json->size_bytes, NULL, &image, error);
    if (status == WHIT_OK) status = whit_tokenizer_check(image.data, image.size_bytes, &view, error);
    if (status == WHIT_OK) status = whit_tokenizer_open(&view, allocator, &tokenizer, error);
    if (status == WHIT_OK) status = whit_tokenizer_encode(tokenizer, "the tool <s>\xFF", 13, &options, &ids, error);
    if (status == WHIT_OK)
        status = whit_tokenizer_decode(&view, (const int32_t *)(const void *)ids.data, ids.size_bytes / 4, false, &text,
                                       error);
    whit_tokenizer_close(tokenizer);
    whit_buf_free(&image);
    whit_buf_free(&ids);
    whit_buf_free(&text);
    return status;
}

static void failed_allocations_end_clean(void **state)
{
    (void)state;
    whit_buf json = {0};
    /* PCRE2 searches for patterns that the library does not know, and allocates, too */
    sample_byte_level_json(&json, "\"\\\\w+|[^\\\\w]\"");
    whit_status status = WHIT_ERROR_MEMORY;
    size_t n = 0;
    for (; status != WHIT_OK; n++) {
        failing f = {.n_left = n};
        const whit_allocator allocator = {failing_alloc, failing_free, &f};
        whit_error error = {0};
        status = build_and_use(&json, &allocator, &error);
        if (status != WHIT_OK && status != WHIT_ERROR_MEMORY && status != WHIT_ERROR_LIMIT)
            fail_msg("allocation %zu: %s", n, error.message);
        assert_int_equal(f.n_live, 0);
        assert_true(n < 5000);
    }
    assert_true(n > 20);
    whit_buf_free(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_encodes),
        cmocka_unit_test(user_text_is_only_text),
        cmocka_unit_test(user_text_gets_no_special_pieces),
        cmocka_unit_test(roles_do_not_share_words),
        cmocka_unit_test(sentencepiece_encodes),
        cmocka_unit_test(documents_decide_what_surrounds_a_text),
        cmocka_unit_test(documents_amend_a_vocabulary),
        cmocka_unit_test(streams_hold_back_parts_of_characters),
        cmocka_unit_test(inner_tokens_are_their_bytes),
        cmocka_unit_test(byte_runs_are_replaced_as_a_whole),
        cmocka_unit_test(absent_gguf_keys_have_defaults),
        cmocka_unit_test(repeated_merges_have_one_rank),
        cmocka_unit_test(ends_of_turns_are_special),
        cmocka_unit_test(unused_pieces_do_not_score),
        cmocka_unit_test(fused_bytes_come_once),
        cmocka_unit_test(ranks_of_qwen_have_its_special_tokens),
        cmocka_unit_test(wordpiece_works),
        cmocka_unit_test(bert_is_one_tokenizer_in_both_forms),
        cmocka_unit_test(neighbours_of_dropped_characters_merge),
        cmocka_unit_test(lao_marks_have_unicodes_order),
        cmocka_unit_test(images_are_canonical),
        cmocka_unit_test(both_ways_of_merging_are_equal),
        cmocka_unit_test(long_words_are_not_quadratic),
        cmocka_unit_test(trimmed_ones_encode_the_same),
        cmocka_unit_test(failed_allocations_end_clean),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
