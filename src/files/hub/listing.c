/* SPDX-License-Identifier: MIT */
#include "hub/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool whit_hub_is_hex(const char *text, size_t n_bytes, size_t n_digits)
{
    if (!text || n_bytes != n_digits) return false;
    for (size_t i = 0; i < n_bytes; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f'))) return false;
    return true;
}

whit_status whit_hub_listing_add(whit_hub_listing *listing, const whit_hub_file *file, whit_error *error)
{
    if (listing->n_files >= WHIT_HUB_FILES_MAX)
        return whit_fail(error, WHIT_ERROR_LIMIT, "the repository has more than %u files, the limit",
                         WHIT_HUB_FILES_MAX);
    if (listing->n_files == listing->n_places) {
        size_t n_places = listing->n_places ? 2 * listing->n_places : 32;
        whit_hub_file *files = realloc(listing->files, n_places * sizeof *files);
        if (!files) return whit_fail_memory(error, "the listing", n_places * sizeof *files);
        listing->files = files;
        listing->n_places = n_places;
    }
    whit_hub_file *added = &listing->files[listing->n_files];
    *added = *file;
    added->path = strdup(file->path);
    if (!added->path) return whit_fail_memory(error, "the listing", strlen(file->path));
    listing->n_files++;
    return WHIT_OK;
}

/* Sets the file's digest if the JSON node `at` is a string of `n_digits` hexadecimal digits. */
static void take_digest(const whit_json *json, uint32_t at, size_t n_digits, whit_hub_digest_kind kind,
                        whit_hub_file *file)
{
    size_t n;
    const char *text = whit_json_string(json, at, &n);
    if (!whit_hub_is_hex(text, n, n_digits)) return;
    memcpy(file->digest, text, n);
    file->digest[n] = 0;
    file->digest_kind = kind;
}

/* Adds a file with its path, size and digest. The names of the keys differ between "tree" and "siblings". */
static whit_status add_entry(whit_hub_listing *listing, const whit_json *json, uint32_t entry, const char *path_key,
                             const char *blob_key, const char *sha256_key, whit_error *error)
{
    char path[WHIT_HUB_PATH_BYTES];
    whit_hub_file file = {.path = path, .size_bytes = WHIT_HUB_SIZE_UNKNOWN};
    uint32_t at = whit_json_get(json, entry, path_key), lfs = whit_json_get(json, entry, "lfs");
    size_t n;
    const char *name = whit_json_string(json, at, &n);
    if (!name) return whit_json_fail(json, entry, error, "this entry has no name (%s)", path_key);
    if (!whit_hub_path_is_safe(name, n))
        return whit_json_fail(json, at, error, "'%.*s' is not a plain relative path, so it is refused",
                              (int)(n < 200 ? n : 200), name);
    memcpy(path, name, n);
    path[n] = 0;

    int64_t size = -1;
    uint32_t size_at = whit_json_get(json, entry, "size");
    if (whit_json_type_of(json, lfs) == WHIT_JSON_OBJECT && whit_json_get(json, lfs, "size") != WHIT_JSON_NONE)
        size_at = whit_json_get(json, lfs, "size");
    if (whit_json_type_of(json, size_at) == WHIT_JSON_NUMBER) {
        if (!whit_json_i64(json, size_at, &size) || size < 0)
            return whit_json_fail(json, size_at, error, "the size of '%s' is not possible", path);
        file.size_bytes = (uint64_t)size;
    }
    take_digest(json, whit_json_get(json, lfs, sha256_key), 64, WHIT_HUB_SHA256, &file);
    /* git's own digest is that of the content, except for an LFS file: there it is that of the pointer file. */
    if (whit_json_type_of(json, lfs) != WHIT_JSON_OBJECT)
        take_digest(json, whit_json_get(json, entry, blob_key), 40, WHIT_HUB_GIT_SHA1, &file);
    return whit_hub_listing_add(listing, &file, error);
}

whit_status whit_hub_listing_add_tree(whit_hub_listing *listing, const char *what, const char *text, size_t n_bytes,
                                      whit_error *error)
{
    whit_json json;
    WHIT_TRY(whit_json_parse(what, text, n_bytes, NULL, &json, error));
    whit_status status = WHIT_OK;
    if (whit_json_type_of(&json, WHIT_JSON_ROOT) != WHIT_JSON_ARRAY)
        status = whit_json_fail(&json, WHIT_JSON_ROOT, error, "expected a list of files");
    for (uint32_t at = whit_json_first(&json, WHIT_JSON_ROOT); at != WHIT_JSON_NONE && status == WHIT_OK;
         at = whit_json_next(&json, WHIT_JSON_ROOT, at)) {
        uint32_t type = whit_json_get(&json, at, "type");
        if (type == WHIT_JSON_NONE || whit_json_is(&json, type, "file"))
            status = add_entry(listing, &json, at, "path", "oid", "oid", error);
    }
    whit_json_close(&json);
    return status;
}

/* Stores a licence's name if it has only letters, digits, '.', '_' and '-', and fits. */
static void take_licence(whit_hub_listing *listing, const whit_json *json, uint32_t value)
{
    if (whit_json_type_of(json, value) == WHIT_JSON_ARRAY) value = whit_json_first(json, value);
    size_t n;
    const char *name = whit_json_string(json, value, &n);
    if (!name || !n || n >= sizeof listing->licence) return;
    for (size_t i = 0; i < n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", name[i]) || !name[i]) return;
    memcpy(listing->licence, name, n);
    listing->licence[n] = 0;
}

whit_status whit_hub_listing_add_info(whit_hub_listing *listing, const char *what, const char *text, size_t n_bytes,
                                      bool want_files, whit_error *error)
{
    whit_json json;
    WHIT_TRY(whit_json_parse(what, text, n_bytes, NULL, &json, error));
    whit_status status = WHIT_OK;
    size_t n;
    const char *commit = whit_json_string(&json, whit_json_get(&json, WHIT_JSON_ROOT, "sha"), &n);
    if (whit_hub_is_hex(commit, n, 40) || whit_hub_is_hex(commit, n, 64)) {
        memcpy(listing->commit, commit, n);
        listing->commit[n] = 0;
    }
    uint32_t card = whit_json_get(&json, WHIT_JSON_ROOT, "cardData");
    take_licence(listing, &json, whit_json_get(&json, card, "license"));
    if (strcmp(listing->licence, "other") == 0)
        take_licence(listing, &json, whit_json_get(&json, card, "license_name"));
    uint32_t files = want_files ? whit_json_get(&json, WHIT_JSON_ROOT, "siblings") : WHIT_JSON_NONE;
    for (uint32_t at = whit_json_first(&json, files); at != WHIT_JSON_NONE && status == WHIT_OK;
         at = whit_json_next(&json, files, at))
        status = add_entry(listing, &json, at, "rfilename", "blobId", "sha256", error);
    whit_json_close(&json);
    return status;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const whit_hub_file *)a)->path, ((const whit_hub_file *)b)->path);
}

