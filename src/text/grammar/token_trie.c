/* SPDX-License-Identifier: MIT
 * Builds the trie of a vocabulary. */
#include "grammar/token_trie.h"

#include <stdlib.h>

enum { LOWER, UPPER, DIGIT, CONTROL, CONTINUATION, TWO, THREE, FOUR, NEVER, SIGNS };
#define UTF8_KINDS (1u << CONTINUATION | 1u << TWO | 1u << THREE | 1u << FOUR)

/* Assigns a kind to every byte. Bytes that grammars rarely distinguish share a kind, so that a bit set of kinds fits
 * into one word. There are kinds for lower-case and upper-case letters, digits, control characters, and classes of
 * UTF-8 bytes; every other ASCII character, and tab and the line ends, have a kind of their own. */
static void number_kinds(uint8_t kind_of[256])
{
    uint8_t next = SIGNS;
    for (int byte = 0; byte < 256; byte++) {
        bool lower = byte >= 'a' && byte <= 'z', upper = byte >= 'A' && byte <= 'Z';
        if (lower || upper)
            kind_of[byte] = lower ? LOWER : UPPER;
        else if (byte >= '0' && byte <= '9')
            kind_of[byte] = DIGIT;
        else if (byte < 0x20 || byte == 0x7F)
            kind_of[byte] = byte == '\n' || byte == '\r' || byte == '\t' ? next++ : (uint8_t)CONTROL;
        else if (byte < 0x80)
            kind_of[byte] = next++;
        else if (byte < 0xC0)
            kind_of[byte] = CONTINUATION;
        else {
            if (byte < 0xC2 || byte > 0xF4)
                kind_of[byte] = NEVER;
            else if (byte < 0xE0)
                kind_of[byte] = TWO;
            else if (byte < 0xF0)
                kind_of[byte] = THREE;
            else
                kind_of[byte] = FOUR;
        }
    }
}

/* Positions within a UTF-8 character, which determine the next byte (Unicode 15, section 3.9, table 3-7). */
enum { WHOLE, ONE_MORE, TWO_MORE, THREE_MORE, AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4, BROKEN };

static uint8_t next_utf8(uint8_t state, uint8_t byte)
{
    bool more = byte >= 0x80 && byte <= 0xBF;
    switch (state) {
    case WHOLE:
        if (byte < 0x80) return WHOLE;
        if (byte < 0xC2 || byte > 0xF4) return BROKEN;
        if (byte < 0xE0) return ONE_MORE;
        if (byte < 0xF0) {
            if (byte == 0xE0) return AFTER_E0;
            if (byte == 0xED) return AFTER_ED;
            return TWO_MORE;
        }
        if (byte == 0xF0) return AFTER_F0;
        if (byte == 0xF4) return AFTER_F4;
        return THREE_MORE;
    case ONE_MORE: return more ? WHOLE : BROKEN;
    case TWO_MORE: return more ? ONE_MORE : BROKEN;
    case THREE_MORE: return more ? TWO_MORE : BROKEN;
    case AFTER_E0: return more && byte >= 0xA0 ? ONE_MORE : BROKEN;
    case AFTER_ED: return more && byte < 0xA0 ? ONE_MORE : BROKEN;
    case AFTER_F0: return more && byte >= 0x90 ? TWO_MORE : BROKEN;
    case AFTER_F4: return more && byte < 0x90 ? TWO_MORE : BROKEN;
    default: return BROKEN;
    }
}

typedef struct item {
    const uint8_t *text;
    uint32_t n_bytes, id;
} item;

