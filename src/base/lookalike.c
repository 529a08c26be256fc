/* SPDX-License-Identifier: MIT */
#include "base/lookalike.h"

#include "base/utf8.h"

#include <utf8proc.h>

#define NEAR_MAX 256 /* maximum of bytes on each side of a character that are examined */

/* Characters that look like a Latin letter, from Unicode's confusables.txt: Greek, Cyrillic, Armenian, phonetic and
 * small capital letters, blocks of Cherokee, Coptic and Lisu letters, mathematical and wide letters. */
static const struct {
    uint32_t first, last;
} alike[] = {
    {0x251, 0x251},     {0x261, 0x261},   {0x269, 0x269},   {0x37F, 0x37F},   {0x391, 0x392},   {0x395, 0x397},
    {0x399, 0x39A},     {0x39C, 0x39D},   {0x39F, 0x39F},   {0x3A1, 0x3A1},   {0x3A4, 0x3A5},   {0x3A7, 0x3A7},
    {0x3BD, 0x3BD},     {0x3BF, 0x3BF},   {0x3C1, 0x3C1},   {0x3C5, 0x3C5},   {0x3F2, 0x3F3},   {0x3F9, 0x3F9},
    {0x405, 0x406},     {0x408, 0x408},   {0x410, 0x410},   {0x412, 0x412},   {0x415, 0x415},   {0x41A, 0x41A},
    {0x41C, 0x41E},     {0x420, 0x423},   {0x425, 0x425},   {0x430, 0x430},   {0x435, 0x435},   {0x43E, 0x43E},
    {0x440, 0x441},     {0x443, 0x443},   {0x445, 0x445},   {0x455, 0x456},   {0x458, 0x458},   {0x474, 0x475},
    {0x4AE, 0x4AF},     {0x4BB, 0x4BB},   {0x4C0, 0x4C0},   {0x4CF, 0x4CF},   {0x501, 0x501},   {0x50C, 0x50C},
    {0x51A, 0x51D},     {0x54D, 0x54D},   {0x555, 0x555},   {0x566, 0x566},   {0x570, 0x570},   {0x578, 0x578},
    {0x57D, 0x57D},     {0x581, 0x581},   {0x585, 0x585},   {0x13A0, 0x13FF}, {0x1D00, 0x1D22}, {0x212A, 0x212A},
    {0x2160, 0x217F},   {0x2C80, 0x2CB1}, {0xA4D0, 0xA4FD}, {0xAB70, 0xABBF}, {0xFF21, 0xFF3A}, {0xFF41, 0xFF5A},
    {0x1D400, 0x1D7FF},
};

static bool looks_latin(uint32_t code)
{
    for (size_t i = 0; i < sizeof alike / sizeof *alike && code >= alike[i].first; i++)
        if (code <= alike[i].last) return true;
    return false;
}

static bool is_ascii_letter(uint32_t code)
{
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

static bool is_of_word(uint32_t code)
{
    if (code < 0x80) return is_ascii_letter(code) || (code >= '0' && code <= '9') || code == '_';
    if (code > 0x10FFFF) return false;
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
}

static bool is_cyrillic(uint32_t code)
{
    return code >= 0x400 && code <= 0x52F;
}

/* Properties of the text near a character. */
struct near {
    bool is_mixed;  /* its word has an ASCII letter */
    bool is_native; /* its line has a Cyrillic letter that does not look like a Latin one */
};

/* Adds a character of the line; *in_word becomes false where the word ends. */
static void add_near(struct near *near, uint32_t code, bool *in_word)
{
    *in_word = *in_word && is_of_word(code);
    near->is_mixed = near->is_mixed || (*in_word && is_ascii_letter(code));
    near->is_native = near->is_native || (is_cyrillic(code) && !looks_latin(code));
}

bool whit_lookalike_at(const char *text, size_t n, size_t at, uint32_t code)
{
    struct near near = {.is_mixed = false};
    const uint8_t *bytes = (const uint8_t *)text;
    size_t length;
    if (!looks_latin(code)) return false;
    bool in_word = true;
    for (size_t i = at; i < n && i - at < NEAR_MAX && bytes[i] != '\n'; i += length)
        add_near(&near, whit_utf8_decode(bytes + i, n - i, &length), &in_word);
    in_word = true;
    for (size_t i = at; i > 0 && at - i < NEAR_MAX && bytes[i - 1] != '\n';) {
        do i--;
        while (i > 0 && (bytes[i] & 0xC0) == 0x80);
        add_near(&near, whit_utf8_decode(bytes + i, n - i, &length), &in_word);
    }
    return near.is_mixed || (is_cyrillic(code) && !near.is_native);
}

bool whit_lookalike_is_in(const char *text, size_t n)
{
    for (size_t i = 0, length; i < n; i += length) {
        const uint32_t code = whit_utf8_decode((const uint8_t *)text + i, n - i, &length);
        if (code >= 0x80 && whit_lookalike_at(text, n, i, code)) return true;
    }
    return false;
}
