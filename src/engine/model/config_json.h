/* SPDX-License-Identifier: MIT
 * A configuration from the fields of a Hugging Face config.json, where there are no weights yet. */
#ifndef WHIT_MODEL_CONFIG_JSON_H
#define WHIT_MODEL_CONFIG_JSON_H

#include "base/mem.h"
#include "model/config.h"

/* Refuses what the importer of folders refuses, and scaled RoPE, whose factors are a tensor. */
whit_status whit_config_read_json(const char *path, const whit_allocator *allocator, whit_config *config,
                                  whit_error *error);

#endif
