/* SPDX-License-Identifier: MIT
 * Limits the thinking section of an answer. */
#ifndef WHIT_THINKING_LIMIT_H
#define WHIT_THINKING_LIMIT_H

#include "chat.h"
#include "generation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the thinking section of one answer after a number of tokens: the tokens of the end tag are then the only ones
 * that can be picked. The section is recognised by the tokens of the template's tags. A limit serves one generation,
 * and is used by one thread at a time. */
typedef struct whit_thinking_limit whit_thinking_limit;
/* Opens a limit of n_tokens for the answer to `prompt`; the prompt determines whether the answer begins within a
 * thinking section. *limit is NULL if the template has no thinking. */
WHIT_API WHIT_CHECKED whit_status whit_thinking_limit_open(const whit_chat_template *chat,
                                                           const whit_chat_prompt *prompt, uint32_t n_tokens,
                                                           whit_thinking_limit **limit, whit_error *error);
WHIT_API void whit_thinking_limit_close(whit_thinking_limit *limit);
/* Returns the stage for whit_generate_options.stages; the limit must outlive it. */
WHIT_API whit_stage whit_thinking_limit_stage(whit_thinking_limit *limit);

#ifdef __cplusplus
}
#endif
#endif
