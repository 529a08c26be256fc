/* SPDX-License-Identifier: MIT
 * Reads the hub's address and the user's token from the options and the environment. */
#ifndef WHIT_HUB_SETTINGS_H
#define WHIT_HUB_SETTINGS_H

#include "base/mem.h"

#define WHIT_HUB_ENDPOINT_BYTES 512
#define WHIT_HUB_TOKEN_BYTES    512

/* Reads the hub's address from $HF_ENDPOINT, without slashes at its end; default: https://huggingface.co. The error is
 * WHIT_ERROR_ARGUMENT if it is not an http or https address. */
whit_status whit_hub_endpoint(char endpoint[WHIT_HUB_ENDPOINT_BYTES], whit_error *error);

/* Reads the token: `given` (may be NULL), else $HF_TOKEN, else the content of one file: $HF_TOKEN_PATH or, if that is
 * not set, $HF_HOME/token, $XDG_CACHE_HOME/huggingface/token or $HOME/.cache/huggingface/token, by the first of these
 * variables that is set; "" if the file does not exist. *from is the source's name for messages. The error is
 * WHIT_ERROR_ARGUMENT if the text cannot be a token. */
whit_status whit_hub_token(const char *given, char token[WHIT_HUB_TOKEN_BYTES], const char **from, whit_error *error);

#endif
