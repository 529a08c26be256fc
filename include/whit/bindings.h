/* SPDX-License-Identifier: MIT
 * Gives defaults to bindings of other languages, which cannot call the inline _default() functions of the other
 * headers.
 *
 * Each function fills the first size_bytes bytes of a struct with its defaults, as the program knows the struct:
 * `struct_bytes` becomes size_bytes, and members that the library does not know become 0. Returns the struct's size in
 * the library. If `to` is NULL, or the size is below that of `struct_bytes`, it fills nothing. */
#ifndef WHIT_BINDINGS_H
#define WHIT_BINDINGS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

WHIT_API size_t whit_answer_init(void *to, size_t size_bytes);
WHIT_API size_t whit_answer_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_call_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_chat_request_init(void *to, size_t size_bytes);
WHIT_API size_t whit_chat_template_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_embed_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_generate_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_generate_result_init(void *to, size_t size_bytes);
WHIT_API size_t whit_model_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_program_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_rerank_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_rerank_pair_init(void *to, size_t size_bytes);
WHIT_API size_t whit_sampler_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_session_options_init(void *to, size_t size_bytes);
WHIT_API size_t whit_session_replay_init(void *to, size_t size_bytes);
WHIT_API size_t whit_session_turn_init(void *to, size_t size_bytes);
WHIT_API size_t whit_stage_init(void *to, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif
