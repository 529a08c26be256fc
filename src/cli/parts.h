/* SPDX-License-Identifier: MIT
 * What verbs take out of an open model without seeing the rest of its inside. */
#ifndef WHIT_CLI_PARTS_H
#define WHIT_CLI_PARTS_H

#include "tokenizer/image.h"

/* Both are the model's and live as long as it does; NULL where it has none. */
const char *cli_model_template(const whit_model *model);
const whit_tokenizer_view *cli_model_tokenizer(const whit_model *model);

/* A number or boolean of the model's metadata; false where it is absent or something else. */
bool cli_model_number(const whit_model *model, const char *key, double *number);

#endif
