/* SPDX-License-Identifier: MIT */
#include "cli/parts.h"
#include "runtime/model.h"

const char *cli_model_template(const whit_model *model)
{
    return whit_table_get_string(whit_ndf_templates(model->file), "default");
}

const whit_tokenizer_view *cli_model_tokenizer(const whit_model *model)
{
    return model->has_tokenizer ? &model->tokenizer : NULL;
}
