/* SPDX-License-Identifier: MIT
 * Log-probabilities of tokens as JSON text, a few tokens at a time, and the places of tokens in a text. */
#ifndef WHIT_SERVER_LOGPROBS_H
#define WHIT_SERVER_LOGPROBS_H

#include "server/ask.h"

/* ---- places ---------------------------------------------------------------------------------------- */

/* The place of the next token of an answer: characters (code points) of the reply's text before it. */
typedef struct whit_text_place {
    whit_detokenizer *detokenizer; /* NULL: memory was short, and the place stays */
    size_t n_chars;
    bool is_within; /* a character has begun whose remaining bytes are in later tokens */
} whit_text_place;

/* Sets `place` to the place of the first token of the i-th answer. To be closed. */
void whit_text_place_open(const whit_ask *ask, uint32_t i, whit_text_place *place);
void whit_text_place_close(whit_text_place *place);
/* Advances by one token; returns the offset of its text in the reply's text, in characters. */
size_t whit_text_place_take(const whit_api *api, whit_text_place *place, int32_t id);
/* Returns the text of the i-th answer's prompt, where it is part of the reply; else empty. */
const whit_buf *whit_ask_prompt_text(const whit_ask *ask, uint32_t i);
size_t whit_count_chars(const void *text, size_t n_bytes);

/* ---- lists ----------------------------------------------------------------------------------------- */

typedef enum whit_logs_form {
    WHIT_LOGS_CHAT,       /* {"content": [...], "refusal": null} */
    WHIT_LOGS_COMPLETION, /* {"tokens": [...], "token_logprobs": [...], "top_logprobs": [...], "text_offset": [...]} */
    WHIT_LOGS_LIST,       /* [...], as in llama.cpp */
    WHIT_LOGS_PROBS,      /* the same with probabilities after the samplers: "prob" and "top_probs" */
} whit_logs_form;

/* Tokens to write, and how far that is done. The entries are the caller's: 1 + n_top for each token. */
typedef struct whit_logs {
    const whit_api *api;
    whit_logs_form form;
    uint32_t n_top;
    int32_t first_id;             /* a first token, which has no log-probabilities; -1: not written */
    const whit_logprob *parts[2]; /* the prompt's, the answer's */
    size_t n_parts[2];            /* tokens of each */
    const size_t *offsets;        /* (tokens) places of WHIT_LOGS_COMPLETION */
    uint32_t i_list;
    size_t i_token;
} whit_logs;

/* Appends a few tokens more; returns false after the end of the whole value. */
bool whit_logs_write(whit_logs *logs, whit_buf *out);

/* Collects all log-probabilities of the i-th answer, which must have ended, with those of its prompt if requested.
 * The caller frees *offsets; NULL in `logs` if memory is short. */
void whit_ask_logs(const whit_ask *ask, uint32_t i, whit_logs_form form, whit_logs *logs, size_t **offsets);
/* Places of the prompt's tokens (n_ids of the i-th job) in the reply's text, for the caller to free; NULL: memory is
 * short. */
size_t *whit_ask_prompt_places(const whit_ask *ask, uint32_t i);

/* Appends a token's text as JSON: bytes that are not characters as a list of numbers (llama.cpp). */
void whit_write_piece(const whit_api *api, int32_t id, whit_buf *out);

#endif
