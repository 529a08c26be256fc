/* SPDX-License-Identifier: MIT
 * Makes the commit in a child process with a time limit: libgit2 opens files that the repository names (.gitignore,
 * includes of its configuration), and would block for ever if one of them is a pipe. */
#include "agent/commits.h"

#include "agent/guard.h"
#include "agent/light.h"
#include "whit_config.h"

#if WHIT_HAVE_GIT2
#include "code/libgit2.h"

#include "base/apart.h"
#include "base/file.h"
#include "base/items.h"
#include "base/path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_MS 10000

struct work {
    whit_libgit2 api;
    git_repository *repository;
    const char *prefix; /* path of the project in the repository's work tree, with a final '/' */
    git_tree *base;
    git_commit *parent;
};

/* Finds the parent of the next commit: the last turn's commit or, before the first turn, HEAD's commit. In a repository
 * without commits the parent stays NULL. Returns false if git cannot read the commit. */
static bool find_parent(struct work *w)
{
    git_oid id;
    if (w->api.git_reference_name_to_id(&id, w->repository, WHIT_COMMITS_REF) != 0 &&
        w->api.git_reference_name_to_id(&id, w->repository, "HEAD") != 0)
        return true;
    return w->api.git_commit_lookup(&w->parent, w->repository, &id) == 0 &&
        w->api.git_commit_tree(&w->base, w->parent) == 0;
}

/* Returns whether a path leads into a submodule, whose files belong to another repository. */
static bool is_in_submodule(const struct work *w, const char *path)
{
    char folder[PATH_MAX];
    bool is_found = false;
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder, '/'); w->base && slash && !is_found; slash = strchr(slash + 1, '/')) {
        git_tree_entry *entry = NULL;
        *slash = 0;
        if (w->api.git_tree_entry_bypath(&entry, w->base, folder) != 0) return false;
        is_found = w->api.git_tree_entry_type(entry) == GIT_OBJECT_COMMIT;
        w->api.git_tree_entry_free(entry);
        *slash = '/';
    }
    return is_found;
}

