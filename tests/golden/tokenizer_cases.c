/* SPDX-License-Identifier: MIT
 * Runs every case of ../shared/tokenizers: text to ids, ids to text, and streamed pieces; from tokenizer.json,
 * tokenizer.model and GGUF. */
#include "test.h"

#include "base/utf8.h"
#include "json_lines.h"
#include "tokenizer/from_path.h"
#include "tokenizer/from_tiktoken.h"
#include "tokenizer/unicode.h"
#include "tokenizer_open.h"

static opened open_path(const char *path)
{
    opened it = {0};
    whit_error error;
    assert_ok(whit_tokenizer_from_path(path, &it.image, &error), error);
    open_image(&it);
    return it;
}

/* ---- encoding ------------------------------------------------------------------------------ */

static size_t encode(const opened *it, const char *text, size_t n, bool add_special, bool parse_special, whit_buf *ids)
{
    whit_error error;
    whit_encode_options options = {.add_special = add_special, .parse_special = parse_special};
    ids->size_bytes = 0;
    assert_ok(whit_tokenizer_encode(it->tokenizer, text, n, &options, ids, &error), error);
    return ids->size_bytes / sizeof(int32_t);
}

/* Reads the ids of a JSON array. Returns their number. */
static size_t read_ids(const whit_json *json, uint32_t array, whit_buf *ids)
{
    ids->size_bytes = 0;
    for (uint32_t at = whit_json_first(json, array); at != WHIT_JSON_NONE; at = whit_json_next(json, array, at)) {
        int64_t value;
        assert_true(whit_json_i64(json, at, &value));
        int32_t id = (int32_t)value;
        whit_buf_append(ids, &id, sizeof id);
    }
    return ids->size_bytes / sizeof(int32_t);
}

static bool same_ids(const whit_buf *a, const whit_buf *b)
{
    return a->size_bytes == b->size_bytes && (a->size_bytes == 0 || memcmp(a->data, b->data, a->size_bytes) == 0);
}

static void show_ids(const char *what, const whit_buf *ids)
{
    print_message("  %s:", what);
    for (size_t i = 0; i < ids->size_bytes / 4 && i < 60; i++)
        print_message(" %d", ((const int32_t *)(const void *)ids->data)[i]);
    print_message("\n");
}

typedef bool check_fn(const opened *it, const whit_json *json, bool gguf);

struct lines {
    const opened *it;
    const char *only;
    bool gguf;
    check_fn *check;
    size_t n, n_right;
};

static void check_line(void *user, const whit_json *json, const char *line, size_t n_bytes, size_t number)
{
    struct lines *lines = user;
    if (lines->only && !whit_json_is(json, whit_json_get(json, 0, "tokenizer"), lines->only)) return;
    bool right = lines->check(lines->it, json, lines->gguf);
    if (!right && lines->n - lines->n_right < 5) print_message("  line %zu: %.*s\n", number, (int)n_bytes, line);
    lines->n_right += right;
    lines->n++;
}

/* Checks every line; fails if there is none. */
static void check_lines(const opened *it, const char *path, const char *only, bool gguf, check_fn *check)
{
    struct lines lines = {it, only, gguf, check, 0, 0};
    each_json_line(path, check_line, &lines);
    size_t n = lines.n, n_right = lines.n_right;
    if (n_right != n) fail_msg("%s %s: %zu of %zu", path, only ? only : "", n_right, n);
    if (n == 0) fail_msg("%s: no case of %s", path, only ? only : "any");
}

