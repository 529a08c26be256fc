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

/* A full block of 64 tokens entered the prefix cache, or left it. Its key is a hash of everything that its contents
 * depend on: the model, the types of cache and activations, adapters, and all ids up to its end. */
typedef struct whit_cache_event {
    size_t struct_bytes;
    const uint8_t *key;    /* (WHIT_CACHE_KEY_BYTES) */
    const int32_t *ids;    /* (WHIT_CACHE_BLOCK_TOKENS) ids of the block; NULL: the block was removed */
    const uint8_t *parent; /* key of the preceding block; NULL: the block is a text's first, or was removed */
    uint32_t sequence;     /* sequence that the block was computed for; 0: block removed */
} whit_cache_event;
typedef void whit_cache_event_fn(void *user, const whit_cache_event *event);
/* Calls `on_event` for every later change, in the thread that changes the session, with `user`; NULL ends that. The
 * arrays of an event are valid during the call, which must not use the session. Layers whose windows differ store
 * different blocks: events are about a class of layers without a window, if the model has one. */
WHIT_API void whit_session_watch_cache(whit_session *session, whit_cache_event_fn *on_event, void *user);
/* Counts the blocks that the session has memory for, and how many of them the prefix cache can find. */
WHIT_API void whit_session_count_blocks(const whit_session *session, uint32_t *n_blocks, uint32_t *n_found);

#ifdef __cplusplus
}
#endif
#endif
