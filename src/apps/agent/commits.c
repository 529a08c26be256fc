/* SPDX-License-Identifier: MIT
 * A process of its own makes the commit, which has a bounded time: the library opens files that the repository names
 * (.gitignore, includes of its configuration), and may wait for ever for one that is a pipe. */
#include "agent/commits.h"

#include "agent/light.h"
#include "whit_config.h"

#if WHIT_HAVE_GIT2
#include "code/libgit2.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS      10000
#define CALL_CLOSE_RANGE 436

struct work {
    whit_libgit2 api;
    git_repository *repository;
    const char *prefix; /* path of the project in the work tree, with a final '/' */
    git_tree *base;
    git_commit *parent;
};

/* Finds the parent of the next commit: the last turn's commit, else HEAD's; NULL in a repository without commits. */
static bool find_parent(struct work *w)
{
    git_oid id;
    if (w->api.git_reference_name_to_id(&id, w->repository, WHIT_COMMITS_REF) != 0 &&
        w->api.git_reference_name_to_id(&id, w->repository, "HEAD") != 0)
        return true;
    return w->api.git_commit_lookup(&w->parent, w->repository, &id) == 0 &&
        w->api.git_commit_tree(&w->base, w->parent) == 0;
}

/* Objects and entries of one side of the changes. */
static bool list_updates(struct work *w, const char *project, const whit_change *changes, size_t n,
                         git_tree_update *list, char (*paths)[PATH_MAX], size_t *n_list)
{
    *n_list = 0;
    for (size_t i = 0; i < n; i++) {
        const whit_change *c = &changes[i];
        git_tree_update *update = &list[*n_list];
        git_tree_entry *entry = NULL;
        char *path = paths[*n_list];
        int ignored = 0;
        if (snprintf(path, PATH_MAX, "%s%s", w->prefix, c->path) >= PATH_MAX || whit_light_secret(project, c->path) ||
            (w->api.git_ignore_path_is_ignored(&ignored, w->repository, path) == 0 && ignored))
            continue;
        *update = (git_tree_update){.path = path, .action = c->is ? GIT_TREE_UPDATE_UPSERT : GIT_TREE_UPDATE_REMOVE};
        update->filemode = c->mode & 0111 ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB;
        if (c->is &&
            w->api.git_blob_create_from_buffer(&update->id, w->repository, c->after_bytes ? c->after : "",
                                               c->after_bytes) != 0)
            return false;
        if (!c->is) { /* what is not in the tree cannot be removed from it */
            if (!w->base || w->api.git_tree_entry_bypath(&entry, w->base, path) != 0) continue;
            w->api.git_tree_entry_free(entry);
        }
        ++*n_list;
    }
    return true;
}

static bool commit(struct work *w, size_t n, const git_tree_update *list, const char *message)
{
    git_oid id, before;
    git_tree *tree = NULL;
    git_signature *author = NULL;
    git_reference *reference = NULL;
    const git_commit *parents[1] = {w->parent};
    bool has_ref = w->api.git_reference_name_to_id(&before, w->repository, WHIT_COMMITS_REF) == 0;
    bool ok = w->api.git_tree_create_updated(&id, w->repository, w->base, n, list) == 0 &&
        w->api.git_tree_lookup(&tree, w->repository, &id) == 0 &&
        w->api.git_signature_now(&author, "whit agent", "agent@localhost") == 0 &&
        w->api.git_commit_create(&id, w->repository, NULL, author, author, NULL, message, tree, w->parent ? 1 : 0,
                                 parents) == 0;
    /* Another agent that added one meanwhile keeps it. */
    if (ok && has_ref)
        ok = w->api.git_reference_create_matching(&reference, w->repository, WHIT_COMMITS_REF, &id, 1, &before, NULL) ==
            0;
    else if (ok)
        ok = w->api.git_reference_create(&reference, w->repository, WHIT_COMMITS_REF, &id, 0, NULL) == 0;
    w->api.git_reference_free(reference);
    w->api.git_signature_free(author);
    w->api.git_tree_free(tree);
    return ok;
}

