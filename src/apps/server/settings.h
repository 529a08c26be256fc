/* SPDX-License-Identifier: MIT
 * Sampling settings under llama.cpp's names. */
#ifndef WHIT_SERVER_SETTINGS_H
#define WHIT_SERVER_SETTINGS_H

#include <jansson.h>

#include "whit.h"

/* All settings of a sampler, as requests name them. */
json_t *whit_settings_json(const whit_sampler_options *sampling);

#endif
