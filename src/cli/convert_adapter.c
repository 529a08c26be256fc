/* SPDX-License-Identifier: MIT
 * Implements whit convert --for MODEL, which writes a LoRA adapter, or an adapter in whit's own format, to a separate
 * file or into the model's file. */
#include "cli/convert_adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/flags.h"
#include "cli/names.h"
#include "cli/outputs.h"
#include "format/ndf_append.h"
#include "model/import_lora.h"
#include "runtime/model.h"

bool cli_is_adapter(const char *path)
{
    whit_ndf *file;
    if (whit_lora_is_folder(path)) return true;
    if (whit_ndf_open_loose(path, NULL, &file, NULL) != WHIT_OK) return false;
    whit_ndf_close(file);
    return true;
}

/* Appends the image of the adapter in one of whit's own files to `image`. */
static whit_status read_own(const char *path, whit_buf *image, whit_error *error)
{
    whit_ndf *file;
    whit_ndf_appended frame;
    WHIT_TRY(whit_ndf_open_loose(path, NULL, &file, error));
    whit_status status = whit_ndf_appended_at(file, 0, &frame, error);
    if (status == WHIT_OK && frame.type != WHIT_NDF_ADAPTER)
        status = whit_fail(error, WHIT_ERROR_FORMAT,
                           "%s: the file is not an adapter: name a LoRA folder of PEFT or an adapter's .ndf", path);
    if (status == WHIT_OK && !whit_buf_append(image, frame.data, frame.size_bytes))
        status = whit_fail_memory(error, path, frame.size_bytes);
    whit_ndf_close(file);
    return status;
}

/* Copies the last name in a path, without slashes after it and without the suffix ".ndf". */
static void name_of(const char *path, char *name, size_t name_bytes)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t from = n;
    while (from > 0 && path[from - 1] != '/') from--;
    if (n - from > 4 && strncmp(path + n - 4, ".ndf", 4) == 0) n -= 4;
    snprintf(name, name_bytes, "%.*s", (int)(n - from), path + from);
}

/* Checks that an image is an adapter for this model; sets *view. */
static whit_status check_adapter(const whit_buf *image, const whit_model *model, const char *path,
                                 whit_adapter_view *view, whit_error *error)
{
    whit_adapter_weights weights;
    WHIT_TRY(whit_adapter_check(image->data, image->size_bytes, path, view, error));
    WHIT_TRY(whit_adapter_bind(view, model->file, path, NULL, &weights, error));
    whit_adapter_unbind(&weights);
    return WHIT_OK;
}

int cli_convert_adapter(cli_call *call, const cli_adapter_conversion *wanted)
{
    char name[256];
    whit_model *model = NULL;
    whit_buf image = {0};
    whit_error error;
    whit_adapter_view view = {0};
    if (!wanted->model)
        return cli_fail(call, CLI_USAGE, "%s: an adapter belongs to a model: --for MODEL", wanted->path);
    if (!wanted->output == !wanted->append)
        return cli_fail(call, CLI_USAGE, "give one output: -o OUT.ndf, or --append to write into the model's own file");
    if (wanted->output && cli_is_same_file(wanted->output, wanted->model))
        return cli_fail(call, CLI_USAGE, "%s is the model; --append writes the adapter into it", wanted->output);
    const int checked = cli_check_output(call, wanted->output, CLI_OUTPUT_MODEL);
    if (checked != CLI_OK) return checked;
    if (wanted->name)
        snprintf(name, sizeof name, "%s", wanted->name);
    else
        name_of(wanted->output ? wanted->output : wanted->path, name, sizeof name);
    int exit = cli_open_model(call, wanted->model, false, &model);
    if (exit != CLI_OK) return exit;
    whit_status status = whit_lora_is_folder(wanted->path)
        ? whit_lora_import(wanted->path, model->file, name, NULL, &image, &error)
        : read_own(wanted->path, &image, &error);
    if (status == WHIT_OK) status = check_adapter(&image, model, wanted->path, &view, &error);
    if (status == WHIT_OK && wanted->append)
        status = whit_ndf_append(wanted->model, WHIT_NDF_ADAPTER, name, image.data, image.size_bytes, NULL, &error);
    else if (status == WHIT_OK)
        status =
            whit_ndf_write_loose(wanted->output, WHIT_NDF_ADAPTER, name, image.data, image.size_bytes, NULL, &error);
    if (status != WHIT_OK) {
        exit = cli_fail_error(call, &error);
    } else {
        const char *output = wanted->append ? wanted->model : wanted->output;
        if (wanted->json)
            cli_print_json(call,
                           json_pack("{s:o, s:o, s:s, s:I, s:I, s:I}", "source", cli_json_path(wanted->path), "output",
                                     cli_json_path(output), "name", name, "rank", (json_int_t)view.max_rank, "matrices",
                                     (json_int_t)view.n_pairs, "adapter_bytes", (json_int_t)image.size_bytes));
        else
            cli_note("%s: adapter '%s', rank %u, %u matrices, %.1f MB", output, name, view.max_rank, view.n_pairs,
                     (double)image.size_bytes / 1e6);
    }
    whit_buf_free(&image);
    whit_model_close(model);
    return exit;
}
