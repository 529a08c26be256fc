/* SPDX-License-Identifier: MIT */
#include "tokenizer/builder.h"
#include "base/items.h"

#include <stdio.h>
#include <stdlib.h>

#include "tokenizer/models.h"
#include "tokenizer/unicode.h"

#define SMALL_FILE_TOKENS (1u << 20) /* number of ids that even a small file may use */

typedef struct builder_token {
    const char *text;
    uint32_t n_bytes;
    uint8_t flags;
    double score;
} builder_token;

typedef struct builder_merge {
    uint32_t left, right, id;
} builder_merge;

typedef struct builder_added {
    whit_added_token token;
    uint32_t order; /* order of reading; of two equal texts the later one counts */
    bool normalized;
} builder_added;

void whit_tokenizer_builder_init(whit_tokenizer_builder *builder, const char *name, uint64_t source_bytes,
                                 const whit_allocator *allocator)
{
    *builder = (whit_tokenizer_builder){.allocator = allocator, .name = name};
    builder->max_tokens = SMALL_FILE_TOKENS;
    if (source_bytes > builder->max_tokens)
        builder->max_tokens = source_bytes < INT32_MAX ? (uint32_t)source_bytes : INT32_MAX;
    whit_buf *buffers[] = {&builder->tokens,    &builder->slots, &builder->merges, &builder->added,
                           &builder->normalize, &builder->split, &builder->decode, &builder->before,
                           &builder->after,     &builder->ends,  &builder->strings};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) buffers[i]->allocator = allocator;
    whit_tokenizer_header *header = &builder->header;
    memcpy(header->magic, WHIT_TOKENIZER_MAGIC, sizeof header->magic);
    header->version = WHIT_TOKENIZER_VERSION;
    header->bos = header->eos = header->unk = header->pad = -1;
}

void whit_tokenizer_builder_close(whit_tokenizer_builder *builder)
{
    if (!builder) return;
    whit_buf_free(&builder->tokens);
    whit_buf_free(&builder->slots);
    whit_buf_free(&builder->merges);
    whit_buf_free(&builder->added);
    whit_buf_free(&builder->normalize);
    whit_buf_free(&builder->split);
    whit_buf_free(&builder->decode);
    whit_buf_free(&builder->before);
    whit_buf_free(&builder->after);
    whit_buf_free(&builder->ends);
    whit_buf_free(&builder->strings);
}

static builder_token *tokens_of(const whit_tokenizer_builder *builder)
{
    return WHIT_ITEMS(builder_token, &builder->tokens);
}

static size_t n_tokens_of(const whit_tokenizer_builder *builder)
{
    return builder->tokens.size_bytes / sizeof(builder_token);
}

static whit_status append_bytes(whit_buf *buf, const void *data, size_t size_bytes, whit_error *error)
{
    if (!whit_buf_append(buf, data, size_bytes))
        return whit_fail_memory(error, "the tokenizer", buf->size_bytes + size_bytes);
    return WHIT_OK;
}

whit_status whit_tokenizer_builder_token(whit_tokenizer_builder *builder, int64_t id, const char *text, size_t n_bytes,
                                         double score, uint8_t flags, whit_error *error)
{
    if (id < 0 || id >= builder->max_tokens)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: token id %lld is not in the range from 0 to %lld",
                         builder->name, (long long)id, (long long)builder->max_tokens - 1);
    if (n_bytes > UINT32_MAX / 2)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: token %lld is longer than 2 GiB, the limit", builder->name,
                         (long long)id);
    size_t n = n_tokens_of(builder);
    if ((size_t)id >= n && !whit_buf_append_zeros(&builder->tokens, ((size_t)id + 1 - n) * sizeof(builder_token)))
        return whit_fail_memory(error, "the tokenizer's tokens", ((size_t)id + 1) * sizeof(builder_token));
    builder_token *token = &tokens_of(builder)[id];
    if (token->flags & WHIT_TOKEN_PRESENT &&
        (token->n_bytes != n_bytes || (n_bytes && memcmp(token->text, text, n_bytes) != 0)))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: two tokens have the id %lld: the file is damaged",
                         builder->name, (long long)id);
    flags |= token->flags & WHIT_TOKEN_IN_VOCAB;
    if (token->flags & WHIT_TOKEN_PRESENT) score = token->score;
    *token = (builder_token){
        .text = text, .n_bytes = (uint32_t)n_bytes, .score = score, .flags = (uint8_t)(flags | WHIT_TOKEN_PRESENT)};
    return WHIT_OK;
}

