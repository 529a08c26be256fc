/* SPDX-License-Identifier: MIT */
#include "model/config_json.h"

#include "model/import_hf.h"

whit_status whit_config_read_json(const char *path, const whit_allocator *allocator, whit_config *config,
                                  whit_error *error)
{
    struct whit_hf_importer importer = {0};
    float *factors = NULL;
    *config = (whit_config){0};
    WHIT_TRY(whit_hf_open_config(path, allocator, &importer.hf, error));
    whit_status status = whit_import_hf_config(&importer, config, error);
    if (status == WHIT_OK) status = whit_import_hf_rope(&importer, config, allocator, &factors, error);
    if (factors) {
        whit_free(allocator, factors, config->rope_dim / 2 * sizeof *factors);
        status = whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: a new model cannot have scaled RoPE", path);
    }
    config->tied_head = importer.tied;
    whit_hf_close(importer.hf);
    return status;
}
