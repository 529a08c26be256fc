/* SPDX-License-Identifier: MIT
 * Validates KV blocks read from a file: kernels use scales and units without checks, and rely on integer sums that do
 * not overflow. Codes may have any value. */
#ifndef WHIT_KV_SOUND_H
#define WHIT_KV_SOUND_H

#include "kv/cache.h"

/* Returns whether one KV head's block of 64 positions is valid; for a packed type, `block` is in the closed form.
 * rope_pairs is whit_kv_class.rope_pairs of the block's class. */
bool whit_kv_block_is_sound(whit_kv_type type, uint32_t head_dim, uint32_t rope_pairs, const void *block);
/* Returns whether the blocks that whit_kv_tail_load restored are valid, for a sequence of n_tokens: open blocks, sinks,
 * and the last block of a plain type. */
bool whit_kv_tail_is_sound(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens);

#endif
