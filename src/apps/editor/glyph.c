/* SPDX-License-Identifier: MIT */
#include "editor/glyph.h"

#include "base/utf8.h"

#include <utf8proc.h>

#define JOINER         0x200Du /* ZERO WIDTH JOINER */
#define NON_JOINER     0x200Cu
#define TEXT_SELECTOR  0xFE0Eu
#define EMOJI_SELECTOR 0xFE0Fu
#define KEYCAP         0x20E3u
#define BLACK_FLAG     0x1F3F4u

static bool is_between(uint32_t code, uint32_t first, uint32_t last)
{
    return code >= first && code <= last;
}

static int break_class(uint32_t code)
{
    return (int)utf8proc_get_property((utf8proc_int32_t)code)->boundclass;
}

static bool is_pictograph(uint32_t code)
{
    return code >= 0xA9 && break_class(code) == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}

static bool is_regional(uint32_t code)
{
    return is_between(code, 0x1F1E6, 0x1F1FF);
}

static bool is_skin_tone(uint32_t code)
{
    return is_between(code, 0x1F3FB, 0x1F3FF);
}

/* Returns the width of a code point in columns: 0, 1 or 2; -1 if it cannot be displayed. */
static int char_width(uint32_t code)
{
    if (code >= 32 && code < 127) return 1;
    if (code < 0xA0 || code > 0x10FFFF) return -1;
    if (code < 0x300) return 1;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    if (category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS ||
        category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP)
        return -1;
    return utf8proc_charwidth((utf8proc_int32_t)code);
}

/* Returns whether a character is invisible by itself: Default_Ignorable_Code_Point (UAX #44), controls, and line and
 * paragraph separators. */
static bool is_unseen(uint32_t code)
{
    if (code < 0x7F) return code < 32;
    if (code < 0xA0 || code == 0x2028 || code == 0x2029) return true;
    return code > 0x10FFFF || utf8proc_get_property((utf8proc_int32_t)code)->ignorable;
}

/* Returns whether an invisible character only changes the form of the glyph that begins with `base`, so that it need
 * not be written out; any other invisible character could hide text. `next` is the following character, 0 at the
 * end. */
static bool is_shaping(uint32_t base, uint32_t code, uint32_t next)
{
    bool emoji = is_pictograph(base) || is_regional(base);
    bool script = base >= 0x600 && !emoji && !is_unseen(base); /* letters from the Arabic block on may use joiners */
    if (code == JOINER) return emoji || script;
    if (code == NON_JOINER) return script;
    if (code == TEXT_SELECTOR || code == EMOJI_SELECTOR) return emoji || next == KEYCAP;
    if (is_between(code, 0xE0020, 0xE007F)) return base == BLACK_FLAG;
    if (is_between(code, 0x180B, 0x180F)) return is_between(base, 0x1820, 0x18AA);
    if (is_between(code, 0xFE00, 0xFE0D) || is_between(code, 0xE0100, 0xE01EF))
        return is_between(base, 0x2E80, 0x9FFF) || is_between(base, 0xF900, 0xFAFF) ||
            is_between(base, 0x20000, 0x3FFFF);
    return false;
}

/* ---- drawing ------------------------------------------------------------------------------- */

static bool add_code(whit_glyph *glyph, uint32_t code, int width)
{
    /* With all codes used, a further combining mark is dropped, since one could not see it among so many. */
    if (glyph->n_codes == WHIT_GLYPH_CODES) return width == 0;
    glyph->codes[glyph->n_codes] = code;
    glyph->widths[glyph->n_codes++] = (uint8_t)width;
    glyph->width += width;
    return true;
}

/* Writes a character that cannot be displayed as its code, <hex> or ^A. Returns false, with the glyph unchanged, if
 * there are too few codes left. */
static bool add_foreign(whit_glyph *glyph, uint32_t code, int n_digits)
{
    int n = code < 128 ? 2 : n_digits + 2;
    if (glyph->n_codes + n > WHIT_GLYPH_CODES) return false;
    glyph->is_foreign = true;
    if (code < 128 && n_digits > 2) {
        add_code(glyph, '^', 1);
        return add_code(glyph, code ^ 64, 1);
    }
    add_code(glyph, '<', 1);
    for (int i = n_digits; i-- > 0;) add_code(glyph, (uint32_t) "0123456789abcdef"[code >> 4 * i & 15], 1);
    return add_code(glyph, '>', 1);
}

static int hex_digits(uint32_t code)
{
    if (code > 0xFFFFF) return 6;
    if (code > 0xFFFF) return 5;
    return 4;
}

/* Composes Hangul jamo (L + V, or LV + T) into one syllable (The Unicode Standard, section 3.12). Returns 0 if the two
 * do not compose. */
static uint32_t composed_jamo(uint32_t first, uint32_t second)
{
    if (is_between(first, 0x1100, 0x1112) && is_between(second, 0x1161, 0x1175))
        return 0xAC00 + ((first - 0x1100) * 21 + second - 0x1161) * 28;
    if (is_between(first, 0xAC00, 0xD7A3) && (first - 0xAC00) % 28 == 0 && is_between(second, 0x11A8, 0x11C2))
        return first + second - 0x11A7;
    return 0;
}

