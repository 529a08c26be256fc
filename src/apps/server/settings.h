/* SPDX-License-Identifier: MIT
 * Writes sampling settings under llama.cpp's names. */
#ifndef WHIT_SERVER_SETTINGS_H
#define WHIT_SERVER_SETTINGS_H

#include <jansson.h>

#include "whit.h"

/* Returns all settings of a sampler as an object, under the names that requests use. The caller owns it. */
json_t *whit_settings_json(const whit_sampler_options *sampling);

#endif
