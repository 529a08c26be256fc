/* SPDX-License-Identifier: MIT */
#include "base/lookalike.h"

#include "base/utf8.h"

#include <utf8proc.h>

#define NEAR_MAX 256 /* maximum of bytes on each side of a character that are examined */

struct range {
    uint32_t first, last;
};

/* Characters that look like a Latin letter, from Unicode's confusables.txt: Greek, Cyrillic, Armenian, phonetic and
 * small capital letters, blocks of Cherokee, Coptic, Lisu, Ethiopic, Canadian, Runic, Tifinagh, Vai and historic
 * letters, letters and digits that are circles, mathematical and wide letters. */
static const struct range alike[] = {
    {0x251, 0x251},     {0x261, 0x261},     {0x269, 0x269},     {0x37F, 0x37F},     {0x391, 0x392},
    {0x395, 0x397},     {0x399, 0x39A},     {0x39C, 0x39D},     {0x39F, 0x39F},     {0x3A1, 0x3A1},
    {0x3A4, 0x3A5},     {0x3A7, 0x3A7},     {0x3BD, 0x3BD},     {0x3BF, 0x3BF},     {0x3C1, 0x3C1},
    {0x3C5, 0x3C5},     {0x3F2, 0x3F3},     {0x3F9, 0x3F9},     {0x405, 0x406},     {0x408, 0x408},
    {0x410, 0x410},     {0x412, 0x412},     {0x415, 0x415},     {0x41A, 0x41A},     {0x41C, 0x41E},
    {0x420, 0x423},     {0x425, 0x425},     {0x430, 0x430},     {0x435, 0x435},     {0x43E, 0x43E},
    {0x440, 0x441},     {0x443, 0x443},     {0x445, 0x445},     {0x455, 0x456},     {0x458, 0x458},
    {0x474, 0x475},     {0x4AE, 0x4AF},     {0x4BB, 0x4BB},     {0x4C0, 0x4C0},     {0x4CF, 0x4CF},
    {0x501, 0x501},     {0x50C, 0x50C},     {0x51A, 0x51D},     {0x54D, 0x54D},     {0x555, 0x555},
    {0x566, 0x566},     {0x570, 0x570},     {0x578, 0x578},     {0x57D, 0x57D},     {0x581, 0x581},
    {0x585, 0x585},     {0x7C0, 0x7C0},     {0x966, 0x966},     {0x9E6, 0x9E6},     {0xA66, 0xA66},
    {0xAE6, 0xAE6},     {0xB20, 0xB20},     {0xB66, 0xB66},     {0xBE6, 0xBE6},     {0xC66, 0xC66},
    {0xCE6, 0xCE6},     {0xD20, 0xD20},     {0xD66, 0xD66},     {0xE50, 0xE50},     {0xED0, 0xED0},
    {0x101D, 0x101D},   {0x1040, 0x1040},   {0x10E7, 0x10E7},   {0x10FF, 0x10FF},   {0x1200, 0x137F},
    {0x13A0, 0x13FF},   {0x1400, 0x167F},   {0x16A0, 0x16F8},   {0x17E0, 0x17E0},   {0x1D00, 0x1D22},
    {0x210A, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},   {0x212A, 0x212A},
    {0x212C, 0x212D},   {0x212F, 0x2131},   {0x2133, 0x2134},   {0x2145, 0x2149},   {0x2160, 0x217F},
    {0x2C80, 0x2CB1},   {0x2D30, 0x2D6F},   {0xA4D0, 0xA4FD},   {0xA500, 0xA63F},   {0xA6A0, 0xA6F7},
    {0xAB70, 0xABBF},   {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},   {0x10280, 0x1034F}, {0x10400, 0x1052F},
    {0x118A0, 0x118FF}, {0x16F00, 0x16F9F}, {0x1D400, 0x1D7FF},
};

/* Characters that look like a sign of ASCII, from the same file, most of them letters or digits, which may be a part of
 * a name: clicks that look like "!" and "|", modifier letters like quotes, colons and "^", digits like a full stop.
 * Typographic quotes and dashes are left out. */
