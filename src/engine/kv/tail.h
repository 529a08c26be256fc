/* SPDX-License-Identifier: MIT
 * Tails: what a sequence needs beside its full closed blocks to be continued at a position, as bytes. Packed caches
 * have one, and models with recurrent layers:
 *
 *   for every class of open blocks   blocks (from the first needed to the last), each by layer and head, in f16
 *   for every class of sinks         if block 0 is full: by layer and head
 *   recurrent, plain types           for every class: the last block, if it is not full, by layer and head
 *   recurrent                        the state (kv/state.h)
 *
 * Positions after the end are zero, so that equal tokens give equal bytes. */
#ifndef WHIT_KV_TAIL_H
#define WHIT_KV_TAIL_H

#include "kv/cache.h"

/* Bytes of the tail at n_tokens; 0 if there is none: at the beginning, and if the cache needs no tails. */
uint64_t whit_kv_tail_bytes(const whit_kv *kv, uint32_t n_tokens);
/* The largest tail's bytes, and the most tokens that follow the first one whose block is in a tail. */
uint64_t whit_kv_tail_bytes_max(const whit_kv *kv, uint32_t *n_tokens);
/* Whether sequences are continued by tails alone: a full block is not enough. */
bool whit_kv_needs_tails(const whit_kv *kv);
/* The first block of which the tail at n_tokens has something. */
uint32_t whit_kv_tail_first(const whit_kv *kv, uint32_t n_tokens);
/* Whether the tail of a sequence at n_tokens, at most its length, can be saved. */
bool whit_kv_has_tail(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens);
/* Saves the tail, tail_bytes long, which the sequence has. */
void whit_kv_tail_save(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint8_t *tail);
/* Whether a sequence can be continued at `position`, at most n_tokens, by a tail at n_tokens. */
bool whit_kv_tail_serves(const whit_kv *kv, uint32_t n_tokens, uint32_t position, const uint8_t *tail);
/* Whether a tail from a file is one that save writes, as far as where it lies must be known before it is loaded. */
bool whit_kv_tail_fits(const whit_kv *kv, uint32_t n_tokens, const uint8_t *tail);
/* Restores a saved tail. Before, the sequence holds only closed blocks up to `position` (whit_kv_adopt,
 * whit_kv_begin_at); afterwards it can be continued at `position`, which the tail serves. */
void whit_kv_tail_load(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint32_t position, const uint8_t *tail);

#endif