static int by_bytes(const void *a, const void *b)
{
    const item *x = a, *y = b;
    uint32_t n = x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes;
    int order = n ? memcmp(x->text, y->text, n) : 0;
    if (order) return order;
    if (x->n_bytes != y->n_bytes) return x->n_bytes < y->n_bytes ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static uint32_t common_bytes(const item *a, const item *b)
{
    uint32_t n = 0;
    while (n < a->n_bytes && n < b->n_bytes && a->text[n] == b->text[n]) n++;
    return n;
}

/* Closes the nodes of the current path down to `depth`: sets the end of each node's subtree, and what is known about
 * everything below. */
static void close_path(whit_grammar_vocabulary *v, uint32_t *path, uint32_t *open, uint32_t depth)
{
    while (*open > depth) {
        whit_token_trie_node *node = &v->nodes[path[--*open]];
        node->skip = v->n_nodes;
        bool below = node->whole;
        node->whole = below && node->utf8 == WHOLE;
        node->string &= (node->kinds & ~v->string_kinds) == 0 && below;
        if (*open == 0) break;
        whit_token_trie_node *parent = &v->nodes[path[*open - 1]];
        parent->whole &= below && node->utf8 != BROKEN;
        parent->kinds |= node->kinds | UINT64_C(1) << v->kind_of[node->byte];
        if (parent->height < 255 && node->height >= parent->height)
            parent->height = node->height < 255 ? (uint8_t)(node->height + 1) : 255;
    }
}

static whit_status build_trie(whit_grammar_vocabulary *v, const item *items, whit_error *error)
{
    size_t n_nodes = 1;
    for (uint32_t i = 0; i < v->n_order; i++)
        n_nodes += items[i].n_bytes - (i ? common_bytes(&items[i - 1], &items[i]) : 0);
    v->nodes = whit_zalloc_array(v->allocator, n_nodes + 1, sizeof *v->nodes);
    v->order = whit_zalloc_array(v->allocator, v->n_order + 1, sizeof *v->order);
    uint32_t *path = whit_zalloc_array(v->allocator, v->longest_bytes + 1, sizeof *path), open = 1;
    if (!v->nodes || !v->order || !path) {
        whit_free(v->allocator, path, (v->longest_bytes + 1) * sizeof *path);
        return whit_fail_memory(error, "the index of the vocabulary", n_nodes * sizeof *v->nodes);
    }
    v->n_nodes = 1;
    v->nodes[0].string = v->nodes[0].whole = true;
    for (uint32_t i = 0; i < v->n_order; i++) {
        uint32_t common = i ? common_bytes(&items[i - 1], &items[i]) : 0;
        close_path(v, path, &open, common + 1);
        for (uint32_t k = common; k < items[i].n_bytes; k++) {
            uint8_t byte = items[i].text[k], utf8 = next_utf8(v->nodes[path[open - 1]].utf8, byte);
            v->nodes[v->n_nodes] = (whit_token_trie_node){.first_token = i,
                                                          .byte = byte,
                                                          .depth = (uint16_t)(k + 1),
                                                          .utf8 = utf8,
                                                          .whole = true,
                                                          .string = v->nodes[path[open - 1]].string && utf8 != BROKEN &&
                                                              (v->string_kinds >> v->kind_of[byte] & 1)};
            path[open++] = v->n_nodes++;
        }
        v->order[i] = items[i].id;
    }
    close_path(v, path, &open, 0);
    v->nodes[v->n_nodes] = (whit_token_trie_node){.first_token = v->n_order, .skip = v->n_nodes};
    whit_free(v->allocator, path, (v->longest_bytes + 1) * sizeof *path);
    return WHIT_OK;
}

static whit_status build_strings(whit_grammar_vocabulary *v, whit_error *error)
{
    size_t n_rows = (size_t)v->longest_bytes + 1;
    v->strings = whit_zalloc_array(v->allocator, n_rows, v->n_words * sizeof *v->strings);
    if (!v->strings) return whit_fail_memory(error, "the masks of a vocabulary", n_rows * v->n_words * 8);
    for (uint32_t i = 0; i < v->n_order; i++) {
        uint32_t id = v->order[i], n_characters = 0;
        uint8_t state = WHOLE;
        bool plain = true;
        for (uint32_t k = v->begin[id]; k < v->begin[id + 1] && plain; k++) {
            n_characters += state == WHOLE;
            state = next_utf8(state, v->bytes[k]);
            plain = state != BROKEN && (v->string_kinds >> v->kind_of[v->bytes[k]] & 1);
        }
        if (plain) v->strings[n_characters * v->n_words + id / 64] |= UINT64_C(1) << id % 64;
    }
    for (size_t row = 1; row < n_rows; row++)
        for (uint32_t i = 0; i < v->n_words; i++)
            v->strings[row * v->n_words + i] |= v->strings[(row - 1) * v->n_words + i];
    return WHIT_OK;
}

whit_status whit_token_trie_build(uint32_t n_tokens, whit_token_bytes_fn *bytes_of, void *user,
                                  const whit_allocator *allocator, whit_grammar_vocabulary **vocabulary,
                                  whit_error *error)
{
    *vocabulary = NULL;
    whit_grammar_vocabulary *v = whit_zalloc(allocator, sizeof *v);
    if (!v) return whit_fail_memory(error, "a vocabulary", sizeof *v);
    v->allocator = allocator;
    v->n_tokens = n_tokens;
    v->n_words = (n_tokens + 63) / 64;
    v->begin = whit_zalloc_array(allocator, (size_t)n_tokens + 1, sizeof *v->begin);
    v->ends = whit_zalloc_array(allocator, v->n_words + 1, sizeof *v->ends);
    item *items = whit_zalloc_array(allocator, (size_t)n_tokens + 1, sizeof *items);
    whit_buf bytes = {.allocator = allocator, .limit_bytes = UINT32_MAX};
    whit_status status = WHIT_OK;
    if (!v->begin || !v->ends || !items) status = whit_fail_memory(error, "a vocabulary", n_tokens * sizeof *items);
    number_kinds(v->kind_of);
    v->utf8_kinds = UTF8_KINDS;
    v->string_kinds = UTF8_KINDS;
    for (int byte = 0x20; byte < 0x7F; byte++)
        if (byte != '"' && byte != '\\') v->string_kinds |= UINT64_C(1) << v->kind_of[byte];
    for (uint32_t id = 0; id < n_tokens && status == WHIT_OK; id++) {
        bool is_end = false;
        v->begin[id] = (uint32_t)bytes.size_bytes;
        status = bytes_of(user, id, &bytes, &is_end, error);
        if (status == WHIT_OK && bytes.failed) status = whit_fail_memory(error, "a vocabulary", bytes.size_bytes);
        if (is_end || bytes.size_bytes - v->begin[id] > UINT16_MAX - 1) bytes.size_bytes = v->begin[id];
        if (is_end) v->ends[id / 64] |= UINT64_C(1) << id % 64;
        v->begin[id + 1] = (uint32_t)bytes.size_bytes;
    }
    if (status == WHIT_OK && !(v->bytes = whit_alloc(allocator, bytes.size_bytes + 1)))
        status = whit_fail_memory(error, "a vocabulary", bytes.size_bytes);
    if (status == WHIT_OK && bytes.size_bytes) memcpy(v->bytes, bytes.data, bytes.size_bytes);
    for (uint32_t id = 0; id < n_tokens && status == WHIT_OK; id++) {
        uint32_t n = v->begin[id + 1] - v->begin[id];
        if (n == 0) continue;
        items[v->n_order++] = (item){v->bytes + v->begin[id], n, id};
        if (n > v->longest_bytes) v->longest_bytes = n;
    }
    if (status == WHIT_OK) {
        qsort(items, v->n_order, sizeof *items, by_bytes);
        status = build_trie(v, items, error);
    }
    if (status == WHIT_OK) status = build_strings(v, error);
    whit_buf_free(&bytes);
    whit_free(allocator, items, ((size_t)n_tokens + 1) * sizeof *items);
    if (status != WHIT_OK) {
        whit_token_trie_free(v);
        return status;
    }
    *vocabulary = v;
    return WHIT_OK;
}

void whit_token_trie_free(whit_grammar_vocabulary *v)
{
    if (!v) return;
    const whit_allocator *a = v->allocator;
    size_t n_bytes = v->begin ? v->begin[v->n_tokens] : 0;
    whit_free(a, v->nodes, ((size_t)v->n_nodes + 1) * sizeof *v->nodes);
    whit_free(a, v->strings, ((size_t)v->longest_bytes + 1) * (v->n_words * sizeof *v->strings));
    whit_free(a, v->order, ((size_t)v->n_order + 1) * sizeof *v->order);
    whit_free(a, v->bytes, n_bytes + 1);
    whit_free(a, v->begin, ((size_t)v->n_tokens + 1) * sizeof *v->begin);
    whit_free(a, v->ends, ((size_t)v->n_words + 1) * sizeof *v->ends);
    whit_free(a, v, sizeof *v);
}
