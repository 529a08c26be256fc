/* SPDX-License-Identifier: MIT
 * Opens a folder's graph from the cache and updates it to the current files. */
#include "base/hash.h"
#include "base/path.h"
#include "code/graph_file.h"
#include "code/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define EDITS_BYTES (64u << 20)

bool graph_cache_path(const char *folder, const char *cache_folder, const char *kind, char path[PATH_MAX])
{
    char real[PATH_MAX], cache[PATH_MAX], name[2 * WHIT_HASH_BYTES + 1];
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (!realpath(folder, real)) return false;
    int n = -1;
    if (cache_folder)
        n = snprintf(cache, sizeof cache, "%s", cache_folder);
    else if (xdg && whit_path_is_absolute(xdg))
        n = snprintf(cache, sizeof cache, "%s/whit/graphs", xdg);
    else if (home && whit_path_is_absolute(home))
        n = snprintf(cache, sizeof cache, "%s/.cache/whit/graphs", home);
    if (n < 0 || n > PATH_MAX - 100) return false;
    for (char *at = cache + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(cache, 0700);
        *at = '/';
    }
    if (mkdir(cache, 0700) && errno != EEXIST) return false;
    whit_hash hash;
    uint8_t digest[WHIT_HASH_BYTES];
    whit_hash_begin(&hash, "whit code graph");
    whit_hash_add(&hash, real, strlen(real));
    whit_hash_end(&hash, digest);
    whit_hash_hex(digest, name);
    return snprintf(path, PATH_MAX, "%s/%.32s.%s", cache, name, kind) < PATH_MAX;
}

static whit_status new_graph(whit_graph **graph, whit_error *error)
{
    *graph = calloc(1, sizeof **graph);
    return *graph ? WHIT_OK : whit_fail_memory(error, "a code graph", sizeof **graph);
}

/* Reads the edits from the cache. Edits that are damaged or belong to another graph are ignored. */
static void read_edits(whit_graph *graph, const char *folder, const char *cache_folder)
{
    char path[PATH_MAX];
    whit_buf edits = {0};
    if (graph_cache_path(folder, cache_folder, "edits", path) && !access(path, R_OK) &&
        whit_read_file(path, EDITS_BYTES, &edits, NULL) == WHIT_OK)
        graph_take_edits(graph, &edits);
    whit_buf_free(&edits);
}

/* Opens the graph as the cache has it. This takes only moments, because the source files are not compared with it.
 * Returns WHIT_ERROR_IO if the cache has no graph of the folder. */
static whit_status open_cached(const char *folder, const char *cache_folder, whit_graph **graph, whit_error *error)
{
    char path[PATH_MAX];
    *graph = NULL;
    if (!graph_cache_path(folder, cache_folder, "graph", path) || access(path, R_OK))
        return whit_fail(error, WHIT_ERROR_IO,
                         "%s: no code graph of this folder was built yet: 'whit graph' builds one", folder);
    WHIT_TRY(new_graph(graph, error));
    whit_status status = whit_map_open(path, NULL, &(*graph)->map, error);
    if (status == WHIT_OK) status = graph_attach(*graph, (*graph)->map.data, (*graph)->map.size_bytes, path, error);
    if (status == WHIT_OK) {
        read_edits(*graph, folder, cache_folder);
    } else {
        whit_graph_close(*graph);
        *graph = NULL;
    }
    return status;
}

/* Compares the files with the graph: lists the files that have changed since it was built. */
struct comparison {
    const whit_graph *graph;
    const char *folder;
    uint32_t next;
    struct graph_changed changed[GRAPH_EDITS];
    size_t n;
    bool known;   /* the present edits record exactly these changes */
    bool too_far; /* files were added or removed, or too many were changed */
};

static void compare_stamp(struct comparison *c, uint32_t number, uint64_t stamp)
{
    const whit_graph *graph = c->graph;
    uint32_t edit = graph->hidden ? graph->hidden[number] : 0;
    if (stamp == graph->base.files[number].stamp) {
        c->known &= !edit;
        return;
    }
    c->known &= edit && graph->edits.files[edit - 1].stamp == stamp;
    c->too_far |= c->n == GRAPH_EDITS;
    if (!c->too_far) c->changed[c->n++] = (struct graph_changed){number, stamp};
}

static bool compare_next(void *user, const char *path)
{
    struct comparison *c = user;
    const struct graph_part *base = &c->graph->base;
    uint64_t stamp;
    if (whit_code_language_of(path) == WHIT_CODE_NONE || !graph_stamp(c->folder, path, &stamp)) return true;
    if (c->next == base->n[GRAPH_FILES] || strcmp(base->strings + base->files[c->next].path, path) != 0)
        c->too_far = true;
    else
        compare_stamp(c, c->next++, stamp);
    return !c->too_far;
}

