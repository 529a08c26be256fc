/* SPDX-License-Identifier: MIT
 * Reads the calibration text as ids, from files through the source's own tokenizer. */
#ifndef WHIT_COMPRESS_TEXT_H
#define WHIT_COMPRESS_TEXT_H

#include "model/source.h"

/* Appends the ids (int32_t) of a text file to `ids`. Refuses a source without a tokenizer, and an empty file. */
whit_status whit_compress_read_text(const whit_source *source, const char *path, whit_buf *ids, whit_error *error);
/* Returns the id of the token that the tokenizer puts at the beginning of a text, or -1. */
int32_t whit_compress_bos(const whit_source *source);

#endif
