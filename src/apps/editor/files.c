/* SPDX-License-Identifier: MIT
 * Decides which files are the project's, and shows them as a tree beside the text. Enter or a click opens a file in the
 * other window, and opens or closes a folder. Files that .gitignore leaves out are left out. */
#include "base/phrase.h"
#include "editor/state.h"
#include "base/items.h"
#include "base/plain.h"

#include "code/walk.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define PATHS_MAX    50000u
#define TREE_COLUMNS 30

const char *ed_project_part(const ed *e, const char *real)
{
    char project[PATH_MAX];
    if (!realpath(e->options.project ? e->options.project : ".", project)) return NULL;
    const size_t n = project[1] ? strlen(project) : 0; /* the project "/" contains every path */
    const bool is_within = strncmp(real, project, n) == 0 && real[n] == '/' && !strstr(real, "/../");
    return is_within ? real + n + 1 : NULL;
}

static void free_list(char ***list, size_t *n)
{
    for (size_t i = 0; i < *n; i++) free((*list)[i]);
    free(*list);
    *list = NULL;
    *n = 0;
}

static bool add_to(char ***list, size_t *n, const char *text, size_t length)
{
    if ((*n & (*n - 1)) == 0) { /* the capacity doubles whenever n is 0 or a power of two */
        char **grown = realloc(*list, (*n ? 2 * *n : 1) * sizeof *grown);
        if (!grown) return false;
        *list = grown;
    }
    return ((*list)[*n] = strndup(text, length)) != NULL && ++*n;
}

static bool add_path(void *user, const char *path)
{
    struct ed_files *files = user;
    return files->n_paths < PATHS_MAX && add_to(&files->paths, &files->n_paths, path, strlen(path));
}

/* Orders paths so that in each folder subfolders come before files. */
static int by_tree(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    while (*x && *x == *y) x++, y++;
    bool x_folder = strchr(x, '/') != NULL, y_folder = strchr(y, '/') != NULL;
    if (x_folder != y_folder) return x_folder ? -1 : 1;
    if (*x == '/' || *y == '/') return *x == '/' ? -1 : 1; /* one folder's name is a prefix of the other's */
    return (uint8_t)*x < (uint8_t)*y ? -1 : *x != *y;
}

static size_t find_open(const struct ed_files *files, const char *folder, size_t n)
{
    size_t i = 0;
    while (i < files->n_open && (strlen(files->open[i]) != n || memcmp(files->open[i], folder, n) != 0)) i++;
    return i;
}

/* Appends a row of the tree. A line feed in a name is shown as a mark, so that every path has one row. */
static void add_row(whit_buf *text, int depth, const char *sign, const char *name, size_t n)
{
    whit_buf_printf(text, "%*s%s ", 2 * depth, "", sign);
    whit_plain_show(name, n, WHIT_PLAIN_NAME, text);
    whit_buf_append_str(text, "\n");
}

/* Writes the tree of files. `lines` gets the path of each row, with a final slash for a folder. */
static void write_tree(ed *e)
{
    struct ed_files *files = &e->files;
    whit_buf text = {0};
    free_list(&files->lines, &files->n_lines);
    for (size_t i = 0; i < files->n_paths; i++) {
        const char *path = files->paths[i], *before = i ? files->paths[i - 1] : "", *slash = path;
        int depth = 0;
        bool hidden = false;
        for (; !hidden && (slash = strchr(slash, '/')); slash++, depth++) {
            size_t n = (size_t)(slash - path) + 1, from = n - 1;
            bool is_open = find_open(files, path, n) < files->n_open;
            hidden = !is_open;
            if (!strncmp(before, path, n)) continue; /* the folder already has a row */
            while (from && path[from - 1] != '/') from--;
            add_row(&text, depth, is_open ? "v" : ">", path + from, n - from);
            add_to(&files->lines, &files->n_lines, path, n);
        }
        if (hidden) continue;
        const char *name = strrchr(path, '/');
        name = name ? name + 1 : path;
        add_row(&text, depth, " ", name, strlen(name));
        add_to(&files->lines, &files->n_lines, path, strlen(path));
    }
    ed_pad_clear(files->doc);
    ed_pad_append(e, files->doc, text.size_bytes ? whit_chars(&text) : "", text.size_bytes);
    whit_buf_free(&text);
}

void ed_files_forget(ed *e, const struct ed_doc *doc)
{
    if (e->files.doc == doc) e->files.doc = NULL;
}

void ed_files_close(ed *e)
{
    free_list(&e->files.paths, &e->files.n_paths);
    free_list(&e->files.open, &e->files.n_open);
    free_list(&e->files.lines, &e->files.n_lines);
}

void ed_files_toggle(ed *e)
{
    struct ed_files *files = &e->files;
    struct ed_window *window = files->doc ? ed_pad_window(e, files->doc) : NULL;
    if (window) {
        e->window = window;
        ed_window_close(e);
        return;
    }
    struct ed_doc *doc = ed_pad_open(e, &files->doc, "files", "files");
    if (!doc || !ed_window_split(e, true)) return;
    free_list(&files->paths, &files->n_paths);
    whit_walk_files(e->options.project ? e->options.project : ".", add_path, files);
    if (files->n_paths) qsort(files->paths, files->n_paths, sizeof *files->paths, by_tree);
    write_tree(e);
    /* put the tree into a narrow window at the left */
    struct ed_window *inner = e->window->parent, *text = inner->child[0];
    inner->child[0] = e->window;
    inner->child[1] = text;
    inner->first_columns = TREE_COLUMNS;
    ed_window_show(e, e->window, doc);
    *ed_cursor(e) = (struct ed_cursor){0, ED_NONE, -1};
    e->window->wrap = false;
    ed_windows_layout(e);
}

bool ed_files_enter(ed *e)
{
    struct ed_files *files = &e->files;
    if (!files->doc || e->window->doc != files->doc) return false;
    uint64_t line = whit_text_line_at(ed_text(e), ed_cursor(e)->offset);
    if (line >= files->n_lines) return true;
    const char *path = files->lines[line];
    size_t n = strlen(path);
    if (path[n - 1] == '/') {
        size_t at = find_open(files, path, n);
        if (at < files->n_open) {
            free(files->open[at]);
            files->open[at] = files->open[--files->n_open];
        } else {
            add_to(&files->open, &files->n_open, path, n);
        }
        write_tree(e);
        ed_place(e, line + 1, 1);
        return true;
    }
    char full[PATH_MAX];
    const char *folder = e->options.project;
    snprintf(full, sizeof full, "%s%s%s", whit_or_empty(folder), folder ? "/" : "", path);
    struct ed_window *tree = e->window;
    e->window = ed_window_next(e, tree);
    if (e->window != tree || ed_window_split(e, true)) ed_go_to_file(e, full, 0);
    return true;
}