whit_status whit_hub_listing_sort(whit_hub_listing *listing, const char *what, whit_error *error)
{
    if (listing->n_files) qsort(listing->files, listing->n_files, sizeof *listing->files, by_path);
    for (size_t i = 1; i < listing->n_files; i++)
        if (by_path(&listing->files[i - 1], &listing->files[i]) == 0)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the hub's listing has '%s' twice; try again later", what,
                             listing->files[i].path);
    return WHIT_OK;
}

whit_hub_file *whit_hub_listing_find(const whit_hub_listing *listing, const char *path)
{
    const whit_hub_file key = {.path = (char *)(uintptr_t)path};
    if (!listing->n_files) return NULL;
    return bsearch(&key, listing->files, listing->n_files, sizeof *listing->files, by_path);
}

void whit_hub_listing_free(whit_hub_listing *listing)
{
    for (size_t i = 0; i < listing->n_files; i++) free(listing->files[i].path);
    free(listing->files);
    *listing = (whit_hub_listing){0};
}

bool whit_hub_listing_write(const whit_hub_listing *listing, whit_buf *out)
{
    whit_buf_append_str(out, "[");
    for (size_t i = 0; i < listing->n_files; i++) {
        const whit_hub_file *file = &listing->files[i];
        whit_buf_append_str(out, i ? ",\n {\"type\": \"file\", \"path\": " : "\n {\"type\": \"file\", \"path\": ");
        whit_json_write_string(out, file->path, strlen(file->path));
        if (file->size_bytes != WHIT_HUB_SIZE_UNKNOWN)
            whit_buf_printf(out, ", \"size\": %llu", (unsigned long long)file->size_bytes);
        if (file->digest_kind == WHIT_HUB_SHA256) whit_buf_printf(out, ", \"lfs\": {\"oid\": \"%s\"}", file->digest);
        if (file->digest_kind == WHIT_HUB_GIT_SHA1) whit_buf_printf(out, ", \"oid\": \"%s\"", file->digest);
        whit_buf_append_str(out, "}");
    }
    return whit_buf_append_str(out, "\n]\n") && !out->failed;
}

bool whit_hub_page_is_safe(const char *endpoint, const char *url)
{
    return strncasecmp(endpoint, "https:", 6) != 0 || strncasecmp(url, "https:", 6) == 0;
}

bool whit_hub_next_page(const char *link, char *url, size_t url_bytes)
{
    while ((link = strchr(link, '<'))) {
        const char *end = strchr(link, '>');
        if (!end) return false;
        const char *following = strchr(end, '<');
        const char *rel = strstr(end, "rel=\"next\"");
        if (rel && (!following || rel < following) && (size_t)(end - link) <= url_bytes) {
            size_t n = (size_t)(end - link) - 1;
            memcpy(url, link + 1, n);
            url[n] = 0;
            return true;
        }
        link = end;
    }
    return false;
}
