/* SPDX-License-Identifier: MIT */
#include "hub/choose.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_PARTS_MAX  4096u
#define SHARDS_INDEX "model.safetensors.index.json"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcasecmp(text + n - m, end) == 0;
}

bool whit_hub_gguf_stem(const char *path, size_t *stem_bytes, unsigned *part, unsigned *n_parts)
{
    enum { SPLIT_BYTES = sizeof "-00001-of-00001.gguf" - 1 };
    size_t n = strlen(path);
    if (n <= 5 || !ends_with(path, ".gguf")) return false;
    *stem_bytes = n - 5;
    *part = *n_parts = 1;
    unsigned i, count;
    int read = 0;
    if (n <= SPLIT_BYTES || sscanf(path + n - SPLIT_BYTES, "-%5u-of-%5u%n", &i, &count, &read) != 2 ||
        read != SPLIT_BYTES - 5 || i < 1 || i > count || count > N_PARTS_MAX)
        return true;
    *stem_bytes = n - SPLIT_BYTES;
    *part = i;
    *n_parts = count;
    return true;
}

static whit_status take_file(whit_hub_choice *choice, size_t i, whit_error *error)
{
    for (size_t k = 0; k < choice->n_files; k++)
        if (choice->files[k] == i) return WHIT_OK;
    size_t *files = realloc(choice->files, (choice->n_files + 1) * sizeof *files);
    if (!files) return whit_fail_memory(error, "a list of files", (choice->n_files + 1) * sizeof *files);
    choice->files = files;
    files[choice->n_files++] = i;
    return WHIT_OK;
}

void whit_hub_choice_free(whit_hub_choice *choice)
{
    free(choice->files);
    *choice = (whit_hub_choice){0};
}

/* ---- GGUF models ---------------------------------------------------------------------------- */

/* Returns whether the name contains `tag`, in upper or lower case, at its beginning or after one of "-._/", and at its
 * end or before one of "-./": i2_s in "ggml-model-i2_s", but not Q4_K in "x-Q4_K_M". */
static bool has_tag(const char *stem, size_t n, const char *tag)
{
    size_t m = strlen(tag);
    for (size_t i = 0; i + m <= n; i++)
        if (strncasecmp(stem + i, tag, m) == 0 && (i == 0 || strchr("-._/", stem[i - 1])) &&
            (i + m == n || strchr("-./", stem[i + m])))
            return true;
    return false;
}

static bool is_wanted(const char *path, size_t stem_bytes, const char *wanted)
{
    if (!*wanted) return true;
    const char *slash = strrchr(path, '/');
    if (strpbrk(wanted, "*?["))
        return fnmatch(wanted, path, FNM_CASEFOLD) == 0 || (slash && fnmatch(wanted, slash + 1, FNM_CASEFOLD) == 0);
    return has_tag(path, stem_bytes, wanted);
}

static bool same_model(const char *a, size_t a_bytes, unsigned a_parts, const char *b, size_t b_bytes, unsigned b_parts)
{
    return a_bytes == b_bytes && a_parts == b_parts && memcmp(a, b, a_bytes) == 0;
}

/* Adds every part of the model that file `of` (an index of the listing) belongs to, in order. */
static whit_status take_parts(const whit_hub_listing *listing, const char *what, size_t of, whit_hub_choice *choice,
                              whit_error *error)
{
    const char *path = listing->files[of].path;
    size_t stem_bytes;
    unsigned part, n_parts;
    choice->kind = WHIT_HUB_GGUF;
    if (!whit_hub_gguf_stem(path, &stem_bytes, &part, &n_parts) || n_parts == 1) return take_file(choice, of, error);
    for (unsigned i = 1; i <= n_parts; i++) {
        char name[WHIT_HUB_PATH_BYTES];
        snprintf(name, sizeof name, "%.*s-%05u-of-%05u%s", (int)stem_bytes, path, i, n_parts, path + strlen(path) - 5);
        const whit_hub_file *file = whit_hub_listing_find(listing, name);
        if (!file)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the repository lacks part %u of %u of '%.*s'", what, i,
                             n_parts, (int)stem_bytes, path);
        WHIT_TRY(take_file(choice, (size_t)(file - listing->files), error));
    }
    return WHIT_OK;
}

