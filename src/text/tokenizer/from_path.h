/* SPDX-License-Identifier: MIT
 * Opens a tokenizer from a file or folder of any supported format. */
#ifndef WHIT_TOKENIZER_FROM_PATH_H
#define WHIT_TOKENIZER_FROM_PATH_H

#include "base/mem.h"
#include "format/hf.h"

/* Appends the image of the tokenizer at `path` to `image`. It is a tokenizer.json, a tokenizer.model (SentencePiece or
 * tiktoken), a GGUF file, or a folder. A folder has one of the first two (tokenizer.json is preferred) and the files
 * that name its special and added tokens. A file's format is recognised by its content, not by its name. */
whit_status whit_tokenizer_from_path(const char *path, whit_buf *image, whit_error *error);

/* Appends the image of the tokenizer of an open Hugging Face folder. *found is false if the folder has no tokenizer. */
whit_status whit_tokenizer_from_hf(const whit_hf *hf, bool *found, whit_buf *image, whit_error *error);

#endif
