/* SPDX-License-Identifier: MIT */
#include "hub/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/items.h"
#include "hub/digest.h"
#include "hub/download.h"

#define PAGES_MAX 200

struct pull {
    const whit_hub_name *name;
    const whit_hub_pull_options *options;
    whit_hub_line line;
    whit_hub_entry entry;     /* record of the earlier pulls of this repository */
    whit_hub_listing listing; /* files of the repository on the hub */
    whit_hub_choice choice;
    bool *here; /* here[i]: file i of `listing` is in the store already */
    whit_hub_progress progress;
};

/* ---- addresses ------------------------------------------------------------------------------ */

/* Appends `text` percent-encoded; unreserved characters (RFC 3986) and, if `keep_slash`, '/' stay unchanged. */
static void append_encoded(whit_buf *url, const char *text, bool keep_slash)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c) ||
            (c == '/' && keep_slash);
        if (plain)
            whit_buf_append(url, text, 1);
        else
            whit_buf_printf(url, "%%%02X", c);
    }
}

/* Writes ENDPOINT + before + REPO + middle + REVISION + after + path to `url`. Any part may be "". */
static whit_status make_url(const struct pull *pull, const char *before, const char *middle, const char *revision,
                            const char *after, const char *path, char url[WHIT_HTTP_URL_BYTES], whit_error *error)
{
    whit_buf text = {.limit_bytes = WHIT_HTTP_URL_BYTES - 1};
    whit_buf_append_str(&text, pull->options->endpoint);
    whit_buf_append_str(&text, before);
    append_encoded(&text, pull->name->repo, true);
    whit_buf_append_str(&text, middle);
    append_encoded(&text, revision, false);
    whit_buf_append_str(&text, after);
    append_encoded(&text, path, true);
    bool fits = !text.failed;
    if (fits) memcpy(url, text.data, text.size_bytes);
    if (fits) url[text.size_bytes] = 0;
    whit_buf_free(&text);
    return fits
        ? WHIT_OK
        : whit_fail(error, WHIT_ERROR_LIMIT,
                    "%s: the address of its listing or file is longer than 4,095 bytes, the limit", pull->name->repo);
}

/* ---- the listing ---------------------------------------------------------------------------- */

/* Reads the repository's description into the listing. A hub without descriptions answers 404 (see *answer); then the
 * files come from the tree alone. */
static whit_status read_info(struct pull *pull, bool want_files, whit_http_answer *answer, whit_error *error)
{
    char url[WHIT_HTTP_URL_BYTES];
    whit_buf text = {0};
    bool is_main = strcmp(pull->name->revision, WHIT_HUB_MAIN) == 0;
    whit_status status = make_url(pull, "/api/models/", "/revision/", pull->name->revision,
                                  want_files ? "?blobs=true" : "", "", url, error);
    if (status == WHIT_OK) status = whit_hub_read(&pull->line, url, WHIT_HUB_ANSWER_BYTES_MAX, &text, answer, error);
    if (status == WHIT_OK && answer->status == 404 && !*answer->error_code && is_main) {
        status = make_url(pull, "/api/models/", "", "", want_files ? "?blobs=true" : "", "", url, error);
        if (status == WHIT_OK)
            status = whit_hub_read(&pull->line, url, WHIT_HUB_ANSWER_BYTES_MAX, &text, answer, error);
    }
    if (status == WHIT_OK && answer->status / 100 == 2)
        status = whit_hub_listing_add_info(&pull->listing, pull->name->repo, whit_chars(&text), text.size_bytes,
                                           want_files, error);
    whit_buf_free(&text);
    return status;
}

static const char *revision_of(const struct pull *pull)
{
    return pull->listing.commit[0] ? pull->listing.commit : pull->name->revision;
}

static whit_status read_tree(struct pull *pull, whit_http_answer *answer, whit_error *error)
{
    char url[WHIT_HTTP_URL_BYTES];
    whit_buf text = {0};
    whit_status status = make_url(pull, "/api/models/", "/tree/", revision_of(pull), "?recursive=true", "", url, error);
    for (int n_pages = 1; status == WHIT_OK; n_pages++) {
        status = whit_hub_read(&pull->line, url, WHIT_HUB_ANSWER_BYTES_MAX, &text, answer, error);
        if (status != WHIT_OK || answer->status / 100 != 2) break;
        status = whit_hub_listing_add_tree(&pull->listing, pull->name->repo, whit_chars(&text), text.size_bytes, error);
        if (status != WHIT_OK || !whit_hub_next_page(answer->link, url, sizeof url)) break;
        if (!whit_hub_page_is_safe(pull->options->endpoint, url))
            status = whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                               "%s: its listing redirects from https to %.200s, which is not encrypted",
                               pull->name->repo, url);
        else if (n_pages == PAGES_MAX)
            status = whit_fail(error, WHIT_ERROR_LIMIT, "%s: the hub's listing has more than %d pages, the limit",
                               pull->name->repo, PAGES_MAX);
    }
    whit_buf_free(&text);
    return status;
}

