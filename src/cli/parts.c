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

bool cli_model_number(const whit_model *model, const char *key, double *number)
{
    const whit_table *meta = whit_ndf_meta(model->file);
    bool boolean;
    if (whit_table_get_f64(meta, key, number)) return true;
    if (!whit_table_get_bool(meta, key, &boolean)) return false;
    *number = boolean;
    return true;
}