/* Begins a glyph with its first code point. */
static void add_first(whit_glyph *glyph, uint32_t code)
{
    int width = char_width(code);
    if (is_unseen(code)) {
        add_foreign(glyph, code, hex_digits(code));
    } else if (is_regional(code)) {
        glyph->is_foreign = true;
        add_code(glyph, 'A' + code - 0x1F1E6, 1);
    } else if (width < 0) {
        glyph->is_foreign = true;
        add_code(glyph, 0xFFFD, 1);
    } else if (width == 0) { /* a combining character without a base is drawn on a dotted circle */
        add_code(glyph, 0x25CC, 1);
        add_code(glyph, code, 0);
    } else {
        add_code(glyph, code, width);
    }
}

/* Adds a further code point to a glyph that begins with `base`; `before` and `next` are the code point's neighbours.
 * Returns false if too few codes are left. */
static bool add_next(whit_glyph *glyph, uint32_t base, uint32_t before, uint32_t code, uint32_t next)
{
    if (is_unseen(code)) {
        if (!is_shaping(base, code, next)) return add_foreign(glyph, code, hex_digits(code));
        if (code == EMOJI_SELECTOR && is_pictograph(base) && glyph->width == 1 && glyph->n_codes == 1)
            return add_code(glyph, ' ', 1); /* an emoji presentation has two columns */
        bool is_joined = code == JOINER || code == TEXT_SELECTOR || code == EMOJI_SELECTOR || base == BLACK_FLAG;
        return is_joined || add_code(glyph, code, 0);
    }
    if (is_skin_tone(code) || (before == JOINER && is_pictograph(code))) return true;
    if (is_regional(code)) return add_code(glyph, 'A' + code - 0x1F1E6, 1);
    uint32_t *last = &glyph->codes[glyph->n_codes - 1], syllable = composed_jamo(*last, code);
    if (syllable) {
        *last = syllable;
        return true;
    }
    int width = char_width(code);
    uint32_t shown = width < 0 ? 0xFFFD : code;
    return add_code(glyph, shown, width < 0 ? 1 : width);
}

/* ---- boundaries ---------------------------------------------------------------------------- */

static uint32_t code_at(const uint8_t *bytes, size_t n, size_t at, size_t *length)
{
    *length = 0;
    return at < n ? whit_utf8_decode(bytes + at, n - at, length) : WHIT_UTF8_INVALID;
}

void whit_glyph_read(const uint8_t *bytes, size_t n, whit_glyph *glyph)
{
    size_t length, next_length;
    if (n > WHIT_GLYPH_BYTES) n = WHIT_GLYPH_BYTES;
    uint32_t base = code_at(bytes, n, 0, &length), code = base;
    glyph->n_codes = 0;
    glyph->is_foreign = false;
    glyph->width = 0;
    glyph->n_bytes = 1;
    if (base == WHIT_UTF8_INVALID) {
        add_foreign(glyph, bytes[0], 2);
        return;
    }
    glyph->n_bytes = (uint32_t)length;
    add_first(glyph, base);
    utf8proc_int32_t state = 0;
    for (uint32_t next = code_at(bytes, n, length, &next_length); next != WHIT_UTF8_INVALID;) {
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)code, (utf8proc_int32_t)next, &state)) return;
        size_t after_length;
        uint32_t after = code_at(bytes, n, glyph->n_bytes + next_length, &after_length);
        if (!add_next(glyph, base, code, next, after == WHIT_UTF8_INVALID ? 0 : after)) return;
        glyph->n_bytes += (uint32_t)next_length;
        code = next;
        next = after;
        next_length = after_length;
    }
}

/* Returns whether offset `at` is a glyph boundary, whatever precedes the two characters around it. Two cases are
 * uncertain: between two flag letters (it depends on their number before), and between a joiner and a pictograph (it
 * depends on the character before the joiner). */
static bool is_certain(const uint8_t *bytes, size_t n, size_t at)
{
    size_t length, before = at - 1;
    if (bytes[at] < 0x80 && bytes[before] < 0x80) return bytes[at] != '\n' || bytes[before] != '\r';
    while (before && at - before < 4 && (bytes[before] & 0xC0) == 0x80) before--;
    uint32_t last = code_at(bytes, n, before, &length);
    if (last == WHIT_UTF8_INVALID || before + length != at) return (bytes[at] & 0xC0) != 0x80;
    uint32_t code = code_at(bytes, n, at, &length);
    if (code == WHIT_UTF8_INVALID) return true;
    if (last == JOINER && is_pictograph(code)) return false;
    return utf8proc_grapheme_break((utf8proc_int32_t)last, (utf8proc_int32_t)code);
}

size_t whit_glyph_begin(const uint8_t *bytes, size_t n, size_t at)
{
    size_t from = at;
    while (from && !is_certain(bytes, n, from)) from--;
    if (!from) /* without a certain boundary, skip the rest of a character that was cut */
        while (from < at && from < 3 && (bytes[from] & 0xC0) == 0x80) from++;
    for (;;) {
        whit_glyph glyph;
        whit_glyph_read(bytes + from, n - from, &glyph);
        if (from + glyph.n_bytes > at) return from;
        from += glyph.n_bytes;
    }
}

int whit_glyphs_width(const char *text, size_t n)
{
    int width = 0;
    whit_glyph glyph;
    for (size_t at = 0; at < n; at += glyph.n_bytes) {
        whit_glyph_read((const uint8_t *)text + at, n - at, &glyph);
        width += glyph.width;
    }
    return width;
}
