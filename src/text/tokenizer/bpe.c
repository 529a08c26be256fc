/* SPDX-License-Identifier: MIT
 * Implements byte pair encoding, by ranked merges (Sennrich et al., 2016; as in `tokenizers`) or by the scores of whole
 * tokens (SentencePiece). Both merge the pair of lowest rank first, and of equal ones the leftmost. Short pieces search
 * an array for it, long ones use a heap. */
#include "tokenizer/models.h"

#include "base/items.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

#define NO_RANK UINT32_MAX
/* Up to this many symbols, searching the array is faster than the heap (measured on English text). */
#define FEW_SYMBOLS 40

/* Bytes [start, end) of the piece, which have been merged into one token. */
typedef struct symbol {
    int32_t id; /* -1: no token has this text; it is spelt in byte tokens later (SPM) */
    uint32_t start, end;
    int32_t previous, next; /* indices of the neighbours; only used with the heap */
    uint32_t rank;          /* rank of the merge with the next symbol; NO_RANK: the two cannot be merged */
    int32_t merged;         /* id of the token that this merge results in */
} symbol;

typedef struct candidate { /* entry of the heap */
    uint32_t rank;
    int32_t at;
    uint32_t end; /* end of the pair when the entry was added; if the symbol's neighbour has changed since, the entry is
                   * outdated */
    int32_t merged;
} candidate;

typedef struct merger {
    const whit_tokenizer_view *view;
    const uint8_t *piece;
    const whit_merge_slot *merges;
    size_t n_merges;
    uint64_t *steps_left; /* remaining steps for merging by text; 0: exhausted, which only vocabularies made to be slow
                           * cause */
    bool by_text;
    bool no_special; /* merges that result in a special token do not count */
} merger;

/* Converts a score to a rank, so that the highest score has the lowest rank. */
static uint32_t rank_of_score(double score)
{
    float narrow = (float)score;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    bits = ~bits;
    return bits == NO_RANK ? NO_RANK - 1 : bits;
}

static bool may_give(const merger *m, int32_t id)
{
    return !m->no_special || !(whit_tokenizer_token_flags(m->view, id) & WHIT_TOKEN_SPECIAL);
}

static uint32_t rank_pair(const merger *m, const symbol *left, const symbol *right, int32_t *merged)
{
    if (m->by_text) {
        const uint64_t steps = (right->end - left->start) / 8 + 1; /* number of 8-byte words to be hashed */
        if (*m->steps_left <= steps) {
            *m->steps_left = 0; /* this ends all other merges too */
            return NO_RANK;
        }
        *m->steps_left -= steps;
        *merged = whit_tokenizer_lookup(m->view, m->piece + left->start, right->end - left->start);
        if (*merged < 0 || !may_give(m, *merged)) return NO_RANK;
        return rank_of_score(whit_tokenizer_token_score(m->view, *merged));
    }
    if (m->n_merges == 0 || left->id < 0 || right->id < 0) return NO_RANK;
    uint32_t a = (uint32_t)left->id, b = (uint32_t)right->id;
    for (size_t probe = 0, at = whit_tokenizer_hash_pair(a, b); probe < WHIT_TOKENIZER_MAX_PROBES; probe++, at++) {
        const whit_merge_slot *slot = &m->merges[at & (m->n_merges - 1)];
        if (slot->rank_plus_1 == 0) return NO_RANK;
        if (slot->left == a && slot->right == b) {
            *merged = (int32_t)(slot->id & INT32_MAX);
            return may_give(m, *merged) ? slot->rank_plus_1 - 1 : NO_RANK;
        }
    }
    return NO_RANK;
}

static size_t merge_few(const merger *m, symbol *symbols, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) symbols[i].rank = rank_pair(m, &symbols[i], &symbols[i + 1], &symbols[i].merged);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (symbols[i].rank < symbols[best].rank) best = i;
        symbol *left = &symbols[best];
        if (left->rank == NO_RANK) break;
        left->id = left->merged;
        left->end = left[1].end;
        n--;
        memmove(left + 1, left + 2, (n - best - 1) * sizeof *left);
        if (best + 1 < n) left->rank = rank_pair(m, left, left + 1, &left->merged);
        if (best > 0) left[-1].rank = rank_pair(m, left - 1, left, &left[-1].merged);
    }
    return n;
}

static bool before(const candidate *a, const candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static bool heap_push(whit_buf *heap, candidate entry)
{
    if (!whit_buf_append(heap, &entry, sizeof entry)) return false;
    candidate *entries = WHIT_ITEMS(candidate, heap);
    size_t at = heap->size_bytes / sizeof entry - 1;
    for (; at > 0 && before(&entry, &entries[(at - 1) / 2]); at = (at - 1) / 2) entries[at] = entries[(at - 1) / 2];
    entries[at] = entry;
    return true;
}

static candidate heap_pop(whit_buf *heap)
{
    candidate *entries = WHIT_ITEMS(candidate, heap);
    candidate top = entries[0];
    heap->size_bytes -= sizeof top;
    size_t n = heap->size_bytes / sizeof top, at = 0;
    candidate last = entries[n];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(&entries[child + 1], &entries[child])) child++;
        if (!before(&entries[child], &last)) break;
        entries[at] = entries[child];
    }
    entries[at] = last;
    return top;
}

