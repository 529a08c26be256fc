/* SPDX-License-Identifier: MIT */
#include "runtime/adapter.h"
#include "base/path.h"

static whit_status check_frame(const whit_ndf_appended *frame, const char *place, whit_adapter_view *view,
                               whit_error *error)
{
    if (frame->type != WHIT_NDF_ADAPTER)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is not an adapter", place);
    return whit_adapter_check(frame->data, frame->size_bytes, place, view, error);
}

/* Finds the last adapter named `name` in the model's file; false if not found. */
static bool find_inside(const whit_ndf *model, const char *name, whit_ndf_appended *found)
{
    for (uint32_t i = whit_ndf_n_appended(model); i-- > 0;)
        if (whit_ndf_appended_at(model, i, found, NULL) == WHIT_OK && found->type == WHIT_NDF_ADAPTER &&
            strcmp(found->name, name) == 0)
            return true;
    return false;
}

/* Finds an adapter: the last one named `name` in the model's file, else the file at path `name`, which then stays open
 * as *file (otherwise NULL). *digest points to the digest of its frame. */
static whit_status adapter_find(const whit_ndf *model, const char *name, const whit_allocator *allocator,
                                whit_ndf **file, whit_adapter_view *view, const uint8_t **digest, whit_error *error)
{
    *file = NULL;
    *digest = NULL;
    whit_ndf_appended frame = {0};
    if (find_inside(model, name, &frame)) {
        *digest = frame.digest;
        return check_frame(&frame, name, view, error);
    }
    if (!whit_path_exists(name))
        return whit_fail(error, WHIT_ERROR_IO, "%s: there is no such file, and no adapter of that name in %s", name,
                         whit_ndf_path(model));
    WHIT_TRY(whit_ndf_open_loose(name, allocator, file, error));
    whit_status status = whit_ndf_appended_at(*file, 0, &frame, error);
    if (status == WHIT_OK) status = check_frame(&frame, name, view, error);
    *digest = frame.digest;
    if (status == WHIT_OK) return WHIT_OK;
    whit_ndf_close(*file);
    *file = NULL;
    return status;
}

whit_status whit_adapter_open(const whit_model *model, const char *name, whit_adapter **out, whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    WHIT_NEED(model);
    WHIT_NEED(name);
    whit_adapter *adapter = whit_zalloc(model->allocator, sizeof *adapter);
    if (!adapter) return whit_fail_memory(error, "the adapter", sizeof *adapter);
    adapter->model = model;
    const uint8_t *digest;
    whit_status status =
        adapter_find(model->file, name, model->allocator, &adapter->file, &adapter->view, &digest, error);
    if (status == WHIT_OK) memcpy(adapter->digest, digest, sizeof adapter->digest);
    if (status == WHIT_OK)
        status = whit_adapter_bind(&adapter->view, model->file, name, model->allocator, &adapter->weights, error);
    if (status != WHIT_OK) {
        whit_adapter_close(adapter);
        return status;
    }
    *out = adapter;
    return WHIT_OK;
}

void whit_adapter_close(whit_adapter *adapter)
{
    if (!adapter) return;
    whit_adapter_unbind(&adapter->weights);
    whit_ndf_close(adapter->file);
    whit_free(adapter->model->allocator, adapter, sizeof *adapter);
}

uint32_t whit_adapter_rank(const whit_adapter *adapter)
{
    return adapter->view.max_rank;
}

bool whit_adapter_mapping(const whit_adapter *adapter, const void **address, size_t *size_bytes, const char **path)
{
    return adapter->file && whit_ndf_mapping(adapter->file, 0, address, size_bytes, path);
}
