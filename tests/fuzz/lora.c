/* SPDX-License-Identifier: MIT
 * Makes a LoRA folder of any bytes: u32 length of adapter_config.json, adapter_config.json,
 * adapter_model.safetensors. It is imported for a small model; the result must be a valid adapter of that model. */
#include "model/convert.h"
#include "model/import_lora.h"
#include "tiny_model.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64], config_path[96], weights_path[96];
static whit_ndf_writer *writer;
static whit_ndf *model;

static void remove_folder(void)
{
    unlink(config_path);
    unlink(weights_path);
    rmdir(folder);
    whit_ndf_close(model);
    whit_ndf_writer_close(writer);
}

/* Makes a model of width 16 with one layer. */
static void make_model(void)
{
    tiny_model tiny = {.seed = 5, .n_layers = 1, .n_embd = 16, .n_ff = 16, .n_heads = 2, .n_kv_heads = 1, .n_ctx = 64};
    whit_error error;
    whit_source source;
    snprintf(folder, sizeof folder, "/tmp/whit-fuzz-XXXXXX");
    if (!mkdtemp(folder)) abort();
    snprintf(config_path, sizeof config_path, "%s/adapter_config.json", folder);
    snprintf(weights_path, sizeof weights_path, "%s/adapter_model.safetensors", folder);
    char gguf[96];
    snprintf(gguf, sizeof gguf, "%s/tiny.gguf", folder);
    if (!tiny_model_write(&tiny, gguf) || whit_source_open(gguf, NULL, &source, &error) != WHIT_OK ||
        whit_ndf_writer_open(NULL, NULL, NULL, &writer, &error) != WHIT_OK ||
        whit_convert(&source, &(whit_convert_options){.n_threads = 1}, writer, &error) != WHIT_OK ||
        whit_ndf_open_fd(whit_ndf_writer_fd(writer), "tiny", NULL, &model, &error) != WHIT_OK ||
        atexit(remove_folder) != 0)
        abort();
    whit_source_close(&source);
    unlink(gguf);
}

static bool write_bytes(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool ok = fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_error error = {0};
    whit_buf image = {.limit_bytes = 1 << 24};
    if (!model) make_model();
    if (size < 4) return 0;
    size_t n = whit_load_u32(data);
    if (n > size - 4) n = size - 4;
    if (!write_bytes(config_path, data + 4, n) || !write_bytes(weights_path, data + 4 + n, size - 4 - n)) return 0;
    if (whit_lora_import(folder, model, "fuzz", NULL, &image, &error) == WHIT_OK) {
        whit_adapter_view view;
        whit_adapter_weights weights;
        if (whit_adapter_check(image.data, image.size_bytes, "fuzz", &view, &error) != WHIT_OK ||
            whit_adapter_bind(&view, model, "fuzz", NULL, &weights, &error) != WHIT_OK)
            abort();
        whit_adapter_unbind(&weights);
    } else if (!error.message[0]) {
        abort();
    }
    whit_buf_free(&image);
    return 0;
}
