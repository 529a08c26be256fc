/* SPDX-License-Identifier: MIT */
#include "tokenizer/normalize.h"

#include <utf8proc.h>

#include "base/items.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

static whit_status appended(const whit_buf *out, whit_error *error)
{
    if (!out->failed) return WHIT_OK;
    if (out->limit_bytes)
        return whit_fail(
            error, WHIT_ERROR_LIMIT,
            "tokenizer: normalizing makes the text more than 20 times as long, the limit, or memory ran out");
    return whit_fail_memory(error, "the normalized text", out->size_bytes);
}

static void append_code(whit_buf *out, uint32_t code)
{
    uint8_t bytes[4];
    whit_buf_append(out, bytes, whit_utf8_encode(code, bytes));
}

/* ---- the four Unicode forms ---------------------------------------------------------------- */

static int combining_class(int32_t code)
{
    return utf8proc_get_property(code)->combining_class;
}

/* Sorts a run of characters by their combining class (all are nonzero), without changing the order of equal ones. Long
 * runs, which only hostile texts have, are sorted by counting, so that the time stays linear. */
static void sort_run(int32_t *codes, size_t n, int32_t *scratch)
{
    if (n < 2) return;
    if (n <= 16) {
        for (size_t i = 1; i < n; i++) {
            int32_t code = codes[i];
            size_t at = i;
            for (; at > 0 && combining_class(codes[at - 1]) > combining_class(code); at--) codes[at] = codes[at - 1];
            codes[at] = code;
        }
        return;
    }
    /* Counting sort: classes are 0 to 255, and equal ones keep their order. */
    size_t starts[257] = {0};
    for (size_t i = 0; i < n; i++) starts[combining_class(codes[i]) + 1]++;
    for (int class = 0; class < 256; class ++) starts[class + 1] += starts[class];
    for (size_t i = 0; i < n; i++) scratch[starts[combining_class(codes[i])]++] = codes[i];
    memcpy(codes, scratch, n * sizeof *codes);
}

static void order_marks(int32_t *codes, size_t n, int32_t *scratch)
{
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && combining_class(codes[end]) != 0) end++;
        sort_run(codes + i, end - i, scratch);
        i = end + 1;
    }
}

static whit_status normalize_run(uint32_t kind, whit_buf *codes, const uint8_t *text, size_t n, whit_buf *out,
                                 whit_error *error)
{
    int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    if (kind == WHIT_STEP_NFKC || kind == WHIT_STEP_NFKD) options |= UTF8PROC_COMPAT;
    codes->size_bytes = 0;
    for (size_t i = 0, length; i < n; i += length) {
        utf8proc_int32_t parts[32];
        int bound = UTF8PROC_BOUNDCLASS_START;
        uint32_t code = whit_utf8_decode(text + i, n - i, &length);
        if (code == WHIT_UTF8_INVALID) code = 0xFFFD;
        utf8proc_ssize_t n_parts =
            utf8proc_decompose_char((utf8proc_int32_t)code, parts, 32, (utf8proc_option_t)options, &bound);
        if (n_parts < 0 || n_parts > 32) {
            parts[0] = (utf8proc_int32_t)code;
            n_parts = 1;
        }
        if (!whit_buf_append(codes, parts, (size_t)n_parts * sizeof *parts))
            return whit_fail_memory(error, "the normalized text", codes->size_bytes);
    }
    size_t n_codes = codes->size_bytes / sizeof(int32_t);
    if (!whit_buf_append_zeros(codes, codes->size_bytes))
        return whit_fail_memory(error, "the normalized text", codes->size_bytes);
    int32_t *all = WHIT_ITEMS(int32_t, codes);
    order_marks(all, n_codes, all + n_codes);
    if (kind == WHIT_STEP_NFC || kind == WHIT_STEP_NFKC) {
        utf8proc_ssize_t composed = utf8proc_normalize_utf32(all, (utf8proc_ssize_t)n_codes,
                                                             (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        if (composed >= 0) n_codes = (size_t)composed;
    }
    for (size_t i = 0; i < n_codes; i++) append_code(out, (uint32_t)all[i]);
    return appended(out, error);
}

/* Converts text to a Unicode form, run by run. A run may begin at each ASCII character, because these never combine
 * with the text before them. */
static whit_status normalize_form(uint32_t kind, whit_buf *codes, const uint8_t *text, size_t n, whit_buf *out,
                                  whit_error *error)
{
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && text[end] < 0x80 && (end + 1 == n || text[end + 1] < 0x80)) end++;
        whit_buf_append(out, text + i, end - i);
        i = end;
        if (i == n) break;
        end++; /* this character may be the base of the marks that follow, or the first one that is not ASCII */
        while (end < n && text[end] >= 0x80) end++;
        WHIT_TRY(normalize_run(kind, codes, text + i, end - i, out, error));
        i = end;
    }
    return appended(out, error);
}

