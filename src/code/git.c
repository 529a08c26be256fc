/* SPDX-License-Identifier: MIT */
#include "code/git.h"

#include "whit_config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if WHIT_HAVE_GIT2
#include <dlfcn.h>
#include <git2.h>

#define BLOB_BYTES (8u << 20)

#define FUNCTIONS(X)                                                                                                   \
    X(git_libgit2_init)                                                                                                \
    X(git_repository_open_ext)                                                                                         \
    X(git_repository_free)                                                                                             \
    X(git_repository_workdir)                                                                                          \
    X(git_revparse_single)                                                                                             \
    X(git_object_free)                                                                                                 \
    X(git_object_type)                                                                                                 \
    X(git_blob_rawsize)                                                                                                \
    X(git_blob_is_binary)                                                                                              \
    X(git_diff_options_init)                                                                                           \
    X(git_diff_blob_to_buffer)

struct git {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

struct whit_git_file {
    const struct git *git;
    git_object *blob;
    git_repository *repository; /* lives as long as the blob */
};

/* NULL where there is none. It stays loaded: what it registers for the end of the process must be there. */
static const struct git *load(void)
{
    static struct git git;
    static bool tried, whole;
    if (tried) return whole ? &git : NULL;
    tried = true;
    void *library = dlopen(WHIT_GIT2_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return NULL;
    whole = true;
#define LOAD(name) whole = (*(void **)&git.name = dlsym(library, #name)) && whole;
    FUNCTIONS(LOAD)
#undef LOAD
    whole = whole && git.git_libgit2_init() > 0;
    return whole ? &git : NULL;
}

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

bool whit_git_open(const char *path, whit_git_file **file)
{
    *file = NULL;
    if (!is_in_work_tree(path)) return false;
    const struct git *git = load();
    whit_git_file *own = git ? calloc(1, sizeof *own) : NULL;
    char folder[PATH_MAX], name[PATH_MAX + 8];
    const char *slash = strrchr(path, '/'), *top;
    if (!own) return false;
    own->git = git;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    bool ok = !git->git_repository_open_ext(&own->repository, folder, 0, NULL) &&
        (top = git->git_repository_workdir(own->repository)) && !strncmp(path, top, strlen(top));
    if (ok) {
        snprintf(name, sizeof name, "HEAD:%s", path + strlen(top));
        ok = !git->git_revparse_single(&own->blob, own->repository, name) &&
            git->git_object_type(own->blob) == GIT_OBJECT_BLOB &&
            git->git_blob_rawsize((git_blob *)own->blob) <= BLOB_BYTES &&
            !git->git_blob_is_binary((git_blob *)own->blob);
    }
    if (!ok) {
        whit_git_close(own);
        return false;
    }
    *file = own;
    return true;
}

void whit_git_close(whit_git_file *file)
{
    if (!file) return;
    file->git->git_object_free(file->blob);
    file->git->git_repository_free(file->repository);
    free(file);
}

struct gathering {
    whit_git_change *changes;
    size_t n, max;
};

static int on_hunk(const git_diff_delta *delta, const git_diff_hunk *hunk, void *user)
{
    struct gathering *gathering = user;
    (void)delta;
    whit_git_kind kind = !hunk->new_lines ? WHIT_GIT_REMOVED : hunk->old_lines ? WHIT_GIT_CHANGED : WHIT_GIT_ADDED;
    /* Where nothing is left, git names the line before. */
    uint64_t line = (uint64_t)hunk->new_start + (kind == WHIT_GIT_REMOVED);
    if (gathering->n < gathering->max)
        gathering->changes[gathering->n] = (whit_git_change){line, (uint64_t)hunk->new_lines, kind};
    gathering->n++;
    return 0;
}

size_t whit_git_changes(const whit_git_file *file, const void *text, size_t n_bytes, whit_git_change *changes,
                        size_t max)
{
    git_diff_options options;
    struct gathering gathering = {changes, 0, max};
    const struct git *git = file->git;
    if (git->git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION)) return 0;
    options.context_lines = 0;
    options.interhunk_lines = 0;
    options.flags |= GIT_DIFF_FORCE_TEXT;
    if (git->git_diff_blob_to_buffer((git_blob *)file->blob, NULL, text, n_bytes, NULL, &options, NULL, NULL, on_hunk,
                                     NULL, &gathering))
        return 0;
    return gathering.n;
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
