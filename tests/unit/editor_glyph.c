/* SPDX-License-Identifier: MIT
 * Tests glyphs: where they begin and end, how many columns they take, and what is drawn for them. */
#include "test.h"

#include "base/utf8.h"
#include "editor/layout.h"

#include <stdio.h>
#include <stdlib.h>

/* A glyph: its number of bytes, its width in columns and the UTF-8 text that is drawn for it. */
struct expected {
    unsigned n_bytes;
    int width;
    const char *drawn;
};

#define WOMAN    "\xF0\x9F\x91\xA9"
#define GIRL     "\xF0\x9F\x91\xA7"
#define SHRUG    "\xF0\x9F\xA4\xB7"
#define TONE     "\xF0\x9F\x8F\xBD"
#define JOINER   "\xE2\x80\x8D"
#define EMOJI    "\xEF\xB8\x8F"
#define HEART    "\xE2\x9D\xA4"
#define LETTER_D "\xF0\x9F\x87\xA9"
#define LETTER_E "\xF0\x9F\x87\xAA"
#define LETTER_F "\xF0\x9F\x87\xAB"
#define BLACK    "\xF0\x9F\x8F\xB4"
#define TAG_G    "\xF3\xA0\x81\xA7"
#define TAG_END  "\xF3\xA0\x81\xBF"
#define JAMO_H   "\xE1\x84\x92"
#define JAMO_A   "\xE1\x85\xA1"
#define JAMO_N   "\xE1\x86\xAB"
#define SYLLABLE "\xED\x95\x9C" /* U+D55C */
#define ACUTE    "\xCC\x81"
#define HINDI_NA "\xE0\xA4\xA8"
#define HINDI_I  "\xE0\xA4\xBF"
#define KEYCAP   "\xE2\x83\xA3"
#define OVERRIDE "\xE2\x80\xAE" /* U+202E */
#define ISOLATE  "\xE2\x81\xA6"
#define MARK     "\xEF\xBB\xBF"
#define HIDDEN_A "\xF3\xA0\x84\x80" /* U+E0100, a variation selector */
#define KANJI    "\xE8\x91\x9B"
#define REPLACED "\xEF\xBF\xBD"

static const struct {
    const char *name, *text;
    struct expected glyphs[4];
} cases[] = {
    {"a family of joined emoji", WOMAN JOINER WOMAN JOINER GIRL JOINER GIRL "x", {{25, 2, WOMAN}, {1, 1, "x"}}},
    {"a skin tone", SHRUG TONE "a", {{8, 2, SHRUG}, {1, 1, "a"}}},
    {"a toned emoji that is joined", WOMAN TONE JOINER GIRL TONE "a", {{19, 2, WOMAN}, {1, 1, "a"}}},
    {"a tone alone", "a" TONE, {{5, 1, "a"}}},
    {"flags in pairs", LETTER_D LETTER_E LETTER_F LETTER_E LETTER_D, {{8, 2, "DE"}, {8, 2, "FE"}, {4, 1, "D"}}},
    {"a flag made with tags", BLACK TAG_G TAG_END "x", {{12, 2, BLACK}, {1, 1, "x"}}},
    {"an emoji by its selector", HEART EMOJI "x", {{6, 2, HEART " "}, {1, 1, "x"}}},
    {"a keycap", "1" EMOJI KEYCAP "x", {{7, 1, "1" KEYCAP}, {1, 1, "x"}}},
    {"a syllable of three jamo", JAMO_H JAMO_A JAMO_N "x", {{9, 2, SYLLABLE}, {1, 1, "x"}}},
    {"a mark", "e" ACUTE "x", {{3, 1, "e" ACUTE}, {1, 1, "x"}}},
    {"a mark alone", ACUTE "x", {{2, 1, "\xE2\x97\x8C" ACUTE}, {1, 1, "x"}}},
    {"a sign of Devanagari that takes a column", HINDI_NA HINDI_I "x", {{6, 1, HINDI_NA HINDI_I}, {1, 1, "x"}}},
    {"an override of direction", "a" OVERRIDE "b", {{1, 1, "a"}, {3, 6, "<202e>"}, {1, 1, "b"}}},
    {"an isolate", ISOLATE, {{3, 6, "<2066>"}}},
    {"a mark of byte order", MARK, {{3, 6, "<feff>"}}},
    {"a joiner that joins nothing", "a" JOINER "b", {{4, 7, "a<200d>"}, {1, 1, "b"}}},
    {"a selector after a letter", "a" EMOJI "b", {{4, 7, "a<fe0f>"}, {1, 1, "b"}}},
    {"a selector of an ideograph", KANJI HIDDEN_A "b", {{7, 2, KANJI HIDDEN_A}, {1, 1, "b"}}},
    {"a selector that hides a byte", HEART HIDDEN_A "b", {{7, 8, HEART "<e0100>"}, {1, 1, "b"}}},
    {"tags without a flag", "a" TAG_G, {{5, 8, "a<e0067>"}}},
    {"a line separator", "\xE2\x80\xA8", {{3, 6, "<2028>"}}},
    {"controls", "\033\x7F\xC2\x85", {{1, 2, "^["}, {1, 2, "^?"}, {2, 6, "<0085>"}}},
    {"bytes that are not UTF-8", "\xFF\xE2\x80x", {{1, 4, "<ff>"}, {1, 4, "<e2>"}, {1, 4, "<80>"}, {1, 1, "x"}}},
    {"no character", "\xF4\x8F\xBF\xBF", {{4, 1, REPLACED}}},
};

