/* SPDX-License-Identifier: MIT
 * The KV cache: keys and values of every sequence, in blocks of 64 positions.
 *
 * A block holds 64 positions of one sequence for all layers and KV heads, so that it can be
 * dropped or shared between sequences with a common beginning. Where a position lies (its block) is
 * kept apart from what it is (its number): a table per sequence maps one to the other. Each layer and
 * head has a piece of a block, laid out as kernels/kv_block.h says.
 *
 * Blocks lie in groups of four, and in a group the pieces of a head follow each other: reading a
 * head's past is a few long streams, not a jump per block, and a short sequence touches no more
 * than a group. Memory is the caller's, sized once. One thread at a time may change tables; any may
 * read, and write different heads. */
#ifndef WHIT_KV_CACHE_H
#define WHIT_KV_CACHE_H

#include "base/hash.h"
#include "base/status.h"
#include "kernels/kv_block.h"

typedef struct whit_kv_shape {
    whit_kv_type type;
    uint32_t n_layers, n_kv_heads, head_dim;
    uint32_t n_sequences, n_ctx_tokens;
} whit_kv_shape;

/* What is known of a block's contents, so that it can be found again: all that its keys and values depend
 * on. Only full blocks have one. */
typedef struct whit_kv_name {
    uint8_t key[WHIT_HASH_BYTES]; /* over everything up to the block's end */
    int32_t ids[WHIT_KV_BLOCK_TOKENS];
    uint32_t next;         /* in its bucket: block number + 1, or 0 */
    uint32_t older, newer; /* kept and unused: neighbours in the order of disuse, as above */
    bool is_named, is_kept;
} whit_kv_name;

typedef struct whit_kv {
    whit_kv_shape shape;
    uint32_t blocks_per_sequence, n_blocks;
    size_t head_bytes; /* of one head in one block */
    size_t block_bytes;
    uint8_t *data;        /* (groups, n_layers, n_kv_heads, blocks of the group) of head_bytes */
    uint32_t *table;      /* (n_sequences, blocks_per_sequence) block numbers */
    uint32_t *n_tokens;   /* (n_sequences) positions that have a place */
    uint32_t *references; /* (n_blocks) sequences that use it */
    uint32_t *free_blocks;
    uint32_t n_free;
    /* Blocks that no sequence uses any more but whose contents may be wanted again; they are taken, the
     * one that went first, where no block is free. */
    whit_kv_name *names;     /* (n_blocks) */
    uint32_t *buckets;       /* (n_buckets) by key: block number + 1, or 0 */
    uint32_t n_buckets;      /* a power of two */
    uint32_t oldest, newest; /* kept blocks: number + 1, or 0 */
} whit_kv;

/* Bytes of memory for a shape; false where they overflow. */
bool whit_kv_bytes(const whit_kv_shape *shape, uint64_t *bytes);
/* `memory` is 64-byte aligned and large enough; its keys and values need not be zeroed. */
void whit_kv_init(whit_kv *kv, const whit_kv_shape *shape, void *memory);

/* Gives positions [0, n_tokens) of a sequence a place. A last block that is shared is copied
 * first. WHIT_ERROR_LIMIT beyond the context. */
whit_status whit_kv_extend(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, whit_error *error);
/* Drops positions from n_tokens on. */
void whit_kv_truncate(whit_kv *kv, uint32_t sequence, uint32_t n_tokens);
/* Names a full block of a sequence; where another block has that name, nothing happens. */
void whit_kv_name_block(whit_kv *kv, uint32_t sequence, uint32_t block, const uint8_t key[WHIT_HASH_BYTES],
                        const int32_t ids[WHIT_KV_BLOCK_TOKENS]);
/* The name of a sequence's block; NULL where it has none. */
const whit_kv_name *whit_kv_name_of(const whit_kv *kv, uint32_t sequence, uint32_t block);
/* The number of a block of that name, key and ids, used or kept; UINT32_MAX where there is none. */
uint32_t whit_kv_find(const whit_kv *kv, const uint8_t key[WHIT_HASH_BYTES], const int32_t ids[WHIT_KV_BLOCK_TOKENS]);
/* Appends a found block to a sequence, whose positions end where it begins. */
void whit_kv_adopt(whit_kv *kv, uint32_t sequence, uint32_t number);
/* Makes `to` the first n_tokens of `from`; blocks are shared until one of them writes. */
whit_status whit_kv_share(whit_kv *kv, uint32_t from, uint32_t to, uint32_t n_tokens, whit_error *error);

/* What one head of one layer has in a block (by its number; of a sequence): a block of
 * kernels/kv_block.h. */
static inline void *whit_kv_piece(const whit_kv *kv, uint32_t layer, uint32_t head, uint32_t number)
{
    uint32_t first = number / WHIT_KV_GROUP_BLOCKS * WHIT_KV_GROUP_BLOCKS, rest = kv->n_blocks - first;
    size_t n = rest < WHIT_KV_GROUP_BLOCKS ? rest : WHIT_KV_GROUP_BLOCKS;
    size_t piece = ((size_t)layer * kv->shape.n_kv_heads + head) * n + (number - first);
    return kv->data + first * kv->block_bytes + piece * kv->head_bytes;
}
static inline void *whit_kv_head_block(const whit_kv *kv, uint32_t layer, uint32_t head, uint32_t sequence,
                                       uint32_t block)
{
    return whit_kv_piece(kv, layer, head, kv->table[(size_t)sequence * kv->blocks_per_sequence + block]);
}

#endif