/* Lists the names of the GGUF models that match `wanted`, as many as fit into `line`. */
static void list_models(const whit_hub_listing *listing, const char *wanted, char *line, size_t line_bytes)
{
    size_t at = 0;
    line[0] = 0;
    for (size_t i = 0; i < listing->n_files; i++) {
        const char *path = listing->files[i].path;
        size_t stem_bytes;
        unsigned part, n_parts;
        if (!whit_hub_gguf_stem(path, &stem_bytes, &part, &n_parts) || part != 1 ||
            !is_wanted(path, stem_bytes, wanted))
            continue;
        int n = snprintf(line + at, line_bytes - at, "%s%s", at ? ", " : "", path);
        if (n < 0 || (size_t)n >= line_bytes - at) {
            snprintf(line + at, line_bytes - at, "%s", at ? ", ..." : "...");
            return;
        }
        at += (size_t)n;
    }
}

static whit_status choose_gguf(const whit_hub_listing *listing, const char *what, const char *wanted,
                               whit_hub_choice *choice, whit_error *error)
{
    char models[300];
    const char *found = NULL;
    size_t found_bytes = 0, found_at = 0;
    unsigned found_parts = 0;
    for (size_t i = 0; i < listing->n_files; i++) {
        const char *path = listing->files[i].path;
        size_t stem_bytes;
        unsigned part, n_parts;
        if (!whit_hub_gguf_stem(path, &stem_bytes, &part, &n_parts) || !is_wanted(path, stem_bytes, wanted)) continue;
        if (found && !same_model(found, found_bytes, found_parts, path, stem_bytes, n_parts)) {
            list_models(listing, wanted, models, sizeof models);
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: choose one, as REPO:FILE: %s", what, models);
        }
        if (found) continue;
        found = path;
        found_bytes = stem_bytes;
        found_parts = n_parts;
        found_at = i;
    }
    if (found) return take_parts(listing, what, found_at, choice, error);
    list_models(listing, "", models, sizeof models);
    if (!*wanted)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: has neither a config.json with safetensors nor a GGUF file; other weights are not read",
                         what);
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: no file is called '%s'%s%s", what, wanted,
                     *models ? "; its GGUF files: " : ", and there is no GGUF file", models);
}

/* ---- folders -------------------------------------------------------------------------------- */

static whit_status take_if_there(const whit_hub_listing *listing, const char *path, whit_hub_choice *choice,
                                 whit_error *error)
{
    const whit_hub_file *file = whit_hub_listing_find(listing, path);
    return file ? take_file(choice, (size_t)(file - listing->files), error) : WHIT_OK;
}

/* Returns the index of the only .safetensors file beside config.json; SIZE_MAX if there is not exactly one. */
static size_t only_safetensors(const whit_hub_listing *listing)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < listing->n_files; i++) {
        if (strchr(listing->files[i].path, '/') || !ends_with(listing->files[i].path, ".safetensors")) continue;
        if (found != SIZE_MAX) return SIZE_MAX;
        found = i;
    }
    return found;
}

/* Returns whether a file belongs to a module of sentence-transformers, which has a folder named by its number and kind:
 * "1_Pooling/config.json", "2_Dense/model.safetensors". */
static bool is_of_module(const char *path)
{
    const size_t n_digits = strspn(path, "0123456789");
    const char *slash = strchr(path, '/');
    return n_digits && path[n_digits] == '_' && slash &&
        (!strcmp(slash, "/config.json") || !strcmp(slash, "/model.safetensors"));
}

/* Chooses the files of a safetensors folder that the importer reads, with the importer's rules for its weights
 * (format/hf.h). *found: whether the listing has such a folder. */