/* ---- other normalizers ------------------------------------------------------------------------ */

/* Lower-cases like Rust's char::to_lowercase: by the simple mapping, except that U+0130 becomes i and U+0307. */
static whit_status lowercase(const uint8_t *text, size_t n, whit_buf *out, whit_error *error)
{
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t code = whit_utf8_decode(text + i, n - i, &length);
        if (code < 0x80) {
            uint8_t c = (uint8_t)(code >= 'A' && code <= 'Z' ? code | 0x20 : code);
            whit_buf_append(out, &c, 1);
        } else if (code == 0x130) {
            whit_buf_append_str(out, "i\xCC\x87");
        } else if (code != WHIT_UTF8_INVALID) {
            append_code(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
        }
    }
    return appended(out, error);
}

/* Removes accents. `only_flat`: only marks without width (Mn), as in BERT's normalizer. */
static whit_status strip_accents(const uint8_t *text, size_t n, bool only_flat, whit_buf *out, whit_error *error)
{
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t code = whit_utf8_decode(text + i, n - i, &length);
        const bool is_gone =
            only_flat ? utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_MN : whit_is_mark(code);
        if (code == WHIT_UTF8_INVALID || !is_gone) whit_buf_append(out, text + i, length);
    }
    return appended(out, error);
}

/* Like BERT's clean_text: removes U+FFFD and characters of the categories control, format and private use, and turns
 * white space into spaces. */
static whit_status clean_text(const uint8_t *text, size_t n, whit_buf *out, whit_error *error)
{
    for (size_t i = 0, length; i < n; i += length) {
        const uint32_t code = whit_utf8_decode(text + i, n - i, &length);
        if (code == WHIT_UTF8_INVALID || code == 0xFFFD) continue;
        const int category = utf8proc_category((utf8proc_int32_t)code);
        const bool is_blank = code == '\t' || code == '\n' || code == '\r';
        const bool is_control =
            category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
        if (is_control && !is_blank) continue;
        if (is_blank || whit_is_space(code))
            whit_buf_append(out, " ", 1);
        else
            whit_buf_append(out, text + i, length);
    }
    return appended(out, error);
}

