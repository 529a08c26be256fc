/* SPDX-License-Identifier: MIT
 * Reads a file of the last commit in a separate process, which sends the content through a pipe. libgit2 needs five
 * megabytes and does not release all of them when it is closed, so the caller's process does not load it. */
#include "code/git.h"

#include "base/apart.h"
#include "base/file.h"
#include "base/items.h"
#include "base/path.h"
#include "code/diff.h"
#include "whit_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if WHIT_HAVE_GIT2
#include "code/libgit2.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#define BLOB_BYTES       (8u << 20)
#define PATIENCE_SECONDS 30
#define FILES_MAX        1024

struct whit_git_file {
    int fd;        /* pipe from the reading process; -1: its end was reached */
    whit_buf got;  /* the content's size (u64), then the content in HEAD */
    bool is_known; /* the content has arrived completely */
};

/* Returns whether a file is in a git work tree; if it is not, no process need be started. */
static bool is_in_work_tree(const char *path)
{
    char folder[PATH_MAX + 8];
    size_t n = strlen(path);
    if (n >= PATH_MAX) return false;
    memcpy(folder, path, n + 1);
    while (n) {
        while (n && folder[n - 1] != '/') n--;
        strcpy(folder + n, ".git");
        if (n && whit_path_exists(folder)) return true;
        if (n) n--;
    }
    return false;
}

/* Runs in the child process: writes the content's size and then the content of the file in HEAD. Writes nothing if HEAD
 * does not contain the path, or if the content is binary or larger than BLOB_BYTES. */
static void hand_over(const char *path, int fd)
{
    whit_libgit2 git;
    char folder[PATH_MAX], name[PATH_MAX + 8];
    const char *slash = strrchr(path, '/'), *top;
    git_repository *repository;
    git_object *object;
    if (!slash || !whit_libgit2_load(&git)) return;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    if (git.git_repository_open_ext(&repository, folder, 0, NULL) || !(top = git.git_repository_workdir(repository)) ||
        strncmp(path, top, strlen(top)) != 0)
        return;
    snprintf(name, sizeof name, "HEAD:%s", path + strlen(top));
    if (git.git_revparse_single(&object, repository, name) || git.git_object_type(object) != GIT_OBJECT_BLOB) return;
    const git_blob *blob = (const git_blob *)object;
    if (git.git_blob_rawsize(blob) > BLOB_BYTES || git.git_blob_is_binary(blob)) return;
    uint64_t size = git.git_blob_rawsize(blob);
    if (whit_write_all(fd, &size, sizeof size)) whit_write_all(fd, git.git_blob_rawcontent(blob), (size_t)size);
}

bool whit_git_ask(const char *path, whit_git_file **file)
{
    int ends[2], status;
    *file = NULL;
    if (!is_in_work_tree(path) || pipe2(ends, O_CLOEXEC) != 0) return false;
    whit_git_file *own = calloc(1, sizeof *own);
    pid_t child = own && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? fork() : -1;
    if (child == 0) { /* the reader is a grandchild, so that init reaps it and not this process */
        if (fork() == 0) {
            alarm(PATIENCE_SECONDS); /* limits the time on a file system that hangs */
            for (int fd = 0; fd < FILES_MAX; fd++)
                /* The child must not keep terminals and pipes open, since other processes may wait for their end. */
                if (fd != ends[1]) close(fd);
            whit_end_with_reader(ends[1]);
            hand_over(path, ends[1]);
        }
        _exit(0);
    }
    close(ends[1]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0) {
        close(ends[0]);
        free(own);
        return false;
    }
    *own = (whit_git_file){.fd = ends[0], .got.limit_bytes = BLOB_BYTES + 131072};
    *file = own;
    return true;
}

int whit_git_fd(const whit_git_file *file)
{
    return file ? file->fd : -1;
}

bool whit_git_is_known(const whit_git_file *file)
{
    return file && file->is_known;
}

void whit_git_pump(whit_git_file *file)
{
    while (file && file->fd >= 0) {
        ssize_t n =
            whit_buf_reserve(&file->got, 65536) ? read(file->fd, file->got.data + file->got.size_bytes, 65536) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n > 0) {
            file->got.size_bytes += (size_t)n;
            continue;
        }
        close(file->fd);
        file->fd = -1;
        file->is_known =
            n == 0 && file->got.size_bytes >= 8 && whit_load_u64(file->got.data) == (uint64_t)file->got.size_bytes - 8;
    }
}

void whit_git_close(whit_git_file *file)
{
    if (!file) return;
    if (file->fd >= 0) close(file->fd);
    whit_buf_free(&file->got);
    free(file);
}

size_t whit_git_changes(const whit_git_file *file, const void *text, size_t n_bytes, whit_git_change *changes,
                        size_t max)
{
    whit_buf runs = {0};
    size_t n = 0;
    if (file->is_known && whit_diff_lines(whit_chars(&file->got) + 8, file->got.size_bytes - 8, text, n_bytes, &runs))
        n = runs.size_bytes / sizeof(whit_diff_run);
    for (size_t i = 0; i < n && i < max; i++) {
        const whit_diff_run *run = WHIT_ITEMS(const whit_diff_run, &runs) + i;
        whit_git_kind kind = WHIT_GIT_ADDED;
        if (!run->n_new)
            kind = WHIT_GIT_REMOVED;
        else if (run->n_old)
            kind = WHIT_GIT_CHANGED;
        changes[i] = (whit_git_change){run->new_line + 1, run->n_new, kind};
    }
    whit_buf_free(&runs);
    return n;
}

#else

bool whit_git_ask(const char *path, whit_git_file **file)
{
    (void)path;
    *file = NULL;
    return false;
}

int whit_git_fd(const whit_git_file *file)
{
    (void)file;
    return -1;
}

bool whit_git_is_known(const whit_git_file *file)
{
    (void)file;
    return false;
}

void whit_git_pump(whit_git_file *file)
{
    (void)file;
}

void whit_git_close(whit_git_file *file)
{
    (void)file;
}

size_t whit_git_changes(const whit_git_file *file, const void *text, size_t n_bytes, whit_git_change *changes,
                        size_t max)
{
    (void)file, (void)text, (void)n_bytes, (void)changes, (void)max;
    return 0;
}

#endif