static whit_status choose_folder(const whit_hub_listing *listing, whit_hub_choice *choice, bool *found,
                                 whit_error *error)
{
    static const char *const documents[] = {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "merges.txt",
        "chat_template.jinja",
        "chat_template.json",
        "modules.json",
        "config_sentence_transformers.json",
    };
    const whit_hub_file *weights = whit_hub_listing_find(listing, "model.safetensors");
    const whit_hub_file *index = whit_hub_listing_find(listing, SHARDS_INDEX);
    size_t only = only_safetensors(listing);
    *found = whit_hub_listing_find(listing, "config.json") && (weights || index || only != SIZE_MAX);
    if (!*found) return WHIT_OK;
    choice->kind = WHIT_HUB_FOLDER;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
        WHIT_TRY(take_if_there(listing, documents[i], choice, error));
    for (size_t i = 0; i < listing->n_files; i++)
        if (is_of_module(listing->files[i].path)) WHIT_TRY(take_file(choice, i, error));
    if (weights) return take_file(choice, (size_t)(weights - listing->files), error);
    if (!index) return take_file(choice, only, error);
    choice->index = (size_t)(index - listing->files);
    return take_file(choice, choice->index, error);
}

whit_status whit_hub_choose_shards(const whit_hub_listing *listing, const char *what, const char *text, size_t n_bytes,
                                   whit_hub_choice *choice, whit_error *error)
{
    whit_json json;
    const size_t n_before = choice->n_files;
    WHIT_TRY(whit_json_parse(SHARDS_INDEX, text, n_bytes, NULL, &json, error));
    uint32_t map = whit_json_get(&json, WHIT_JSON_ROOT, "weight_map");
    whit_status status = WHIT_OK;
    if (whit_json_first(&json, map) == WHIT_JSON_NONE)
        status = whit_json_fail(&json, WHIT_JSON_ROOT, error, "this object has no weight_map");
    const whit_hub_file *last = NULL; /* most neighbouring tensors are in the same shard, which is looked up once */
    for (uint32_t at = whit_json_first(&json, map); at != WHIT_JSON_NONE && status == WHIT_OK;
         at = whit_json_next(&json, map, at)) {
        char path[WHIT_HUB_PATH_BYTES] = "";
        size_t n;
        const char *name = whit_json_string(&json, at + 1, &n);
        if (name && n < sizeof path) memcpy(path, name, n);
        if (last && strcmp(last->path, path) == 0) continue;
        last = whit_hub_listing_find(listing, path);
        status = last
            ? take_file(choice, (size_t)(last - listing->files), error)
            : whit_fail(error, WHIT_ERROR_FORMAT, "%s: the index names '%s', which the repository lacks", what, path);
    }
    whit_json_close(&json);
    if (status != WHIT_OK) choice->n_files = n_before;
    return status;
}

/* ---- both kinds of models --------------------------------------------------------------------- */

static whit_status choose_files(const whit_hub_listing *listing, const char *what, const char *wanted,
                                whit_hub_choice *choice, whit_error *error)
{
    bool found;
    if (!*wanted) {
        WHIT_TRY(choose_folder(listing, choice, &found, error));
        return found ? WHIT_OK : choose_gguf(listing, what, wanted, choice, error);
    }
    const whit_hub_file *file = whit_hub_listing_find(listing, wanted);
    if (!file) return choose_gguf(listing, what, wanted, choice, error);
    if (ends_with(wanted, ".gguf")) return take_parts(listing, what, (size_t)(file - listing->files), choice, error);
    choice->kind = WHIT_HUB_OTHER;
    return take_file(choice, (size_t)(file - listing->files), error);
}

whit_status whit_hub_choose(const whit_hub_listing *listing, const char *what, const char *wanted,
                            whit_hub_choice *choice, whit_error *error)
{
    *choice = (whit_hub_choice){.index = SIZE_MAX};
    whit_status status = choose_files(listing, what, wanted, choice, error);
    if (status != WHIT_OK) whit_hub_choice_free(choice);
    return status;
}