static size_t table_slots(size_t n_entries)
{
    size_t slots = 16;
    while (slots < n_entries + n_entries / 2) slots *= 2;
    return slots;
}

/* Returns the slot of a text, or the empty slot where it can be added; NULL if WHIT_TOKENIZER_MAX_PROBES slots are
 * occupied. */
static whit_token_slot *find_slot(const whit_tokenizer_builder *builder, const char *text, size_t n_bytes,
                                  uint32_t hash)
{
    whit_token_slot *slots = WHIT_ITEMS(whit_token_slot, &builder->slots);
    size_t mask = builder->slots.size_bytes / sizeof *slots - 1;
    for (size_t probe = 0, at = hash; probe < WHIT_TOKENIZER_MAX_PROBES; probe++, at++) {
        whit_token_slot *slot = &slots[at & mask];
        if (slot->id_plus_1 == 0) return slot;
        const builder_token *token = &tokens_of(builder)[slot->id_plus_1 - 1];
        if (slot->hash == hash && token->n_bytes == n_bytes &&
            (n_bytes == 0 || memcmp(token->text, text, n_bytes) == 0))
            return slot;
    }
    return NULL;
}

whit_status whit_tokenizer_builder_index(whit_tokenizer_builder *builder, whit_error *error)
{
    size_t n = n_tokens_of(builder), n_slots = table_slots(n);
    if (!whit_buf_append_zeros(&builder->slots, n_slots * sizeof(whit_token_slot)))
        return whit_fail_memory(error, "the tokenizer's index", n_slots * sizeof(whit_token_slot));
    for (size_t id = 0; id < n; id++) {
        const builder_token *token = &tokens_of(builder)[id];
        if (!(token->flags & WHIT_TOKEN_IN_VOCAB)) continue;
        uint32_t hash = whit_tokenizer_hash((const uint8_t *)token->text, token->n_bytes);
        whit_token_slot *slot = find_slot(builder, token->text, token->n_bytes, hash);
        if (!slot)
            return whit_fail(
                error, WHIT_ERROR_LIMIT,
                "%s: more tokens share one hash than the index can hold: the vocabulary is hostile or damaged",
                builder->name);
        *slot = (whit_token_slot){.hash = hash, .id_plus_1 = (uint32_t)id + 1};
        if (token->n_bytes > builder->header.max_token_bytes) builder->header.max_token_bytes = token->n_bytes;
    }
    return WHIT_OK;
}

int32_t whit_tokenizer_builder_find(const whit_tokenizer_builder *builder, const char *text, size_t n_bytes)
{
    if (builder->slots.size_bytes == 0) return -1;
    whit_token_slot *slot = find_slot(builder, text, n_bytes, whit_tokenizer_hash((const uint8_t *)text, n_bytes));
    return slot ? (int32_t)slot->id_plus_1 - 1 : -1;
}

int32_t whit_tokenizer_builder_find_any(const whit_tokenizer_builder *builder, const char *text, size_t n_bytes)
{
    int32_t id = whit_tokenizer_builder_find(builder, text, n_bytes);
    const builder_token *tokens = tokens_of(builder);
    for (size_t i = 0; id < 0 && i < n_tokens_of(builder); i++)
        if (tokens[i].flags & WHIT_TOKEN_PRESENT && !(tokens[i].flags & WHIT_TOKEN_IN_VOCAB) &&
            tokens[i].n_bytes == n_bytes && memcmp(tokens[i].text, text, n_bytes) == 0)
            id = (int32_t)i;
    return id;
}