/* Lists the repository's files. Sizes and digests come from the tree, or from the description if there is no tree. The
 * commit comes from the description and is used in every further address, so that all files are of the same commit. */
static whit_status list_files(struct pull *pull, whit_error *error)
{
    const char *repo = pull->name->repo;
    whit_http_answer info, tree;
    WHIT_TRY(read_info(pull, false, &info, error));
    if (info.status / 100 != 2 && (info.status != 404 || *info.error_code)) return whit_hub_refusal(&info, repo, error);
    WHIT_TRY(read_tree(pull, &tree, error));
    if (tree.status == 404 && info.status / 100 == 2) {
        WHIT_TRY(read_info(pull, true, &info, error));
        tree = info;
    }
    if (tree.status / 100 != 2) return whit_hub_refusal(&tree, repo, error);
    return whit_hub_listing_sort(&pull->listing, repo, error);
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool on_bytes(void *user, uint64_t n_new_bytes)
{
    struct pull *pull = user;
    pull->progress.done_bytes += n_new_bytes;
    return !pull->options->progress || pull->options->progress(pull->options->user, &pull->progress);
}

/* Creates the missing parent folders of the file at `path`, which is in the entry's folder. */
static whit_status make_folders(const struct pull *pull, char *path, whit_error *error)
{
    for (char *slash = strchr(path + strlen(pull->entry.folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        bool failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        whit_status status = failed ? whit_fail_errno(error, path, "create this folder") : WHIT_OK;
        *slash = '/';
        if (failed) return status;
    }
    return WHIT_OK;
}

/* Sets here[i] if file i is in the store already. The record of the last pull decides; if it has another digest or
 * lacks the file, as after a crash between two renames, the file on disk is hashed. A file for which the hub states no
 * digest counts as absent. */
static whit_status look_for(struct pull *pull, size_t i, whit_error *error)
{
    const whit_hub_file *file = &pull->listing.files[i], *old = whit_hub_listing_find(&pull->entry.files, file->path);
    char path[WHIT_CACHE_PATH_BYTES];
    if (pull->here[i] || file->digest_kind == WHIT_HUB_NO_DIGEST) return WHIT_OK;
    if (old && old->size_bytes == file->size_bytes && old->digest_kind == file->digest_kind &&
        strcmp(old->digest, file->digest) == 0) {
        pull->here[i] = whit_hub_entry_has(&pull->entry, file);
        return WHIT_OK;
    }
    WHIT_TRY(whit_hub_entry_path(&pull->entry, file->path, "", path, error));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return WHIT_OK;
    whit_status status = whit_hub_digest_check(fd, path, file, pull->options->cancel, &pull->here[i], error);
    close(fd);
    return status;
}

static whit_status fetch(struct pull *pull, size_t i, whit_hub_pulled *pulled, whit_error *error)
{
    whit_hub_file *file = &pull->listing.files[i];
    char url[WHIT_HTTP_URL_BYTES], path[WHIT_CACHE_PATH_BYTES], what[WHIT_HUB_REPO_BYTES + WHIT_HUB_PATH_BYTES + 8];
    snprintf(what, sizeof what, "%s: %s", pull->name->repo, file->path);
    WHIT_TRY(make_url(pull, "/", "/resolve/", revision_of(pull), "/", file->path, url, error));
    WHIT_TRY(whit_hub_entry_path(&pull->entry, file->path, ".part", path, error));
    WHIT_TRY(make_folders(pull, path, error));
    pull->progress.file = file->path;
    uint64_t before = pull->progress.done_bytes;
    WHIT_TRY(whit_hub_download(&pull->line, url, what, path, file, error));
    pulled->fetched_bytes += pull->progress.done_bytes - before;
    return WHIT_OK;
}

/* Returns the number of bytes of an unfinished file from an earlier run, at most the file's size. */
static uint64_t part_bytes(const struct pull *pull, const whit_hub_file *file)
{
    char path[WHIT_CACHE_PATH_BYTES];
    struct stat info;
    if (whit_hub_entry_path(&pull->entry, file->path, ".part", path, NULL) != WHIT_OK || lstat(path, &info) != 0)
        return 0;
    return (uint64_t)info.st_size < file->size_bytes ? (uint64_t)info.st_size : file->size_bytes;
}

/* Sums the sizes of the chosen files, and checks the free disk space before anything is downloaded. */
static whit_status measure_files(struct pull *pull, whit_hub_pulled *pulled, whit_error *error)
{
    uint64_t missing = 0;
    pull->progress.done_bytes = pull->progress.total_bytes = 0;
    bool known = true;
    for (size_t k = 0; k < pull->choice.n_files; k++) {
        const whit_hub_file *file = &pull->listing.files[pull->choice.files[k]];
        uint64_t size = file->size_bytes, have = pull->here[pull->choice.files[k]] ? size : part_bytes(pull, file);
        known = known && size != WHIT_HUB_SIZE_UNKNOWN;
        if (size == WHIT_HUB_SIZE_UNKNOWN) continue;
        if (size > INT64_MAX - pull->progress.total_bytes)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: the sizes in its listing are not possible (over 2^64 bytes); try again later",
                             pull->name->repo);
        pull->progress.total_bytes += size;
        pull->progress.done_bytes += have;
        missing += size - have;
    }
    pulled->size_bytes = pull->progress.total_bytes;
    if (!known) pull->progress.total_bytes = 0;
    struct statvfs disk;
    if (statvfs(pull->entry.folder, &disk) != 0) return WHIT_OK;
    uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (missing <= free_bytes) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_IO, "%s: the download needs %.2f GB, but the disk of %s has %.2f GB free",
                     pull->name->repo, (double)missing / 1e9, pull->entry.folder, (double)free_bytes / 1e9);
}

/* Chooses the shards of a safetensors folder, after downloading the index that names them. */
static whit_status add_shards(struct pull *pull, whit_hub_pulled *pulled, whit_error *error)
{
    size_t index = pull->choice.index;
    char path[WHIT_CACHE_PATH_BYTES];
    whit_buf text = {0};
    if (index == SIZE_MAX) return WHIT_OK;
    WHIT_TRY(look_for(pull, index, error));
    if (!pull->here[index]) WHIT_TRY(fetch(pull, index, pulled, error));
    WHIT_TRY(whit_hub_entry_path(&pull->entry, pull->listing.files[index].path, pull->here[index] ? "" : ".part", path,
                                 error));
    whit_status status = whit_read_file(path, 4 * WHIT_HUB_ANSWER_BYTES_MAX, &text, error);
    if (status == WHIT_OK)
        status = whit_hub_choose_shards(&pull->listing, pull->name->repo, whit_chars(&text), text.size_bytes,
                                        &pull->choice, error);
    whit_buf_free(&text);
    return status;
}

static whit_status fetch_all(struct pull *pull, whit_hub_pulled *pulled, whit_error *error)
{
    pull->here = calloc(pull->listing.n_files + 1, sizeof *pull->here);
    if (!pull->here) return whit_fail_memory(error, "the listing", pull->listing.n_files);
    WHIT_TRY(add_shards(pull, pulled, error));
    for (size_t k = 0; k < pull->choice.n_files; k++) WHIT_TRY(look_for(pull, pull->choice.files[k], error));
    WHIT_TRY(measure_files(pull, pulled, error));
    for (size_t k = 0; k < pull->choice.n_files; k++) {
        size_t i = pull->choice.files[k];
        if (!pull->here[i]) WHIT_TRY(fetch(pull, i, pulled, error));
    }
    return WHIT_OK;
}

/* ---- replacing the old files ---------------------------------------------------------------- */

static bool is_chosen(const struct pull *pull, const char *path)
{
    for (size_t k = 0; k < pull->choice.n_files; k++)
        if (strcmp(pull->listing.files[pull->choice.files[k]].path, path) == 0) return true;
    return false;
}

/* Returns whether the file at `path`, from an older version, would wrongly be read as a part of the new folder. */
static bool disturbs(const struct pull *pull, const char *path)
{
    static const char *const endings[] = {".safetensors", ".json", ".model", ".jinja", ".txt"};
    if (pull->choice.kind != WHIT_HUB_FOLDER || strchr(path, '/') || is_chosen(pull, path)) return false;
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0) return true;
    return false;
}

