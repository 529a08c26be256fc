/* SPDX-License-Identifier: MIT
 * Settings of sampling by the names that llama.cpp gives them. */
#ifndef WHIT_SERVER_SETTINGS_H
#define WHIT_SERVER_SETTINGS_H

#include <jansson.h>

#include "whit.h"

/* All settings of a sampler, as requests name them. */
json_t *whit_settings_json(const whit_sampler_options *sampling);

#endif
