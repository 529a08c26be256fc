/* SPDX-License-Identifier: MIT
 * Which files of a repository make a model: a GGUF file with all its parts, or the set of a
 * safetensors folder. The same choice serves a hub's listing and what was pulled before. */
#ifndef WHIT_HUB_CHOOSE_H
#define WHIT_HUB_CHOOSE_H

#include "hub/listing.h"

typedef enum whit_hub_kind {
    WHIT_HUB_FOLDER, /* opened as a folder */
    WHIT_HUB_GGUF,   /* opened by its first part */
    WHIT_HUB_OTHER,  /* a file that was asked for by its name */
} whit_hub_kind;

/* Indices into the files of a sorted listing. */
typedef struct whit_hub_choice {
    whit_hub_kind kind;
    size_t *files; /* files[0] of a GGUF model is its first part */
    size_t n_files;
    size_t index; /* of a folder's model.safetensors.index.json, whose shards are still to be added;
                     SIZE_MAX where there is none */
} whit_hub_choice;

/* `wanted` is a path, a pattern (with * or ?), or a tag: a piece of the name of a GGUF file, such as
 * Q4_K_M or i2_s, in any case; "" takes the safetensors folder, else the only GGUF model. Where the
 * choice is none or not one, the error (WHIT_ERROR_ARGUMENT, or WHIT_ERROR_FORMAT where a model is
 * incomplete) names what there is. `what` names the repository. */
whit_status whit_hub_choose(const whit_hub_listing *listing, const char *what, const char *wanted,
                            whit_hub_choice *choice, whit_error *error);
/* Adds the shards that a folder's index names; `text` is that file. */
whit_status whit_hub_choose_shards(const whit_hub_listing *listing, const char *what, const char *text, size_t n_bytes,
                                   whit_hub_choice *choice, whit_error *error);
void whit_hub_choice_free(whit_hub_choice *choice);

/* The path without "-00001-of-00003.gguf" or ".gguf": what the parts of one model have in common;
 * *part and *n_parts are 1 where the file is whole. False where the name is no GGUF file's. */
bool whit_hub_gguf_stem(const char *path, size_t *stem_bytes, unsigned *part, unsigned *n_parts);

#endif
