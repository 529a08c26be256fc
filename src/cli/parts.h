/* SPDX-License-Identifier: MIT
 * Gives verbs access to internal members of an open model. */
#ifndef WHIT_CLI_PARTS_H
#define WHIT_CLI_PARTS_H

#include "tokenizer/image.h"

/* Return the chat template and the tokenizer of a model, which still owns them; NULL if absent. */
const char *cli_model_template(const whit_model *model);
const whit_tokenizer_view *cli_model_tokenizer(const whit_model *model);

/* Reads a number or a boolean from the model's metadata; returns false if it is absent or has another type. */
bool cli_model_number(const whit_model *model, const char *key, double *number);

#endif
