/* SPDX-License-Identifier: MIT
 * Saves and restores tails: the bytes that a sequence needs, in addition to its full blocks (packed types: closed
 * ones), to be continued at a position. Packed caches and models with recurrent layers need a tail:
 *
 *   for every class of open blocks   blocks (from the first needed to the last), each by layer and head, in f16
 *   for every class of sinks         if block 0 is full: by layer and head
 *   recurrent, plain types           for every class: the last block, if it is not full, by layer and head
 *   recurrent                        the state (kv/state.h)
 *
 * Positions after the end are zero, so that equal tokens give equal bytes if recurrent layers have committed the same
 * position (whit_kv_tail_commit). */
#ifndef WHIT_KV_TAIL_H
#define WHIT_KV_TAIL_H

#include "kv/cache.h"

/* Returns the number of bytes of the tail at n_tokens; 0 if n_tokens is 0 or the cache needs no tails. */
uint64_t whit_kv_tail_bytes(const whit_kv *kv, uint32_t n_tokens);
/* Returns the number of bytes of the largest tail. Sets *n_tokens to the largest number of tokens in the blocks of a
 * tail. */
uint64_t whit_kv_tail_bytes_max(const whit_kv *kv, uint32_t *n_tokens);
/* Returns whether a sequence can be continued only with a tail, because full blocks are not enough. */
bool whit_kv_needs_tails(const whit_kv *kv);
/* Returns the number of the first open block in the tail at n_tokens; n_tokens / 64 if the tail has no open blocks. */
uint32_t whit_kv_tail_first(const whit_kv *kv, uint32_t n_tokens);
/* Returns whether the tail at n_tokens of a sequence can be saved; n_tokens is at most the sequence's length. */
bool whit_kv_has_tail(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens);
/* Writes the tail at n_tokens, whit_kv_tail_bytes bytes; whit_kv_has_tail must be true. */
void whit_kv_tail_save(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint8_t *tail);
/* Returns whether a sequence can be continued at `position` with a tail saved at n_tokens. */
bool whit_kv_tail_serves(const whit_kv *kv, uint32_t n_tokens, uint32_t position, const uint8_t *tail);
/* Returns whether the recurrent state in a tail read from a file is valid for n_tokens (whit_state_is_sound); true if
 * no layer is recurrent. Blocks are checked after loading, by whit_kv_tail_is_sound. */
bool whit_kv_tail_fits(const whit_kv *kv, uint32_t n_tokens, const uint8_t *tail);
/* Returns the position that recurrent layers had committed in a tail saved at n_tokens; 0 if no layer is recurrent. The
 * position depends on all tokens that the sequence had, including later ones that were removed before the tail was
 * saved. */
uint32_t whit_kv_tail_commit(const whit_kv *kv, uint32_t n_tokens, const uint8_t *tail);
/* Restores a saved tail. Before the call, the sequence has only full blocks up to `position`, closed ones if the type
 * is packed (whit_kv_adopt, whit_kv_begin_at); afterwards it can be continued at `position`, for which
 * whit_kv_tail_serves is true. */
void whit_kv_tail_load(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint32_t position, const uint8_t *tail);

#endif
