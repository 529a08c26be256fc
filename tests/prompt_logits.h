/* SPDX-License-Identifier: MIT
 * Computes logits of a fixed prompt, for tests that compare models. */
#ifndef WHIT_TESTS_PROMPT_LOGITS_H
#define WHIT_TESTS_PROMPT_LOGITS_H

#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/session.h"

enum { PROMPT_TOKENS = 40 };

static inline int32_t prompt_token(uint32_t i)
{
    return (int32_t)((i * 71 + i * i * 7 + 3) % 500);
}

/* Returns the logits (PROMPT_TOKENS, vocabulary) of a prompt with ids below n_ids, in a session of these options, whose
 * numbers of tokens are set here; the caller frees. */
static inline float *prompt_logits_below(const whit_model *model, whit_session_options options, uint32_t n_ids)
{
    whit_error error;
    whit_session *session;
    whit_step_token tokens[PROMPT_TOKENS];
    const size_t n_vocab = whit_model_vocab_size(model);
    options.n_ctx_tokens = options.n_logits = PROMPT_TOKENS;
    assert_ok(whit_session_open(model, &options, &session, &error), error);
    for (uint32_t i = 0; i < PROMPT_TOKENS; i++)
        tokens[i] = (whit_step_token){.id = prompt_token(i) % (int32_t)n_ids, .want_logits = true};
    assert_ok(whit_session_step(session, tokens, PROMPT_TOKENS, &error), error);
    float *logits = malloc(PROMPT_TOKENS * n_vocab * sizeof *logits);
    assert_non_null(logits);
    for (uint32_t i = 0; i < PROMPT_TOKENS; i++)
        memcpy(logits + i * n_vocab, whit_session_logits(session, i), n_vocab * sizeof *logits);
    whit_session_close(session);
    return logits;
}

/* Calls prompt_logits_below with ids below 500. */
static inline float *prompt_logits(const whit_model *model, whit_session_options options)
{
    return prompt_logits_below(model, options, 500);
}

#endif
