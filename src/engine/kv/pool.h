/* SPDX-License-Identifier: MIT
 * Keeps a pool of KV blocks of one shape. Blocks are reference-counted. A full block can get a name, a hash of the
 * tokens and settings that its contents depend on, and be found by it. Named blocks without users are kept until they
 * are evicted, in the order in which they lost their last users.
 *
 * A block holds 64 positions of one sequence for all layers and KV heads of a class; the *piece* of a layer and head is
 * laid out as in kernels/kv_block.h. Blocks are stored in groups of four, and within a group the pieces of a head are
 * contiguous: a head's past is read in a few long streams instead of one jump per block, and a short sequence touches
 * only one group. The caller owns the memory, whose size never changes. */
#ifndef WHIT_KV_POOL_H
#define WHIT_KV_POOL_H

#include "base/hash.h"
#include "base/status.h"
#include "kernels/kv_block.h"

/* Holds the name of a full block, under which it can be found again: a hash of everything that its keys and values
 * depend on, and its ids. */
typedef struct whit_kv_name {
    uint8_t key[WHIT_HASH_BYTES]; /* hash of all tokens and settings up to the block's end */
    int32_t ids[WHIT_KV_BLOCK_TOKENS];
    uint32_t next;         /* next block in the same bucket: number + 1, or 0 */
    uint32_t older, newer; /* neighbours in the eviction list of blocks without users: number + 1, or 0 */
    bool is_named, is_kept;
} whit_kv_name;

typedef struct whit_kv_pool {
    uint32_t n_layers, n_kv_heads, n_blocks;
    size_t head_bytes; /* bytes of one block of one layer and head */
    size_t block_bytes;
    uint8_t *data;        /* pieces of head_bytes each, (groups, n_layers, n_kv_heads, blocks of the group) */
    uint32_t *references; /* (n_blocks) number of users */
    uint32_t *free_blocks;
    uint32_t n_free;
    uint32_t n_ever;        /* number of blocks that ever had a user: 0 to n_ever - 1 */
    size_t populated_bytes; /* whit_kv_pool_populate has prepared `data` up to here; memory of groups with a block below
                             * n_ever counts as prepared by use */
    /* Kept blocks have no users, but their contents may be needed again. If no block is free, the kept block that has
     * been without users for the longest time is evicted. */
    whit_kv_name *names;     /* (n_blocks) name of each block, and its neighbours in the eviction list */
    uint32_t *buckets;       /* (n_buckets) hash table by key: number of a bucket's first block + 1, or 0 */
    uint32_t n_buckets;      /* number of buckets, a power of two */
    uint32_t oldest, newest; /* ends of the eviction list of kept blocks: block number + 1, or 0 */
    uint32_t n_named;        /* number of blocks that have a name */
    /* Called with `user` before a block loses its name; may be NULL. */
    void (*on_forget)(void *user, const whit_kv_name *name);
    void *user;
} whit_kv_pool;

/* Sets the sizes of a pool, and *bytes to the size of its memory; returns false if one of them overflows. */
bool whit_kv_pool_size(whit_kv_pool *pool, uint32_t n_layers, uint32_t n_kv_heads, size_t head_bytes, uint64_t n_blocks,
                       uint64_t *bytes);
/* Lays out the pool in `memory`, which is 64-byte aligned and has the size that whit_kv_pool_size computed; keys and
 * values need not be zeroed. Returns the end of the pool's memory. */
uint8_t *whit_kv_pool_init(whit_kv_pool *pool, uint8_t *memory);

/* Returns a free block with one user; if no block is free, evicts the kept block that lost its last user first. Users
 * never need more blocks than the pool has, so this cannot fail. */
uint32_t whit_kv_pool_take(whit_kv_pool *pool);
/* Asks the system for the memory of the groups in which the next n_ahead blocks lie that were never used before, at
 * most WHIT_KV_POPULATE_BYTES per call. Without this, the pass that first uses a group waits for the memory of all
 * layers. */
#define WHIT_KV_POPULATE_BYTES ((size_t)2 << 20)
void whit_kv_pool_populate(whit_kv_pool *pool, uint32_t n_ahead);
/* Adds a user to a block that is in use or kept. */
void whit_kv_pool_use(whit_kv_pool *pool, uint32_t block);
/* Removes a user. A block without users is kept if it is named, and becomes free otherwise. */
void whit_kv_pool_drop(whit_kv_pool *pool, uint32_t block);
void whit_kv_pool_copy(whit_kv_pool *pool, uint32_t from, uint32_t to);

/* Names a full block. Returns false and changes nothing if the block already has a name or another block has the same
 * name. */
bool whit_kv_pool_name(whit_kv_pool *pool, uint32_t block, const uint8_t key[WHIT_HASH_BYTES],
                       const int32_t ids[WHIT_KV_BLOCK_TOKENS]);
/* Removes the name of a block that is about to be overwritten. */
void whit_kv_pool_forget(whit_kv_pool *pool, uint32_t block);
/* Returns the number of the block, in use or kept, that is named by `key` and `ids`; UINT32_MAX if not found. */
uint32_t whit_kv_pool_find(const whit_kv_pool *pool, const uint8_t key[WHIT_HASH_BYTES],
                           const int32_t ids[WHIT_KV_BLOCK_TOKENS]);
/* Returns whether the pool contains a block named `key`, in use or kept. */
bool whit_kv_pool_knows(const whit_kv_pool *pool, const uint8_t key[WHIT_HASH_BYTES]);

/* Returns the piece of a block that belongs to one head of one layer. */
static inline void *whit_kv_pool_piece(const whit_kv_pool *pool, uint32_t layer, uint32_t head, uint32_t block)
{
    uint32_t first = block / WHIT_KV_GROUP_BLOCKS * WHIT_KV_GROUP_BLOCKS, rest = pool->n_blocks - first;
    size_t n = rest < WHIT_KV_GROUP_BLOCKS ? rest : WHIT_KV_GROUP_BLOCKS;
    size_t piece = ((size_t)layer * pool->n_kv_heads + head) * n + (block - first);
    return pool->data + first * pool->block_bytes + piece * pool->head_bytes;
}

#endif
