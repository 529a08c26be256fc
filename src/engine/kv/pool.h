/* SPDX-License-Identifier: MIT
 * A pool of KV blocks of one shape: taken, shared by count, found again by name, taken anew where nobody wants
 * them any more.
 *
 * A block holds 64 positions of one sequence for all layers and KV heads of a class; each layer and head has a
 * piece of it, laid out as kernels/kv_block.h says. Blocks lie in groups of four, and in a group the pieces of a
 * head follow each other: reading a head's past is a few long streams, not a jump per block, and a short sequence
 * touches no more than a group. Memory is the caller's, sized once. */
#ifndef WHIT_KV_POOL_H
#define WHIT_KV_POOL_H

#include "base/hash.h"
#include "base/status.h"
#include "kernels/kv_block.h"

/* What is known of a block's contents, so that it can be found again: all that its keys and values depend
 * on. Only full blocks have one. */
typedef struct whit_kv_name {
    uint8_t key[WHIT_HASH_BYTES]; /* over everything up to the block's end */
    int32_t ids[WHIT_KV_BLOCK_TOKENS];
    uint32_t next;         /* in its bucket: block number + 1, or 0 */
    uint32_t older, newer; /* kept and unused: neighbours in the order of disuse, as above */
    bool is_named, is_kept;
} whit_kv_name;

typedef struct whit_kv_pool {
    uint32_t n_layers, n_kv_heads, n_blocks;
    size_t head_bytes; /* of one head in one block */
    size_t block_bytes;
    uint8_t *data;        /* (groups, n_layers, n_kv_heads, blocks of the group) of head_bytes */
    uint32_t *references; /* (n_blocks) who use it */
    uint32_t *free_blocks;
    uint32_t n_free;
    /* Blocks that nobody uses any more but whose contents may be wanted again; they are taken, the one that went
     * first, where no block is free. */
    whit_kv_name *names;     /* (n_blocks) */
    uint32_t *buckets;       /* (n_buckets) by key: block number + 1, or 0 */
    uint32_t n_buckets;      /* a power of two */
    uint32_t oldest, newest; /* kept blocks: number + 1, or 0 */
} whit_kv_pool;

/* Sets the sizes of a pool; false where they overflow. */
bool whit_kv_pool_size(whit_kv_pool *pool, uint32_t n_layers, uint32_t n_kv_heads, size_t head_bytes, uint64_t n_blocks,
                       uint64_t *bytes);
/* `memory` is 64-byte aligned and of that size; keys and values need not be zeroed. Gives its end. */
uint8_t *whit_kv_pool_init(whit_kv_pool *pool, uint8_t *memory);

/* A block for one user. Users never hold more blocks than there are, so one is always free or kept. */
uint32_t whit_kv_pool_take(whit_kv_pool *pool);
/* One user more, of a block in use or kept. */
void whit_kv_pool_use(whit_kv_pool *pool, uint32_t block);
/* One user less; without any a named block is kept. */
void whit_kv_pool_drop(whit_kv_pool *pool, uint32_t block);
void whit_kv_pool_copy(whit_kv_pool *pool, uint32_t from, uint32_t to);

/* Names a full block; where another has that name, nothing happens. */
void whit_kv_pool_name(whit_kv_pool *pool, uint32_t block, const uint8_t key[WHIT_HASH_BYTES],
                       const int32_t ids[WHIT_KV_BLOCK_TOKENS]);
/* It is about to be written over. */
void whit_kv_pool_forget(whit_kv_pool *pool, uint32_t block);
/* A block of that name, key and ids, used or kept; UINT32_MAX where there is none. */
uint32_t whit_kv_pool_find(const whit_kv_pool *pool, const uint8_t key[WHIT_HASH_BYTES],
                           const int32_t ids[WHIT_KV_BLOCK_TOKENS]);

/* What one head of one layer has in a block. */
static inline void *whit_kv_pool_piece(const whit_kv_pool *pool, uint32_t layer, uint32_t head, uint32_t block)
{
    uint32_t first = block / WHIT_KV_GROUP_BLOCKS * WHIT_KV_GROUP_BLOCKS, rest = pool->n_blocks - first;
    size_t n = rest < WHIT_KV_GROUP_BLOCKS ? rest : WHIT_KV_GROUP_BLOCKS;
    size_t piece = ((size_t)layer * pool->n_kv_heads + head) * n + (block - first);
    return pool->data + first * pool->block_bytes + piece * pool->head_bytes;
}

#endif
