/* SPDX-License-Identifier: MIT
 * Chooses the files of a repository that form a model: a GGUF file with all its parts, or the files of a safetensors
 * folder. The listing may come from a hub or from the store's record of pulled files. */
#ifndef WHIT_HUB_CHOOSE_H
#define WHIT_HUB_CHOOSE_H

#include "hub/listing.h"

typedef enum whit_hub_kind {
    WHIT_HUB_FOLDER, /* a safetensors model; opened as a folder */
    WHIT_HUB_GGUF,   /* opened by its first part */
    WHIT_HUB_OTHER,  /* a file other than .gguf that was requested by its path */
} whit_hub_kind;

/* Chosen files, as indices into the files of a sorted listing. */
typedef struct whit_hub_choice {
    whit_hub_kind kind;
    size_t *files; /* files[0] of a GGUF model is its first part */
    size_t n_files;
    size_t index; /* position of model.safetensors.index.json in the listing, for whit_hub_choose_shards; SIZE_MAX: the
                   * weights have no shards */
} whit_hub_choice;

/* Chooses the files of a model. `wanted` is a path, a pattern (with *, ? or [), or a tag, which is a part of a GGUF
 * file's name such as Q4_K_M or i2_s, in upper or lower case. "" chooses the safetensors folder, or, without one, the
 * only GGUF model. `what` is the repository's name for messages. If no model or more than one matches, the error is
 * WHIT_ERROR_ARGUMENT and lists the GGUF models. If the listing lacks a part of the chosen model, it is
 * WHIT_ERROR_FORMAT and names the part. */
whit_status whit_hub_choose(const whit_hub_listing *listing, const char *what, const char *wanted,
                            whit_hub_choice *choice, whit_error *error);
/* Adds the shards that the index file of a safetensors folder names, each once; after an error none is added. `text` is
 * the content of that file. */
whit_status whit_hub_choose_shards(const whit_hub_listing *listing, const char *what, const char *text, size_t n_bytes,
                                   whit_hub_choice *choice, whit_error *error);
void whit_hub_choice_free(whit_hub_choice *choice);

/* Finds the length of the part of the path that all parts of a GGUF model share: without "-00001-of-00003.gguf" or
 * ".gguf". *part (from 1) and *n_parts are both 1 if the file is not split. Returns false if the path does not end in
 * ".gguf". */
bool whit_hub_gguf_stem(const char *path, size_t *stem_bytes, unsigned *part, unsigned *n_parts);

#endif