static whit_status make_commit(const char *project, const whit_change *changes, size_t n, const char *message,
                               bool *made, whit_error *error)
{
    struct work w = {0};
    char folder[PATH_MAX] = "", prefix[PATH_MAX] = "";
    size_t n_list = 0;
    *made = false;
    if (!whit_libgit2_load(&w.api) || w.api.git_repository_open_ext(&w.repository, project, 0, NULL) != 0)
        return WHIT_OK;
    const char *root = w.api.git_repository_workdir(w.repository);
    git_tree_update *list = calloc(n, sizeof *list);
    char(*paths)[PATH_MAX] = calloc(n, sizeof *paths);
    whit_status status = list && paths ? WHIT_OK : whit_fail_memory(error, "a commit", n * sizeof *paths);
    bool is_inside = root && realpath(root, folder) && strncmp(project, folder, strlen(folder)) == 0;
    if (status == WHIT_OK && is_inside) {
        const char *below = project + strlen(folder);
        if (*below == '/') snprintf(prefix, sizeof prefix, "%s/", below + 1);
        w.prefix = prefix;
        bool ok = find_parent(&w) && list_updates(&w, project, changes, n, list, paths, &n_list) &&
            (!n_list || commit(&w, n_list, list, message));
        const git_error *why = ok ? NULL : w.api.git_error_last();
        *made = ok && n_list;
        if (!ok)
            status = whit_fail(error, WHIT_ERROR_IO, "%s: %s", WHIT_COMMITS_REF, why ? why->message : "not written");
    }
    free(list);
    free(paths);
    w.api.git_tree_free(w.base);
    w.api.git_commit_free(w.parent);
    w.api.git_repository_free(w.repository);
    return status;
}

/* The result that the process hands over. It is smaller than a pipe holds, so it is written at once. */
struct outcome {
    whit_status status;
    bool made;
    whit_error error;
};

/* Reads the outcome until the deadline; false if the process ended, or hung, before it was whole. */
static bool read_outcome(int fd, struct outcome *outcome)
{
    const uint64_t begin = whit_now_ns();
    size_t n = 0;
    while (n < sizeof *outcome) {
        const int64_t left = PATIENCE_MS - (int64_t)((whit_now_ns() - begin) / 1000000);
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        if (left <= 0) return false;
        if (poll(&wanted, 1, (int)left) <= 0) continue;
        ssize_t got = read(fd, (char *)outcome + n, sizeof *outcome - n);
        if (got == 0 || (got < 0 && errno != EINTR)) return false;
        if (got > 0) n += (size_t)got;
    }
    return true;
}

whit_status whit_commit_turn(const char *project, const whit_change *changes, size_t n, const char *message, bool *made,
                             whit_error *error)
{
    struct outcome outcome = {0};
    int ends[2], status;
    *made = false;
    if (pipe2(ends, O_CLOEXEC) != 0) return whit_fail_errno(error, project, "make a pipe for");
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        /* Locks, terminals and pipes that others wait for are not held open. */
        if (ends[1] > 3) (void)syscall(CALL_CLOSE_RANGE, 3u, (unsigned)ends[1] - 1, 0u);
        (void)syscall(CALL_CLOSE_RANGE, (unsigned)ends[1] + 1, ~0u, 0u);
        outcome.status = make_commit(project, changes, n, message, &outcome.made, &outcome.error);
        ssize_t put = write(ends[1], &outcome, sizeof outcome);
        _exit(put != (ssize_t)sizeof outcome);
    }
    int failure = errno;
    close(ends[1]);
    bool is_whole = child > 0 && read_outcome(ends[0], &outcome);
    close(ends[0]);
    if (child > 0) kill(child, SIGKILL);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    errno = failure;
    if (child < 0) return whit_fail_errno(error, project, "start a process for");
    if (!is_whole)
        return whit_fail(error, WHIT_ERROR_IO, "%s: git did not answer within %d s: a file that it reads may be a pipe",
                         WHIT_COMMITS_REF, PATIENCE_MS / 1000);
    *made = outcome.made;
    if (outcome.status != WHIT_OK && error) *error = outcome.error;
    return outcome.status;
}

#else

whit_status whit_commit_turn(const char *project, const whit_change *changes, size_t n, const char *message, bool *made,
                             whit_error *error)
{
    (void)project, (void)changes, (void)n, (void)message, (void)error;
    *made = false;
    return WHIT_OK;
}
#endif
