/* SPDX-License-Identifier: MIT
 * The library takes five megabytes and keeps some of them when it is closed: a process of its own reads the
 * file's last commit and hands it over. */
#include "code/git.h"

#include "base/clock.h"
#include "base/file.h"
#include "code/diff.h"
#include "whit_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if WHIT_HAVE_GIT2
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define BLOB_BYTES  (8u << 20)
#define PATIENCE_MS 3000

#define FUNCTIONS(X)                                                                                                   \
    X(git_libgit2_init)                                                                                                \
    X(git_repository_open_ext)                                                                                         \
    X(git_repository_workdir)                                                                                          \
    X(git_revparse_single)                                                                                             \
    X(git_object_type)                                                                                                 \
    X(git_blob_rawsize)                                                                                                \
    X(git_blob_rawcontent)                                                                                             \
    X(git_blob_is_binary)

struct git {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

struct whit_git_file {
    whit_buf text; /* as HEAD has it */
};

/* Without one, the library need not be opened at all. */
static bool is_in_work_tree(const char *path)
{
    char folder[PATH_MAX + 8];
    size_t n = strlen(path);
    if (n >= PATH_MAX) return false;
    memcpy(folder, path, n + 1);
    while (n) {
        while (n && folder[n - 1] != '/') n--;
        strcpy(folder + n, ".git");
        if (n && access(folder, F_OK) == 0) return true;
        if (n) n--;
    }
    return false;
}

static bool load(struct git *git)
{
    void *library = dlopen(WHIT_GIT2_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool whole = library != NULL;
#define LOAD(name) whole = whole && (*(void **)&git->name = dlsym(library, #name));
    FUNCTIONS(LOAD)
#undef LOAD
    return whole && git->git_libgit2_init() > 0;
}

/* In the process of its own: 'y' and the content, or nothing. */
static bool hand_over(const char *path, int fd)
{
    struct git git = {0};
    char folder[PATH_MAX], name[PATH_MAX + 8];
    const char *slash = strrchr(path, '/'), *top;
    git_repository *repository;
    git_object *object;
    if (!slash || !load(&git)) return false;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    if (git.git_repository_open_ext(&repository, folder, 0, NULL) || !(top = git.git_repository_workdir(repository)) ||
        strncmp(path, top, strlen(top)) != 0)
        return false;
    snprintf(name, sizeof name, "HEAD:%s", path + strlen(top));
    if (git.git_revparse_single(&object, repository, name) || git.git_object_type(object) != GIT_OBJECT_BLOB)
        return false;
    const git_blob *blob = (const git_blob *)object;
    if (git.git_blob_rawsize(blob) > BLOB_BYTES || git.git_blob_is_binary(blob)) return false;
    return whit_write_all(fd, "y", 1) &&
        whit_write_all(fd, git.git_blob_rawcontent(blob), (size_t)git.git_blob_rawsize(blob));
}

/* Until the other end closes; false where that takes too long. */
static bool read_all(int fd, whit_buf *out)
{
    for (uint64_t begun_ns = whit_now_ns(); whit_now_ns() - begun_ns < PATIENCE_MS * 1000000ull;) {
        struct pollfd ready = {fd, POLLIN, 0};
        int n_ready = poll(&ready, 1, PATIENCE_MS);
        if (n_ready < 0 && errno == EINTR) continue;
        if (n_ready <= 0 || !whit_buf_reserve(out, 65536)) return false;
        ssize_t n = read(fd, out->data + out->size_bytes, 65536);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0;
        out->size_bytes += (size_t)n;
    }
    return false;
}

bool whit_git_open(const char *path, whit_git_file **file)
{
    whit_buf got = {.limit_bytes = BLOB_BYTES + 131072};
    int ends[2], status;
    *file = NULL;
    if (!is_in_work_tree(path) || pipe2(ends, O_CLOEXEC) != 0) return false;
    pid_t child = fork();
    if (child == 0) _exit(!hand_over(path, ends[1]));
    close(ends[1]);
    bool ok = child > 0 && read_all(ends[0], &got) && got.size_bytes && got.data[0] == 'y';
    close(ends[0]);
    if (child > 0 && !ok) kill(child, SIGKILL);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    whit_git_file *own = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? calloc(1, sizeof *own) : NULL;
    if (!own) {
        whit_buf_free(&got);
        return false;
    }
    got.size_bytes--;
    memmove(got.data, got.data + 1, got.size_bytes);
    own->text = got;
    *file = own;
    return true;
}

void whit_git_close(whit_git_file *file)
{
    if (!file) return;
    whit_buf_free(&file->text);
    free(file);
}

size_t whit_git_changes(const whit_git_file *file, const void *text, size_t n_bytes, whit_git_change *changes,
                        size_t max)
{
    whit_buf runs = {0};
    size_t n = 0;
    if (whit_diff_lines((const char *)file->text.data, file->text.size_bytes, text, n_bytes, &runs))
        n = runs.size_bytes / sizeof(whit_diff_run);
    for (size_t i = 0; i < n && i < max; i++) {
        const whit_diff_run *run = (const whit_diff_run *)(const void *)runs.data + i;
        whit_git_kind kind = !run->n_new ? WHIT_GIT_REMOVED : run->n_old ? WHIT_GIT_CHANGED : WHIT_GIT_ADDED;
        changes[i] = (whit_git_change){run->new_line + 1, run->n_new, kind};
    }
    whit_buf_free(&runs);
    return n;
}

#else

bool whit_git_open(const char *path, whit_git_file **file)
{
    (void)path;
    *file = NULL;
    return false;
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