/* Removes from the record the files that are about to be replaced, and deletes the files that `disturbs` reports. A
 * crash during the replacement then leaves a true record. */
static whit_status record_unchanged(struct pull *pull, whit_error *error)
{
    whit_hub_listing kept = {0};
    whit_status status = WHIT_OK;
    for (size_t i = 0; i < pull->entry.files.n_files && status == WHIT_OK; i++) {
        const whit_hub_file *file = &pull->entry.files.files[i];
        if (!is_chosen(pull, file->path) && !disturbs(pull, file->path))
            status = whit_hub_listing_add(&kept, file, error);
    }
    whit_hub_listing before = pull->entry.files;
    pull->entry.files = kept;
    if (status == WHIT_OK) status = whit_hub_entry_record(&pull->entry, error);
    for (size_t i = 0; i < before.n_files && status == WHIT_OK; i++) {
        char path[WHIT_CACHE_PATH_BYTES];
        if (disturbs(pull, before.files[i].path) &&
            whit_hub_entry_path(&pull->entry, before.files[i].path, "", path, error) == WHIT_OK)
            unlink(path);
    }
    whit_hub_listing_free(&before);
    return status;
}

static whit_status install(struct pull *pull, whit_error *error)
{
    WHIT_TRY(record_unchanged(pull, error));
    for (size_t k = 0; k < pull->choice.n_files; k++) {
        size_t i = pull->choice.files[k];
        const whit_hub_file *file = &pull->listing.files[i];
        char from[WHIT_CACHE_PATH_BYTES], to[WHIT_CACHE_PATH_BYTES];
        WHIT_TRY(whit_hub_entry_path(&pull->entry, file->path, ".part", from, error));
        WHIT_TRY(whit_hub_entry_path(&pull->entry, file->path, "", to, error));
        if (!pull->here[i] && rename(from, to) != 0)
            return whit_fail_errno(error, to, "rename the finished file to this name");
        if (whit_hub_entry_path(&pull->entry, file->path, ".part.etag", from, NULL) == WHIT_OK) unlink(from);
        WHIT_TRY(whit_hub_listing_add(&pull->entry.files, file, error));
    }
    WHIT_TRY(whit_hub_listing_sort(&pull->entry.files, pull->name->repo, error));
    return whit_hub_entry_record(&pull->entry, error);
}