whit_status whit_tokenizer_builder_merge(whit_tokenizer_builder *builder, const char *left, size_t left_bytes,
                                         const char *right, size_t right_bytes, bool strict, whit_error *error)
{
    int32_t a = whit_tokenizer_builder_find(builder, left, left_bytes);
    int32_t b = whit_tokenizer_builder_find(builder, right, right_bytes);
    int32_t id = -1;
    /* The subword prefix of the right side is not part of the joined text. */
    size_t prefix_bytes = builder->header.prefix_bytes;
    if (a >= 0 && b >= 0 && prefix_bytes <= right_bytes) {
        char joined[1024];
        size_t n_bytes = left_bytes + right_bytes - prefix_bytes;
        char *text = n_bytes <= sizeof joined ? joined : whit_alloc(builder->allocator, n_bytes);
        if (!text) return whit_fail_memory(error, "merge", n_bytes);
        if (left_bytes) memcpy(text, left, left_bytes);
        if (right_bytes > prefix_bytes) memcpy(text + left_bytes, right + prefix_bytes, right_bytes - prefix_bytes);
        id = whit_tokenizer_builder_find(builder, text, n_bytes);
        if (text != joined) whit_free(builder->allocator, text, n_bytes);
    }
    size_t rank = builder->merges.size_bytes / sizeof(builder_merge);
    if (id < 0 && strict) {
        size_t left_shown = left_bytes < 64 ? left_bytes : 64;
        size_t right_shown = right_bytes < 64 ? right_bytes : 64;
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: merge %zu: '%.*s' and '%.*s' %s", builder->name, rank,
                         (int)left_shown, left, (int)right_shown, right,
                         a < 0 || b < 0 ? "are not both in the vocabulary"
                                        : "form a token that is not in the vocabulary");
    }
    if (rank >= UINT32_MAX / 2)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the tokenizer has more than 2^31 merges, the limit",
                         builder->name);
    /* An omitted merge keeps its rank as an entry that never matches. */
    builder_merge merge = {id < 0 ? UINT32_MAX : (uint32_t)a, (uint32_t)b, (uint32_t)id};
    return append_bytes(&builder->merges, &merge, sizeof merge, error);
}

static whit_status add_string(whit_tokenizer_builder *builder, const char *text, size_t n_bytes, uint32_t *offset_bytes,
                              uint32_t *size_bytes, whit_error *error)
{
    if (builder->strings.size_bytes + n_bytes > UINT32_MAX / 2)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the tokenizer's texts are larger than 2 GiB together, the limit",
                         builder->name);
    *offset_bytes = n_bytes ? (uint32_t)builder->strings.size_bytes : 0;
    *size_bytes = (uint32_t)n_bytes;
    return append_bytes(&builder->strings, text, n_bytes, error);
}

whit_status whit_tokenizer_builder_added(whit_tokenizer_builder *builder, int32_t id, const char *match,
                                         size_t match_bytes, bool normalized, uint32_t flags, whit_error *error)
{
    if (match_bytes == 0) return WHIT_OK; /* an empty text would occur everywhere */
    builder_added added = {.token = {.id = (uint32_t)id, .flags = flags}, .normalized = normalized};
    added.order = (uint32_t)(builder->added.size_bytes / sizeof added);
    WHIT_TRY(add_string(builder, match, match_bytes, &added.token.text_offset, &added.token.text_bytes, error));
    return append_bytes(&builder->added, &added, sizeof added, error);
}

whit_status whit_tokenizer_builder_step(whit_tokenizer_builder *builder, whit_buf *steps, whit_tokenizer_step step,
                                        const char *text, size_t text_bytes, const char *content, size_t content_bytes,
                                        whit_error *error)
{
    if (steps->size_bytes / sizeof step >= WHIT_TOKENIZER_MAX_STEPS)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: the tokenizer has more than %u normalizers or pre-tokenizers in a row, the limit",
                         builder->name, WHIT_TOKENIZER_MAX_STEPS);
    WHIT_TRY(add_string(builder, text, text_bytes, &step.text_offset, &step.text_bytes, error));
    WHIT_TRY(add_string(builder, content, content_bytes, &step.content_offset, &step.content_bytes, error));
    return append_bytes(steps, &step, sizeof step, error);
}

whit_status whit_tokenizer_builder_id(whit_tokenizer_builder *builder, whit_buf *ids, int64_t id, whit_error *error)
{
    if (id < 0 || id > INT32_MAX)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: token id %lld is not in the range from 0 to 2147483647",
                         builder->name, (long long)id);
    int32_t narrow = (int32_t)id;
    return append_bytes(ids, &narrow, sizeof narrow, error);
}