static bool check_encode(const opened *it, const whit_json *json, bool gguf)
{
    size_t n;
    whit_buf expected = {0}, got = {0};
    const char *text = whit_json_string(json, whit_json_get(json, 0, "text"), &n);
    uint32_t other = whit_json_get(json, 0, "llama_cpp_ids");
    read_ids(json, whit_json_get(json, 0, "ids"), &expected);
    encode(it, text, n, whit_json_bool(json, whit_json_get(json, 0, "add_special"), true),
           whit_json_bool(json, whit_json_get(json, 0, "parse_special"), true), &got);
    bool right = same_ids(&expected, &got);
    /* a GGUF file cannot state that texts must be normalised to NFC */
    if (gguf && other == WHIT_JSON_NONE && whit_json_bool(json, whit_json_get(json, 0, "nfc"), false)) right = true;
    if (!right && gguf && other != WHIT_JSON_NONE) {
        read_ids(json, other, &expected);
        right = same_ids(&expected, &got);
    }
    if (!right) {
        show_ids("expected", &expected);
        show_ids("got", &got);
    }
    whit_buf_free(&expected);
    whit_buf_free(&got);
    return right;
}

/* ---- decoding ------------------------------------------------------------------------------ */

static bool check_pieces(const opened *it, const whit_json *json, const whit_buf *ids, bool skip)
{
    whit_error error;
    whit_token_decoder *decoder;
    uint32_t pieces = whit_json_get(json, 0, "pieces"), at = whit_json_first(json, pieces);
    size_t n_ids = ids->size_bytes / 4, n, n_expected;
    const char *text, *expected;
    bool right = true;
    if (pieces == WHIT_JSON_NONE) return true;
    assert_ok(
        whit_token_decoder_open(&it->view, (whit_token_decoder_options){.skip_special = skip}, NULL, &decoder, &error),
        error);
    for (size_t i = 0; i <= n_ids; i++) {
        if (i < n_ids) {
            int32_t id = ((const int32_t *)(const void *)ids->data)[i];
            assert_ok(whit_token_decoder_push(decoder, id, &text, &n, &error), error);
            expected = whit_json_string(json, at, &n_expected);
            at = whit_json_next(json, pieces, at);
        } else {
            assert_ok(whit_token_decoder_flush(decoder, &text, &n, &error), error);
            expected = whit_json_string(json, whit_json_get(json, 0, "tail"), &n_expected);
        }
        if (n != n_expected || (n && memcmp(text, expected, n) != 0)) {
            print_message("  piece %zu: '%.*s', not '%.*s'\n", i, (int)n, text, (int)n_expected, expected);
            right = false;
        }
    }
    whit_token_decoder_close(decoder);
    return right;
}

static bool check_decode(const opened *it, const whit_json *json, bool gguf)
{
    whit_buf ids = {0}, text = {0};
    /* GGUF vocabularies are padded, so every id has a text */
    if (gguf && whit_json_is(json, whit_json_get(json, 0, "kind"), "unknown-id")) return true;
    whit_error error;
    size_t n;
    bool skip = whit_json_bool(json, whit_json_get(json, 0, "skip_special"), false);
    const char *expected = whit_json_string(json, whit_json_get(json, 0, "text"), &n);
    size_t n_ids = read_ids(json, whit_json_get(json, 0, "ids"), &ids);
    assert_ok(whit_tokenizer_decode(&it->view, (const int32_t *)(const void *)ids.data, n_ids, skip, &text, &error),
              error);
    bool right = text.size_bytes == n && (n == 0 || memcmp(text.data, expected, n) == 0);
    if (!right) print_message("  decoded: '%.*s'\n", (int)text.size_bytes, (char *)text.data);
    right &= check_pieces(it, json, &ids, skip);
    whit_buf_free(&ids);
    whit_buf_free(&text);
    return right;
}

/* ---- GGUF ---------------------------------------------------------------------------------- */

