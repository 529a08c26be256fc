/* SPDX-License-Identifier: MIT
 * Opens models by name: the built-in model, and models that the program `whit pull` has downloaded. The library itself
 * opens no connection. whit.h leaves this header out. */
#ifndef WHIT_NAMES_H
#define WHIT_NAMES_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the first model that `name` names, in this order: "tales", the toy model inside the library; a file or folder,
 * as whit_model_open does; a pulled model in options->cache_dir (OWNER/NAME[@REVISION][:FILE], or NAME alone if only
 * one owner's was pulled). The built-in model accepts neither family_program nor overrides. */
WHIT_API WHIT_CHECKED whit_status whit_model_open_named(const char *name, const whit_model_options *options,
                                                        whit_model **model, whit_error *error);

/* Writes the path of a pulled model, terminated; WHIT_ERROR_LIMIT if it does not fit size_bytes (4096 bytes always
 * suffice). The error is WHIT_ERROR_IO unless exactly one model of that name was pulled and is complete. cache_dir as
 * in whit_model_options. */
WHIT_API WHIT_CHECKED whit_status whit_pulled_path(const char *cache_dir, const char *name, char *path,
                                                   size_t size_bytes, whit_error *error);

/* Calls `each` with the name of each pulled repository that has a complete file, sorted, until it returns false; the
 * name is valid during the call. A repository with several GGUF files is reported once; the error of whit_pulled_path
 * lists its files if the name does not choose one. */
typedef bool whit_pulled_fn(void *user, const char *name);
WHIT_API WHIT_CHECKED whit_status whit_pulled_list(const char *cache_dir, whit_pulled_fn *each, void *user,
                                                   whit_error *error);

#ifdef __cplusplus
}
#endif
#endif
