/* SPDX-License-Identifier: MIT
 * Walks through the folders of a project; the walk respects .gitignore. */
#include "code/walk.h"

#include "base/file.h"
#include "base/items.h"
#include "base/pinned.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX  32
#define N_FILES    200000
#define IGNORE_MAX (16u << 20) /* a larger .gitignore is not read */

struct rule {
    size_t pattern; /* offset in `patterns`, where a zero byte ends it */
    bool negated, folders, anchored;
    int depth;     /* depth of the folder that contains the .gitignore */
    size_t n_base; /* length of the path of that folder, including the final slash */
};
struct walk {
    whit_buf rules;    /* struct rule[]: those of the current folder and of the folders above it */
    whit_buf patterns; /* char[] */
    size_t n_files;
    whit_walk_fn *each;
    void *user;
    const char *folder;
    const whit_walk_how *how;
    bool stopped, is_cut; /* is_cut: files were passed over because of a limit or an error */
};

static void add_rules(struct walk *walk, const char *base, int depth, const char *text, size_t n_text)
{
    const char *at = text, *end = text + n_text;
    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at)), *line_end = feed ? feed : end;
        size_t n = (size_t)(line_end - at);
        while (n && (at[n - 1] == ' ' || at[n - 1] == '\r')) n--;
        struct rule rule = {.pattern = walk->patterns.size_bytes, .depth = depth, .n_base = strlen(base)};
        const char *pattern = at;
        at = feed ? feed + 1 : end;
        if (!n || *pattern == '#') continue;
        if (*pattern == '!') {
            rule.negated = true;
            pattern++;
            n--;
        }
        if (n && pattern[n - 1] == '/') {
            rule.folders = true;
            n--;
        }
        rule.anchored = memchr(pattern, '/', n) != NULL;
        if (n && *pattern == '/') {
            pattern++;
            n--;
        }
        if (!n || memchr(pattern, 0, n)) continue; /* no name has a zero byte */
        if (!whit_buf_append(&walk->patterns, pattern, n) || !whit_buf_append(&walk->patterns, "", 1) ||
            !whit_buf_append(&walk->rules, &rule, sizeof rule))
            walk->is_cut = true;
    }
}

static void read_rules(struct walk *walk, const char *base, int depth)
{
    const struct whit_walk_how *how = walk->how;
    char path[PATH_MAX];
    const char *replaced;
    size_t n_replaced;
    whit_buf text = {0};
    if (how->is_unruled || snprintf(path, sizeof path, "%s.gitignore", base) >= (int)sizeof path) return;
    if (how->replace && how->replace(walk->user, path, &replaced, &n_replaced))
        add_rules(walk, base, depth, replaced, n_replaced);
    else if (whit_read_below(how->rules ? how->rules : walk->folder, path, IGNORE_MAX, &text, NULL) && text.size_bytes)
        add_rules(walk, base, depth, whit_chars(&text), text.size_bytes);
    whit_buf_free(&text);
}

static bool segment_matches(const char *pattern, size_t n_pattern, const char *name, size_t n_name)
{
    char room[256], copy[NAME_MAX + 1];
    if (!n_pattern || n_name >= sizeof copy) return false;
    char *own = n_pattern < sizeof room ? room : malloc(n_pattern + 1);
    if (!own) return false;
    memcpy(own, pattern, n_pattern);
    memcpy(copy, name, n_name);
    own[n_pattern] = copy[n_name] = 0;
    const bool is_match = !fnmatch(own, copy, 0);
    if (own != room) free(own);
    return is_match;
}

/* Returns whether a pattern matches a path, compared one path component at a time; "**" matches any number of folders.
 * Backtracks only to the last "**", which can match everything that an earlier one could. */
static bool matches(const char *pattern, const char *path)
{
    const char *behind_stars = NULL, *taken = NULL;
    while (*path) {
        size_t n = strcspn(pattern, "/"), n_name = strcspn(path, "/");
        if (n == 2 && !memcmp(pattern, "**", 2)) {
            pattern += pattern[2] ? 3 : 2;
            if (!*pattern) return true;
            behind_stars = pattern;
            taken = path;
        } else if (segment_matches(pattern, n, path, n_name)) {
            pattern += n + (pattern[n] == '/');
            path += n_name + (path[n_name] == '/');
        } else {
            if (!behind_stars || !(taken = strchr(taken, '/'))) return false;
            pattern = behind_stars;
            path = ++taken;
        }
    }
    return !*pattern;
}

