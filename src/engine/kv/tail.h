/* SPDX-License-Identifier: MIT
 * Tails: what a sequence of a packed cache needs beside its closed blocks to go on at a position, as bytes: its
 * open blocks, in f16, that a query there or one position before reads, and, where the first block is closed, the
 * sinks. Positions behind the end are zero, so that equal tokens give equal bytes.
 *
 *   for every class of open blocks   blocks (from the first needed to the last), each by layer and head
 *   for every class of sinks         where block 0 is full: by layer and head */
#ifndef WHIT_KV_TAIL_H
#define WHIT_KV_TAIL_H

#include "kv/cache.h"

/* Bytes of the tail at n_tokens; 0 where there is none: at the beginning, and where the type is not packed. */
uint64_t whit_kv_tail_bytes(const whit_kv *kv, uint32_t n_tokens);
/* The largest tail's bytes, and the tokens from the first that one has in an open block. */
uint64_t whit_kv_tail_bytes_max(const whit_kv *kv, uint32_t *n_tokens);
/* The first block that the tail at n_tokens has something of. */
uint32_t whit_kv_tail_first(const whit_kv *kv, uint32_t n_tokens);
/* Whether a sequence has what its tail at n_tokens, of those that it has, takes. */
bool whit_kv_has_tail(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens);
/* Copies it, which it has; tail_bytes of them. */
void whit_kv_tail_save(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint8_t *tail);
/* Whether the tail at n_tokens lets a sequence go on at `position`, which is not behind that. */
bool whit_kv_tail_serves(const whit_kv *kv, uint32_t n_tokens, uint32_t position);
/* Makes a sequence, which has its closed blocks up to `position` alone (whit_kv_adopt, whit_kv_begin_at), one that goes
 * on at `position`, which the tail at n_tokens serves. */
void whit_kv_tail_load(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint32_t position, const uint8_t *tail);

#endif
