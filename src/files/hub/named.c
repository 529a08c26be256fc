/* SPDX-License-Identifier: MIT */
#include "whit/names.h"

#include <string.h>

#include "base/options.h"
#include "hub/builtin.h"
#include "hub/store.h"

static whit_status open_builtin(const whit_model_options *options, whit_model **model, whit_error *error)
{
    size_t size_bytes;
    const void *bytes = whit_builtin_bytes(&size_bytes);
    if (options->family_program || options->n_overrides)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "tales: the built-in model has no other family and no overrides");
    return whit_model_open_memory(bytes, size_bytes, WHIT_BUILTIN_NAME, options->allocator, model, error);
}

/* Returns whether a name, for which no file exists, looks like a file name rather than a model's name. A mistyped file
 * name is then reported as a missing file. */
static bool is_path(const char *name)
{
    static const char *const endings[] = {".ndf", ".gguf", ".safetensors"};
    const size_t n = strlen(name);
    if (!*name || strchr("/.~", *name)) return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t m = strlen(endings[i]);
        /* A ':' means OWNER/NAME:FILE, except after a drive letter (C:FILE). */
        if (n > m && !strcmp(name + n - m, endings[i])) return !strchr(name + 2, ':');
    }
    return false;
}

whit_status whit_model_open_named(const char *name, const whit_model_options *options, whit_model **model,
                                  whit_error *error)
{
    char path[WHIT_CACHE_PATH_BYTES];
    whit_hub_name parsed;
    whit_model_options own = whit_model_options_default();
    if (model) *model = NULL;
    if (!name || !model)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_model_open_named: 'name' or 'model' is NULL");
    WHIT_TRY(whit_options_read(&own, sizeof own, options, "whit_model_options", error));
    if (!strcmp(name, "tales")) return open_builtin(&own, model, error);
    if (!whit_hub_lacks_file(name) || is_path(name) || whit_hub_name_parse(name, &parsed, NULL) != WHIT_OK)
        return whit_model_open(name, options, model, error);
    WHIT_TRY(whit_hub_store_path(own.cache_dir, name, path, error));
    return whit_model_open(path, options, model, error);
}

whit_status whit_pulled_path(const char *cache_dir, const char *name, char *path, size_t size_bytes, whit_error *error)
{
    char found[WHIT_CACHE_PATH_BYTES];
    if (!name || !path) return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_pulled_path: 'name' or 'path' is NULL");
    WHIT_TRY(whit_hub_store_path(cache_dir, name, found, error));
    const size_t n = strlen(found) + 1;
    if (n > size_bytes)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%.200s: its path needs %zu bytes, but 'path' has only %zu", name, n,
                         size_bytes);
    memcpy(path, found, n);
    return WHIT_OK;
}

whit_status whit_pulled_list(const char *cache_dir, whit_pulled_fn *each, void *user, whit_error *error)
{
    char name[WHIT_HUB_FOLDER_BYTES];
    whit_hub_entry *entries;
    size_t n;
    if (!each) return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_pulled_list: 'each' is NULL");
    WHIT_TRY(whit_hub_store_list(cache_dir, &entries, &n, error));
    bool is_wanted = true;
    for (size_t i = 0; is_wanted && i < n; i++) {
        if (!entries[i].files.n_files) continue; /* an unfinished download without a complete file */
        whit_hub_name_print(&entries[i].name, name);
        is_wanted = each(user, name);
    }
    whit_hub_store_free(entries, n);
    return WHIT_OK;
}