whit_status whit_tokenizer_builder_end(whit_tokenizer_builder *builder, int64_t id, whit_error *error)
{
    const int32_t *ends = WHIT_ITEMS(const int32_t, &builder->ends);
    for (size_t i = 0; i < builder->ends.size_bytes / sizeof *ends; i++)
        if (ends[i] == id) return WHIT_OK;
    return id < 0 ? WHIT_OK : whit_tokenizer_builder_id(builder, &builder->ends, id, error);
}

bool whit_tokenizer_is_end_name(const char *text, size_t n_bytes)
{
    static const char *const names[] = {
        "<|eot_id|>", "<|im_end|>",        "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
        "<|eom_id|>", "<|end_of_turn|>",   "<EOT>",   "_<EOT>",        "[EOT]",         "<|return|>",
        "<|call|>",   "<end_of_utterance>"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (n_bytes == strlen(names[i]) && memcmp(text, names[i], n_bytes) == 0) return true;
    return false;
}

whit_status whit_tokenizer_builder_end_names(whit_tokenizer_builder *builder, whit_error *error)
{
    WHIT_TRY(whit_tokenizer_builder_end(builder, builder->header.eos, error));
    const builder_token *tokens = tokens_of(builder);
    for (size_t id = 0; id < n_tokens_of(builder); id++)
        if (tokens[id].flags & WHIT_TOKEN_SPECIAL && whit_tokenizer_is_end_name(tokens[id].text, tokens[id].n_bytes))
            WHIT_TRY(whit_tokenizer_builder_end(builder, (int64_t)id, error));
    return WHIT_OK;
}

whit_status whit_tokenizer_builder_affixes(whit_tokenizer_builder *builder, const char *prefix, size_t prefix_bytes,
                                           const char *suffix, size_t suffix_bytes, whit_error *error)
{
    whit_tokenizer_header *header = &builder->header;
    if (prefix_bytes > 64 || suffix_bytes > 64)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: a prefix or suffix of subwords is longer than 64 bytes, the limit", builder->name);
    WHIT_TRY(add_string(builder, prefix, prefix_bytes, &header->prefix_offset, &header->prefix_bytes, error));
    return add_string(builder, suffix, suffix_bytes, &header->suffix_offset, &header->suffix_bytes, error);
}

/* ---- finishing ----------------------------------------------------------------------------- */

static whit_status begin_section(whit_tokenizer_builder *builder, whit_buf *image, size_t base,
                                 enum whit_tokenizer_section section, whit_error *error)
{
    if (!whit_buf_align(image, 8)) return whit_fail_memory(error, "the tokenizer", image->size_bytes);
    builder->header.sections[section].offset_bytes = image->size_bytes - base;
    return WHIT_OK;
}

static void end_section(whit_tokenizer_builder *builder, const whit_buf *image, size_t base,
                        enum whit_tokenizer_section section)
{
    whit_section *at = &builder->header.sections[section];
    at->size_bytes = image->size_bytes - base - at->offset_bytes;
}

static whit_status write_section(whit_tokenizer_builder *builder, whit_buf *image, size_t base,
                                 enum whit_tokenizer_section section, const void *data, size_t size_bytes,
                                 whit_error *error)
{
    WHIT_TRY(begin_section(builder, image, base, section, error));
    WHIT_TRY(append_bytes(image, data, size_bytes, error));
    end_section(builder, image, base, section);
    return WHIT_OK;
}

static whit_status write_tokens(whit_tokenizer_builder *builder, whit_buf *image, size_t base, whit_error *error)
{
    const builder_token *tokens = tokens_of(builder);
    size_t n = n_tokens_of(builder);
    uint64_t offset = 0;
    WHIT_TRY(begin_section(builder, image, base, WHIT_TOKENS_OFFSETS, error));
    for (size_t i = 0; i <= n; i++) {
        uint32_t at = (uint32_t)offset;
        WHIT_TRY(append_bytes(image, &at, sizeof at, error));
        if (i < n) offset += tokens[i].n_bytes;
        if (offset > UINT32_MAX)
            return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the tokens take more than 4 GiB, the limit", builder->name);
    }
    end_section(builder, image, base, WHIT_TOKENS_OFFSETS);
    WHIT_TRY(begin_section(builder, image, base, WHIT_TOKENS_TEXT, error));
    for (size_t i = 0; i < n; i++) WHIT_TRY(append_bytes(image, tokens[i].text, tokens[i].n_bytes, error));
    end_section(builder, image, base, WHIT_TOKENS_TEXT);
    WHIT_TRY(begin_section(builder, image, base, WHIT_TOKENS_FLAGS, error));
    for (size_t i = 0; i < n; i++) WHIT_TRY(append_bytes(image, &tokens[i].flags, 1, error));
    end_section(builder, image, base, WHIT_TOKENS_FLAGS);
    WHIT_TRY(begin_section(builder, image, base, WHIT_TOKENS_SCORES, error));
    for (size_t i = 0; i < n && builder->has_scores; i++)
        WHIT_TRY(append_bytes(image, &tokens[i].score, sizeof tokens[i].score, error));
    end_section(builder, image, base, WHIT_TOKENS_SCORES);
    return write_section(builder, image, base, WHIT_TOKENS_HASH, builder->slots.data, builder->slots.size_bytes, error);
}

static int compare_bytes(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    size_t shorter = a_bytes < b_bytes ? a_bytes : b_bytes;
    int order = shorter ? memcmp(a, b, shorter) : 0;
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int compare_tokens(const void *left, const void *right)
{
    const builder_token *a = *(const builder_token *const *)left;
    const builder_token *b = *(const builder_token *const *)right;
    int order = compare_bytes(a->text, a->n_bytes, b->text, b->n_bytes);
    return order ? order : (a > b) - (a < b); /* tokens with equal texts stay in their order */
}

/* The sorted tokens [first, last) of a node. They share their first `depth` bytes. */
typedef struct trie_range {
    uint32_t first, last, depth;
} trie_range;

/* Builds the nodes in breadth-first order, so that a node's children are contiguous. `ranges` gets a trie_range for
 * each node. */
static whit_status build_trie(const builder_token *tokens, const builder_token *const *sorted, size_t n_sorted,
                              whit_buf *nodes, whit_buf *ranges, whit_error *error)
{
    trie_range all = {0, (uint32_t)n_sorted, 0};
    whit_trie_node root = {0};
    WHIT_TRY(append_bytes(nodes, &root, sizeof root, error));
    WHIT_TRY(append_bytes(ranges, &all, sizeof all, error));
    for (size_t at = 0; at < nodes->size_bytes / sizeof root; at++) {
        trie_range range;
        memcpy(&range, ranges->data + at * sizeof range, sizeof range);
        uint32_t i = range.first, id_plus_1 = 0, n_children = 0;
        size_t first_child = nodes->size_bytes / sizeof root;
        for (; i < range.last && sorted[i]->n_bytes == range.depth; i++) id_plus_1 = (uint32_t)(sorted[i] - tokens) + 1;
        while (i < range.last) {
            whit_trie_node child = {.byte = (uint8_t)sorted[i]->text[range.depth]};
            trie_range below = {i, i, range.depth + 1};
            while (below.last < range.last && (uint8_t)sorted[below.last]->text[range.depth] == child.byte)
                below.last++;
            WHIT_TRY(append_bytes(nodes, &child, sizeof child, error));
            WHIT_TRY(append_bytes(ranges, &below, sizeof below, error));
            n_children++;
            i = below.last;
        }
        whit_trie_node *node = WHIT_ITEMS(whit_trie_node, nodes) + at;
        node->id_plus_1 = range.depth ? id_plus_1 : 0;
        node->first_child = n_children ? (uint32_t)first_child : 0;
        node->n_children = (uint16_t)n_children;
    }
    return WHIT_OK;
}

static whit_status write_trie(whit_tokenizer_builder *builder, whit_buf *image, size_t base, whit_error *error)
{
    const builder_token *tokens = tokens_of(builder);
    whit_buf sorted = {.allocator = builder->allocator}, nodes = sorted, ranges = sorted;
    whit_status status = WHIT_OK;
    uint32_t model = builder->header.model;
    if (model == WHIT_TOKENIZER_UNIGRAM || model == WHIT_TOKENIZER_WORDPIECE) {
        for (size_t i = 0; i < n_tokens_of(builder) && status == WHIT_OK; i++) {
            const builder_token *token = &tokens[i];
            if (token->flags & WHIT_TOKEN_IN_VOCAB) status = append_bytes(&sorted, &token, sizeof token, error);
        }
        size_t n = sorted.size_bytes / sizeof tokens;
        const builder_token **order = (const builder_token **)WHIT_ITEMS(void, &sorted);
        if (status == WHIT_OK && n) qsort(order, n, sizeof *order, compare_tokens);
        if (status == WHIT_OK) status = build_trie(tokens, order, n, &nodes, &ranges, error);
    }
    if (status == WHIT_OK)
        status = write_section(builder, image, base, WHIT_TOKENS_TRIE, nodes.data, nodes.size_bytes, error);
    whit_buf_free(&sorted);
    whit_buf_free(&nodes);
    whit_buf_free(&ranges);
    return status;
}

static whit_status write_merges(whit_tokenizer_builder *builder, whit_buf *image, size_t base, whit_error *error)
{
    const builder_merge *merges = WHIT_ITEMS(const builder_merge, &builder->merges);
    size_t n = builder->merges.size_bytes / sizeof *merges, n_slots = n ? table_slots(n) : 0;
    WHIT_TRY(begin_section(builder, image, base, WHIT_TOKENS_MERGES, error));
    size_t start = image->size_bytes;
    if (!whit_buf_append_zeros(image, n_slots * sizeof(whit_merge_slot)))
        return whit_fail_memory(error, "the tokenizer's merges", n_slots * sizeof(whit_merge_slot));
    whit_merge_slot *slots = (whit_merge_slot *)(void *)(image->data + start);
    for (size_t rank = 0; rank < n; rank++) {
        const builder_merge *merge = &merges[rank];
        if (merge->left == UINT32_MAX) continue;
        size_t at = whit_tokenizer_hash_pair(merge->left, merge->right), probe = 0;
        whit_merge_slot *slot;
        for (;; probe++, at++) {
            slot = &slots[at & (n_slots - 1)];
            if (slot->rank_plus_1 == 0 || (slot->left == merge->left && slot->right == merge->right)) break;
            if (probe + 1 == WHIT_TOKENIZER_MAX_PROBES)
                return whit_fail(
                    error, WHIT_ERROR_LIMIT,
                    "%s: more merges share one hash than the index can hold: the vocabulary is hostile or damaged",
                    builder->name);
        }
        if (slot->rank_plus_1 && builder->first_merge_counts) continue;
        *slot = (whit_merge_slot){merge->left, merge->right, (uint32_t)rank + 1, merge->id};
    }
    end_section(builder, image, base, WHIT_TOKENS_MERGES);
    return WHIT_OK;
}

/* Writes two tables: the ids of one-byte characters (or of byte-level symbols), and the ids of byte tokens <0xNN>. */
static whit_status write_byte_ids(whit_tokenizer_builder *builder, whit_buf *image, size_t base, whit_error *error)
{
    int32_t symbols[256], fallback[256];
    bool byte_level = builder->header.flags & WHIT_TOKENIZER_BYTE_LEVEL;
    for (int byte = 0; byte < 256; byte++) {
        uint32_t code = byte_level ? whit_byte_symbol((uint8_t)byte) : (uint32_t)byte;
        char text[8] = {(char)code};
        size_t n_bytes = 1;
        if (code >= 0x80) {
            text[0] = (char)(0xC0 | code >> 6);
            text[1] = (char)(0x80 | (code & 0x3F));
            n_bytes = 2;
        }
        symbols[byte] = whit_tokenizer_builder_find(builder, text, n_bytes);
        fallback[byte] = -1;
    }
    const builder_token *tokens = tokens_of(builder);
    for (size_t id = 0; id < n_tokens_of(builder); id++) {
        unsigned byte;
        char text[7] = {0};
        if (tokens[id].n_bytes != 6 || tokens[id].text[0] != '<') continue;
        memcpy(text, tokens[id].text, 6);
        char spelling[16];
        if (sscanf(text, "<0x%2X>", &byte) != 1) continue;
        snprintf(spelling, sizeof spelling, "<0x%02X>", byte & 0xFF);
        if (memcmp(spelling, text, 6) == 0) fallback[byte & 0xFF] = (int32_t)id;
    }
    WHIT_TRY(write_section(builder, image, base, WHIT_TOKENS_SYMBOLS, symbols, sizeof symbols, error));
    return write_section(builder, image, base, WHIT_TOKENS_FALLBACK, fallback, sizeof fallback, error);
}

/* An element for qsort, which contains the pointer to the text because qsort passes no context to the comparison. */
typedef struct added_order {
    const builder_added *added;
    const char *text;
} added_order;

static int compare_added(const void *left, const void *right)
{
    const added_order *a = left, *b = right;
    if (a->added->normalized != b->added->normalized) return a->added->normalized ? 1 : -1;
    int order = compare_bytes(a->text, a->added->token.text_bytes, b->text, b->added->token.text_bytes);
    if (order) return order;
    return (a->added->order > b->added->order) - (a->added->order < b->added->order);
}

static whit_status write_added(whit_tokenizer_builder *builder, whit_buf *image, size_t base, whit_error *error)
{
    const builder_added *added = WHIT_ITEMS(const builder_added, &builder->added);
    size_t n = builder->added.size_bytes / sizeof *added;
    added_order *order = whit_zalloc_array(builder->allocator, n + 1, sizeof *order);
    if (!order) return whit_fail_memory(error, "the tokenizer's added tokens", n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = (added_order){&added[i], whit_chars(&builder->strings) + added[i].token.text_offset};
    qsort(order, n, sizeof *order, compare_added);
    whit_status status = begin_section(builder, image, base, WHIT_TOKENS_ADDED, error);
    for (size_t i = 0; i < n && status == WHIT_OK; i++) {
        const builder_added *one = order[i].added;
        bool again = i + 1 < n && order[i + 1].added->normalized == one->normalized &&
            compare_bytes(order[i].text, one->token.text_bytes, order[i + 1].text,
                          order[i + 1].added->token.text_bytes) == 0;
        if (again) continue;
        if (!one->normalized) builder->header.n_added_raw++;
        status = append_bytes(image, &one->token, sizeof one->token, error);
    }
    end_section(builder, image, base, WHIT_TOKENS_ADDED);
    whit_free(builder->allocator, order, (n + 1) * sizeof *order);
    return status;
}

/* Returns whether a text may be split before every U+2581 that follows another character. That requires a BPE or SPM
 * model without subword prefix and word suffix, that U+2581 is a token, and that no token contains it after another
 * character. BPE without an unknown token is excluded: it drops unknown characters and merges across the gap, where the
 * character before U+2581 may have been dropped. */
static bool may_cut_at_space(const whit_tokenizer_builder *builder)
{
    static const char space[] = "\xE2\x96\x81";
    uint32_t model = builder->header.model;
    if ((model != WHIT_TOKENIZER_BPE && model != WHIT_TOKENIZER_SPM) || builder->header.prefix_bytes ||
        builder->header.suffix_bytes || whit_tokenizer_builder_find(builder, space, 3) < 0)
        return false;
    if (model == WHIT_TOKENIZER_BPE && builder->header.unk < 0) return false;
    const builder_token *tokens = tokens_of(builder);
    for (size_t id = 0; id < n_tokens_of(builder); id++) {
        const builder_token *token = &tokens[id];
        if (!(token->flags & WHIT_TOKEN_IN_VOCAB)) continue;
        for (size_t i = 1; i + 3 <= token->n_bytes; i++)
            if (memcmp(token->text + i, space, 3) == 0 && (i < 3 || memcmp(token->text + i - 3, space, 3) != 0))
                return false;
    }
    return true;
}

/* Marks the tokens into which their own text is merged (all tokens if the model ignores merges), so that encoding can
 * find them without merging. With merging by text, long tokens are skipped because this would be slow; texts that
 * contain them are merged when they are encoded. */
static whit_status mark_whole(whit_tokenizer_builder *builder, uint8_t *image, size_t size_bytes, whit_error *error)
{
    enum { MOST_BYTES_BY_TEXT = 512 };
    whit_tokenizer_view view;
    WHIT_TRY(whit_tokenizer_check(image, size_bytes, &view, error));
    uint8_t *flags = image + view.header->sections[WHIT_TOKENS_FLAGS].offset_bytes;
    bool always = view.header->flags & WHIT_TOKENIZER_IGNORE_MERGES;
    bool by_merging = (view.header->model == WHIT_TOKENIZER_BPE || view.header->model == WHIT_TOKENIZER_SPM) &&
        !view.header->prefix_bytes && !view.header->suffix_bytes;
    const uint32_t most_bytes = view.header->model == WHIT_TOKENIZER_SPM ? MOST_BYTES_BY_TEXT : UINT32_MAX;
    whit_model_scratch scratch;
    whit_model_scratch_init(&scratch, builder->allocator);
    whit_buf ids = {.allocator = builder->allocator};
    whit_status status = WHIT_OK;
    for (uint32_t id = 0; id < view.header->n_tokens && status == WHIT_OK; id++) {
        const builder_token *token = &tokens_of(builder)[id];
        if (!(token->flags & WHIT_TOKEN_IN_VOCAB) || token->n_bytes == 0) continue;
        bool whole = always;
        if (!whole && by_merging && token->n_bytes <= most_bytes) {
            ids.size_bytes = 0;
            whit_model_scratch_begin(&scratch, token->n_bytes);
            status =
                whit_tokenizer_merge_piece(&view, &scratch, (const uint8_t *)token->text, token->n_bytes, &ids, error);
            int32_t first;
            whole = ids.size_bytes == sizeof first;
            if (whole) {
                memcpy(&first, ids.data, sizeof first);
                whole = first == (int32_t)id;
            }
        }
        if (whole) flags[id] |= WHIT_TOKEN_WHOLE;
    }
    whit_model_scratch_free(&scratch);
    whit_buf_free(&ids);
    return status;
}

static whit_status write_image(whit_tokenizer_builder *builder, whit_buf *image, size_t base, whit_error *error)
{
    const struct {
        enum whit_tokenizer_section section;
        const whit_buf *buf;
    } plain[] = {
        {WHIT_TOKENS_NORMALIZE, &builder->normalize}, {WHIT_TOKENS_SPLIT, &builder->split},
        {WHIT_TOKENS_DECODE, &builder->decode},       {WHIT_TOKENS_BEFORE, &builder->before},
        {WHIT_TOKENS_AFTER, &builder->after},         {WHIT_TOKENS_ENDS, &builder->ends},
        {WHIT_TOKENS_STRINGS, &builder->strings},
    };
    if (!whit_buf_append_zeros(image, sizeof builder->header))
        return whit_fail_memory(error, "the tokenizer", sizeof builder->header);
    WHIT_TRY(write_tokens(builder, image, base, error));
    WHIT_TRY(write_trie(builder, image, base, error));
    WHIT_TRY(write_merges(builder, image, base, error));
    WHIT_TRY(write_byte_ids(builder, image, base, error));
    WHIT_TRY(write_added(builder, image, base, error));
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        WHIT_TRY(
            write_section(builder, image, base, plain[i].section, plain[i].buf->data, plain[i].buf->size_bytes, error));
    if (!whit_buf_align(image, 8)) return whit_fail_memory(error, "the tokenizer", image->size_bytes);
    return WHIT_OK;
}

whit_status whit_tokenizer_builder_finish(whit_tokenizer_builder *builder, whit_buf *image, whit_error *error)
{
    size_t base = image->size_bytes;
    if (n_tokens_of(builder) == 0)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the tokenizer's vocabulary is empty", builder->name);
    builder->header.n_tokens = (uint32_t)n_tokens_of(builder);
    if (may_cut_at_space(builder)) builder->header.flags |= WHIT_TOKENIZER_CUT_AT_SPACE;
    whit_status status = write_image(builder, image, base, error);
    if (status == WHIT_OK) {
        builder->header.size_bytes = image->size_bytes - base;
        memcpy(image->data + base, &builder->header, sizeof builder->header);
        status = mark_whole(builder, image->data + base, image->size_bytes - base, error);
    }
    if (status != WHIT_OK) image->size_bytes = base;
    return status;
}