/* Compares with the .inp and .out files next to a vocabulary: texts, and lines of ids without special tokens. */
static void check_vectors(const opened *it, const char *inp, const char *out)
{
    static const char mark[] = "\n__ggml_vocab_test__\n";
    whit_buf texts = {0}, lines = {0}, expected = {0}, got = {0};
    whit_error error;
    assert_ok(whit_read_file(inp, 1u << 20, &texts, &error), error);
    assert_ok(whit_read_file(out, 1u << 20, &lines, &error), error);
    whit_buf_append(&lines, "", 1);
    const char *text = (const char *)texts.data, *end = text + texts.size_bytes;
    char *line = (char *)lines.data;
    size_t n = 0;
    while (*line) {
        const char *stop = memmem(text, (size_t)(end - text), mark, sizeof mark - 1);
        if (!stop) stop = end;
        expected.size_bytes = 0;
        while (*line && *line != '\n') {
            int32_t id = (int32_t)strtol(line, &line, 10);
            whit_buf_append(&expected, &id, sizeof id);
            while (*line == ' ') line++;
        }
        line += *line == '\n';
        encode(it, text, (size_t)(stop - text), false, false, &got);
        if (!same_ids(&expected, &got)) {
            print_message("  '%.*s'\n", (int)(stop - text), text);
            show_ids("expected", &expected);
            show_ids("got", &got);
            fail_msg("%s: string %zu", inp, n);
        }
        n++;
        text = stop + (stop < end ? sizeof mark - 1 : 0);
    }
    assert_int_equal(n, 46);
    whit_buf_free(&texts);
    whit_buf_free(&lines);
    whit_buf_free(&expected);
    whit_buf_free(&got);
}

static void check_gguf_family(const char *family, const char *vocabulary)
{
    char path[256], inp[300], out[300], cases[256], decode[256];
    snprintf(path, sizeof path, "tokenizers/%s/ggml-vocab-%s.gguf", family, vocabulary);
    snprintf(inp, sizeof inp, "%s.inp", path);
    snprintf(out, sizeof out, "%s.out", path);
    snprintf(cases, sizeof cases, "tokenizers/%s/cases.jsonl", family);
    snprintf(decode, sizeof decode, "tokenizers/%s/decode.jsonl", family);
    opened it = open_path(shared_path(path));
    check_vectors(&it, shared_path(inp), shared_path(out));
    check_lines(&it, shared_path(cases), NULL, true, check_encode);
    check_lines(&it, shared_path(decode), NULL, true, check_decode);
    close_tokenizer(&it);
}

static void gguf_llama_2(void **state)
{
    (void)state;
    check_gguf_family("llama-2", "llama-spm");
}

static void gguf_gpt_2(void **state)
{
    (void)state;
    check_gguf_family("gpt-2", "gpt-2");
}

static void gguf_falcon(void **state)
{
    (void)state;
    check_gguf_family("falcon", "falcon");
}

static void gguf_starcoder(void **state)
{
    (void)state;
    check_gguf_family("starcoder", "starcoder");
}

static void gguf_refact(void **state)
{
    (void)state;
    check_gguf_family("refact", "refact");
}

static void gguf_mpt(void **state)
{
    (void)state;
    check_gguf_family("mpt", "mpt");
}

/* Checks the tokenizer of stories260K. */
static void gguf_stories(void **state)
{
    (void)state;
    opened it = open_path(shared_path("models/stories260K/stories260K.gguf"));
    whit_buf ids = {0}, text = {0};
    static const char story[] = "Once upon a time, there was a little girl named Lily.";
    whit_error error;
    size_t n = encode(&it, story, strlen(story), true, true, &ids);
    const int32_t *values = (const int32_t *)(const void *)ids.data;
    assert_int_equal(values[0], 1);
    assert_ok(whit_tokenizer_decode(&it.view, values, n, true, &text, &error), error);
    assert_int_equal(text.size_bytes, strlen(story));
    assert_memory_equal(text.data, story, text.size_bytes);
    assert_true(whit_tokenizer_is_end(&it.view, 2));
    whit_buf_free(&ids);
    whit_buf_free(&text);
    close_tokenizer(&it);
}

/* ---- tokenizer.json ------------------------------------------------------------------------ */

static void check_cases(const opened *it, const char *family)
{
    char cases[256], decode[256];
    snprintf(cases, sizeof cases, "tokenizers/%s/cases.jsonl", family);
    snprintf(decode, sizeof decode, "tokenizers/%s/decode.jsonl", family);
    check_lines(it, shared_path(cases), NULL, false, check_encode);
    check_lines(it, shared_path(decode), NULL, false, check_decode);
}

