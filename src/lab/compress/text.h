/* SPDX-License-Identifier: MIT
 * Reads the calibration text from files and encodes it with the source's own tokenizer. */
#ifndef WHIT_COMPRESS_TEXT_H
#define WHIT_COMPRESS_TEXT_H

#include "model/source.h"

/* Appends the ids (int32_t) of a text file to `ids`. Fails if the source has no tokenizer, if the tokenizer gives an id
 * outside the model's vocabulary, or if the file is empty. */
whit_status whit_compress_read_text(const whit_source *source, const char *path, whit_buf *ids, whit_error *error);
/* Returns the id of the first token that the tokenizer adds to an empty text; -1 if it adds no token of the model's
 * vocabulary, or if the source has no tokenizer. */
int32_t whit_compress_bos(const whit_source *source);

#endif
