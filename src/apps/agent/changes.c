/* SPDX-License-Identifier: MIT */
#include "agent/changes.h"

#include "agent/guard.h"
#include "agent/light.h"
#include "base/items.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

size_t whit_changes_count(const whit_changes *set)
{
    return set->changes.size_bytes / sizeof(whit_change);
}

whit_change *whit_changes_at(const whit_changes *set, size_t i)
{
    return WHIT_ITEMS(whit_change, &set->changes) + i;
}

static whit_patch_result *result_at(const whit_changes *set, size_t i)
{
    return WHIT_ITEMS(whit_patch_result, &set->results) + i;
}

const whit_patch_result *whit_changes_result(const whit_changes *set, size_t i)
{
    return result_at(set, i);
}

const whit_change *whit_changes_find(const whit_changes *set, const char *path)
{
    for (size_t i = whit_changes_count(set); i > 0; i--)
        if (strcmp(whit_changes_at(set, i - 1)->path, path) == 0) return whit_changes_at(set, i - 1);
    return NULL;
}

/* Finds the current text of a path: its staged content or, if it has no staged change, the content of the file, which
 * is read into `content`. */
static whit_status begin_change(const whit_changes *set, const char *project, const char *path, whit_buf *content,
                                whit_change *change, const char **now, size_t *now_bytes, bool *there,
                                whit_error *error)
{
    const whit_change *staged = whit_changes_find(set, path);
    if (staged) {
        *change = *staged;
        *now = staged->after;
        *now_bytes = staged->after_bytes;
        *there = staged->is;
        return WHIT_OK;
    }
    *change = (whit_change){0};
    whit_project_file file;
    WHIT_TRY(whit_texts_read(set->open, project, path, content, &file, &change->open, error));
    change->was = file.exists;
    change->mode = file.mode;
    change->is_hidden = file.is_hidden;
    *now = change->before = whit_chars(content);
    *now_bytes = change->before_bytes = content->size_bytes;
    *there = change->was;
    return WHIT_OK;
}

/* Adds a change. Takes ownership of both texts of `content`, before and after, and frees them on failure. */
static whit_status add_change(whit_changes *set, whit_change *change, const char *path, whit_buf content[2],
                              const whit_patch_result *result, whit_error *error)
{
    char *own = strdup(path);
    change->path = own;
    change->after = whit_chars(&content[1]);
    change->after_bytes = content[1].size_bytes;
    if (own && whit_buf_reserve(&set->contents, 2 * sizeof *content) && whit_buf_reserve(&set->paths, sizeof own) &&
        whit_buf_reserve(&set->changes, sizeof *change) && whit_buf_reserve(&set->results, sizeof *result)) {
        whit_buf_append(&set->contents, content, 2 * sizeof *content);
        whit_buf_append(&set->paths, &own, sizeof own);
        whit_buf_append(&set->changes, change, sizeof *change);
        whit_buf_append(&set->results, result, sizeof *result);
        return WHIT_OK;
    }
    free(own);
    whit_buf_free(&content[0]);
    whit_buf_free(&content[1]);
    return whit_fail_memory(error, "the list of changes", sizeof *change);
}

