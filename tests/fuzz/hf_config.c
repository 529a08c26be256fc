/* SPDX-License-Identifier: MIT
 * Makes a model folder of any bytes: u32 length of config.json, config.json, model.safetensors. It is opened as a
 * source, and the first and last row of every tensor is read. */
#include "model/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], config_path[96], weights_path[96];

static void remove_folder(void)
{
    unlink(config_path);
    unlink(weights_path);
    rmdir(folder);
}

static bool make_folder(void)
{
    if (*folder) return true;
    snprintf(folder, sizeof folder, "/tmp/whit-fuzz-XXXXXX");
    if (!mkdtemp(folder)) return false;
    snprintf(config_path, sizeof config_path, "%s/config.json", folder);
    snprintf(weights_path, sizeof weights_path, "%s/model.safetensors", folder);
    return atexit(remove_folder) == 0;
}

static bool write_bytes(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool ok = fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && ok;
}

static void read_rows(const whit_source_tensor *tensor)
{
    whit_error error;
    whit_geometry g = whit_codec_geometry(&tensor->type);
    size_t n = tensor->type.n_cols;
    whit_rows rows = {
        .elems = calloc(n, 4), .fields = calloc(g.row_fields, sizeof(float)), .fields_u8 = calloc(g.row_bytes + 1, 1)};
    if (rows.elems && rows.fields && rows.fields_u8) {
        tensor->read_row(tensor, 0, &rows, &error);
        tensor->read_row(tensor, tensor->type.n_rows - 1, &rows, &error);
    }
    free(rows.elems);
    free(rows.fields);
    free(rows.fields_u8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_source source;
    whit_error error;
    if (size < 4 || !make_folder()) return 0;
    size_t n = whit_load_u32(data);
    if (n > size - 4) n = size - 4;
    if (!write_bytes(config_path, data + 4, n) || !write_bytes(weights_path, data + 4 + n, size - 4 - n)) return 0;
    if (whit_source_open(folder, NULL, &source, &error) != WHIT_OK) return 0;
    for (uint32_t i = 0; i < source.n_tensors; i++) read_rows(&source.tensors[i]);
    whit_source_close(&source);
    return 0;
}
