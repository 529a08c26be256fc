/* SPDX-License-Identifier: MIT
 * Chooses the files of a repository that make a model: a GGUF file with all its parts, or the set of a safetensors
 * folder. The same function chooses from a hub's listing and from the record of pulled files. */
#ifndef WHIT_HUB_CHOOSE_H
#define WHIT_HUB_CHOOSE_H

#include "hub/listing.h"

typedef enum whit_hub_kind {
    WHIT_HUB_FOLDER, /* opened as a folder */
    WHIT_HUB_GGUF,   /* opened by its first part */
    WHIT_HUB_OTHER,  /* a file that was requested by its name */
} whit_hub_kind;

/* Lists the chosen files as indices into the files of a sorted listing. */
typedef struct whit_hub_choice {
    whit_hub_kind kind;
    size_t *files; /* files[0] of a GGUF model is its first part */
    size_t n_files;
    size_t index; /* the file index of model.safetensors.index.json while its shards are not yet added; else SIZE_MAX */
} whit_hub_choice;

/* Chooses the files of a model. `wanted` is a path, a pattern (with * or ?), or a tag: a part of the name of a GGUF
 * file, such as Q4_K_M or i2_s, in any case; "" chooses the safetensors folder, else the only GGUF model. If nothing or
 * more than one model matches, the error (WHIT_ERROR_ARGUMENT, or WHIT_ERROR_FORMAT where a model is incomplete) lists
 * the candidates. `what` names the repository. */
whit_status whit_hub_choose(const whit_hub_listing *listing, const char *what, const char *wanted,
                            whit_hub_choice *choice, whit_error *error);
/* Adds the shards that a folder's index names; `text` is the content of the index file. */
whit_status whit_hub_choose_shards(const whit_hub_listing *listing, const char *what, const char *text, size_t n_bytes,
                                   whit_hub_choice *choice, whit_error *error);
void whit_hub_choice_free(whit_hub_choice *choice);

/* Finds the length of the path without "-00001-of-00003.gguf" or ".gguf", which the parts of one model have in common;
 * *part and *n_parts are 1 if the file is not split. The result is false if the name is not a GGUF file's. */
bool whit_hub_gguf_stem(const char *path, size_t *stem_bytes, unsigned *part, unsigned *n_parts);

#endif
