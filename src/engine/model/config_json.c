/* SPDX-License-Identifier: MIT */
#include "model/config_json.h"

#include "model/import_hf.h"

whit_status whit_config_read_json(const char *path, const whit_allocator *allocator, whit_config *config,
                                  whit_error *error)
{
    struct whit_hf_importer importer = {0};
    *config = (whit_config){0};
    WHIT_TRY(whit_hf_open_config(path, allocator, &importer.hf, error));
    whit_status status = whit_import_hf_config(&importer, config, error);
    if (status == WHIT_OK && whit_config_is_extended(config))
        status = whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: a new model is of the families llama, qwen2, qwen3 or bitnet, with layers that are alike", path);
    if (status == WHIT_OK && config->rope_factors)
        status = whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: a new model cannot have scaled RoPE", path);
    whit_import_hf_free_divisors(&importer);
    config->tied_head = importer.tied;
    whit_hf_close(importer.hf);
    return status;
}
