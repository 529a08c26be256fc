/* SPDX-License-Identifier: MIT */
#include "server/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEAST_TOKENS = 64, PATH_BYTES = 4096, SERVERS_MAX = 256 };

static const char purpose[] = "serve";

uint32_t whit_keep_join(const char *folder, int *fd)
{
    char path[PATH_BYTES];
    (void)mkdir(folder, 0700); /* if this fails, whit_keep_open reports why */
    for (uint32_t i = 0; i < SERVERS_MAX; i++) {
        if (snprintf(path, sizeof path, "%s/server-%u.lock", folder, i) >= PATH_BYTES) break;
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (*fd < 0) break;
        if (flock(*fd, LOCK_EX | LOCK_NB) == 0) return i;
        const bool is_taken = errno == EWOULDBLOCK;
        close(*fd);
        if (!is_taken) break;
    }
    *fd = -1;
    return 0;
}

whit_status whit_keep_open(const whit_model *model, const char *folder, uint32_t i_server, uint32_t i_twin,
                           const whit_session_options *session, whit_keep *keep, whit_error *error)
{
    char digits[17];
    const uint8_t *identity = whit_model_identity(model);
    *keep = (whit_keep){.prefix = NULL};
    if (!folder) return WHIT_OK;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) return whit_fail_errno(error, folder, "create this folder");
    if (access(folder, W_OK | X_OK) != 0) return whit_fail_errno(error, folder, "write to this folder");
    for (size_t i = 0; i < 8; i++) snprintf(digits + 2 * i, 3, "%02x", identity[i]);
    size_t n = strlen(folder) + 80;
    keep->prefix = malloc(n);
    if (!keep->prefix) return whit_fail_memory(error, "the cache folder", n);
    int length = snprintf(keep->prefix, n, "%s/%s-%d-%d-", folder, digits, (int)session->kv, (int)session->act);
    if (i_server) length += snprintf(keep->prefix + length, n - (size_t)length, "server%u-", i_server);
    if (i_twin) snprintf(keep->prefix + length, n - (size_t)length, "twin%u-", i_twin);
    if (n <= PATH_BYTES - 80) return WHIT_OK;
    whit_keep_close(keep);
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: the folder's path is longer than %d bytes, the limit", folder,
                     PATH_BYTES - 160);
}

void whit_keep_close(whit_keep *keep)
{
    free(keep->prefix);
    keep->prefix = NULL;
}

static void path_of(const whit_keep *keep, uint32_t i, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s%u.ndf", keep->prefix, i);
}

static void complain(whit_keep *keep, const char *what, const char *message)
{
    if (!keep->failed) fprintf(stderr, "whit: %s: %s\n", what, message);
    keep->failed = true;
}

whit_status whit_keep_read(whit_session *session, uint32_t i, const char *path, int32_t **ids, size_t *n_ids,
                           whit_error *error)
{
    whit_session_file *file;
    *ids = NULL;
    *n_ids = 0;
    if (access(path, R_OK) != 0) return whit_fail_errno(error, path, "read");
    WHIT_TRY(whit_session_load(session, i, path, purpose, &file, error));
    size_t n = whit_session_position(session, i), n_there;
    const int32_t *there = whit_session_file_ids(file, &n_there);
    *ids = n && n <= n_there ? malloc(n * sizeof **ids) : NULL;
    if (*ids) {
        memcpy(*ids, there, n * sizeof **ids);
        *n_ids = n;
    }
    whit_session_file_close(file);
    return WHIT_OK;
}

int32_t *whit_keep_load(whit_keep *keep, whit_session *session, uint32_t i, size_t *n_ids)
{
    char path[PATH_BYTES];
    int32_t *ids;
    whit_error error;
    *n_ids = 0;
    if (!keep->prefix) return NULL;
    path_of(keep, i, path);
    if (access(path, R_OK) != 0) return NULL;
    whit_status status = whit_keep_read(session, i, path, &ids, n_ids, &error);
    if (status == WHIT_OK) return ids;
    /* A damaged file is removed. Otherwise the file is kept: it may be in use by another server, or have been saved
     * with a larger context. */
    if (status == WHIT_ERROR_FORMAT) unlink(path);
    complain(keep, "a prompt stored in --cache-dir was not restored", error.message);
    return NULL;
}

whit_status whit_keep_write(whit_session *session, uint32_t i, const char *path, size_t *n_saved, whit_error *error)
{
    uint32_t n;
    *n_saved = 0;
    if (whit_session_position(session, i) <= LEAST_TOKENS)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "only slots of more than %d tokens are saved, and this one has %u",
                         LEAST_TOKENS, whit_session_position(session, i));
    WHIT_TRY(whit_session_snapshot(session, i, path, purpose, &n, error));
    *n_saved = n;
    return WHIT_OK;
}

void whit_keep_save(whit_keep *keep, whit_session *session, uint32_t i)
{
    char path[PATH_BYTES];
    whit_error error;
    size_t n_saved;
    if (!keep->prefix || whit_session_position(session, i) <= LEAST_TOKENS) return;
    path_of(keep, i, path);
    if (whit_keep_write(session, i, path, &n_saved, &error) != WHIT_OK)
        complain(keep, "computed prompts cannot be stored in --cache-dir", error.message);
}
