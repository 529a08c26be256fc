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

void whit_session_name_blocks(whit_session *s, uint32_t sequence, uint32_t from, uint32_t to)
{
    uint32_t n = (to < s->options.n_ctx_tokens ? to : s->options.n_ctx_tokens) / BLOCK; /* further ids are not kept */
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

/* How many of the first n_blocks blocks can be gone on from: every class has those that a query behind them sees. */
static uint32_t find(const whit_session *s, uint32_t sequence, const int32_t *ids, uint32_t n_blocks)
{
    const whit_kv *kv = &s->kv;
    uint32_t n_there[WHIT_KV_CLASSES_MAX] = {0}, best = 0; /* blocks up to here that a class has, without a gap */
    bool has_sinks[WHIT_KV_CLASSES_MAX] = {false};
    uint8_t key[WHIT_HASH_BYTES];
    first_key(s, sequence, key);
    for (uint32_t b = 0; b < n_blocks; b++) {
        bool is_whole = true;
        next_key(ids + b * BLOCK, key);
        for (uint32_t c = 0; c < kv->n_classes; c++) {
            const whit_kv_class *class = &kv->classes[c];
            if (class->role == WHIT_KV_ROLE_SINKS && b > 0) continue;
            bool is_there = whit_kv_pool_find(&class->pool, key, ids + b * BLOCK) != UINT32_MAX;
            n_there[c] = is_there ? n_there[c] + 1 : 0;
            if (b == 0) has_sinks[c] = is_there;
            if (!is_there && (!class->window || (b == 0 && class->n_sinks))) return best;
            if (class->role == WHIT_KV_ROLE_SINKS) continue;
            is_whole &=
                b + 1 - n_there[c] <= whit_kv_first_needed(class, (b + 1) * BLOCK) && (!class->n_sinks || has_sinks[c]);
        }
        if (is_whole) best = b + 1;
    }
    return best;
}

/* Makes a sequence these blocks, which `find` has found. */
static void adopt(whit_session *s, uint32_t sequence, const int32_t *ids, uint32_t n_blocks)
{
    uint8_t key[WHIT_HASH_BYTES];
    first_key(s, sequence, key);
    whit_kv_truncate(&s->kv, sequence, 0);
    for (uint32_t b = 0; b < n_blocks; b++) {
        next_key(ids + b * BLOCK, key);
        whit_kv_adopt(&s->kv, sequence, n_blocks * BLOCK, b, key, ids + b * BLOCK);
    }
    memmove(whit_session_tokens_of(s, sequence), ids, (size_t)n_blocks * BLOCK * sizeof *ids);
    s->positions[sequence] = n_blocks * BLOCK;
    s->is_mixed[sequence] = false;
}

void whit_session_go_back(whit_session *s, uint32_t sequence, const int32_t *ids, uint32_t n_ids)
{
    if (n_ids > s->options.n_ctx_tokens) n_ids = s->options.n_ctx_tokens;
    adopt(s, sequence, ids, find(s, sequence, ids, n_ids / BLOCK));
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
    if (!whit_kv_reaches(&s->kv, sequence, n_own)) n_own = 0;
    uint32_t n_blocks = find(s, sequence, ids, (uint32_t)(most / BLOCK));
    if (n_own >= n_blocks * BLOCK)
        WHIT_TRY(whit_session_truncate(s, sequence, n_own, error));
    else
        adopt(s, sequence, ids, n_blocks);
    *n_present = s->positions[sequence];
    return WHIT_OK;
}
