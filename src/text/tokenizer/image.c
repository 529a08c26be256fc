/* SPDX-License-Identifier: MIT */
#include "tokenizer/image.h"

static const struct {
    const char *name;
    uint32_t elem_bytes;
} section_shapes[WHIT_TOKENS_N_SECTIONS] = {
    [WHIT_TOKENS_OFFSETS] = {"offsets", 4},
    [WHIT_TOKENS_TEXT] = {"text", 1},
    [WHIT_TOKENS_FLAGS] = {"flags", 1},
    [WHIT_TOKENS_SCORES] = {"scores", 8},
    [WHIT_TOKENS_HASH] = {"hash", sizeof(whit_token_slot)},
    [WHIT_TOKENS_TRIE] = {"trie", sizeof(whit_trie_node)},
    [WHIT_TOKENS_MERGES] = {"merges", sizeof(whit_merge_slot)},
    [WHIT_TOKENS_SYMBOLS] = {"symbols", 4},
    [WHIT_TOKENS_FALLBACK] = {"fallback", 4},
    [WHIT_TOKENS_ADDED] = {"added", sizeof(whit_added_token)},
    [WHIT_TOKENS_NORMALIZE] = {"normalize", sizeof(whit_tokenizer_step)},
    [WHIT_TOKENS_SPLIT] = {"split", sizeof(whit_tokenizer_step)},
    [WHIT_TOKENS_DECODE] = {"decode", sizeof(whit_tokenizer_step)},
    [WHIT_TOKENS_BEFORE] = {"before", 4},
    [WHIT_TOKENS_AFTER] = {"after", 4},
    [WHIT_TOKENS_ENDS] = {"ends", 4},
    [WHIT_TOKENS_STRINGS] = {"strings", 1},
};

static size_t n_elems(const whit_tokenizer_header *header, enum whit_tokenizer_section section)
{
    return (size_t)(header->sections[section].size_bytes / section_shapes[section].elem_bytes);
}

static bool is_power_of_two_or_zero(size_t n)
{
    return (n & (n - 1)) == 0;
}

static whit_status check_counts(const whit_tokenizer_header *header, whit_error *error)
{
    size_t n = header->n_tokens;
    if (n == 0 || n > INT32_MAX || n_elems(header, WHIT_TOKENS_OFFSETS) != n + 1 ||
        n_elems(header, WHIT_TOKENS_FLAGS) != n)
        return whit_fail(error, WHIT_ERROR_FORMAT, "tokenizer: %u tokens do not fit its tables: the data is damaged",
                         header->n_tokens);
    size_t n_scores = n_elems(header, WHIT_TOKENS_SCORES);
    if ((n_scores && n_scores != n) || n_elems(header, WHIT_TOKENS_SYMBOLS) != 256 ||
        n_elems(header, WHIT_TOKENS_FALLBACK) != 256 || !is_power_of_two_or_zero(n_elems(header, WHIT_TOKENS_HASH)) ||
        !is_power_of_two_or_zero(n_elems(header, WHIT_TOKENS_MERGES)) ||
        n_elems(header, WHIT_TOKENS_NORMALIZE) > WHIT_TOKENIZER_MAX_STEPS ||
        n_elems(header, WHIT_TOKENS_SPLIT) > WHIT_TOKENIZER_MAX_STEPS ||
        n_elems(header, WHIT_TOKENS_DECODE) > WHIT_TOKENIZER_MAX_STEPS ||
        header->n_added_raw > n_elems(header, WHIT_TOKENS_ADDED) || header->max_word_chars > WHIT_TOKENIZER_MAX_WORD)
        return whit_fail(error, WHIT_ERROR_FORMAT, "tokenizer: a table has an impossible size: the data is damaged");
    if (header->model < WHIT_TOKENIZER_BPE || header->model > WHIT_TOKENIZER_WORDPIECE)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "tokenizer: model kind %u is not known: the data is damaged, or made by a later whit",
                         header->model);
    return WHIT_OK;
}

whit_status whit_tokenizer_check(const void *image, size_t size_bytes, whit_tokenizer_view *view, whit_error *error)
{
    *view = (whit_tokenizer_view){0};
    const whit_tokenizer_header *header = image;
    if (size_bytes < sizeof *header || memcmp(header->magic, WHIT_TOKENIZER_MAGIC, 8) != 0)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "tokenizer: the data is not a tokenizer in whit's format: convert the model again");
    if ((uintptr_t)image % 8 != 0)
        return whit_fail(error, WHIT_ERROR_FORMAT, "tokenizer: the data must be aligned to 8 bytes in memory");
    if (header->version != WHIT_TOKENIZER_VERSION)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "tokenizer: the data has version %u, but this whit reads %u: convert the model again",
                         header->version, WHIT_TOKENIZER_VERSION);
    if (header->size_bytes > size_bytes)
        return whit_fail(error, WHIT_ERROR_FORMAT, "tokenizer: the data is truncated: get or make the model again");
    for (int i = 0; i < WHIT_TOKENS_N_SECTIONS; i++) {
        const whit_section *section = &header->sections[i];
        if (section->offset_bytes % 8 != 0 ||
            !whit_in_bounds(section->offset_bytes, section->size_bytes, header->size_bytes) ||
            section->size_bytes % section_shapes[i].elem_bytes != 0 || section->size_bytes > UINT32_MAX)
            return whit_fail(error, WHIT_ERROR_FORMAT, "tokenizer: section '%s' is outside the data, which is damaged",
                             section_shapes[i].name);
    }
    WHIT_TRY(check_counts(header, error));
    view->image = image;
    view->size_bytes = (size_t)header->size_bytes;
    view->header = header;
    return WHIT_OK;
}

