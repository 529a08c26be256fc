/* SPDX-License-Identifier: MIT
 * Writes log-probabilities of tokens as JSON text, a few tokens at a time, and computes the offsets of tokens in a
 * text. */
#ifndef WHIT_SERVER_LOGPROBS_H
#define WHIT_SERVER_LOGPROBS_H

#include "server/ask.h"

/* ---- offsets of tokens ----------------------------------------------------------------------------- */

/* The offset of the next token of an answer: how many characters (code points) of the reply's text precede it. */
typedef struct whit_text_place {
    whit_detokenizer *detokenizer; /* NULL: memory ran out; the offset then stays the same */
    size_t n_chars;
    bool is_within; /* the text so far ends with an incomplete character, whose last bytes are in later tokens */
} whit_text_place;

/* Sets `place` to the first token of the i-th answer. The caller must close it. */
void whit_text_place_open(const whit_ask *ask, uint32_t i, whit_text_place *place);
void whit_text_place_close(whit_text_place *place);
/* Moves past one token; returns the offset of its text in the reply's text, in characters. */
size_t whit_text_place_take(const whit_api *api, whit_text_place *place, int32_t id);
/* Returns the text of the prompt of the i-th answer; it is empty unless the reply repeats the prompt ("echo"). */
const whit_buf *whit_ask_prompt_text(const whit_ask *ask, uint32_t i);
size_t whit_count_chars(const void *text, size_t n_bytes);

/* ---- lists of log-probabilities -------------------------------------------------------------------- */

typedef enum whit_logs_form {
    WHIT_LOGS_CHAT,       /* {"content": [...], "refusal": null} */
    WHIT_LOGS_COMPLETION, /* {"tokens": [...], "token_logprobs": [...], "top_logprobs": [...], "text_offset": [...]} */
    WHIT_LOGS_LIST,       /* [...], as in llama.cpp */
    WHIT_LOGS_PROBS,      /* [...], with probabilities after the samplers, in members "prob" and "top_probs" */
} whit_logs_form;

/* The tokens whose log-probabilities are written, and how many are written already. The caller owns the entries, 1 +
 * n_top for each token. */
typedef struct whit_logs {
    const whit_api *api;
    whit_logs_form form;
    uint32_t n_top;
    int32_t first_id;             /* id of the prompt's first token, which is written without log-probabilities, or
                                   * -1 */
    const whit_logprob *parts[2]; /* entries of the prompt's tokens, and of the answer's */
    size_t n_parts[2];            /* number of the prompt's tokens with entries, and of the answer's */
    const size_t *offsets;        /* offset of each token in the text, for WHIT_LOGS_COMPLETION */
    uint32_t i_list;
    size_t i_token;
} whit_logs;

/* Appends the JSON text of a few more tokens; returns false once the whole value is written. */
bool whit_logs_write(whit_logs *logs, whit_buf *out);

/* Prepares writing all log-probabilities of the i-th answer, which must have ended, and those of its prompt if
 * requested. WHIT_LOGS_LIST becomes WHIT_LOGS_PROBS if the request of a vendor's API wants probabilities after the
 * samplers. *offsets, which the caller frees, is also stored in logs->offsets; it is NULL if `form` needs no offsets or
 * memory runs out. */
void whit_ask_logs(const whit_ask *ask, uint32_t i, whit_logs_form form, whit_logs *logs, size_t **offsets);
/* Returns the offsets of the prompt's tokens (n_ids of the i-th job) in the reply's text, which the caller frees; NULL
 * if memory runs out. */
size_t *whit_ask_prompt_places(const whit_ask *ask, uint32_t i);

/* Appends a token's text as a JSON string. If its bytes are not complete characters or contain a zero byte, appends
 * them as a list of numbers, as llama.cpp does. */
void whit_write_piece(const whit_api *api, int32_t id, whit_buf *out);

#endif
