/* SPDX-License-Identifier: MIT
 * Tests patterns that do not match everywhere in a text, in many scripts: the library finds every match that PCRE2
 * finds, refuses no text, and gives the same results without PCRE2's JIT. */
#include "test.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/rng.h"
#include "base/utf8.h"
#include "tokenizer/from_path.h"
#include "tokenizer/regex.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer_open.h"

/* Replaces PCRE2's function for the library: with `no_jit` patterns are interpreted, as on systems that forbid memory
 * which is both written and executed. */
static bool no_jit;
static int n_texts_wanted; /* texts for each tokenizer; 0: a few */

int __real_pcre2_jit_compile_8(pcre2_code_8 *code, uint32_t options);
int __wrap_pcre2_jit_compile_8(pcre2_code_8 *code, uint32_t options);
int __wrap_pcre2_jit_compile_8(pcre2_code_8 *code, uint32_t options)
{
    return no_jit ? PCRE2_ERROR_JIT_BADOPTION : __real_pcre2_jit_compile_8(code, options);
}

/* ---- texts ---------------------------------------------------------------------------------- */

static const struct script {
    const char *name;
    uint32_t first, last;
} scripts[] = {
    {"Latin", 'a', 'z'},         {"Latin with marks", 0xC0, 0x24F},
    {"Greek", 0x391, 0x3C9},     {"Cyrillic", 0x410, 0x44F},
    {"Armenian", 0x531, 0x586},  {"Hebrew", 0x5D0, 0x5EA},
    {"Arabic", 0x620, 0x669},    {"Devanagari", 0x900, 0x97F},
    {"Bengali", 0x980, 0x9FB},   {"Tamil", 0xB82, 0xBFA},
    {"Thai", 0xE01, 0xE5B},      {"Lao", 0xE81, 0xEDF},
    {"Tibetan", 0xF00, 0xFD4},   {"Georgian", 0x10A0, 0x10FF},
    {"Hangul", 0xAC00, 0xD7A3},  {"Ethiopic", 0x1200, 0x137C},
    {"Khmer", 0x1780, 0x17E9},   {"Hiragana and Katakana", 0x3041, 0x30FE},
    {"Han", 0x4E00, 0x9FFF},     {"Han, rare", 0x20000, 0x2A6DF},
    {"emoji", 0x1F300, 0x1FAFF},
};
enum { N_SCRIPTS = sizeof scripts / sizeof scripts[0], MOST_CHARS = 260 };

static bool assigned(uint32_t code)
{
    return code < 0xD800 || code > 0xDFFF;
}

/* Writes a random text of one script, with digits, spaces and marks in between. Returns its bytes. */
static size_t write_text(whit_rng *rng, const struct script *script, uint8_t *text)
{
    static const uint32_t between[] = {' ', ' ', '\n', '.', ',', '!', '0', '7', 0x3002, 0xFF0C, 0x966, 0x200D};
    size_t n = 0, n_chars = 1 + whit_rng_below(rng, MOST_CHARS - 1);
    uint32_t some = (uint32_t)whit_rng_below(rng, 40); /* 0: nothing in between */
    uint32_t same = whit_rng_below(rng, 4) ? 0 : script->first;
    for (size_t i = 0; i < n_chars; i++) {
        uint32_t code = script->first + (uint32_t)whit_rng_below(rng, script->last - script->first + 1);
        if (same) code = same;
        if (some && whit_rng_below(rng, some) == 0)
            code = between[whit_rng_below(rng, sizeof between / sizeof between[0])];
        if (assigned(code)) n += whit_utf8_encode(code, text + n);
    }
    return n;
}

/* ---- matches -------------------------------------------------------------------------------- */

/* Finds all matches in a text, as pairs of offsets, by one simple search after another. */
static size_t plain_matches(const pcre2_code *code, const uint8_t *text, size_t n, size_t *places)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    size_t n_places = 0, from = 0;
    while (from <= n && pcre2_match(code, text, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, NULL) > 0) {
        const PCRE2_SIZE *range = pcre2_get_ovector_pointer(data);
        places[n_places++] = range[0];
        places[n_places++] = from = range[1];
        assert_true(range[1] > range[0]);
    }
    pcre2_match_data_free(data);
    return n_places;
}

static void check_matches(const char *pattern, uint64_t seed)
{
    uint8_t text[4 * MOST_CHARS];
    size_t places[2 * MOST_CHARS];
    whit_rng rng = {seed};
    whit_buf translated = {0};
    whit_error error;
    whit_regex *regex[2];
    int code = 0;
    PCRE2_SIZE place;
    assert_ok(whit_regex_translate((const uint8_t *)pattern, strlen(pattern), &translated, &error), error);
    pcre2_code *plain =
        pcre2_compile(translated.data, translated.size_bytes,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &place, NULL);
    assert_non_null(plain);
    for (int jit = 0; jit < 2; jit++) {
        no_jit = !jit;
        assert_ok(whit_regex_compile((const uint8_t *)pattern, strlen(pattern), NULL, &regex[jit], &error), error);
    }
    for (int i = 0; i < 20 * N_SCRIPTS; i++) {
        size_t n = write_text(&rng, &scripts[i % N_SCRIPTS], text);
        size_t n_places = plain_matches(plain, text, n, places);
        for (int jit = 0; jit < 2; jit++) {
            whit_match match = {0};
            bool found = true;
            size_t at = 0;
            whit_regex_begin(regex[jit], n);
            for (;; at += 2) {
                whit_status status = whit_regex_next(regex[jit], text, n, &match, &found, &error);
                if (status != WHIT_OK)
                    fail_msg("'%s', %s, text %d, JIT %d: %s", pattern, scripts[i % N_SCRIPTS].name, i, jit,
                             error.message);
                if (!found) break;
                if (at >= n_places || match.start != places[at] || match.end != places[at + 1])
                    fail_msg("'%s', %s, text %d, JIT %d: match %zu at %zu..%zu", pattern, scripts[i % N_SCRIPTS].name,
                             i, jit, at / 2, match.start, match.end);
            }
            assert_int_equal(at, n_places);
        }
    }
    for (int jit = 0; jit < 2; jit++) whit_regex_close(regex[jit]);
    pcre2_code_free(plain);
    whit_buf_free(&translated);
}

