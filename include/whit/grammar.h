/* SPDX-License-Identifier: MIT
 * Grammars: constrained decoding, which restricts the next token so that an answer has the required form.
 *
 * A *vocabulary* holds the bytes of a model's tokens; a *grammar* is compiled for it from GBNF or JSON
 * Schema; a *state* is a place in a text that follows the grammar. A schema keyword that can't be
 * enforced is an error that names the place, never an unconstrained answer. docs/use/grammar.md lists what
 * is supported. */
#ifndef WHIT_GRAMMAR_H
#define WHIT_GRAMMAR_H

#include "generation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A vocabulary never changes; threads may share it. The model must outlive it. The error is WHIT_ERROR_UNSUPPORTED if
 * the model has no tokenizer, or one whose tokens have different texts beside others (WordPiece). */
typedef struct whit_grammar_vocabulary whit_grammar_vocabulary;
WHIT_API WHIT_CHECKED whit_status whit_grammar_vocabulary_open(const whit_model *model,
                                                               whit_grammar_vocabulary **vocabulary, whit_error *error);
WHIT_API void whit_grammar_vocabulary_close(whit_grammar_vocabulary *vocabulary);

/* A grammar belongs, with all its states, to one thread at a time. The vocabulary must outlive it. `name` prefixes
 * error messages. The grammar's memory is bounded, whatever the text: about 64 MB at most. */
typedef struct whit_grammar whit_grammar;
/* Compiles GBNF as llama.cpp defines it; `%json {...}` stands for any JSON text that matches the schema {...}. */
WHIT_API WHIT_CHECKED whit_status whit_grammar_open_gbnf(const whit_grammar_vocabulary *vocabulary, const char *name,
                                                         const char *text, size_t text_bytes, whit_grammar **grammar,
                                                         whit_error *error);
WHIT_API WHIT_CHECKED whit_status whit_grammar_open_json_schema(const whit_grammar_vocabulary *vocabulary,
                                                                const char *name, const char *schema,
                                                                size_t schema_bytes, whit_grammar **grammar,
                                                                whit_error *error);
WHIT_API void whit_grammar_close(whit_grammar *grammar);

#define WHIT_GRAMMAR_ROLLBACK_MAX 32u

typedef struct whit_grammar_state whit_grammar_state;
/* Opens a state at the beginning of a text. The grammar must outlive it. */
WHIT_API WHIT_CHECKED whit_status whit_grammar_state_open(whit_grammar *grammar, whit_grammar_state **state,
                                                          whit_error *error);
WHIT_API WHIT_CHECKED whit_status whit_grammar_state_clone(const whit_grammar_state *state, whit_grammar_state **clone,
                                                           whit_error *error);
WHIT_API void whit_grammar_state_close(whit_grammar_state *state);
/* Returns one bit per token id, (vocab + 63) / 64 words: 1 if the token may come next. End tokens may come next where
 * the text may end. The bits are valid until the next call with the grammar or one of its states. */
WHIT_API WHIT_CHECKED whit_status whit_grammar_mask(whit_grammar_state *state, const uint64_t **bits,
                                                    whit_error *error);
/* Advances the state by a token. The error is WHIT_ERROR_ARGUMENT if the token may not come next; the state is then
 * unchanged. */
WHIT_API WHIT_CHECKED whit_status whit_grammar_accept(whit_grammar_state *state, int32_t id, whit_error *error);
/* Removes the last n tokens from the state; n is at most WHIT_GRAMMAR_ROLLBACK_MAX and at most the number of accepted
 * tokens. */
WHIT_API WHIT_CHECKED whit_status whit_grammar_rollback(whit_grammar_state *state, uint32_t n, whit_error *error);
/* Return whether the text may end here (is_complete), and whether it must end here (is_finished). */
WHIT_API bool whit_grammar_is_complete(const whit_grammar_state *state);
WHIT_API bool whit_grammar_is_finished(const whit_grammar_state *state);

/* Returns the state as a stage of a generation (whit_generate_options.stages): it bans tokens that may not come next,
 * and ends the generation where the text must end. The state must be used by that generation only, and outlive it. */
WHIT_API whit_stage whit_grammar_stage(whit_grammar_state *state);

#ifdef __cplusplus
}
#endif
#endif