static void check_file(const char *family, const char *file)
{
    char path[256];
    snprintf(path, sizeof path, "tokenizers/%s/%s", family, file);
    opened it = open_path(shared_path(path));
    check_cases(&it, family);
    close_tokenizer(&it);
}

static void json_families(void **state)
{
    (void)state;
    static const char *const families[] = {"llama-3",   "llama-2", "gpt-2", "falcon",
                                           "starcoder", "refact",  "mpt",   "tinystories-656k"};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) check_file(families[i], "");
    check_file("tinystories-656k", "tokenizer-resaved.json");
}

static void json_components(void **state)
{
    (void)state;
    static const char *const names[] = {
        "added-flags",
        "added-normalized-lowercase",
        "bpe-byte-fallback",
        "bpe-unk-fused",
        "bytelevel-prefix-space",
        "digits-punctuation",
        "ignore-merges",
        "metaspace-always",
        "metaspace-first-nosplit",
        "nfd",
        "nfkc-lowercase",
        "roberta",
        "split-contiguous",
        "split-invert",
        "split-merged-next",
        "split-merged-previous",
        "split-removed",
        "strip-replace",
        "unigram",
        "unigram-byte-fallback-nosplit",
        "whitespace",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256], file[128];
        snprintf(file, sizeof file, "%s.json", names[i]);
        snprintf(path, sizeof path, "tokenizers/components/%s", file);
        opened it = open_path(shared_path(path));
        check_lines(&it, shared_path("tokenizers/components/cases.jsonl"), file, false, check_encode);
        check_lines(&it, shared_path("tokenizers/components/decode.jsonl"), file, false, check_decode);
        close_tokenizer(&it);
    }
}

/* ---- tokenizer.model and GGUF files -------------------------------------------------------- */

static void sentencepiece_llama_2(void **state)
{
    (void)state;
    check_file("llama-2", "tokenizer.model");
}

static void append_base64(whit_buf *out, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t bits =
            (uint32_t)bytes[i] << 16 | (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) | (i + 2 < n ? bytes[i + 2] : 0u);
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], i + 1 < n ? digits[bits >> 6 & 63] : '=',
                        i + 2 < n ? digits[bits & 63] : '='};
        whit_buf_append(out, four, 4);
    }
}

/* Checks tiktoken ranks, which are written from the shared llama-3 tokenizer. */
static void tiktoken_llama_3(void **state)
{
    (void)state;
    opened from = open_path(shared_path("tokenizers/llama-3"));
    opened it = {0};
    whit_buf ranks = {0};
    whit_error error;
    for (int32_t id = 0; id < 128000; id++) {
        size_t n, n_bytes = 0, length;
        const uint8_t *text = whit_tokenizer_token_text(&from.view, id, &n);
        uint8_t bytes[256];
        for (size_t i = 0; i < n; i += length)
            bytes[n_bytes++] = (uint8_t)whit_byte_of_symbol(whit_utf8_decode(text + i, n - i, &length));
        append_base64(&ranks, bytes, n_bytes);
        whit_buf_printf(&ranks, " %d\n", id);
    }
    assert_true(whit_is_tiktoken(ranks.data, ranks.size_bytes));
    assert_ok(whit_tokenizer_from_tiktoken("ranks", ranks.data, ranks.size_bytes, NULL, &it.image, &error), error);
    open_image(&it);
    /* a file of ranks has no post-processor; the pattern's name decides that bos is added */
    check_cases(&it, "llama-3");
    whit_buf_free(&ranks);
    close_tokenizer(&from);
    close_tokenizer(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_stories),     cmocka_unit_test(gguf_llama_2),
        cmocka_unit_test(gguf_gpt_2),       cmocka_unit_test(gguf_falcon),
        cmocka_unit_test(gguf_starcoder),   cmocka_unit_test(gguf_refact),
        cmocka_unit_test(gguf_mpt),         cmocka_unit_test(json_families),
        cmocka_unit_test(json_components),  cmocka_unit_test(sentencepiece_llama_2),
        cmocka_unit_test(tiktoken_llama_3),
    };
    return cmocka_run_group_tests_name("tokenizer_cases", tests, NULL, NULL);
}
