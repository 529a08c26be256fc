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
    WHIT_FINISH_END,       /* an end token, on_token or a stage */
    WHIT_FINISH_STOP,      /* a stop string */
    WHIT_FINISH_CANCELLED, /* on_text, whit_generation_cancel or the session's cancel flag */
    WHIT_FINISH_FAILED,    /* see whit_generation_error */
} whit_finish;

/* Functions of this type receive text as it becomes final, and return false to stop. Stop strings are held back and
 * never shown. */
typedef bool whit_text_fn(void *user, const char *text, size_t text_bytes);
/* A function of this type receives an id as it is picked, before its text; it returns false to end before it, as before
 * an end token. */
typedef bool whit_token_fn(void *user, int32_t id);

/* Changes logits before a token is picked: a grammar, a program. A stage accepts only tokens that are part of the
 * output, in order, so guesses never have to be taken back. */
typedef struct whit_stage {
    size_t struct_bytes;
    void *user;
    /* Edits the (n_vocab) logits of the next token in place; -INFINITY bans. Called once per token. */
    whit_status (*apply)(void *user, float *logits, uint32_t n_vocab, whit_error *error);
    /* Receives the picked token, unless the token ends the output, and sets *end to true if the token is the last. */
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
    uint32_t n_present;      /* how many of the first ids are in the sequence already (its whole
                                   content): they are not computed again; default 0 */
    uint32_t n_tokens;       /* most tokens to generate; default 128 */
    bool ignore_end;         /* keep generating after end tokens */
    uint32_t n_draft_tokens; /* maximum tokens to guess from the preceding text: the same output, faster
                                   if texts repeat; needs n_logits one larger; default 0 */
    const char *const *stop; /* stop strings; copied */
    size_t n_stop;
    whit_text_fn *on_text; /* NULL: whit_generation_text gives the text */
    whit_token_fn *on_token;
    void *user;
    const whit_stage *const *stages; /* in order, before the sampler; copied, but not their `user` */
    size_t n_stages;
    bool logprobs; /* keep the log-probability of every token, and of n_top_logprobs others */
    uint32_t n_top_logprobs;
    const int32_t *end_ids; /* at most 16 further end tokens; copied */
    size_t n_end_ids;
    bool keep_special;    /* special tokens appear in the text */
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
    uint32_t n_prompt_tokens, n_generated_tokens; /* prompt tokens that were fed */
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

/* Feeds `ids` to the sequence and generates after them. The output depends on all of `ids`, not on
 * how many of them were present. `result` may be NULL. */
WHIT_API WHIT_CHECKED whit_status whit_generate(whit_session *session, whit_sampler *sampler, const int32_t *ids,
                                                size_t n_ids, const whit_generate_options *options,
                                                whit_generate_result *result, whit_error *error);

/* ---- a step at a time ---------------------------------------------------------------------------- */

/* A generation is a state machine: it offers the next tokens and consumes their logits, so that one step serves many
 * generations. A generation's text, tokens and finish do not depend on other generations. The generation belongs to the
 * session's thread, and nothing else may change its sequence meanwhile. After opening it allocates nothing, unless text
 * that is not fetched piles up. */
typedef struct whit_generation whit_generation;

/* Opens a generation; session and sampler outlive it. The error is WHIT_ERROR_LIMIT if the prompt does not fit the
 * context. */
WHIT_API WHIT_CHECKED whit_status whit_generation_open(whit_session *session, whit_sampler *sampler, const int32_t *ids,
                                                       size_t n_ids, const whit_generate_options *options,
                                                       whit_generation **generation, whit_error *error);
WHIT_API void whit_generation_close(whit_generation *generation);

/* Runs one session step for the next tokens of all unfinished generations: first the generating ones, then as much
 * of prompts as fits the batch, at least one token of each (further steps only if tokens or logits
 * exceed what the session takes at once). *n_open (may be NULL): how many are unfinished afterwards.
 * An error in one generation, such as logits that are not finite, finishes only that one. An error is
 * returned if the step itself failed: then nothing was appended, and the call may be repeated or the
 * generations cancelled. */
WHIT_API WHIT_CHECKED whit_status whit_generations_step(whit_session *session, whit_generation *const *generations,
                                                        size_t n, size_t *n_open, whit_error *error);

/* Repeats whit_generations_step until all are finished or time_ns have passed, at least once: for callers whose calls
 * cost much, such as interpreted languages. */
WHIT_API WHIT_CHECKED whit_status whit_generations_run(whit_session *session, whit_generation *const *generations,
                                                       size_t n, uint64_t time_ns, size_t *n_open, whit_error *error);

/* Returns, for custom schedulers, the tokens to feed next, a piece of the prompt or the last token with guesses, at
 * most `capacity`, of which at most n_logits want logits; *n_tokens is 0 if the generation is finished or those limits
 * are too small. Calls are idempotent until the next step. */
WHIT_API WHIT_CHECKED whit_status whit_generation_tokens_strided(whit_generation *generation, void *tokens,
                                                                 size_t capacity, size_t stride_bytes, size_t n_logits,
                                                                 size_t *n_tokens, whit_error *error);
static inline whit_status whit_generation_tokens(whit_generation *generation, whit_step_token *tokens, size_t capacity,
                                                 size_t n_logits, size_t *n_tokens, whit_error *error)
{
    return whit_generation_tokens_strided(generation, tokens, capacity, sizeof *tokens, n_logits, n_tokens, error);
}
/* Continues a generation after a step with the tokens of whit_generation_tokens: picks tokens from their logits, which
 * begin with the step's logits `i_wanted`, and calls on_token and on_text. On an error the generation is finished, and
 * whit_generation_error returns the same error. */
WHIT_API WHIT_CHECKED whit_status whit_generation_accept(whit_generation *generation, size_t i_wanted,
                                                         whit_error *error);
/* Finishes an unfinished generation: emits text that was held back and removes guesses from the sequence. */
WHIT_API void whit_generation_cancel(whit_generation *generation);

WHIT_API bool whit_generation_finished(const whit_generation *generation);
/* Returns the final text since the last call, for a generation without on_text; valid until the generation's next
 * change. */
WHIT_API const char *whit_generation_text(whit_generation *generation, size_t *text_bytes);
/* Returns all ids: the ids of the prompt, then the generated ids. */
WHIT_API const int32_t *whit_generation_ids(const whit_generation *generation, size_t *n_ids);
/* Returns 1 + n_top_logprobs entries, as from whit_logprobs, for the i-th generated token; NULL if not kept. */
WHIT_API const whit_logprob *whit_generation_logprobs(const whit_generation *generation, size_t i);
/* Returns the same entries for the i-th token of the prompt, i at least 1, since the first token follows nothing. Needs
 * prompt_logprobs. */
WHIT_API const whit_logprob *whit_generation_prompt_logprobs(const whit_generation *generation, size_t i);
/* Reports the counts and times so far; `finish` is valid once the generation is finished. */
WHIT_API void whit_generation_result(const whit_generation *generation, whit_generate_result *result);
/* Returns why the generation failed; NULL if it did not. */
WHIT_API const whit_error *whit_generation_error(const whit_generation *generation);

#ifdef __cplusplus
}
#endif
#endif
