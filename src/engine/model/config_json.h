/* SPDX-License-Identifier: MIT
 * Reads a configuration from a Hugging Face config.json alone, for models that have no weights yet. */
#ifndef WHIT_MODEL_CONFIG_JSON_H
#define WHIT_MODEL_CONFIG_JSON_H

#include "base/mem.h"
#include "model/config.h"

/* Reads the configuration from the file at `path`. Refuses the same fields as the importer of folders, and also scaled
 * RoPE whose factors are stored in a tensor. */
whit_status whit_config_read_json(const char *path, const whit_allocator *allocator, whit_config *config,
                                  whit_error *error);

#endif