static const struct range signs[] = {
    {0x1C0, 0x1C3},   {0x241, 0x241},   {0x294, 0x294},   {0x2B9, 0x2BF},   {0x2C2, 0x2CB},     {0x2CD, 0x2D0},
    {0x2D7, 0x2D7},   {0x2DC, 0x2DD},   {0x2EE, 0x2EE},   {0x2F4, 0x2F8},   {0x374, 0x375},     {0x37E, 0x37E},
    {0x384, 0x384},   {0x387, 0x387},   {0x55A, 0x55D},   {0x589, 0x589},   {0x5C0, 0x5C0},     {0x5C3, 0x5C3},
    {0x5F3, 0x5F4},   {0x660, 0x661},   {0x66A, 0x66D},   {0x6D4, 0x6D4},   {0x6F0, 0x6F1},     {0x701, 0x704},
    {0x7F4, 0x7F5},   {0x7FA, 0x7FA},   {0x903, 0x903},   {0x97D, 0x97D},   {0xA83, 0xA83},     {0x1400, 0x1400},
    {0x1427, 0x1427}, {0x1433, 0x1433}, {0x1438, 0x1438}, {0x144A, 0x144A}, {0x16B2, 0x16B2},   {0x16CC, 0x16CC},
    {0x16EB, 0x16ED}, {0x1735, 0x1735}, {0x1802, 0x1804}, {0x1808, 0x1809}, {0x1FBD, 0x1FC0},   {0x1FEF, 0x1FEF},
    {0x1FFD, 0x1FFE}, {0x2024, 0x2024}, {0x2041, 0x2041}, {0x2043, 0x2044}, {0x204E, 0x204E},   {0x2053, 0x2053},
    {0x205A, 0x205A}, {0x2215, 0x2217}, {0x2223, 0x2223}, {0x2225, 0x2225}, {0x2236, 0x2236},   {0x223C, 0x223C},
    {0x2758, 0x2758}, {0x2768, 0x2769}, {0x2772, 0x2775}, {0x27CB, 0x27CB}, {0x27CD, 0x27CD},   {0x29F5, 0x29F5},
    {0x29F8, 0x29F9}, {0x2CC6, 0x2CC6}, {0x2CF9, 0x2CF9}, {0x2E40, 0x2E40}, {0xA4F8, 0xA4FF},   {0xA60E, 0xA60E},
    {0xA778, 0xA778}, {0xA789, 0xA78C}, {0xFD3E, 0xFD3F}, {0xFFE8, 0xFFE8}, {0x10A50, 0x10A50},
};

static bool is_listed(const struct range *ranges, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n && code >= ranges[i].first; i++)
        if (code <= ranges[i].last) return true;
    return false;
}

static bool looks_latin(uint32_t code)
{
    return is_listed(alike, sizeof alike / sizeof *alike, code);
}

static bool is_visible_ascii(uint8_t byte)
{
    return byte > ' ' && byte < 0x7F;
}

/* Returns whether a character looks like a sign, and the one before or after it is of ASCII and no blank. Between
 * letters of its own alphabet, or at the end of its word, it is a letter or a sign that a reader expects there. */
static bool looks_like_sign(const uint8_t *text, size_t n, size_t at, uint32_t code)
{
    size_t length;
    if (!is_listed(signs, sizeof signs / sizeof *signs, code)) return false;
    (void)whit_utf8_decode(text + at, n - at, &length);
    return (at && is_visible_ascii(text[at - 1])) || (at + length < n && is_visible_ascii(text[at + length]));
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

/* Returns whether no further character of this side can change whether the character is a look-alike. */
static bool is_settled(const struct near *near, bool in_word)
{
    return near->is_mixed || (near->is_native && !in_word);
}

bool whit_lookalike_at(const char *text, size_t n, size_t at, uint32_t code)
{
    struct near near = {.is_mixed = false};
    const uint8_t *bytes = (const uint8_t *)text;
    size_t length;
    if (looks_like_sign(bytes, n, at, code)) return true;
    if (!looks_latin(code)) return false;
    bool in_word = true;
    for (size_t i = at; i < n && i - at < NEAR_MAX && bytes[i] != '\n' && !is_settled(&near, in_word); i += length)
        add_near(&near, whit_utf8_decode(bytes + i, n - i, &length), &in_word);
    in_word = true;
    for (size_t i = at; i > 0 && at - i < NEAR_MAX && bytes[i - 1] != '\n' && !is_settled(&near, in_word);) {
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
