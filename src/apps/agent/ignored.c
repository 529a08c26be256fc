/* SPDX-License-Identifier: MIT */
#include "agent/ignored.h"

#include "base/items.h"
#include "code/walk.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct files {
    whit_buf paths; /* char *[]: the files that the first walk found */
    size_t n_there; /* number of files of the second walk that are also in `among`, the paths of the first walk */
    const whit_buf *among;
    bool failed;
    /* The second walk reads the rules of these changes; `below` is the path of `change` in the project. */
    const whit_changes *set;
    const whit_change *change;
    const char *below;
};

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_path(void *user, const char *path)
{
    struct files *f = user;
    char *kept = strdup(path);
    f->failed = !kept || !whit_buf_append(&f->paths, &kept, sizeof kept);
    if (f->failed) free(kept);
    return !f->failed;
}

static bool count_path(void *user, const char *path)
{
    struct files *f = user;
    const size_t n = f->among->size_bytes / sizeof path;
    f->n_there += n && bsearch(&path, f->among->data, n, sizeof path, compare_paths);
    return true;
}

/* Replaces the content of the .gitignore files that the changes write or remove. */
static bool replace_rules(void *user, const char *path, const char **text, size_t *n_text)
{
    const struct files *f = user;
    const whit_change *change = f->change;
    if (strcmp(path, f->below) != 0) change = f->set ? whit_changes_find(f->set, path) : NULL;
    if (!change) return false;
    *text = change->after_bytes ? change->after : "";
    *n_text = change->is ? change->after_bytes : 0;
    return true;
}

bool whit_ignored_more(const char *project, const whit_changes *set, const char *below, const whit_change *change)
{
    const char *slash = strrchr(below, '/');
    const whit_walk_how now = {0}, then = {.replace = replace_rules};
    struct files before = {.failed = false},
                 after = {.among = &before.paths, .set = set, .change = change, .below = below};
    if (strcmp(slash ? slash + 1 : below, ".gitignore") != 0) return false;
    (void)whit_walk(project, &now, add_path, &before);
    const size_t n = before.paths.size_bytes / sizeof(char *);
    char **paths = (char **)WHIT_ITEMS(void, &before.paths);
    if (n) qsort(paths, n, sizeof *paths, compare_paths);
    if (!before.failed) (void)whit_walk(project, &then, count_path, &after);
    for (size_t i = 0; i < n; i++) free(paths[i]);
    whit_buf_free(&before.paths);
    return before.failed || after.n_there < n;
}