/* Returns whether all chosen files are in place already. Then files and record stay untouched, so that the converted
 * model in the cache stays valid. */
static bool is_in_place(const struct pull *pull)
{
    for (size_t k = 0; k < pull->choice.n_files; k++)
        if (!pull->here[pull->choice.files[k]] ||
            !whit_hub_listing_find(&pull->entry.files, pull->listing.files[pull->choice.files[k]].path))
            return false;
    for (size_t i = 0; i < pull->entry.files.n_files; i++)
        if (disturbs(pull, pull->entry.files.files[i].path)) return false;
    return true;
}

static whit_status run_pull(struct pull *pull, whit_hub_pulled *pulled, whit_error *error)
{
    WHIT_TRY(list_files(pull, error));
    WHIT_TRY(whit_hub_choose(&pull->listing, pull->name->repo, pull->name->file, &pull->choice, error));
    WHIT_TRY(whit_hub_entry_lock(&pull->entry, error));
    WHIT_TRY(fetch_all(pull, pulled, error));
    if (!is_in_place(pull)) WHIT_TRY(install(pull, error));
    pulled->kind = pull->choice.kind;
    pulled->n_files = pull->choice.n_files;
    memcpy(pulled->commit, pull->listing.commit, sizeof pulled->commit);
    memcpy(pulled->licence, pull->listing.licence, sizeof pulled->licence);
    if (pulled->kind != WHIT_HUB_FOLDER)
        return whit_hub_entry_path(&pull->entry, pull->listing.files[pull->choice.files[0]].path, "", pulled->path,
                                   error);
    memcpy(pulled->path, pull->entry.folder, sizeof pulled->path);
    return WHIT_OK;
}

whit_status whit_hub_pull(const whit_hub_name *name, const whit_hub_pull_options *options, whit_hub_pulled *pulled,
                          whit_error *error)
{
    struct pull pull = {.name = name, .options = options};
    const whit_http_options http = {.home = options->endpoint,
                                    .token = options->token,
                                    .cancel = options->cancel,
                                    .connect_s = options->connect_s ? options->connect_s : 30,
                                    .stall_s = options->stall_s ? options->stall_s : 60};
    *pulled = (whit_hub_pulled){0};
    pull.line = (whit_hub_line){.n_tries = options->n_tries ? options->n_tries : 5,
                                .wait_ms = options->wait_ms ? options->wait_ms : 1000,
                                .cancel = options->cancel,
                                .on_bytes = on_bytes,
                                .user = &pull};
    whit_status status = whit_hub_entry_open(options->cache_dir, name, &pull.entry, error);
    if (status == WHIT_OK) status = whit_http_open(&http, &pull.line.http, error);
    if (status == WHIT_OK) status = run_pull(&pull, pulled, error);
    if (status != WHIT_OK) whit_hub_entry_tidy(&pull.entry);
    whit_http_close(pull.line.http);
    whit_hub_choice_free(&pull.choice);
    whit_hub_listing_free(&pull.listing);
    whit_hub_entry_close(&pull.entry);
    free(pull.here);
    return status;
}
