/* SPDX-License-Identifier: MIT
 * Reports changes of a session's prefix cache, for servers that tell others which prefixes they can reuse. whit.h does
 * not include it. */
#ifndef WHIT_CACHE_H
#define WHIT_CACHE_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WHIT_CACHE_KEY_BYTES    32
#define WHIT_CACHE_BLOCK_TOKENS 64

/* Reports that a full block of 64 tokens entered the prefix cache or was removed from it. The block's key is a hash of
 * everything that its contents depend on: the model, the types of cache and activations, the adapters, and all ids up
 * to the block's end. */
typedef struct whit_cache_event {
    size_t struct_bytes;
    const uint8_t *key;    /* key of the block, (WHIT_CACHE_KEY_BYTES) */
    const int32_t *ids;    /* ids of the block, (WHIT_CACHE_BLOCK_TOKENS); NULL: the block was removed */
    const uint8_t *parent; /* key of the preceding block; NULL: the block is the first of its text, or was removed */
    uint32_t sequence;     /* sequence that the block was computed for; 0 if the block was removed */
} whit_cache_event;
typedef void whit_cache_event_fn(void *user, const whit_cache_event *event);
/* Calls `on_event` with `user` for every later change of the prefix cache, in the thread that changes the session; NULL
 * stops the reports. The arrays of an event are valid during the call, which must not use the session. Layers with
 * different windows store different blocks: only the blocks of one group of layers are reported, of layers without a
 * window if the model has any. */
WHIT_API void whit_session_watch_cache(whit_session *session, whit_cache_event_fn *on_event, void *user);
/* Sets *n_blocks to the number of blocks that the session has memory for, and *n_found to the number of blocks that the
 * prefix cache can find, both for the layers that whit_session_watch_cache reports. */
WHIT_API void whit_session_count_blocks(const whit_session *session, uint32_t *n_blocks, uint32_t *n_found);

#ifdef __cplusplus
}
#endif
#endif
