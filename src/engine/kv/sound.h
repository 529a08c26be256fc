/* SPDX-License-Identifier: MIT
 * Whether blocks that were read from a file are such as a cache makes: kernels take scales and units as they are, and
 * count on integers that fit. Codes may be any. */
#ifndef WHIT_KV_SOUND_H
#define WHIT_KV_SOUND_H

#include "kv/cache.h"

/* Of one KV head: all 64 positions, of a packed type closed. rope_pairs as of its class. */
bool whit_kv_block_is_sound(whit_kv_type type, uint32_t head_dim, uint32_t rope_pairs, const void *block);
/* What whit_kv_tail_load has made of a tail: the open blocks and sinks of a sequence of n_tokens. */
bool whit_kv_tail_is_sound(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens);

#endif
