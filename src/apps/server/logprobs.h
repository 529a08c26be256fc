/* SPDX-License-Identifier: MIT
 * Writes log-probabilities of tokens as JSON text, a few tokens at a time, and computes the places of tokens in a
 * text. */
#ifndef WHIT_SERVER_LOGPROBS_H
#define WHIT_SERVER_LOGPROBS_H

#include "server/ask.h"

/* ---- places ---------------------------------------------------------------------------------------- */

/* Holds the place of the next token of an answer: number of characters (code points) of the reply's text before it. */
typedef struct whit_text_place {
    whit_detokenizer *detokenizer; /* NULL: memory ran out, and the place does not advance */
    size_t n_chars;
    bool is_within; /* a character has begun whose remaining bytes are in later tokens */
} whit_text_place;

/* Sets `place` to the place of the first token of the i-th answer. The caller closes it. */
void whit_text_place_open(const whit_ask *ask, uint32_t i, whit_text_place *place);
void whit_text_place_close(whit_text_place *place);
/* Advances the place by one token; returns the offset, in characters, of the token's text in the reply's text. */
size_t whit_text_place_take(const whit_api *api, whit_text_place *place, int32_t id);
/* Returns the text of the i-th answer's prompt if it is part of the reply; otherwise an empty text. */
const whit_buf *whit_ask_prompt_text(const whit_ask *ask, uint32_t i);
size_t whit_count_chars(const void *text, size_t n_bytes);

/* ---- lists ----------------------------------------------------------------------------------------- */

typedef enum whit_logs_form {
    WHIT_LOGS_CHAT,       /* {"content": [...], "refusal": null} */
    WHIT_LOGS_COMPLETION, /* {"tokens": [...], "token_logprobs": [...], "top_logprobs": [...], "text_offset": [...]} */
    WHIT_LOGS_LIST,       /* [...], as in llama.cpp */
    WHIT_LOGS_PROBS,      /* [...], with probabilities after the samplers: "prob" and "top_probs" */
} whit_logs_form;

/* The tokens to write, and how many of them are written. The caller owns the entries: 1 + n_top for each token. */
typedef struct whit_logs {
    const whit_api *api;
    whit_logs_form form;
    uint32_t n_top;
    int32_t first_id;             /* a first token, which has no log-probabilities; -1: there is no such token */
    const whit_logprob *parts[2]; /* log-probabilities of the prompt, and of the answer */
    size_t n_parts[2];            /* numbers of tokens of the prompt and of the answer */
    const size_t *offsets;        /* (tokens) offsets for WHIT_LOGS_COMPLETION */
    uint32_t i_list;
    size_t i_token;
} whit_logs;

/* Appends a few more tokens; returns false after the end of the whole value. */
bool whit_logs_write(whit_logs *logs, whit_buf *out);

/* Collects all log-probabilities of the i-th answer, which must have ended, and those of its prompt if requested. The
 * caller frees *offsets. *offsets is NULL, as `offsets` of `logs` is, if memory runs out or `form` needs no offsets. */
void whit_ask_logs(const whit_ask *ask, uint32_t i, whit_logs_form form, whit_logs *logs, size_t **offsets);
/* Returns the places of the prompt's tokens (n_ids of the i-th job) in the reply's text; the caller frees them. Returns
 * NULL if memory runs out. */
size_t *whit_ask_prompt_places(const whit_ask *ask, uint32_t i);

/* Appends a token's text as JSON; bytes that are not characters are written as a list of numbers, like llama.cpp
 * does. */
void whit_write_piece(const whit_api *api, int32_t id, whit_buf *out);

#endif