static bool push_pair(const merger *m, whit_buf *heap, const symbol *symbols, int32_t left)
{
    if (left < 0 || symbols[left].next < 0) return true;
    const symbol *right = &symbols[symbols[left].next];
    candidate entry = {.at = left, .end = right->end};
    entry.rank = rank_pair(m, &symbols[left], right, &entry.merged);
    return entry.rank == NO_RANK || heap_push(heap, entry);
}

static whit_status merge_many(const merger *m, whit_buf *heap, symbol *symbols, size_t *n, whit_error *error)
{
    bool ok = true;
    heap->size_bytes = 0;
    for (size_t i = 0; i < *n; i++) {
        symbols[i].previous = (int32_t)i - 1;
        symbols[i].next = i + 1 < *n ? (int32_t)i + 1 : -1;
    }
    for (size_t i = 0; i < *n && ok; i++) ok = push_pair(m, heap, symbols, (int32_t)i);
    while (ok && heap->size_bytes) {
        candidate top = heap_pop(heap);
        symbol *left = &symbols[top.at];
        if (left->end == left->start || left->next < 0) continue;
        symbol *right = &symbols[left->next];
        if (right->end != top.end) continue;
        left->id = top.merged;
        left->end = right->end;
        left->next = right->next;
        right->end = right->start; /* marks the symbol as merged */
        if (left->next >= 0) symbols[left->next].previous = top.at;
        ok = push_pair(m, heap, symbols, left->previous) && push_pair(m, heap, symbols, top.at);
    }
    if (!ok) return whit_fail_memory(error, "the tokenizer's merges", heap->capacity_bytes);
    size_t kept = 0;
    for (int32_t at = 0; at >= 0;) {
        int32_t next = symbols[at].next;
        symbols[kept++] = symbols[at];
        at = next;
    }
    *n = kept;
    return WHIT_OK;
}

static whit_status push_symbol(whit_buf *symbols, int32_t id, size_t start, size_t end, whit_error *error)
{
    symbol one = {.id = id, .start = (uint32_t)start, .end = (uint32_t)end};
    if (!whit_buf_append(symbols, &one, sizeof one))
        return whit_fail_memory(error, "symbols", symbols->size_bytes + sizeof one);
    return WHIT_OK;
}

/* Returns the id of the character at `text`. The model's subword prefix, if it has one, is added to a character that is
 * not `first` in the piece, and its word suffix to a character that is `last`. */
static int32_t find_character(const whit_tokenizer_view *view, const int32_t *symbol_ids, const uint8_t *text,
                              size_t n_bytes, uint32_t code, bool first, bool last)
{
    const whit_tokenizer_header *header = view->header;
    bool prefixed = !first && header->prefix_bytes, suffixed = last && header->suffix_bytes;
    if (!prefixed && !suffixed) {
        if (header->flags & WHIT_TOKENIZER_BYTE_LEVEL) {
            int byte = whit_byte_of_symbol(code);
            if (byte >= 0) return symbol_ids[byte];
        } else if (code < 0x80) {
            return symbol_ids[code];
        }
        return whit_tokenizer_lookup(view, text, n_bytes);
    }
    uint8_t spelling[256];
    size_t n = 0, n_prefix = prefixed ? header->prefix_bytes : 0;
    size_t n_suffix = suffixed ? header->suffix_bytes : 0;
    const uint8_t *prefix = whit_tokenizer_string(view, header->prefix_offset, header->prefix_bytes);
    const uint8_t *suffix = whit_tokenizer_string(view, header->suffix_offset, header->suffix_bytes);
    if (!prefix || !suffix || n_prefix > 120 || n_suffix > 120) return -1;
    memcpy(spelling, prefix, n_prefix);
    n += n_prefix;
    memcpy(spelling + n, text, n_bytes);
    n += n_bytes;
    memcpy(spelling + n, suffix, n_suffix);
    return whit_tokenizer_lookup(view, spelling, n + n_suffix);
}

/* Converts the characters of a piece to the symbols with which ranked merging begins. An unknown character becomes its
 * byte tokens or, if the model has no such tokens or no byte fallback, the unknown token; without that it is dropped.
 * As in `tokenizers`, the unknown token is added only when the next known character is reached, so that adjacent ones
 * can be fused. */
