/* SPDX-License-Identifier: MIT
 * Generates text: reads the prompt, then picks and prints tokens until something ends the generation, in one call or a
 * step at a time. */
#ifndef WHIT_GENERATION_H
#define WHIT_GENERATION_H

#include "sampler.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum whit_finish {
    WHIT_FINISH_LENGTH,    /* n_tokens were generated */
    WHIT_FINISH_END,       /* an end token was picked, or on_token or a stage ended the output */
    WHIT_FINISH_STOP,      /* a stop string was found */
    WHIT_FINISH_CANCELLED, /* on_text, whit_generation_cancel or the session's cancel flag stopped it */
    WHIT_FINISH_FAILED,    /* an error occurred: see whit_generation_error */
} whit_finish;

/* Functions of this type receive text as it becomes final, and return false to stop. Text that may be part of a stop
 * string is held back; a stop string itself is never passed. */
typedef bool whit_text_fn(void *user, const char *text, size_t text_bytes);
/* Functions of this type receive an id when it is picked, before its text, unless it is an end token, and return false
 * to end the output before that token, as an end token would. */
typedef bool whit_token_fn(void *user, int32_t id);

/* Changes logits before a token is picked; grammars and programs are stages. A stage's `accept` is called only for
 * tokens of the output, in order, and never for guesses, so a stage need not undo anything. */
typedef struct whit_stage {
    size_t struct_bytes;
    void *user; /* passed to the functions, each of which may be NULL */
    /* Edits the (n_vocab) logits of the next token in place; -INFINITY bans a token. Called once per token. */
    whit_status (*apply)(void *user, float *logits, uint32_t n_vocab, whit_error *error);
    /* Receives the picked token, unless it is an end token or on_token ended the output, and sets *end to true if the
     * token is the last. */
    whit_status (*accept)(void *user, int32_t id, bool *end, whit_error *error);
} whit_stage;
static inline whit_stage whit_stage_default(void)
{
    whit_stage stage;
    memset(&stage, 0, sizeof stage);
    stage.struct_bytes = sizeof stage;
    return stage;
}

typedef struct whit_generate_options {
    size_t struct_bytes;
    uint32_t sequence;       /* default 0 */
    uint32_t n_present;      /* number of leading ids, less than n_ids, that the sequence already has, as its whole
                              * content; they are not computed again; default 0: all ids follow the tokens of the
                              * sequence */
    uint32_t n_tokens;       /* maximum number of tokens to generate; default 128 */
    bool ignore_end;         /* keep generating after end tokens */
    uint32_t n_draft_tokens; /* maximum tokens guessed per step, at most 31 (7 with recurrent layers), from the
                              * preceding text or by the session's draft model (steps.h): same output, faster if guesses
                              * are right; limited to the session's n_logits - 1; default 0 */
    const char *const *stop; /* stop strings; copied */
    size_t n_stop;
    whit_text_fn *on_text; /* receives the text; NULL: fetch it by whit_generation_text */
    whit_token_fn *on_token;
    void *user;
    const whit_stage *const *stages; /* stages, applied in this order before the sampler; the structs are copied, their
                                      * `user` is not */
    size_t n_stages;
    bool logprobs;           /* keep log-probabilities of each generated token and of the n_top_logprobs likeliest */
    uint32_t n_top_logprobs; /* at most 1,024, and at most the vocabulary */
    const int32_t *end_ids;  /* at most 16 further end tokens; copied */
    size_t n_end_ids;
    bool keep_special;    /* special tokens appear in the text as they are written */
    bool prompt_logprobs; /* keep log-probabilities of the prompt's tokens too; slower, and n_present must be 0 */
} whit_generate_options;
static inline whit_generate_options whit_generate_options_default(void)
{
    whit_generate_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    options.n_tokens = 128;
    return options;
}

typedef struct whit_generate_result {
    size_t struct_bytes;
    uint32_t n_prompt_tokens, n_generated_tokens; /* prompt tokens that were fed; tokens that were generated, without
                                                   * the end token */
    uint64_t prompt_ns, generate_ns;
    whit_finish finish;
    size_t i_stop; /* for WHIT_FINISH_STOP: index of the stop string */
} whit_generate_result;
static inline whit_generate_result whit_generate_result_default(void)
{
    whit_generate_result result;
    memset(&result, 0, sizeof result);
    result.struct_bytes = sizeof result;
    return result;
}

/* ---- in one call --------------------------------------------------------------------------------- */

/* Feeds `ids` to the sequence and generates tokens after them. The output depends on all of `ids`, but not on
 * n_present. `result` may be NULL. The error is WHIT_ERROR_LIMIT if the prompt does not fit the context, or if the
 * context is full before the output ends; in the second case on_text has received the text so far. */
WHIT_API WHIT_CHECKED whit_status whit_generate(whit_session *session, whit_sampler *sampler, const int32_t *ids,
                                                size_t n_ids, const whit_generate_options *options,
                                                whit_generate_result *result, whit_error *error);

/* ---- a step at a time ---------------------------------------------------------------------------- */

