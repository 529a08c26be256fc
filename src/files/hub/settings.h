/* SPDX-License-Identifier: MIT
 * Which hub, and who asks: from the options and the environment. */
#ifndef WHIT_HUB_SETTINGS_H
#define WHIT_HUB_SETTINGS_H

#include "base/mem.h"

#define WHIT_HUB_ENDPOINT_BYTES 512
#define WHIT_HUB_TOKEN_BYTES    512

/* $HF_ENDPOINT, else the hub that everybody uses; without slashes at its end. WHIT_ERROR_ARGUMENT
 * where it is no http or https address. */
whit_status whit_hub_endpoint(char endpoint[WHIT_HUB_ENDPOINT_BYTES], whit_error *error);

/* `given` (NULL: none), else $HF_TOKEN, else the file $HF_TOKEN_PATH, $HF_HOME/token or
 * ~/.cache/huggingface/token. "" where there is none. *from says where it was found, for people;
 * WHIT_ERROR_ARGUMENT where it cannot be a token. */
whit_status whit_hub_token(const char *given, char token[WHIT_HUB_TOKEN_BYTES], const char **from, whit_error *error);

#endif
