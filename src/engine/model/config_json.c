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
    bool scaled = config->rope_factors;
    for (uint32_t i = 0; i < config->n_ropes; i++)
        scaled = scaled || config->ropes[i].has_factors || config->ropes[i].scaling == WHIT_ROPE_LONG;
    if (status == WHIT_OK && scaled)
        status = whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                           "%s: scaled RoPE is not supported in a new model: remove rope_scaling", path);
    whit_import_hf_free_divisors(&importer);
    config->tied_head = importer.tied;
    whit_hf_close(importer.hf);
    return status;
}
