/* SPDX-License-Identifier: MIT
 * Beginnings found again: closed KV blocks of this session, in use or of ended sequences, by what they were
 * computed from.
 *
 * The key of a block is a hash over the key before it and its ids, and that of the first over what the
 * sequence has mounted; model and types of cache and activations are the session's. */
#include "runtime/session.h"

#include "runtime/adapter.h"

enum { BLOCK = WHIT_KV_BLOCK_TOKENS };

static void first_key(const whit_session *s, uint32_t sequence, uint8_t key[WHIT_HASH_BYTES])
{
    const whit_session_mounts *mounts = &s->mounts[sequence];
    whit_hash hash;
    whit_hash_begin(&hash, "kv.first");
    whit_hash_add(&hash, whit_model_identity(s->model), WHIT_HASH_BYTES);
    whit_hash_add_u64(&hash, (uint64_t)s->options.kv << 32 | s->options.act);
    for (uint32_t i = 0; i < mounts->n; i++) {
        whit_hash_add(&hash, mounts->items[i].adapter->digest, WHIT_HASH_BYTES);
        whit_hash_add(&hash, &mounts->items[i].scale, sizeof mounts->items[i].scale);
    }
    whit_hash_end(&hash, key);
}

static void next_key(const int32_t ids[BLOCK], uint8_t key[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "kv.block");
    whit_hash_add(&hash, key, WHIT_HASH_BYTES);
    whit_hash_add(&hash, ids, BLOCK * sizeof *ids);
    whit_hash_end(&hash, key);
}

void whit_session_name_blocks(whit_session *s, uint32_t sequence, uint32_t from)
{
    uint32_t n = s->positions[sequence] / BLOCK;
    if (from / BLOCK >= n || s->is_mixed[sequence]) return;
    const int32_t *ids = whit_session_tokens_of(s, sequence);
    uint8_t key[WHIT_HASH_BYTES];
    uint32_t b = from / BLOCK;
    const whit_kv_name *before = b ? whit_kv_name_of(&s->kv, sequence, b - 1) : NULL;
    if (before) {
        memcpy(key, before->key, sizeof key);
    } else {
        first_key(s, sequence, key);
        for (uint32_t i = 0; i < b; i++) next_key(ids + i * BLOCK, key);
    }
    for (; b < n; b++) {
        next_key(ids + b * BLOCK, key);
        whit_kv_name_block(&s->kv, sequence, b, key, ids + b * BLOCK);
    }
}

/* How many blocks of the beginning are there; takes them where `adopts`. */
static uint32_t walk(whit_session *s, uint32_t sequence, const int32_t *ids, uint32_t n_blocks, bool adopts)
{
    uint8_t key[WHIT_HASH_BYTES];
    first_key(s, sequence, key);
    for (uint32_t b = 0; b < n_blocks; b++) {
        next_key(ids + b * BLOCK, key);
        uint32_t number = whit_kv_find(&s->kv, key, ids + b * BLOCK);
        if (number == UINT32_MAX) return b;
        if (adopts) whit_kv_adopt(&s->kv, sequence, number);
    }
    return n_blocks;
}

whit_status whit_session_reuse(whit_session *s, uint32_t sequence, const int32_t *ids, size_t n_ids,
                               uint32_t *n_present, whit_error *error)
{
    WHIT_NEED(n_present);
    *n_present = 0;
    WHIT_NEED(s);
    WHIT_NEED_ARRAY(ids, n_ids);
    if (sequence >= s->options.n_sequences)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "sequence %u of %u", sequence, s->options.n_sequences);
    size_t most = n_ids ? n_ids - 1 : 0;
    if (most > s->options.n_ctx_tokens) most = s->options.n_ctx_tokens;
    const int32_t *held = whit_session_tokens_of(s, sequence);
    uint32_t n_own = 0, n_held = s->is_mixed[sequence] ? 0 : s->positions[sequence];
    while (n_own < most && n_own < n_held && held[n_own] == ids[n_own]) n_own++;
    uint32_t n_blocks = walk(s, sequence, ids, (uint32_t)(most / BLOCK), false);
    if (n_own >= n_blocks * BLOCK) {
        *n_present = n_own;
        return whit_session_truncate(s, sequence, n_own, error);
    }
    WHIT_TRY(whit_session_truncate(s, sequence, 0, error));
    *n_present = walk(s, sequence, ids, n_blocks, true) * BLOCK;
    memcpy(whit_session_tokens_of(s, sequence), ids, *n_present * sizeof *ids);
    s->positions[sequence] = *n_present;
    return WHIT_OK;
}