/* A generation is a state machine: it offers the next tokens and consumes their logits, so that one step can serve many
 * generations. A generation's text, tokens and finish do not depend on other generations. A generation belongs to the
 * session's thread, and nothing else may change its sequence until it is finished. After it is opened it allocates
 * nothing, except for text that the caller does not fetch, and in the decoders of a few tokenizers (WordPiece, a
 * replacement by a regular expression). */
typedef struct whit_generation whit_generation;

/* Opens a generation; the session and the sampler must outlive it. The ids are copied, and the sampler remembers them
 * (whit_sampler_accept). The error is WHIT_ERROR_LIMIT if the prompt does not fit the context. */
WHIT_API WHIT_CHECKED whit_status whit_generation_open(whit_session *session, whit_sampler *sampler, const int32_t *ids,
                                                       size_t n_ids, const whit_generate_options *options,
                                                       whit_generation **generation, whit_error *error);
WHIT_API void whit_generation_close(whit_generation *generation);

/* Runs one session step for the next tokens of all unfinished generations: first the tokens of those past their
 * prompts, then as many prompt tokens as fit the batch, at least one of each prompt. It runs further steps only if
 * tokens exceed the session's n_batch_tokens or 512, or logits its n_logits. *n_open (may be NULL): number of
 * unfinished generations afterwards. An error in one generation, such as logits that are not finite, finishes only that
 * generation. An error is returned if a step itself failed: then that step appended nothing, and the caller may repeat
 * the call or cancel the generations. */
WHIT_API WHIT_CHECKED whit_status whit_generations_step(whit_session *session, whit_generation *const *generations,
                                                        size_t n, size_t *n_open, whit_error *error);

/* Repeats whit_generations_step until all generations are finished or time_ns have passed, at least once: for callers
 * whose calls are expensive, such as interpreted languages. */
WHIT_API WHIT_CHECKED whit_status whit_generations_run(whit_session *session, whit_generation *const *generations,
                                                       size_t n, uint64_t time_ns, size_t *n_open, whit_error *error);

/* Returns, for custom schedulers, the tokens to feed next: a piece of the prompt, or the last token with guesses. They
 * are at most `capacity` tokens, of which at most n_logits want logits. *n_tokens is 0 if the generation is finished or
 * these limits are too small. Repeated calls with the same limits return the same tokens until the step that computes
 * them; a call between that step and whit_generation_accept makes the generation fail. It also fails if the context is
 * full, or if anything else changed its sequence. */
WHIT_API WHIT_CHECKED whit_status whit_generation_tokens_strided(whit_generation *generation, void *tokens,
                                                                 size_t capacity, size_t stride_bytes, size_t n_logits,
                                                                 size_t *n_tokens, whit_error *error);
static inline whit_status whit_generation_tokens(whit_generation *generation, whit_step_token *tokens, size_t capacity,
                                                 size_t n_logits, size_t *n_tokens, whit_error *error)
{
    return whit_generation_tokens_strided(generation, tokens, capacity, sizeof *tokens, n_logits, n_tokens, error);
}
/* Continues a generation after a step with the tokens of whit_generation_tokens: picks tokens from their logits and
 * calls on_token and on_text. i_wanted is the index of their first logits among the step's wanted logits. On an error
 * the generation is finished, and whit_generation_error returns the same error, or NULL for WHIT_ERROR_CANCELLED. */
WHIT_API WHIT_CHECKED whit_status whit_generation_accept(whit_generation *generation, size_t i_wanted,
                                                         whit_error *error);
/* Finishes an unfinished generation: emits the text held back and removes guesses from the sequence. */
WHIT_API void whit_generation_cancel(whit_generation *generation);

WHIT_API bool whit_generation_finished(const whit_generation *generation);
/* Returns the text that became final since the last call, for a generation without on_text; valid until the
 * generation's next change. */
WHIT_API const char *whit_generation_text(whit_generation *generation, size_t *text_bytes);
/* Returns all ids: the ids of the prompt, then the generated ids. In an endless session the oldest ones are missing
 * after more than 65,536 generated tokens. */
WHIT_API const int32_t *whit_generation_ids(const whit_generation *generation, size_t *n_ids);
/* Returns 1 + n_top_logprobs entries for the i-th generated token, in the form of whit_logprobs; NULL if not kept. */
WHIT_API const whit_logprob *whit_generation_logprobs(const whit_generation *generation, size_t i);
/* Returns 1 + n_top_logprobs entries for token i of the prompt, i >= 1: token 0 follows nothing and has no entries.
 * NULL without prompt_logprobs, and before the step that computes them. */
WHIT_API const whit_logprob *whit_generation_prompt_logprobs(const whit_generation *generation, size_t i);
/* Reports the counts and times so far; `finish` is valid once the generation is finished. */
WHIT_API void whit_generation_result(const whit_generation *generation, whit_generate_result *result);
/* Returns why the generation failed; NULL if it did not fail or was cancelled. */
WHIT_API const whit_error *whit_generation_error(const whit_generation *generation);

#ifdef __cplusplus
}
#endif
#endif