/* Returns whether a .gitignore rule excludes this file or folder: the last rule that matches decides. */
static bool is_ignored(const struct walk *walk, const char *path, const char *name, bool folder)
{
    for (size_t i = walk->rules.size_bytes / sizeof(struct rule); i-- > 0;) {
        const struct rule *rule = WHIT_ITEMS(const struct rule, &walk->rules) + i;
        const char *pattern = whit_chars(&walk->patterns) + rule->pattern;
        if (rule->folders && !folder) continue;
        if (rule->anchored ? matches(pattern, path + rule->n_base) : !fnmatch(pattern, name, 0)) return !rule->negated;
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Opens a folder, and follows no link: another program may have put one in its place since its name was read. */
static DIR *open_entries(const struct walk *walk, const char *base)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)(*base ? strlen(base) - 1 : 0), base);
    const int fd = whit_open_in(walk->folder, path, O_RDONLY | O_DIRECTORY);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !entries) close(fd);
    return entries;
}

/* Walks through one folder; `base` is "" for the walk's own folder, or "folder/". */
static void walk_folder(struct walk *walk, const char *base, int depth)
{
    char path[PATH_MAX];
    DIR *entries = depth <= DEPTH_MAX ? open_entries(walk, base) : NULL;
    if (!entries) {
        walk->is_cut = true;
        return;
    }
    const bool all = walk->how->all;
    const size_t n_rules = walk->rules.size_bytes, n_patterns = walk->patterns.size_bytes;
    size_t n = 0, room = 0;
    read_rules(walk, base, depth);
    char **names = NULL; /* names of the entries; those of folders end in '/' */
    for (struct dirent *entry; (entry = readdir(entries));) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..") || (!all && !strcmp(name, ".git"))) continue;
        snprintf(path, sizeof path, "%s%s", base, name);
        bool folder = entry->d_type == DT_DIR, file = entry->d_type == DT_REG;
        if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {
            struct stat about;
            if (fstatat(dirfd(entries), name, &about, entry->d_type == DT_LNK && !all ? 0 : AT_SYMLINK_NOFOLLOW))
                continue;
            folder = S_ISDIR(about.st_mode) && entry->d_type != DT_LNK; /* links to folders are not followed, since they
                                                                         * could form a cycle */
            file = S_ISREG(about.st_mode);
        }
        if (all && !folder) file = true;
        if ((!folder && !file) || is_ignored(walk, path, name, folder)) continue;
        if (n == room) {
            char **grown = realloc(names, (room = room ? 2 * room : 64) * sizeof *names);
            walk->is_cut = walk->is_cut || !grown;
            if (!grown) break;
            names = grown;
        }
        if (asprintf(&names[n], "%s%s", name, folder ? "/" : "") < 0) {
            walk->is_cut = true;
            break;
        }
        n++;
    }
    closedir(entries);
    if (n) qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        bool fits = snprintf(path, sizeof path, "%s%s", base, names[i]) < (int)sizeof path;
        bool is_folder = names[i][strlen(names[i]) - 1] == '/';
        walk->is_cut = walk->is_cut || !fits || walk->n_files >= N_FILES;
        if (walk->stopped || !fits) {
        } else if (is_folder) {
            if (!walk->how->skip || !walk->how->skip(walk->user, path)) walk_folder(walk, path, depth + 1);
        } else if (++walk->n_files > N_FILES || !walk->each(walk->user, path)) {
            walk->stopped = true;
        }
        free(names[i]);
    }
    free(names);
    walk->rules.size_bytes = n_rules;
    walk->patterns.size_bytes = n_patterns;
}

bool whit_walk(const char *folder, const whit_walk_how *how, whit_walk_fn *each, void *user)
{
    struct walk walk = {.each = each, .user = user, .folder = folder, .how = how};
    walk_folder(&walk, "", 0);
    whit_buf_free(&walk.rules);
    whit_buf_free(&walk.patterns);
    return !walk.is_cut && !walk.stopped;
}

void whit_walk_files(const char *folder, whit_walk_fn *each, void *user)
{
    const whit_walk_how how = {0};
    (void)whit_walk(folder, &how, each, user);
}
