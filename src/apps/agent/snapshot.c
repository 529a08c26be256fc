/* SPDX-License-Identifier: MIT */
#include "agent/snapshot.h"

#include "base/file.h"
#include "base/items.h"
#include "code/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 64 << 20 };

static void hash_content(const whit_buf *content, uint8_t hash[WHIT_HASH_BYTES])
{
    whit_hash state;
    whit_hash_begin(&state, "agent.file");
    whit_hash_add(&state, content->data, content->size_bytes);
    whit_hash_end(&state, hash);
}

static bool add_file(void *user, const char *path)
{
    whit_snapshot *s = user;
    whit_buf content = {0};
    bool exists;
    if (s->n == s->capacity) {
        const size_t wanted = s->capacity ? 2 * s->capacity : 64;
        whit_file_hash *larger = realloc(s->files, wanted * sizeof *larger);
        if (!larger) {
            s->failed = true;
            whit_fail_memory(&s->error, "the files of a task", wanted * sizeof *larger);
            return false;
        }
        s->files = larger;
        s->capacity = wanted;
    }
    if (whit_project_read_copied(s->folder, path, FILE_BYTES_MAX, &content, &exists, &s->error) == WHIT_OK && exists) {
        whit_file_hash *file = &s->files[s->n];
        hash_content(&content, file->hash);
        file->path = strdup(path);
        s->failed |= !file->path;
        if (file->path) s->n++;
    }
    whit_buf_free(&content);
    return !s->failed;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const whit_file_hash *)a)->path, ((const whit_file_hash *)b)->path);
}

whit_status whit_snapshot_take(whit_snapshot *s, const char *folder, whit_error *error)
{
    *s = (whit_snapshot){.folder = folder};
    /* The copy got no ignored files, so any such file is one that the task wrote. */
    const whit_walk_how how = {.is_unruled = true};
    const bool is_whole = whit_walk(folder, &how, add_file, s);
    if (s->failed) return whit_fail_memory(error, "the list of the project's files", 0);
    if (!is_whole) /* changes of a file that is not listed would be lost */
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: the copy of a task has more than 200,000 files, folders more than 32 levels deep or one "
                         "that cannot be read, so its changes cannot be listed",
                         folder);
    if (s->n) qsort(s->files, s->n, sizeof *s->files, compare_paths);
    return WHIT_OK;
}

static const whit_file_hash *find_file(const whit_snapshot *s, const char *path)
{
    const whit_file_hash key = {.path = (char *)path};
    return s->n ? bsearch(&key, s->files, s->n, sizeof *s->files, compare_paths) : NULL;
}

void whit_snapshot_free(whit_snapshot *s)
{
    for (size_t i = 0; i < s->n; i++) free(s->files[i].path);
    free(s->files);
    *s = (whit_snapshot){0};
}

/* Stages the copy's version of one file if it differs from the snapshot. *conflict becomes true if the project's file
 * differs from both. */
static whit_status stage_file(const whit_snapshot *before, const char *project, const char *path, whit_changes *set,
                              bool *conflict, whit_error *error)
{
    const whit_file_hash *base = find_file(before, path);
    char name[PATH_MAX]; /* the file's name in the project, where a folder may be a link */
    whit_buf after = {0}, now = {0};
    bool is = false, exists = false;
    uint32_t mode_now = 0;
    uint8_t hash[WHIT_HASH_BYTES], hash_now[WHIT_HASH_BYTES];
    whit_status status = whit_project_read_copied(before->folder, path, FILE_BYTES_MAX, &after, &is, error);
    if (status == WHIT_OK) status = whit_project_name(project, path, name, error);
    if (status == WHIT_OK) status = whit_project_read(project, name, &now, &exists, &mode_now, error);
    hash_content(&after, hash);
    hash_content(&now, hash_now);
    const bool is_changed = is != (base != NULL) || (is && memcmp(hash, base->hash, sizeof hash) != 0);
    const bool is_there = is == exists && (!is || memcmp(hash, hash_now, sizeof hash) == 0);
    if (status == WHIT_OK && is_changed && !is_there) {
        *conflict |= exists != (base != NULL) || (exists && memcmp(hash_now, base->hash, sizeof hash) != 0);
        const whit_change change = {.path = name,
                                    .was = exists,
                                    .is = is,
                                    .mode = exists ? mode_now : 0,
                                    .before = whit_chars(&now),
                                    .after = whit_chars(&after),
                                    .before_bytes = now.size_bytes,
                                    .after_bytes = after.size_bytes};
        if (!whit_changes_copy(set, &change)) status = whit_fail_memory(error, path, after.size_bytes);
    }
    whit_buf_free(&after);
    whit_buf_free(&now);
    return status;
}

whit_status whit_snapshot_stage(const whit_snapshot *before, const char *project, whit_changes *set,
                                char conflict[PATH_MAX], whit_error *error)
{
    whit_snapshot after;
    whit_status status = whit_snapshot_take(&after, before->folder, error);
    conflict[0] = 0;
    /* pass 0: files that exist in the copy now; pass 1: files that were removed from it */
    for (int pass = 0; pass < 2; pass++) {
        const whit_snapshot *list = pass ? before : &after;
        for (size_t i = 0; status == WHIT_OK && i < list->n; i++) {
            bool has_conflict = false;
            if (pass && find_file(&after, list->files[i].path)) continue;
            status = stage_file(before, project, list->files[i].path, set, &has_conflict, error);
            if (has_conflict && !conflict[0]) snprintf(conflict, PATH_MAX, "%s", list->files[i].path);
        }
    }
    whit_snapshot_free(&after);
    return status;
}
