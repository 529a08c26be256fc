/* SPDX-License-Identifier: MIT
 * Converts text to tokens of a model and back. */
#ifndef WHIT_TEXT_H
#define WHIT_TEXT_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

WHIT_API bool whit_model_has_tokenizer(const whit_model *model);
/* Encodes text (any bytes) to ids. `add_special` adds BOS and similar tokens if the model requires them;
 * `parse_special` recognises special tokens written in the text. *n_ids is the number of ids, even if it exceeds
 * `capacity` (then WHIT_ERROR_LIMIT, and the content of `ids` is undefined). */
WHIT_API WHIT_CHECKED whit_status whit_tokenize(const whit_model *model, const char *text, size_t text_bytes,
                                                bool add_special, bool parse_special, int32_t *ids, size_t capacity,
                                                size_t *n_ids, whit_error *error);
/* Encodes the prompt that asks for the text between `prefix` and `suffix` (either may be empty), with the model's
 * fill-in-the-middle tokens. Special tokens written in the texts become plain text. *n_ids is set as by whit_tokenize.
 * Errors: WHIT_ERROR_UNSUPPORTED (the model has no such tokens, or no tokenizer), WHIT_ERROR_LIMIT,
 * WHIT_ERROR_MEMORY. */
WHIT_API WHIT_CHECKED whit_status whit_tokenize_infill(const whit_model *model, const char *prefix, size_t prefix_bytes,
                                                       const char *suffix, size_t suffix_bytes, int32_t *ids,
                                                       size_t capacity, size_t *n_ids, whit_error *error);
WHIT_API int32_t whit_model_bos(const whit_model *model);             /* id of the BOS token; -1 if absent */
WHIT_API bool whit_model_is_end(const whit_model *model, int32_t id); /* returns whether the id ends a text or a turn */

/* Returns the bytes that a token appends to a text; they may be a part of a character. A special token has the text
 * that it is written as. *n_bytes is the number of bytes, even if it exceeds `capacity` (then WHIT_ERROR_LIMIT, and the
 * content of `bytes` is undefined); 0 for ids without text. */
WHIT_API WHIT_CHECKED whit_status whit_token_bytes(const whit_model *model, int32_t id, uint8_t *bytes, size_t capacity,
                                                   size_t *n_bytes, whit_error *error);

/* Decodes a stream of ids to text: a piece is returned only once it can no longer change, and never ends inside a UTF-8
 * character. The model must outlive the detokenizer. */
typedef struct whit_detokenizer whit_detokenizer;
WHIT_API WHIT_CHECKED whit_status whit_detokenizer_open(const whit_model *model, bool skip_special,
                                                        whit_detokenizer **detokenizer, whit_error *error);
/* Returns the text that became final with `id`. The detokenizer owns it; it is valid until the next call. */
WHIT_API WHIT_CHECKED whit_status whit_detokenizer_push(whit_detokenizer *detokenizer, int32_t id, const char **text,
                                                        size_t *text_bytes, whit_error *error);
WHIT_API WHIT_CHECKED whit_status whit_detokenizer_flush(whit_detokenizer *detokenizer, const char **text,
                                                         size_t *text_bytes, whit_error *error);
WHIT_API void whit_detokenizer_close(whit_detokenizer *detokenizer);

#ifdef __cplusplus
}
#endif
#endif