/* Returns whether BERT's normalizer counts the character as Chinese (bert.rs of `tokenizers`). */
static bool is_han(uint32_t code)
{
    static const uint32_t ranges[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                         {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                                         {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

static whit_status space_han(const uint8_t *text, size_t n, whit_buf *out, whit_error *error)
{
    for (size_t i = 0, length; i < n; i += length) {
        const bool spaced = is_han(whit_utf8_decode(text + i, n - i, &length));
        if (spaced) whit_buf_append(out, " ", 1);
        whit_buf_append(out, text + i, length);
        if (spaced) whit_buf_append(out, " ", 1);
    }
    return appended(out, error);
}

static whit_status strip(const whit_tokenizer_step *step, const uint8_t *text, size_t n, whit_buf *out,
                         whit_error *error)
{
    size_t start = 0, length;
    while (step->a && start < n && whit_is_space(whit_utf8_decode(text + start, n - start, &length))) start += length;
    while (step->b && n > start) {
        size_t last = n - 1;
        while (last > start && (text[last] & 0xC0) == 0x80) last--;
        if (!whit_is_space(whit_utf8_decode(text + last, n - last, &length))) break;
        n = last;
    }
    whit_buf_append(out, text + start, n - start);
    return appended(out, error);
}

static whit_status collapse_spaces(const uint8_t *text, size_t n, whit_buf *out, whit_error *error)
{
    while (n && text[n - 1] == ' ') n--;
    bool after_space = true; /* so that leading spaces are removed */
    for (size_t i = 0; i < n; i++) {
        if (text[i] != ' ' || !after_space) whit_buf_append(out, text + i, 1);
        after_space = text[i] == ' ';
    }
    return appended(out, error);
}

/* ---- SentencePiece's character map ---------------------------------------------------------
 * The map has the size of its trie in bytes (u32), the trie's units (u32 each), and zero-terminated replacement
 * strings. A unit of the double-array trie (Aoe, 1989; layout of Darts-clone) has its label in the low 8 bits and the
 * sign bit, a has-leaf flag in bit 8, and an offset in bits 10 to 30, which is multiplied by 256 if bit 9 is set. The
 * unit at the leaf is a value: the position of the replacement string. */

bool whit_charsmap_check(const uint8_t *map, size_t map_bytes)
{
    if (map_bytes < 8) return false;
    uint32_t trie_bytes = whit_load_u32(map);
    return trie_bytes % 4 == 0 && trie_bytes >= 4 && whit_in_bounds(4, trie_bytes, map_bytes) &&
        map_bytes > (size_t)trie_bytes + 4 && map[map_bytes - 1] == 0;
}

static uint32_t unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* Longer than every key of a valid map. The limit is needed because a damaged map may have cycles. */
#define MAX_KEY_BYTES 256

/* Finds the longest key that `text` begins with. Returns its length and sets *replacement; returns 0 if `text` begins
 * with no key. */
static size_t charsmap_find(const uint8_t *map, size_t map_bytes, const uint8_t *text, size_t n,
                            const char **replacement)
{
    uint32_t n_units = whit_load_u32(map) / 4;
    const uint8_t *units = map + 4;
    const char *strings = (const char *)units + (size_t)n_units * 4;
    size_t strings_bytes = map_bytes - 4 - (size_t)n_units * 4, longest = 0;
    uint32_t at = unit_offset(whit_load_u32(units));
    for (size_t i = 0; i < n && i < MAX_KEY_BYTES; i++) {
        if (text[i] == 0) break;
        at ^= text[i];
        if (at >= n_units) break;
        uint32_t unit = whit_load_u32(units + (size_t)at * 4);
        if ((unit & (0x80000000u | 0xFF)) != text[i]) break;
        at ^= unit_offset(unit);
        if (unit & 1u << 8) {
            if (at >= n_units) break;
            uint32_t value = whit_load_u32(units + (size_t)at * 4) & 0x7FFFFFFFu;
            if (value >= strings_bytes) break;
            *replacement = strings + value; /* the map's last byte is zero, so the string is terminated */
            longest = i + 1;
        }
    }
    return longest;
}

static whit_status apply_charsmap(const uint8_t *map, size_t map_bytes, const uint8_t *text, size_t n, whit_buf *out,
                                  whit_error *error)
{
    if (!whit_charsmap_check(map, map_bytes))
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "tokenizer: its character map is damaged: get or make the model again");
    for (size_t i = 0, length; i < n; i += length) {
        const char *replacement;
        length = charsmap_find(map, map_bytes, text + i, n - i, &replacement);
        if (length) {
            size_t size_bytes = strlen(replacement);
            /* a damaged map may have bytes that are not UTF-8 */
            if (whit_utf8_valid_bytes((const uint8_t *)replacement, size_bytes) == size_bytes)
                whit_buf_append(out, replacement, size_bytes);
        } else {
            whit_utf8_decode(text + i, n - i, &length);
            whit_buf_append(out, text + i, length);
        }
        /* only in a damaged map a key may end inside a character */
        while (i + length < n && (text[i + length] & 0xC0) == 0x80) length++;
    }
    return appended(out, error);
}

whit_status whit_normalize(const whit_tokenizer_step *step, const uint8_t *pattern, const uint8_t *content,
                           whit_regex **regex, whit_buf *codes, const uint8_t *text, size_t n_bytes, whit_buf *out,
                           whit_error *error)
{
    switch (step->kind) {
    case WHIT_STEP_NFC:
    case WHIT_STEP_NFD:
    case WHIT_STEP_NFKC:
    case WHIT_STEP_NFKD: return normalize_form(step->kind, codes, text, n_bytes, out, error);
    case WHIT_STEP_LOWERCASE: return lowercase(text, n_bytes, out, error);
    case WHIT_STEP_STRIP_ACCENTS: return strip_accents(text, n_bytes, step->a == 1, out, error);
    case WHIT_STEP_STRIP: return strip(step, text, n_bytes, out, error);
    case WHIT_STEP_REPLACE:
        return whit_replace(step, pattern, content, regex, codes->allocator, text, n_bytes, out, error);
    case WHIT_STEP_PREPEND:
        whit_buf_append(out, pattern, step->text_bytes);
        whit_buf_append(out, text, n_bytes);
        return appended(out, error);
    case WHIT_STEP_COLLAPSE_SPACES: return collapse_spaces(text, n_bytes, out, error);
    case WHIT_STEP_CLEAN: return clean_text(text, n_bytes, out, error);
    case WHIT_STEP_SPACE_HAN: return space_han(text, n_bytes, out, error);
    case WHIT_STEP_PRECOMPILED: return apply_charsmap(pattern, step->text_bytes, text, n_bytes, out, error);
    default:
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "tokenizer: normalizer %u is not known: the data is damaged, or made by a later whit",
                         step->kind);
    }
}