/* Writes a draft file and renames it over the cache file. The data is not flushed to disk, because a damaged cache file
 * is simply built again. */
static void put_file(const char *path, const whit_buf *bytes)
{
    char draft[PATH_MAX + 32];
    snprintf(draft, sizeof draft, "%s.%ld", path, (long)getpid());
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return;
    bool ok = whit_write_all(fd, bytes->data, bytes->size_bytes);
    ok = close(fd) == 0 && ok;
    if (!ok || rename(draft, path) != 0) unlink(draft);
}

/* Reads the changed files and updates the graph's edits; writes these to the cache if possible. Returns false if the
 * graph must be opened anew. */
static bool read_changed(whit_graph *graph, const struct comparison *c, const char *cache_folder)
{
    char path[PATH_MAX];
    whit_buf edits = {0};
    if (c->too_far) return false;
    if (c->known) return true;
    bool has_path = graph_cache_path(c->folder, cache_folder, "edits", path);
    bool ok = !c->n || graph_build_edits(graph, c->folder, c->changed, c->n, &edits);
    ok = ok && graph_take_edits(graph, &edits);
    whit_buf_free(&edits);
    if (!ok) return false;
    graph->is_new = true;
    if (has_path && c->n)
        put_file(path, &graph->own_edits);
    else if (has_path)
        unlink(path);
    return true;
}

bool whit_graph_refresh(whit_graph *graph, const char *folder, const char *cache_folder)
{
    struct comparison c = {.graph = graph, .folder = folder, .known = true};
    whit_walk_files(folder, compare_next, &c);
    c.too_far |= c.next != graph->base.n[GRAPH_FILES];
    graph->is_new = false;
    return read_changed(graph, &c, cache_folder);
}

bool whit_graph_follow(whit_graph *graph, const char *folder, const char *cache_folder, const char *path)
{
    struct comparison c = {.graph = graph, .folder = folder, .known = true};
    uint32_t number = whit_graph_file_number(graph, path);
    uint64_t stamp;
    if (number == WHIT_GRAPH_NONE || !graph_stamp(folder, path, &stamp)) return false;
    bool done = false;
    /* graph_build_edits needs the changed files in ascending order of their numbers */
    for (uint64_t i = 0; i < graph->edits.n[GRAPH_FILES] || !done; i++) {
        const struct graph_file *edit = i < graph->edits.n[GRAPH_FILES] ? &graph->edits.files[i] : NULL;
        if (!done && (!edit || edit->number >= number)) {
            compare_stamp(&c, number, stamp);
            done = true;
        }
        if (edit && edit->number != number) compare_stamp(&c, edit->number, edit->stamp);
    }
    return read_changed(graph, &c, cache_folder);
}

whit_status whit_graph_open(const char *folder, const char *cache_folder, whit_graph **graph, whit_error *error)
{
    struct stat about;
    char path[PATH_MAX];
    *graph = NULL;
    if (stat(folder, &about)) return whit_fail_errno(error, folder, "open");
    if (!S_ISDIR(about.st_mode))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: a code graph needs a folder, and this is not one", folder);
    if (open_cached(folder, cache_folder, graph, NULL) == WHIT_OK) {
        if (whit_graph_refresh(*graph, folder, cache_folder)) return WHIT_OK;
        whit_graph_close(*graph);
        *graph = NULL;
    }
    WHIT_TRY(new_graph(graph, error));
    whit_status status = graph_build(folder, &(*graph)->own, error);
    if (status == WHIT_OK) status = graph_attach(*graph, (*graph)->own.data, (*graph)->own.size_bytes, folder, error);
    if (status != WHIT_OK) {
        whit_graph_close(*graph);
        *graph = NULL;
        return status;
    }
    (*graph)->is_new = true;
    if (!graph_cache_path(folder, cache_folder, "graph", path)) return WHIT_OK;
    /* The file that was just written is mapped in place of the memory: processes share its pages. */
    whit_graph *mapped;
    if (whit_write_file(path, (*graph)->own.data, (*graph)->own.size_bytes, NULL) == WHIT_OK &&
        open_cached(folder, cache_folder, &mapped, NULL) == WHIT_OK) {
        mapped->is_new = true;
        whit_graph_close(*graph);
        *graph = mapped;
    }
    return WHIT_OK;
}
