/* SPDX-License-Identifier: MIT */
#include "agent/links.h"

#include "agent/guard.h"
#include "base/clock.h"
#include "base/items.h"
#include "base/path.h"
#include "code/walk.h"

#include <dirent.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_link(const char *name)
{
    struct stat about;
    return lstat(name, &about) == 0 && S_ISLNK(about.st_mode);
}

/* Adds a path of the project to the list if it is a link with such a name. */
static bool add_link(void *user, const char *path)
{
    whit_links *links = user;
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s/%s", links->project, path) >= (int)sizeof name || !is_link(name)) return true;
    uint8_t kinds = 0;
    if (whit_guard_is_configuration(links->project, path)) kinds |= WHIT_LINKS_OBEYED;
    if (whit_guard_is_secret(path)) kinds |= WHIT_LINKS_SECRET;
    return !kinds ||
        (whit_buf_append(&links->names, &kinds, 1) && whit_buf_append(&links->names, path, strlen(path) + 1));
}

static bool skip_folder(void *user, const char *folder)
{
    static const char modules[] = "node_modules/";
    const size_t n = strlen(folder), n_modules = sizeof modules - 1;
    (void)user;
    if (strcmp(folder, ".git/") == 0) return true;
    return n >= n_modules && strcmp(folder + n - n_modules, modules) == 0;
}

void whit_links_list(whit_links *links, const char *project)
{
    const whit_walk_how how = {.all = true, .is_unruled = true, .skip = skip_folder};
    *links = (whit_links){.project = project};
    /* the links of the root are the system's */
    if (*project && project[1]) (void)whit_walk(project, &how, add_link, links);
}

void whit_links_free(whit_links *links)
{
    whit_buf_free(&links->names);
}

/* Returns whether a link of the project leads to `real` or to a folder of the project above it. */
static bool leads_above(const char *project, const char *path, const char *real)
{
    char name[PATH_MAX], folder[PATH_MAX];
    const size_t n = strlen(project);
    if (snprintf(name, sizeof name, "%s/%s", project, path) >= (int)sizeof name ||
        snprintf(folder, sizeof folder, "%s", real) >= (int)sizeof folder)
        return false;
    while (strlen(folder) > n) {
        if (whit_guard_leads_to(name, folder)) return true;
        char *slash = strrchr(folder, '/');
        if (!slash) return false;
        *slash = 0;
    }
    return false;
}

unsigned whit_links_to(const whit_links *links, const char *real)
{
    const char *at = links->names.size_bytes ? whit_chars(&links->names) : "", *end = at + links->names.size_bytes;
    unsigned kinds = 0;
    for (; at < end; at += 1 + strlen(at + 1) + 1)
        if (*at & ~kinds && leads_above(links->project, at + 1, real)) kinds |= (unsigned)*at;
    return kinds;
}

bool whit_links_secret(const char *project, const char *real)
{
    char name[PATH_MAX];
    DIR *entries = *real ? opendir(project) : NULL;
    bool found = false;
    if (!entries) return false;
    for (struct dirent *entry; !found && (entry = readdir(entries));) {
        if ((entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) || !whit_guard_is_secret(entry->d_name)) continue;
        found = snprintf(name, sizeof name, "%s/%s", project, entry->d_name) < (int)sizeof name && is_link(name) &&
            leads_above(project, entry->d_name, real);
    }
    closedir(entries);
    return found;
}

/* ---- files of several names ------------------------------------------------------------------ */

struct file_id {
    dev_t device;
    ino_t number;
};

/* The files of a project that have secret names and others, by links of both kinds, in order. */
struct secret_files {
    char project[PATH_MAX];
    uint64_t end_ns; /* until then the list holds */
    whit_buf ids;
};

static int compare_ids(const void *a, const void *b)
{
    const struct file_id *x = a, *y = b;
    const int by_number = (x->number > y->number) - (x->number < y->number);
    return by_number ? by_number : (x->device > y->device) - (x->device < y->device);
}

static bool add_secret_file(void *user, const char *path)
{
    struct secret_files *list = user;
    char name[PATH_MAX];
    struct stat about;
    if (!whit_guard_is_secret(path) || snprintf(name, sizeof name, "%s/%s", list->project, path) >= (int)sizeof name ||
        !whit_path_is_linked(name) || stat(name, &about) != 0 || !S_ISREG(about.st_mode))
        return true;
    const struct file_id id = {.device = about.st_dev, .number = about.st_ino};
    return whit_buf_append(&list->ids, &id, sizeof id);
}

static void list_secret_files(struct secret_files *list, const char *project)
{
    const whit_walk_how how = {.all = true, .is_unruled = true, .skip = skip_folder};
    const uint64_t begin_ns = whit_now_ns();
    if (begin_ns < list->end_ns && strcmp(list->project, project) == 0) return;
    list->ids.size_bytes = 0;
    snprintf(list->project, sizeof list->project, "%s", project);
    if (*project && project[1]) (void)whit_walk(project, &how, add_secret_file, list);
    const size_t n = list->ids.size_bytes / sizeof(struct file_id);
    if (n) qsort(WHIT_ITEMS(struct file_id, &list->ids), n, sizeof(struct file_id), compare_ids);
    const uint64_t end_ns = whit_now_ns(), took_ns = end_ns - begin_ns;
    list->end_ns = end_ns + (took_ns > 100000000u ? 10 * took_ns : 1000000000u);
}

bool whit_links_secret_name(const char *project, const struct stat *file)
{
    /* The list is kept: the project is not walked through for each of its files. */
    static struct secret_files kept;
    static atomic_flag is_in_use = ATOMIC_FLAG_INIT;
    struct secret_files other = {.end_ns = 0}; /* for a thread that comes while another one uses the list */
    const struct file_id id = {.device = file->st_dev, .number = file->st_ino};
    if (!S_ISREG(file->st_mode)) return false;
    const bool has_kept = !atomic_flag_test_and_set(&is_in_use);
    struct secret_files *list = has_kept ? &kept : &other;
    list_secret_files(list, project);
    const size_t n = list->ids.size_bytes / sizeof id;
    const bool found = n && bsearch(&id, WHIT_ITEMS(struct file_id, &list->ids), n, sizeof id, compare_ids);
    whit_buf_free(&other.ids);
    if (has_kept) atomic_flag_clear(&is_in_use);
    return found;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* Returns whether an entry of a folder with hooks is a link to a path, also a hard link. */
static bool has_link_to(const char *folder, const char *real)
{
    char name[PATH_MAX];
    DIR *entries = opendir(folder);
    bool found = false;
    if (!entries) return false;
    for (struct dirent *entry; !found && (entry = readdir(entries));)
        found = entry->d_name[0] != '.' &&
            snprintf(name, sizeof name, "%s/%s", folder, entry->d_name) < (int)sizeof name &&
            whit_guard_leads_to(name, real);
    closedir(entries);
    return found;
}

bool whit_links_hook(const char *project, const char *real)
{
    char folder[PATH_MAX], hooks[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", project);
    do {
        if (snprintf(hooks, sizeof hooks, "%s/.git/hooks", folder) < (int)sizeof hooks && has_link_to(hooks, real))
            return true;
        char *slash = strrchr(folder, '/');
        if (!slash) break; /* a drive of Windows, or a relative path */
        *slash = 0;        /* the folder above; "" is the root */
    } while (*folder);
    return false;
}