static void matches_are_those_of_a_plain_search(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "\\p{N}",    "\\p{N}{1,3}",      "[0-9][0-9][0-9]", "[\\p{P}\\$\\+<=>\\^~\\|]+",
        "[\\r\\n]+", "(?<=a)b|(?!\\S)x", "[a-z]",           "\\s?[A-Za-z]+"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) check_matches(patterns[i], i + 1);
}

/* ---- ids ------------------------------------------------------------------------------------ */

/* Replaces known patterns by equivalent ones that the library does not know, so that PCRE2 searches for these, too. */
static void reword_patterns(whit_buf *image)
{
    static const char known[] = "\\p{L}\\p{N}", equal[] = "\\p{N}\\p{L}";
    for (char *at; (at = memmem(image->data, image->size_bytes, known, sizeof known - 1));)
        memcpy(at, equal, sizeof equal - 1);
}

static void open_twice(const whit_buf *image, opened twice[2])
{
    for (int jit = 0; jit < 2; jit++) {
        twice[jit] = (opened){0};
        whit_buf_append(&twice[jit].image, image->data, image->size_bytes);
        reword_patterns(&twice[jit].image);
        open_image(&twice[jit]);
    }
}

/* Encodes texts of every script with one tokenizer, with the JIT and without; the ids must be equal. */
static void check_ids(const char *name, const whit_buf *image, int n_texts)
{
    if (n_texts_wanted) n_texts = n_texts_wanted;
    uint8_t text[4 * MOST_CHARS];
    whit_rng rng = {(uint64_t)n_texts};
    opened twice[2];
    open_twice(image, twice);
    for (int i = 0; i < n_texts; i++) {
        const struct script *script = &scripts[i % N_SCRIPTS];
        size_t n = write_text(&rng, script, text);
        whit_buf ids[2] = {{0}, {0}};
        for (int jit = 0; jit < 2; jit++) {
            whit_error error;
            whit_encode_options options = {0};
            no_jit = !jit;
            whit_status status =
                whit_tokenizer_encode(twice[jit].tokenizer, (const char *)text, n, &options, &ids[jit], &error);
            if (status != WHIT_OK) fail_msg("%s, %s, text %d, JIT %d: %s", name, script->name, i, jit, error.message);
        }
        if (ids[0].size_bytes != ids[1].size_bytes || memcmp(ids[0].data, ids[1].data, ids[0].size_bytes) != 0)
            fail_msg("%s, %s, text %d: other ids without the JIT", name, script->name, i);
        whit_buf_free(&ids[0]);
        whit_buf_free(&ids[1]);
    }
    close_tokenizer(&twice[0]);
    close_tokenizer(&twice[1]);
}

/* Every list of patterns that a GGUF file can name, with a vocabulary of the 256 byte symbols. */
static void built_in_patterns_take_every_script(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-2",  "llama-bpe", "qwen2",     "qwen35", "falcon", "default",
                                        "smollm", "starcoder", "command-r", "tekken", "gpt-4o"};
    uint8_t symbols[256][4];
    whit_text tokens[256];
    for (int i = 0; i < 256; i++)
        tokens[i] = (whit_text){(const char *)symbols[i], whit_utf8_encode(whit_byte_symbol((uint8_t)i), symbols[i])};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        whit_vocabulary v = whit_vocabulary_init(names[i], WHIT_VOCABULARY_BYTE_LEVEL);
        v.pre = (whit_text){names[i], strlen(names[i])};
        v.tokens = tokens;
        v.n_tokens = 256;
        whit_buf image = {0};
        whit_error error;
        assert_ok(whit_tokenizer_from_vocabulary(&v, &image, &error), error);
        check_ids(names[i], &image, 40 * N_SCRIPTS);
        whit_buf_free(&image);
    }
}

static void shared_tokenizers_take_every_script(void **state)
{
    (void)state;
    static const char *const files[] = {
        "falcon/tokenizer.json",
        "falcon/ggml-vocab-falcon.gguf",
        "gpt-2/tokenizer.json",
        "llama-2/tokenizer.json",
        "llama-2/tokenizer.model",
        "llama-3/tokenizer.json",
        "mpt/tokenizer.json",
        "refact/tokenizer.json",
        "refact/ggml-vocab-refact.gguf",
        "starcoder/tokenizer.json",
        "starcoder/ggml-vocab-starcoder.gguf",
        "components/digits-punctuation.json",
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        whit_buf image = {0};
        whit_error error;
        snprintf(path, sizeof path, "%s/tokenizers/%s", WHIT_SHARED_DIR, files[i]);
        FILE *file = fopen(path, "rb");
        if (!file) {
            print_message("SKIPPED: %s is absent\n", path);
            skip();
        }
        fclose(file);
        assert_ok(whit_tokenizer_from_path(path, &image, &error), error);
        check_ids(files[i], &image, 10 * N_SCRIPTS);
        whit_buf_free(&image);
    }
}

/* An argument sets the number of texts for each tokenizer. */
int main(int argc, char **argv)
{
    if (argc > 1) n_texts_wanted = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_are_those_of_a_plain_search),
        cmocka_unit_test(built_in_patterns_take_every_script),
        cmocka_unit_test(shared_tokenizers_take_every_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