static void drawn_text(const whit_glyph *glyph, char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < glyph->n_codes; i++) n += whit_utf8_encode(glyph->codes[i], (uint8_t *)text + n);
    text[n] = 0;
}

static void table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].text), at = 0;
        for (const struct expected *wanted = cases[i].glyphs; at < n; wanted++) {
            whit_glyph glyph;
            char text[4 * WHIT_GLYPH_CODES + 1];
            whit_glyph_read((const uint8_t *)cases[i].text + at, n - at, &glyph);
            drawn_text(&glyph, text);
            if (glyph.n_bytes != wanted->n_bytes || glyph.width != wanted->width || strcmp(text, wanted->drawn) != 0)
                fail_msg("%s, byte %zu: %u bytes, %d columns, '%s'", cases[i].name, at, glyph.n_bytes, glyph.width,
                         text);
            at += glyph.n_bytes;
        }
        assert_int_equal(at, n);
    }
}

/* No drawn text may contain a control character or a character that changes the direction of a line. */
static void nothing_hides(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        if (code >= 0xD800 && code <= 0xDFFF) continue;
        uint8_t bytes[8] = {'a'};
        size_t n = 1 + whit_utf8_encode(code, bytes + 1);
        for (size_t at = 0; at < n;) {
            whit_glyph glyph;
            whit_glyph_read(bytes + at, n - at, &glyph);
            assert_int_equal(glyph.widths[0] > 0, 1);
            for (size_t i = 0; i < glyph.n_codes; i++) {
                uint32_t drawn = glyph.codes[i];
                bool bad = drawn < 32 || (drawn >= 0x7F && drawn < 0xA0) || (drawn >= 0x200B && drawn <= 0x200F) ||
                    (drawn >= 0x2028 && drawn <= 0x202E) || (drawn >= 0x2060 && drawn <= 0x206F) || drawn == 0xFEFF ||
                    drawn == 0xAD || (drawn >= 0xE0000 && drawn <= 0xE0FFF) || (drawn >= 0xFE00 && drawn <= 0xFE0F);
                if (bad) fail_msg("U+%04X is drawn for U+%04X", drawn, code);
            }
            at += glyph.n_bytes;
        }
    }
}

/* Going backwards must find the same glyph boundaries as going forwards; also in a long line of flag letters, which
 * fills several rows. */
static void both_ways(void **state)
{
    static const char *const parts[] = {WOMAN,    GIRL,    TONE,   JOINER,     EMOJI,    LETTER_D, LETTER_E,
                                        LETTER_F, JAMO_H,  JAMO_A, JAMO_N,     SYLLABLE, ACUTE,    "a",
                                        "\r\n",   "\n",    "\r",   "\xE2\x82", "\xFF",   "\x80",   OVERRIDE,
                                        HINDI_NA, HINDI_I, KANJI,  TAG_G,      BLACK,    "\t"};
    (void)state;
    srand(11);
    for (int round = 0; round < 300; round++) {
        whit_text *text;
        whit_error error;
        char bytes[12000];
        size_t n = 0;
        bool flags = round % 10 == 9;
        while (n < (flags ? 9000u : 60u)) {
            const char *part = flags ? LETTER_D : parts[(size_t)rand() % (sizeof parts / sizeof *parts)];
            memcpy(bytes + n, part, strlen(part));
            n += strlen(part);
        }
        assert_int_equal(whit_text_open(&text, &error), WHIT_OK);
        assert_int_equal(whit_text_replace(text, 0, 0, bytes, n, NULL, &error), WHIT_OK);
        whit_layout layout = {.text = text, .tab_columns = 8};
        uint64_t rows = 0;
        for (uint64_t row = 0; row != UINT64_MAX; row = whit_layout_next_row(&layout, row), rows++)
            if (row) assert_int_equal(whit_layout_behind(&layout, whit_layout_before(&layout, row)), row);
        for (uint64_t at = 0, next; at < n; at = next) {
            next = whit_layout_behind(&layout, at);
            uint64_t far = next > 4000 && flags ? next : 0; /* the search back is bounded */
            if (whit_layout_before(&layout, next) != at && !far)
                fail_msg("round %d: from %d back to %d, not %d", round, (int)next,
                         (int)whit_layout_before(&layout, next), (int)at);
        }
        if (flags) assert_true(rows >= 2);
        whit_text_close(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table), cmocka_unit_test(nothing_hides),
                                       cmocka_unit_test(both_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