static whit_status add_file(whit_changes *set, const char *project, const whit_patch *patch,
                            const whit_patch_file *file, const char *path, whit_error *error)
{
    whit_buf content[2] = {{0}, {0}}; /* [0]: text before the change, [1]: text after it */
    whit_patch_result result = {0};
    whit_change change;
    const char *now = NULL;
    size_t now_bytes = 0;
    bool there = false;
    whit_status status = begin_change(set, project, path, &content[0], &change, &now, &now_bytes, &there, error);
    change.is = file->action != WHIT_PATCH_DELETE;
    if (status == WHIT_OK && !there && file->action != WHIT_PATCH_ADD)
        status = whit_fail(error, WHIT_ERROR_IO, "%s: there is no such file in the project", path);
    if (status == WHIT_OK && there && file->action == WHIT_PATCH_ADD && now_bytes)
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s: the patch creates this file, but it exists already", path);
    /* The editor would empty the text and keep the file, which is not what is shown. */
    if (status == WHIT_OK && change.open && !change.is)
        status = whit_fail(error, WHIT_ERROR_FORMAT,
                           "%s: is open in the editor and not saved, so it cannot be deleted: the person can save or "
                           "close it",
                           path);
    /* A unified diff lists the deleted lines and is checked against the file; "*** Delete File" has no hunks to
     * check. */
    if (status == WHIT_OK && (change.is || file->n_hunks))
        status = whit_patch_apply(patch, file, path, now, now_bytes, &content[1], &result, error);
    if (status == WHIT_OK && !change.is && content[1].size_bytes)
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file contains more lines than the patch deletes", path);
    bool may_quote = status == WHIT_ERROR_FORMAT && there && file->action != WHIT_PATCH_ADD;
    bool is_secret = may_quote &&
        (change.is_hidden || whit_light_secret(project, path) || whit_change_had_key(&change) ||
         whit_guard_has_key(now, now_bytes));
    if (is_secret) /* the error message must not quote a file with secrets */
        status = whit_fail(error, status,
                           "%s: the patch does not match the file, whose text is not shown because it may contain keys",
                           path);
    if (status == WHIT_OK) return add_change(set, &change, path, content, &result, error);
    whit_buf_free(&content[0]);
    whit_buf_free(&content[1]);
    return status;
}

/* Drops the changes that were added since the set was `before`. Only sizes are taken from `before`: contents and paths
 * may outnumber the changes, since whit_changes_drop and whit_changes_replace keep those of earlier ones. */
static void drop_added(whit_changes *set, const whit_changes *before)
{
    for (size_t i = before->contents.size_bytes / sizeof(whit_buf); i < set->contents.size_bytes / sizeof(whit_buf);
         i++)
        whit_buf_free(WHIT_ITEMS(whit_buf, &set->contents) + i);
    for (size_t i = before->paths.size_bytes / sizeof(char *); i < set->paths.size_bytes / sizeof(char *); i++)
        free(((char **)WHIT_ITEMS(void, &set->paths))[i]);
    set->contents.size_bytes = before->contents.size_bytes;
    set->paths.size_bytes = before->paths.size_bytes;
    set->changes.size_bytes = before->changes.size_bytes;
    set->results.size_bytes = before->results.size_bytes;
}

whit_status whit_changes_patch(whit_changes *set, const char *project, const whit_patch *patch, const char *path,
                               whit_error *error)
{
    const whit_changes before = *set;
    const size_t n = whit_changes_count(set);
    whit_status status = WHIT_OK;
    for (size_t i = 0; status == WHIT_OK && i < whit_patch_n_files(patch); i++) {
        const whit_patch_file *file = whit_patch_file_at(patch, i);
        const char *name = file->path ? file->path : path;
        char real[PATH_MAX]; /* the name of the file without links, by which the changes of the set are kept */
        if (!name)
            status = whit_fail(error, WHIT_ERROR_ARGUMENT,
                               "the patch names no file: write its name before each block, or give it by -f FILE");
        else if (file->move_to)
            status = whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                               "%s: a patch that moves a file is not applied; add the new file and delete the old one",
                               name);
        else
            status = whit_texts_name(set->open, project, name, real, error);
        if (status == WHIT_OK) name = real;
        for (size_t k = n; status == WHIT_OK && k < whit_changes_count(set); k++)
            if (strcmp(whit_changes_at(set, k)->path, name) == 0)
                status = whit_fail(error, WHIT_ERROR_FORMAT,
                                   "%s: the patch has this file twice: put all its changes into one part", name);
        if (status == WHIT_OK) status = add_file(set, project, patch, file, name, error);
        /* a forbidden path is an error of the patch, not of the caller */
        if (status == WHIT_ERROR_ARGUMENT && file->path) {
            status = WHIT_ERROR_FORMAT;
            if (error) error->status = status;
        }
    }
    if (status != WHIT_OK) drop_added(set, &before);
    return status;
}