static whit_status start_ranked(const whit_tokenizer_view *view, const int32_t *symbol_ids, const uint8_t *piece,
                                size_t n_bytes, whit_buf *symbols, whit_error *error)
{
    const whit_tokenizer_header *header = view->header;
    bool fuse = header->flags & WHIT_TOKENIZER_FUSE_UNK, pending = false;
    size_t pending_start = 0, pending_end = 0, n_fallback;
    const int32_t *fallback = whit_tokenizer_section(view, WHIT_TOKENS_FALLBACK, 4, &n_fallback);
    for (size_t i = 0, length; i < n_bytes; i += length) {
        uint32_t code = whit_utf8_decode(piece + i, n_bytes - i, &length);
        int32_t id = find_character(view, symbol_ids, piece + i, length, code, i == 0, i + length >= n_bytes);
        if (id >= 0) {
            if (pending) WHIT_TRY(push_symbol(symbols, header->unk, pending_start, pending_end, error));
            pending = false;
            WHIT_TRY(push_symbol(symbols, id, i, i + length, error));
            continue;
        }
        bool bytes = header->flags & WHIT_TOKENIZER_BYTE_FALLBACK;
        for (size_t k = 0; k < length && bytes; k++) bytes = fallback[piece[i + k]] >= 0;
        if (bytes) {
            for (size_t k = 0; k < length; k++)
                WHIT_TRY(push_symbol(symbols, fallback[piece[i + k]], i + k, i + k + 1, error));
        } else if (header->unk >= 0) {
            if (pending && !fuse) WHIT_TRY(push_symbol(symbols, header->unk, pending_start, pending_end, error));
            if (!pending || !fuse) pending_start = i;
            pending = true;
            pending_end = i + length;
        }
    }
    if (pending) WHIT_TRY(push_symbol(symbols, header->unk, pending_start, pending_end, error));
    return WHIT_OK;
}

static whit_status start_by_text(const whit_tokenizer_view *view, const int32_t *symbol_ids, const uint8_t *piece,
                                 size_t n_bytes, whit_buf *symbols, whit_error *error)
{
    for (size_t i = 0, length; i < n_bytes; i += length) {
        uint32_t code = whit_utf8_decode(piece + i, n_bytes - i, &length);
        int32_t id = code < 0x80 ? symbol_ids[code] : whit_tokenizer_lookup(view, piece + i, length);
        WHIT_TRY(push_symbol(symbols, id, i, i + length, error));
    }
    return WHIT_OK;
}

/* Appends the ids of the merged symbols. A symbol without an id becomes byte tokens; without these, a run of such
 * symbols becomes one unknown token or, if there is no unknown token, is dropped. */
static whit_status push_ids(const whit_tokenizer_view *view, const uint8_t *piece, const symbol *symbols, size_t n,
                            whit_buf *ids, whit_error *error)
{
    bool after_unknown = false;
    for (size_t i = 0; i < n; i++) {
        bool done = symbols[i].id >= 0;
        if (done) {
            WHIT_TRY(whit_push_id(ids, symbols[i].id, error));
        } else {
            WHIT_TRY(whit_tokenizer_push_bytes(view, piece + symbols[i].start, symbols[i].end - symbols[i].start, &done,
                                               ids, error));
            if (!done && view->header->unk >= 0 && !after_unknown)
                WHIT_TRY(whit_push_id(ids, view->header->unk, error));
        }
        after_unknown = !done;
    }
    return WHIT_OK;
}

whit_status whit_tokenizer_merge_piece(const whit_tokenizer_view *view, whit_model_scratch *scratch,
                                       const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error)
{
    size_t n_symbol_ids;
    const int32_t *symbol_ids = whit_tokenizer_section(view, WHIT_TOKENS_SYMBOLS, 4, &n_symbol_ids);
    merger m = {.view = view,
                .piece = piece,
                .by_text = view->header->model == WHIT_TOKENIZER_SPM,
                .no_special = scratch->no_special};
    m.merges = whit_tokenizer_section(view, WHIT_TOKENS_MERGES, sizeof *m.merges, &m.n_merges);
    m.steps_left = &scratch->steps_left;
    scratch->symbols.size_bytes = 0;
    WHIT_TRY((m.by_text ? start_by_text : start_ranked)(view, symbol_ids, piece, n_bytes, &scratch->symbols, error));
    symbol *symbols = WHIT_ITEMS(symbol, &scratch->symbols);
    size_t n = scratch->symbols.size_bytes / sizeof *symbols;
    if (n <= FEW_SYMBOLS)
        n = merge_few(&m, symbols, n);
    else
        WHIT_TRY(merge_many(&m, &scratch->heap, symbols, &n, error));
    if (m.by_text && scratch->steps_left == 0)
        return whit_fail(
            error, WHIT_ERROR_LIMIT,
            "tokenizer: splitting this text into the vocabulary's tokens takes too many steps: shorten the text");
    return push_ids(view, piece, symbols, n, ids, error);
}
