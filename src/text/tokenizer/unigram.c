/* SPDX-License-Identifier: MIT
 * Implements Unigram segmentation (Kudo, 2018): a Viterbi pass over all entries that begin at each character, which are
 * found in the trie. Equal scores and runs of unknown characters are treated as in `tokenizers`. WordPiece is
 * implemented here too, because it uses the trie in the same way. */
#include "tokenizer/models.h"

#include "base/items.h"
#include "base/utf8.h"

typedef struct lattice_node { /* the best segmentation of the bytes before this position */
    double score;
    int32_t id;
    uint32_t start;
    uint32_t segment_end; /* end of the segment of the best path that begins at this position */
    bool reached;
} lattice_node;

static const whit_trie_node *trie_child(const whit_trie_node *trie, size_t n_nodes, const whit_trie_node *node,
                                        uint8_t byte)
{
    size_t low = node->first_child, high = low + node->n_children;
    if (high > n_nodes) return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trie[middle].byte == byte) return &trie[middle];
        if (trie[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void offer(lattice_node *target, double score, int32_t id, size_t start)
{
    if (target->reached && !(score > target->score)) return;
    *target = (lattice_node){.score = score, .id = id, .start = (uint32_t)start, .reached = true};
}

static whit_status fill_lattice(const whit_tokenizer_view *view, whit_model_scratch *scratch, const uint8_t *piece,
                                size_t n_bytes, lattice_node *best, whit_error *error)
{
    size_t n_nodes;
    const whit_trie_node *trie = whit_tokenizer_section(view, WHIT_TOKENS_TRIE, sizeof *trie, &n_nodes);
    for (size_t start = 0, length; start < n_bytes; start += length) {
        whit_utf8_decode(piece + start, n_bytes - start, &length);
        double here = best[start].score;
        bool single = false;
        const whit_trie_node *node = n_nodes ? trie : NULL;
        for (size_t at = start; node && at < n_bytes;) {
            node = trie_child(trie, n_nodes, node, piece[at++]);
            if (scratch->steps_left-- == 0)
                return whit_fail(error, WHIT_ERROR_LIMIT,
                                 "tokenizer: splitting this text into the vocabulary's tokens takes too many steps: "
                                 "shorten the text");
            if (!node || node->id_plus_1 == 0) continue;
            int32_t id = (int32_t)((node->id_plus_1 - 1) & INT32_MAX);
            if (!whit_may_pick(view, scratch, id)) continue;
            offer(&best[at], here + whit_tokenizer_token_score(view, id), id, start);
            single |= at - start == length;
        }
        if (!single) offer(&best[start + length], here + view->header->unk_score, -1, start);
    }
    return WHIT_OK;
}

/* Appends the ids of one segment of the best path. A run of unknown characters is one segment. */
static whit_status push_segment(const whit_tokenizer_view *view, const whit_model_scratch *scratch, const uint8_t *text,
                                size_t n_bytes, whit_buf *ids, whit_error *error)
{
    int32_t id = whit_tokenizer_lookup(view, text, n_bytes);
    bool done = id >= 0 && whit_may_pick(view, scratch, id);
    if (done) return whit_push_id(ids, id, error);
    WHIT_TRY(whit_tokenizer_push_bytes(view, text, n_bytes, &done, ids, error));
    if (done) return WHIT_OK;
    if (view->header->unk < 0)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "tokenizer: the vocabulary has neither a character of the text nor a token for unknown ones");
    return whit_push_id(ids, view->header->unk, error);
}

whit_status whit_tokenizer_unigram(const whit_tokenizer_view *view, whit_model_scratch *scratch, const uint8_t *piece,
                                   size_t n_bytes, whit_buf *ids, whit_error *error)
{
    scratch->nodes.size_bytes = 0;
    if (!whit_buf_append_zeros(&scratch->nodes, (n_bytes + 1) * sizeof(lattice_node)))
        return whit_fail_memory(error, "segmentation", (n_bytes + 1) * sizeof(lattice_node));
    lattice_node *best = WHIT_ITEMS(lattice_node, &scratch->nodes);
    WHIT_TRY(fill_lattice(view, scratch, piece, n_bytes, best, error));
    /* The path is known from its end backwards. Adjacent unknown segments are fused. */
    uint32_t end = (uint32_t)n_bytes;
    bool unknown_after = false;
    for (uint32_t at = end; at > 0;) {
        uint32_t start = best[at].start;
        bool unknown = best[at].id < 0 || best[at].id == view->header->unk;
        if (!(unknown && unknown_after)) end = at;
        best[start].segment_end = end;
        at = start;
        unknown_after = unknown;
    }
    for (uint32_t at = 0; at < n_bytes;) {
        uint32_t next = best[at].segment_end;
        WHIT_TRY(push_segment(view, scratch, piece + at, next - at, ids, error));
        at = next;
    }
    return WHIT_OK;
}

/* Finds the longest entry that `text` begins with, starting in the trie at `node`. Returns its length in bytes; 0 if
 * not found. */
static size_t longest_entry(const whit_tokenizer_view *view, const whit_model_scratch *scratch,
                            const whit_trie_node *trie, size_t n_nodes, const whit_trie_node *node, const uint8_t *text,
                            size_t n_bytes, int32_t *id)
{
    size_t longest = 0;
    for (size_t i = 0; i < n_bytes && node;) {
        node = trie_child(trie, n_nodes, node, text[i++]);
        if (!node || node->id_plus_1 == 0) continue;
        int32_t found = (int32_t)((node->id_plus_1 - 1) & INT32_MAX);
        if (!whit_may_pick(view, scratch, found)) continue;
        longest = i;
        *id = found;
    }
    return longest;
}

whit_status whit_tokenizer_wordpiece(const whit_tokenizer_view *view, const whit_model_scratch *scratch,
                                     const uint8_t *piece, size_t n_bytes, whit_buf *ids, whit_error *error)
{
    const whit_tokenizer_header *header = view->header;
    size_t n_nodes, first = ids->size_bytes, n_chars = 0;
    const whit_trie_node *trie = whit_tokenizer_section(view, WHIT_TOKENS_TRIE, sizeof *trie, &n_nodes);
    const uint8_t *prefix = whit_tokenizer_string(view, header->prefix_offset, header->prefix_bytes);
    const whit_trie_node *root = n_nodes ? trie : NULL;
    const whit_trie_node *inner = prefix ? root : NULL;
    for (uint32_t i = 0; i < header->prefix_bytes && inner; i++) inner = trie_child(trie, n_nodes, inner, prefix[i]);
    for (size_t i = 0; i < n_bytes; i++) n_chars += (piece[i] & 0xC0) != 0x80;
    bool known = n_chars <= header->max_word_chars;
    for (size_t at = 0; at < n_bytes && known;) {
        int32_t id = -1;
        size_t length = longest_entry(view, scratch, trie, n_nodes, at ? inner : root, piece + at, n_bytes - at, &id);
        known = length > 0;
        if (known) WHIT_TRY(whit_push_id(ids, id, error));
        at += length;
    }
    if (known) return WHIT_OK;
    ids->size_bytes = first; /* one unknown part makes the whole word unknown */
    if (header->unk < 0)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "tokenizer: the vocabulary has neither a word of the text nor a token for unknown ones");
    return whit_push_id(ids, header->unk, error);
}