const void *whit_tokenizer_section(const whit_tokenizer_view *view, enum whit_tokenizer_section section,
                                   size_t elem_bytes, size_t *n)
{
    const whit_section *at = &view->header->sections[section];
    *n = (size_t)at->size_bytes / elem_bytes;
    return view->image + at->offset_bytes;
}

const uint8_t *whit_tokenizer_string(const whit_tokenizer_view *view, uint32_t offset_bytes, uint32_t size_bytes)
{
    size_t n;
    const uint8_t *pool = whit_tokenizer_section(view, WHIT_TOKENS_STRINGS, 1, &n);
    return whit_in_bounds(offset_bytes, size_bytes, n) ? pool + offset_bytes : NULL;
}

uint8_t whit_tokenizer_token_flags(const whit_tokenizer_view *view, int32_t id)
{
    size_t n;
    const uint8_t *flags = whit_tokenizer_section(view, WHIT_TOKENS_FLAGS, 1, &n);
    return id >= 0 && (size_t)id < n ? flags[id] : 0;
}

const uint8_t *whit_tokenizer_token_text(const whit_tokenizer_view *view, int32_t id, size_t *n_bytes)
{
    size_t n_offsets, n_text;
    const uint32_t *offsets = whit_tokenizer_section(view, WHIT_TOKENS_OFFSETS, 4, &n_offsets);
    const uint8_t *text = whit_tokenizer_section(view, WHIT_TOKENS_TEXT, 1, &n_text);
    *n_bytes = 0;
    if (!(whit_tokenizer_token_flags(view, id) & WHIT_TOKEN_PRESENT)) return NULL;
    uint32_t start = offsets[id], end = offsets[id + 1];
    if (start > end || end > n_text) return NULL;
    *n_bytes = end - start;
    return text + start;
}

double whit_tokenizer_token_score(const whit_tokenizer_view *view, int32_t id)
{
    size_t n;
    const double *scores = whit_tokenizer_section(view, WHIT_TOKENS_SCORES, 8, &n);
    return id >= 0 && (size_t)id < n ? scores[id] : 0;
}

bool whit_tokenizer_is_end(const whit_tokenizer_view *view, int32_t id)
{
    size_t n;
    const int32_t *ends = whit_tokenizer_section(view, WHIT_TOKENS_ENDS, 4, &n);
    for (size_t i = 0; i < n; i++)
        if (ends[i] == id) return true;
    return false;
}

/* Loads n < 8 bytes as a little-endian number, without calling memcpy. */
static uint64_t load_tail(const uint8_t *text, size_t n)
{
    if (n >= 4) return whit_load_u32(text) | (uint64_t)whit_load_u32(text + n - 4) << (8 * (n - 4));
    if (n == 0) return 0;
    return text[0] | (uint64_t)text[n / 2] << (8 * (n / 2)) | (uint64_t)text[n - 1] << (8 * (n - 1));
}

uint32_t whit_tokenizer_hash(const uint8_t *text, size_t n_bytes)
{
    uint64_t hash = 0x243F6A8885A308D3u ^ n_bytes;
    for (; n_bytes >= 8; text += 8, n_bytes -= 8) {
        hash = (hash ^ whit_load_u64(text)) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    hash = (hash ^ load_tail(text, n_bytes)) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9u;
    return (uint32_t)(hash >> 32);
}

int32_t whit_tokenizer_lookup(const whit_tokenizer_view *view, const uint8_t *text, size_t n_bytes)
{
    return whit_tokenizer_lookup_hashed(view, text, n_bytes, whit_tokenizer_hash(text, n_bytes));
}

int32_t whit_tokenizer_lookup_hashed(const whit_tokenizer_view *view, const uint8_t *text, size_t n_bytes,
                                     uint32_t hash)
{
    size_t n_slots;
    const whit_token_slot *slots = whit_tokenizer_section(view, WHIT_TOKENS_HASH, sizeof *slots, &n_slots);
    if (n_slots == 0 || n_bytes > view->header->max_token_bytes) return -1;
    for (size_t probe = 0, at = hash; probe < WHIT_TOKENIZER_MAX_PROBES; probe++, at++) {
        const whit_token_slot *slot = &slots[at & (n_slots - 1)];
        if (slot->id_plus_1 == 0) return -1;
        if (slot->hash != hash) continue;
        size_t n;
        const uint8_t *token = whit_tokenizer_token_text(view, (int32_t)(slot->id_plus_1 - 1), &n);
        if (token && n == n_bytes && memcmp(token, text, n) == 0) return (int32_t)(slot->id_plus_1 - 1);
    }
    return -1;
}