/* Lists the updates to the parent's tree, and stores each new content as an object. Leaves out files that git ignores,
 * files of submodules, files with secrets, texts with keys, and deleted files that the tree does not contain. */
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
        if (snprintf(path, PATH_MAX, "%s%s", w->prefix, c->path) >= PATH_MAX || is_in_submodule(w, path) ||
            whit_light_hides(project, c) || (c->is && whit_guard_has_key(c->after, c->after_bytes)) ||
            (w->api.git_ignore_path_is_ignored(&ignored, w->repository, path) == 0 && ignored))
            continue;
        *update = (git_tree_update){.path = path, .action = c->is ? GIT_TREE_UPDATE_UPSERT : GIT_TREE_UPDATE_REMOVE};
        update->filemode = c->mode & 0111 ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB;
        if (c->is &&
            w->api.git_blob_create_from_buffer(&update->id, w->repository, c->after_bytes ? c->after : "",
                                               c->after_bytes) != 0)
            return false;
        if (!c->is) { /* git refuses to remove an entry that the tree does not contain */
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
    /* If another agent has created or moved the ref meanwhile, creating it fails and leaves the ref unchanged. */
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

/* Returns whether the folder of the repository, `real`, is `root`/.git, or is named by a file .git. Libgit2 would also
 * take a folder that merely has the files of a repository. */
static bool is_git_folder(const char *root, const char *real)
{
    char name[PATH_MAX], git[PATH_MAX];
    return snprintf(name, sizeof name, "%s/.git", root) < (int)sizeof name && realpath(name, git) &&
        (strcmp(git, real) == 0 || !whit_path_is_folder(git));
}

/* Returns whether the repository names the work tree `root` as its own: it lies in it, is a linked work tree whose file
 * "gitdir" names it, or has it as core.worktree, as a submodule. A file .git alone could name any repository, so that a
 * foreign project would have its turns committed to another one. */
static bool is_own(const struct work *w, const char *root, const char *real)
{
    const char *tree;
    char name[PATH_MAX];
    git_config *config = NULL;
    whit_buf text = {0};
    if (whit_path_is_below(real, root)) return is_git_folder(root, real);
    bool ok = snprintf(name, sizeof name, "%s/gitdir", real) < (int)sizeof name &&
        whit_read_found_file(name, PATH_MAX, &text, NULL) == WHIT_OK && whit_buf_append(&text, "", 1);
    if (ok) {
        char *line = WHIT_ITEMS(char, &text);
        line[strcspn(line, "\r\n")] = 0;
        char *slash = strrchr(line, '/');
        if (slash) *slash = 0;
        ok = slash && realpath(line, name) && strcmp(name, root) == 0;
    }
    whit_buf_free(&text);
    if (!ok && w->api.git_repository_config_snapshot(&config, w->repository) == 0)
        ok = w->api.git_config_get_string(&tree, config, "core.worktree") == 0;
    w->api.git_config_free(config);
    return ok;
}

/* Finds a link among the files and folders that a commit writes in the folder of a repository; libgit2 would write
 * where it leads. `name` receives its path. */
static bool find_link(const char *folder, char name[PATH_MAX])
{
    static const char *const written[] = {"objects",   "refs",      "refs/whit",      WHIT_COMMITS_REF,        "logs",
                                          "logs/HEAD", "logs/refs", "logs/refs/whit", "logs/" WHIT_COMMITS_REF};
    enum { N_WRITTEN = sizeof written / sizeof *written, N_OBJECT_FOLDERS = 256 };
    for (size_t i = 0; i < N_WRITTEN + N_OBJECT_FOLDERS; i++) {
        char objects[16] = "";
        if (i >= N_WRITTEN) snprintf(objects, sizeof objects, "objects/%02x", (unsigned)(i - N_WRITTEN));
        const int n = snprintf(name, PATH_MAX, "%s/%s", folder, *objects ? objects : written[i]);
        if (n >= PATH_MAX || whit_path_is_linked(name)) return true;
    }
    return false;
}

/* Makes sure that a commit is written to a repository of the work tree `root`, and nowhere else. */
static whit_status check_place(const struct work *w, const char *root, whit_error *error)
{
    const char *path = w->api.git_repository_path(w->repository);
    const char *common = w->api.git_repository_commondir(w->repository);
    char real[PATH_MAX], shared[PATH_MAX], name[PATH_MAX];
    const bool is_there = path && common && realpath(path, real) && realpath(common, shared);
    if (!is_there || !is_own(w, root, real) || !whit_path_is_below(real, shared))
        return whit_fail(error, WHIT_ERROR_IO,
                         "%s/.git names a repository that has another work tree, so the turn is not committed there",
                         root);
    if (!find_link(real, name) && !find_link(shared, name)) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_IO,
                     "%s: is a link, so the turn is not committed: git would write where the link leads", name);
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
    bool is_inside = root && realpath(root, folder) && whit_path_is_below(project, folder);
    if (status == WHIT_OK && is_inside) status = check_place(&w, folder, error);
    if (status == WHIT_OK && is_inside) {
        const char *below = project + (folder[1] ? strlen(folder) : 0);
        if (*below == '/') snprintf(prefix, sizeof prefix, "%s/", below + 1);
        w.prefix = prefix;
        bool ok = find_parent(&w) && list_updates(&w, project, changes, n, list, paths, &n_list) &&
            (!n_list || commit(&w, n_list, list, message));
        const git_error *why = ok ? NULL : w.api.git_error_last();
        *made = ok && n_list;
        if (!ok)
            status = whit_fail(error, WHIT_ERROR_IO, "%s: %s", WHIT_COMMITS_REF,
                               why ? why->message : "git did not say why the commit failed");
    }
    free(list);
    free(paths);
    w.api.git_tree_free(w.base);
    w.api.git_commit_free(w.parent);
    w.api.git_repository_free(w.repository);
    return status;
}

/* A commit to make, and its outcome, which the child process sends back. */
struct turn {
    const char *project, *message;
    const whit_change *changes;
    size_t n;
    struct outcome {
        whit_status status;
        bool made;
        whit_error error;
    } outcome;
};

static void commit_changes(void *user)
{
    struct turn *t = user;
    t->outcome.status = make_commit(t->project, t->changes, t->n, t->message, &t->outcome.made, &t->outcome.error);
}

whit_status whit_commit_turn(const char *project, const whit_change *changes, size_t n, const char *message, bool *made,
                             whit_error *error)
{
    struct turn t = {.project = project, .message = message, .changes = changes, .n = n};
    const whit_apart how = whit_run_apart(commit_changes, &t, &t.outcome, sizeof t.outcome, PATIENCE_MS);
    *made = false;
    if (how == WHIT_APART_FAILED) return whit_fail_errno(error, project, "start a process in this folder");
    if (how == WHIT_APART_LATE)
        return whit_fail(error, WHIT_ERROR_IO, "%s: git did not answer within %d s: a file that it reads may be a pipe",
                         WHIT_COMMITS_REF, PATIENCE_MS / 1000);
    *made = t.outcome.made;
    if (t.outcome.status != WHIT_OK && error) *error = t.outcome.error;
    return t.outcome.status;
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