whit_status whit_changes_put(whit_changes *set, const char *project, const char *path, const char *text, size_t n_bytes,
                             whit_error *error)
{
    whit_buf content[2] = {{0}, {0}};
    whit_change change;
    const char *now;
    size_t now_bytes;
    bool there;
    char name[PATH_MAX];
    WHIT_TRY(whit_texts_name(set->open, project, path, name, error));
    whit_status status = begin_change(set, project, name, &content[0], &change, &now, &now_bytes, &there, error);
    change.is = true;
    if (status == WHIT_OK && !whit_buf_append(&content[1], text, n_bytes))
        status = whit_fail_memory(error, "a file", n_bytes);
    if (status == WHIT_OK) return add_change(set, &change, name, content, &(whit_patch_result){0}, error);
    whit_buf_free(&content[0]);
    whit_buf_free(&content[1]);
    return status;
}

void whit_changes_settle(whit_changes *set)
{
    size_t n = whit_changes_count(set);
    for (size_t i = 0; i < n; i++) {
        whit_change c = *whit_changes_at(set, i);
        bool last = whit_changes_find(set, c.path) == whit_changes_at(set, i);
        bool same = c.was == c.is && c.before_bytes == c.after_bytes &&
            (!c.before_bytes || memcmp(c.before, c.after, c.before_bytes) == 0);
        /* an empty path marks the change for removal by whit_changes_drop() */
        if (!last || same || (!c.was && !c.is)) c.path = "";
        *whit_changes_at(set, i) = c;
    }
    whit_changes_drop(set);
}

whit_status whit_changes_replace(whit_changes *set, size_t i, whit_buf *content, whit_error *error)
{
    whit_change *c = whit_changes_at(set, i);
    if (!whit_buf_append(&set->contents, content, sizeof *content)) {
        whit_buf_free(content);
        return whit_fail_memory(error, "the list of changes", sizeof *content);
    }
    c->after = whit_chars(content);
    c->after_bytes = content->size_bytes;
    return WHIT_OK;
}

bool whit_changes_copy(whit_changes *set, const whit_change *change)
{
    whit_buf content[2] = {{0}, {0}};
    whit_change own = *change;
    whit_error error;
    if (!whit_buf_append(&content[0], change->before, change->before_bytes) ||
        !whit_buf_append(&content[1], change->after, change->after_bytes)) {
        whit_buf_free(&content[0]);
        whit_buf_free(&content[1]);
        return false;
    }
    own.before = whit_chars(&content[0]);
    return add_change(set, &own, change->path, content, &(whit_patch_result){0}, &error) == WHIT_OK;
}

bool whit_change_had_key(const whit_change *c)
{
    return c->was && whit_guard_has_key(c->before, c->before_bytes);
}

void whit_change_turn_round(whit_change *c)
{
    *c = (whit_change){.path = c->path,
                       .was = c->is,
                       .is = c->was,
                       .open = c->open,
                       .mode = c->mode,
                       .before = c->after,
                       .after = c->before,
                       .before_bytes = c->after_bytes,
                       .after_bytes = c->before_bytes};
}

void whit_changes_drop(whit_changes *set)
{
    size_t kept = 0, n = whit_changes_count(set);
    for (size_t i = 0; i < n; i++) {
        if (!*whit_changes_at(set, i)->path) continue;
        *result_at(set, kept) = *result_at(set, i);
        *whit_changes_at(set, kept++) = *whit_changes_at(set, i);
    }
    set->changes.size_bytes = kept * sizeof(whit_change);
    set->results.size_bytes = kept * sizeof(whit_patch_result);
}

void whit_changes_free(whit_changes *set)
{
    for (size_t i = 0; i < set->contents.size_bytes / sizeof(whit_buf); i++)
        whit_buf_free(WHIT_ITEMS(whit_buf, &set->contents) + i);
    for (size_t i = 0; i < set->paths.size_bytes / sizeof(char *); i++)
        free(((char **)WHIT_ITEMS(void, &set->paths))[i]);
    whit_buf_free(&set->contents);
    whit_buf_free(&set->paths);
    whit_buf_free(&set->changes);
    whit_buf_free(&set->results);
}
