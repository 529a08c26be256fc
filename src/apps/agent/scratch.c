/* SPDX-License-Identifier: MIT */
#include "agent/scratch.h"

#include "agent/folders.h"
#include "agent/guard.h"
#include "agent/light.h"
#include "base/file.h"
#include "base/flag.h"
#include "base/items.h"
#include "base/pinned.h"
#include "code/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WRITTEN        " written"
#define INCOMING       "incoming" /* a file that is being copied; commands do not see it */
#define COPY_BYTES_MAX ((uint64_t)8 << 30)
#define LIST_BYTES_MAX ((size_t)256 << 20)
#define KEY_BYTES      ((size_t)1 << 20) /* size of the pieces, in bytes, in which a file is searched for keys */
/* bytes of a piece that are searched again with the next piece; every key is shorter */
#define KEY_OVERLAP ((size_t)1 << 15)

/* State of a project's file at the time it was copied, and of the copy (copy_*, inode). */
struct stamp {
    uint64_t size, inode;
    int64_t modified_s, changed_s, copy_changed_s;
    long modified_ns, changed_ns, copy_changed_ns;
};
struct entry {
    const char *path;
    struct stamp stamp;
};

struct update {
    whit_scratch *scratch;
    const char *project;
    int project_fd, folder_fd; /* the project, and the folder of the copy, in which INCOMING is */
    /* list of the last update: struct entry[] sorted by path, and the text with the paths */
    whit_buf old, old_text;
    /* list of this update: struct entry[], which owns its paths, and the lines to be written to the list's file */
    whit_buf entries, text;
    char keys[2 * WHIT_HASH_BYTES + 1]; /* digest of whit_guard_hash, in the first line of the list's file */
    bool has_old_keys; /* the copy was made when other keys were looked for, so each file is searched again */
    uint64_t n_bytes;
    whit_status status;
    whit_error *error;
};

/* ---- files of the copy, which commands may have changed -------------------------------------- */

/* Opens the parent folder of `path` and sets *name to the last part. With `creates` it creates missing folders, and
 * removes another kind of file in their place. Returns -1 with errno on failure. */
static int open_above(const whit_scratch *scratch, const char *path, bool creates, const char **name)
{
    char part[NAME_MAX + 1];
    int at = dup(scratch->tree_fd);
    for (const char *slash; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        size_t n = (size_t)(slash - path);
        if (n > NAME_MAX) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, path, n);
        part[n] = 0;
        int next = whit_agent_open_folder(at, part);
        if (next < 0 && creates) {
            whit_agent_remove_all(at, part);
            if (mkdirat(at, part, 0755) == 0) next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        int failure = errno;
        close(at);
        errno = failure;
        at = next;
    }
    *name = path;
    return at;
}

/* Writes a new file `name`, after removing an existing entry of that name. */
static bool put_bytes(int folder, const char *name, const void *data, size_t n, mode_t mode)
{
    whit_agent_remove_all(folder, name);
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && whit_write_all(fd, data, n) && fchmod(fd, mode) == 0;
    if (fd >= 0) close(fd);
    return ok;
}

static bool copy_bytes(int from, int to, uint64_t size)
{
    if (ioctl(to, FICLONE, from) == 0) return true;
    for (uint64_t done = 0; done < size;) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, size - done, 0);
        if (n == 0) break; /* the file has become shorter than its recorded size */
        if (n < 0 && errno != EINTR) {
            char piece[65536];
            if (done || (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)) return false;
            while ((n = read(from, piece, sizeof piece)) > 0)
                if (write(to, piece, (size_t)n) != n) return false;
            return n == 0;
        }
        if (n > 0) done += (uint64_t)n;
    }
    return true;
}

/* Opens a regular file of the project that may be copied; returns -1 with errno. Another program may have put another
 * file in its place since its name was looked at, so the open file is looked at. */
static int open_original(const struct update *u, const char *path, struct stat *info)
{
    char full[PATH_MAX];
    const int fd = whit_open_below(u->project_fd, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0 ||
        (fstat(fd, info) == 0 && S_ISREG(info->st_mode) &&
         snprintf(full, sizeof full, "%s/%s", u->project, path) < (int)sizeof full &&
         !whit_project_hides(u->project, path, full, info)))
        return fd;
    close(fd);
    errno = EACCES;
    return -1;
}

/* Reads the target of a link of the project. */
static bool read_link(const struct update *u, const char *path, char target[PATH_MAX])
{
    const int link = whit_open_below(u->project_fd, path, O_PATH);
    const ssize_t n = link >= 0 ? readlinkat(link, "", target, PATH_MAX - 1) : -1;
    if (link >= 0) close(link);
    target[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Copies a file or link of the project to INCOMING. is_first: the copy gets the original's times; a later copy gets the
 * current time, so that build tools rebuild what depends on it. */
static bool take_copy(const struct update *u, const char *path, bool is_link, bool is_first)
{
    struct stat info;
    char target[PATH_MAX];
    whit_agent_remove_all(u->folder_fd, INCOMING);
    if (is_link) return read_link(u, path, target) && symlinkat(target, u->folder_fd, INCOMING) == 0;
    int from = open_original(u, path, &info);
    int to =
        from >= 0 ? openat(u->folder_fd, INCOMING, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    bool ok = to >= 0 && copy_bytes(from, to, (uint64_t)info.st_size) && fchmod(to, (info.st_mode & 0777) | 0600) == 0;
    if (ok && is_first) ok = futimens(to, (struct timespec[2]){info.st_atim, info.st_mtim}) == 0;
    int failure = errno;
    if (from >= 0) close(from);
    if (to >= 0) close(to);
    errno = failure;
    return ok;
}

/* ---- list of copied files ---------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* Reads the list of copied files. After the first line, which is the digest of the keys, its lines are numbers and a
 * path. A malformed line is ignored, as if its file had not been copied. */
static void read_list(struct update *u)
{
    char path[PATH_MAX + 16];
    whit_error ignored;
    snprintf(path, sizeof path, "%s/list", u->scratch->folder);
    if (whit_read_file(path, LIST_BYTES_MAX, &u->old_text, &ignored) != WHIT_OK) return;
    if (!whit_buf_append(&u->old_text, "", 1)) return;
    const size_t n_keys = strlen(u->keys);
    u->has_old_keys =
        strncmp(whit_chars(&u->old_text), u->keys, n_keys) != 0 || whit_chars(&u->old_text)[n_keys] != '\n';
    for (char *line = WHIT_ITEMS(char, &u->old_text), *end; (end = strchr(line, '\n')); line = end + 1) {
        struct entry e;
        struct stamp *s = &e.stamp;
        int n = 0;
        *end = 0;
        if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNd64 ".%ld %" SCNd64 ".%ld %" SCNd64 ".%ld %n", &s->size,
                   &s->inode, &s->modified_s, &s->modified_ns, &s->changed_s, &s->changed_ns, &s->copy_changed_s,
                   &s->copy_changed_ns, &n) != 8 ||
            !n)
            continue;
        e.path = line + n;
        whit_buf_append(&u->old, &e, sizeof e);
    }
    if (u->old.size_bytes) qsort(u->old.data, u->old.size_bytes / sizeof(struct entry), sizeof(struct entry), by_path);
}

static const struct entry *find_entry(const whit_buf *entries, const char *path)
{
    struct entry wanted = {.path = path};
    return entries->size_bytes
        ? bsearch(&wanted, entries->data, entries->size_bytes / sizeof wanted, sizeof wanted, by_path)
        : NULL;
}

/* Returns whether the sorted list has a file below the folder `path`. */
static bool has_entry_below(const whit_buf *entries, const char *path)
{
    const struct entry *list = entries->size_bytes ? WHIT_ITEMS(const struct entry, entries) : NULL;
    const size_t n_path = strlen(path);
    char folder[PATH_MAX + 1];
    size_t first = 0, last = entries->size_bytes / sizeof *list;
    if (snprintf(folder, sizeof folder, "%s/", path) >= (int)sizeof folder) return false;
    while (first < last) { /* the first path that is not before the folder's own */
        const size_t middle = first + (last - first) / 2;
        if (strcmp(list[middle].path, folder) < 0)
            first = middle + 1;
        else
            last = middle;
    }
    return first < entries->size_bytes / sizeof *list && strncmp(list[first].path, folder, n_path + 1) == 0;
}

static void add_line(struct update *u, const char *path, const struct stamp *s)
{
    whit_buf_printf(&u->text, "%" PRIu64 " %" PRIu64 " %" PRId64 ".%ld %" PRId64 ".%ld %" PRId64 ".%ld %s\n", s->size,
                    s->inode, s->modified_s, s->modified_ns, s->changed_s, s->changed_ns, s->copy_changed_s,
                    s->copy_changed_ns, path);
}

static struct stamp stamp_of(const struct stat *own, const struct stat *copy)
{
    return (struct stamp){.size = (uint64_t)own->st_size,
                          .inode = copy->st_ino,
                          .modified_s = own->st_mtim.tv_sec,
                          .modified_ns = own->st_mtim.tv_nsec,
                          .changed_s = own->st_ctim.tv_sec,
                          .changed_ns = own->st_ctim.tv_nsec,
                          .copy_changed_s = copy->st_ctim.tv_sec,
                          .copy_changed_ns = copy->st_ctim.tv_nsec};
}

/* ---- updating the copy ------------------------------------------------------------------------- */

/* Returns whether to skip a folder: one with secrets or with this program's journals and conversations, or the usual
 * folder of its scratch copies, so that a copy does not contain itself. */
static bool skip_folder(void *user, const char *folder)
{
    const struct update *u = user;
    return whit_light_secret(u->project, folder);
}

/* Returns whether a file of the copy contains a key or cannot be read completely; links contain none. The copy is
 * searched and not the project's file: another program may change that between the search and the copying. */
static bool holds_key(int folder, const char *name)
{
    whit_buf text = {0};
    struct stat info;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode)) return false;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    bool ok = fd >= 0 && whit_buf_reserve(&text, KEY_BYTES + KEY_OVERLAP), found = false;
    for (ssize_t got = 1; ok && got > 0 && !found;) {
        got = read(fd, text.data + text.size_bytes, KEY_BYTES + KEY_OVERLAP - text.size_bytes);
        ok = got >= 0 || errno == EINTR;
        if (got > 0) text.size_bytes += (size_t)got;
        if (got < 0) got = ok;
        if (got > 0 && text.size_bytes < KEY_BYTES + KEY_OVERLAP) continue;
        found = whit_guard_has_key(whit_chars(&text), text.size_bytes);
        const size_t n_again = text.size_bytes < KEY_OVERLAP ? text.size_bytes : KEY_OVERLAP;
        memmove(text.data, text.data + text.size_bytes - n_again, n_again);
        text.size_bytes = n_again;
    }
    if (fd >= 0) close(fd);
    whit_buf_free(&text);
    return found || !ok;
}

static bool visit(void *user, const char *path)
{
    struct update *u = user;
    char full[PATH_MAX];
    struct stat own, copy;
    const char *name;
    if (strchr(path, '\n')) { /* the list of copied files has a line for each */
        u->scratch->is_part = true;
        return true;
    }
    if (whit_light_secret(u->project, path) ||
        snprintf(full, sizeof full, "%s/%s", u->project, path) >= (int)sizeof full || lstat(full, &own) != 0 ||
        !(S_ISREG(own.st_mode) || S_ISLNK(own.st_mode)))
        return true;
    u->n_bytes += (uint64_t)own.st_size;
    if (u->n_bytes > COPY_BYTES_MAX) {
        u->status = whit_fail(u->error, WHIT_ERROR_LIMIT,
                              "%s: is larger than %d GiB, the limit for the copy that commands run in", u->project,
                              (int)(COPY_BYTES_MAX >> 30));
        return false;
    }
    int folder = open_above(u->scratch, path, true, &name);
    const struct entry *known = find_entry(&u->old, path);
    struct stamp now;
    bool same = folder >= 0 && known && fstatat(folder, name, &copy, AT_SYMLINK_NOFOLLOW) == 0;
    if (same) {
        now = stamp_of(&own, &copy);
        same = memcmp(&now, &known->stamp, sizeof now) == 0;
    }
    bool ok = folder >= 0;
    if (ok && !same) {
        const bool is_first = !known && faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
        whit_agent_remove_all(folder, name);
        ok = take_copy(u, path, S_ISLNK(own.st_mode), is_first);
    }
    if (ok && (same ? u->has_old_keys && holds_key(folder, name) : holds_key(u->folder_fd, INCOMING))) {
        whit_agent_remove_all(folder, name);
        close(folder);
        return true;
    }
    if (ok && !same)
        ok = renameat(u->folder_fd, INCOMING, folder, name) == 0 &&
            fstatat(folder, name, &copy, AT_SYMLINK_NOFOLLOW) == 0;
    /* a file that has disappeared or cannot be read is left out of the copy, but a full or read-only disk ends the
     * update */
    if (!ok && (errno == ENOSPC || errno == EDQUOT || errno == EROFS))
        u->status = whit_fail_errno(u->error, u->scratch->tree, "copy files into this folder");
    if (ok) {
        now = stamp_of(&own, &copy);
        add_line(u, path, &now);
        *(same ? &u->scratch->n_same : &u->scratch->n_copied) += 1;
        char *kept = strdup(path);
        struct entry e = {kept, now};
        if (!kept || !whit_buf_append(&u->entries, &e, sizeof e)) {
            free(kept);
            u->status = whit_fail_memory(u->error, "a list of copies", u->entries.size_bytes);
        }
    }
    if (folder >= 0) close(folder);
    return u->status == WHIT_OK;
}

static void remove_gone(struct update *u)
{
    const struct entry *old = WHIT_ITEMS(const struct entry, &u->old);
    if (u->entries.size_bytes) qsort(u->entries.data, u->entries.size_bytes / sizeof *old, sizeof *old, by_path);
    for (size_t i = 0; i < u->old.size_bytes / sizeof *old; i++) {
        const char *name;
        /* a file that has become a folder, whose files were copied into it */
        if (find_entry(&u->entries, old[i].path) || has_entry_below(&u->entries, old[i].path)) continue;
        int folder = open_above(u->scratch, old[i].path, false, &name);
        if (folder < 0) continue; /* a folder of its path is gone, or has become a file */
        whit_agent_remove_all(folder, name);
        close(folder);
    }
}

/* Removes a file that is neither copied from the project nor ignored by its rules: an earlier check may have left it,
 * and programs might obey it. */
static bool remove_stranger(void *user, const char *path)
{
    struct update *u = user;
    const char *name;
    if (find_entry(&u->entries, path)) return true;
    int folder = open_above(u->scratch, path, false, &name);
    if (folder < 0) return false;
    whit_agent_remove_all(folder, name);
    bool gone = faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
    close(folder);
    return gone;
}

static void empty_folder(const char *path)
{
    int fd = whit_agent_open_folder(AT_FDCWD, path);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (!entries && fd >= 0) close(fd);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            whit_agent_remove_all(dirfd(entries), entry->d_name);
    closedir(entries);
}

void whit_scratch_empty(const whit_scratch *scratch)
{
    char list[PATH_MAX + 16];
    empty_folder(scratch->tree);
    empty_folder(scratch->home);
    snprintf(list, sizeof list, "%s/list", scratch->folder);
    (void)unlink(list);
}

static bool is_empty(const char *path)
{
    DIR *entries = opendir(path);
    size_t n = 0;
    while (entries && readdir(entries)) n++;
    if (entries) closedir(entries);
    return entries && n == 2;
}

/* Writes the staged changes into the copy. Their files then differ from the stamps in the list, so that the next update
 * restores the project's files. */
static whit_status put_staged(struct update *u, const whit_changes *staged)
{
    for (size_t i = 0; staged && i < whit_changes_count(staged); i++) {
        const whit_change *c = whit_changes_at(staged, i);
        const char *name;
        /* Skips paths that are not plain, secrets, and files whose old text contains a key: a staged change, or a text
         * open in an editor, would bring the key into the copy. */
        if (!whit_agent_path_is_plain(c->path) || whit_light_hides(u->project, c) || whit_change_had_key(c)) continue;
        int folder = open_above(u->scratch, c->path, true, &name);
        bool ok = folder >= 0;
        if (ok && c->is)
            ok = put_bytes(folder, name, c->after, c->after_bytes, c->mode ? (c->mode & 0777) | 0600 : 0644);
        else if (ok)
            whit_agent_remove_all(folder, name);
        /* a new file is added to the list, so that the next update removes it */
        if (ok && c->is && !c->was) add_line(u, c->path, &(struct stamp){0});
        whit_status status = ok ? WHIT_OK : whit_fail_errno(u->error, c->path, "copy this file into the agent's copy");
        if (folder >= 0) close(folder);
        WHIT_TRY(status);
    }
    return WHIT_OK;
}

whit_status whit_scratch_update(whit_scratch *scratch, const char *project, const whit_changes *staged,
                                whit_error *error)
{
    const whit_walk_how all = {.rules = project, .all = true}, how = {.skip = skip_folder};
    struct update u = {.scratch = scratch, .project = project, .error = error};
    u.project_fd = open(project, O_PATH | O_DIRECTORY | O_CLOEXEC);
    u.folder_fd = open(scratch->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (u.project_fd < 0 || u.folder_fd < 0)
        u.status = whit_fail_errno(error, u.project_fd < 0 ? project : scratch->folder, "open this folder");
    char path[PATH_MAX + 16];
    uint8_t digest[WHIT_HASH_BYTES];
    scratch->n_copied = scratch->n_same = 0;
    scratch->is_part = false;
    whit_guard_hash(digest);
    whit_hash_hex(digest, u.keys);
    whit_buf_printf(&u.text, "%s\n", u.keys);
    read_list(&u);
    if (u.status == WHIT_OK && !whit_walk(project, &how, visit, &u)) scratch->is_part = true;
    if (u.status == WHIT_OK) remove_gone(&u);
    if (u.status == WHIT_OK && scratch->removes_strangers && !whit_walk(scratch->tree, &all, remove_stranger, &u))
        u.status = whit_fail(error, WHIT_ERROR_LIMIT,
                             "%s: this copy of the project cannot be cleaned for the checks; remove the folder",
                             scratch->tree);
    scratch->removes_strangers = false;
    if (u.status == WHIT_OK) u.status = put_staged(&u, staged);
    snprintf(path, sizeof path, "%s/list", scratch->folder);
    if (u.text.failed) u.status = whit_fail_memory(error, "a list of copies", u.text.size_bytes);
    if (u.status == WHIT_OK) u.status = whit_write_file(path, u.text.data, u.text.size_bytes, error);
    for (size_t i = 0; i < u.entries.size_bytes / sizeof(struct entry); i++)
        free((char *)(uintptr_t)(WHIT_ITEMS(struct entry, &u.entries))[i].path);
    whit_buf_free(&u.entries);
    whit_buf_free(&u.text);
    whit_buf_free(&u.old);
    whit_buf_free(&u.old_text);
    if (u.folder_fd >= 0) whit_agent_remove_all(u.folder_fd, INCOMING);
    if (u.project_fd >= 0) close(u.project_fd);
    if (u.folder_fd >= 0) close(u.folder_fd);
    return u.status;
}

/* Locks the copy. Tries ten times a second, because flock() would wait without checking the cancel flag. Returns false
 * with errno; ECANCELED if the person has cancelled. */
static bool lock_copy(int fd, const whit_scratch_wait *wait)
{
    static const struct timespec pause = {0, 100000000};
    for (bool was_said = false; flock(fd, LOCK_EX | LOCK_NB) != 0;) {
        if (errno != EINTR && errno != EWOULDBLOCK) return false;
        if (errno == EWOULDBLOCK && !was_said) {
            if (wait->note)
                wait->note(wait->user, "another agent's command uses the copy of the project: waiting for it");
            was_said = true;
        }
        if (whit_flag_is_set(wait->cancel)) {
            errno = ECANCELED;
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

whit_status whit_scratch_open(const char *project, const char *cache_dir, const char *name,
                              const whit_scratch_wait *wait, whit_scratch *scratch, whit_error *error)
{
    char path[PATH_MAX + 16];
    *scratch = (whit_scratch){.lock = -1, .tree_fd = -1};
    WHIT_TRY(whit_agent_cache_path(project, cache_dir, name, "", scratch->folder, error));
    snprintf(scratch->tree, sizeof scratch->tree, "%s/tree", scratch->folder);
    snprintf(scratch->home, sizeof scratch->home, "%s/home", scratch->folder);
    WHIT_TRY(whit_agent_make_folders(scratch->tree, error));
    WHIT_TRY(whit_agent_make_folders(scratch->home, error));
    snprintf(path, sizeof path, "%s/lock", scratch->folder);
    scratch->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = scratch->lock >= 0 && lock_copy(scratch->lock, wait);
    if (ok) scratch->tree_fd = whit_agent_open_folder(AT_FDCWD, scratch->tree);
    /* restore the home folder's permissions, which a command may have removed */
    int home = ok ? whit_agent_open_folder(AT_FDCWD, scratch->home) : -1;
    if (home >= 0) close(home);
    if (scratch->tree_fd >= 0) return WHIT_OK;
    whit_status status = !ok && errno == ECANCELED
        ? whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted")
        : whit_fail_errno(error, scratch->folder, "use this folder for the agent's copy");
    whit_scratch_close(scratch);
    return status;
}

/* ---- passes of checks ---------------------------------------------------------------------------- */

/* Reads the file "pass": the number of the last pass, followed by " written" if its changes were written to the
 * project. */
static void read_pass(const whit_scratch *scratch, char text[64])
{
    char path[PATH_MAX + 16];
    whit_buf content = {0};
    whit_error ignored;
    *text = 0;
    snprintf(path, sizeof path, "%s/pass", scratch->folder);
    if (whit_read_file(path, 63, &content, &ignored) == WHIT_OK && content.size_bytes < 64) {
        memcpy(text, content.data, content.size_bytes);
        text[content.size_bytes] = 0;
    }
    whit_buf_free(&content);
}

static whit_status write_pass(const whit_scratch *scratch, const char *number, const char *state, whit_error *error)
{
    char path[PATH_MAX + 16], text[64];
    snprintf(path, sizeof path, "%s/pass", scratch->folder);
    int n = snprintf(text, sizeof text, "%s%s", number, state);
    return whit_write_file(path, text, (size_t)n, error);
}

whit_status whit_scratch_begin_pass(whit_scratch *scratch, char number[WHIT_PASS_BYTES], whit_error *error)
{
    char last[64], path[PATH_MAX + 16];
    uint64_t random;
    read_pass(scratch, last);
    const char *state = strchr(last, ' ');
    if (!state || strcmp(state, WRITTEN) != 0) {
        snprintf(path, sizeof path, "%s/list", scratch->folder);
        unlink(path);
        empty_folder(scratch->tree);
        if (!is_empty(scratch->tree))
            return whit_fail(
                error, WHIT_ERROR_LIMIT,
                "%s: this folder of a copy of the project cannot be emptied for the checks; remove the folder",
                scratch->tree);
    }
    empty_folder(scratch->home);
    if (!is_empty(scratch->home))
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: this folder of a copy of the project cannot be emptied for the checks; remove the folder",
                         scratch->home);
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return whit_fail_errno(error, scratch->folder, "draw a random number");
    snprintf(number, WHIT_PASS_BYTES, "%016" PRIx64, random);
    scratch->removes_strangers = true;
    return write_pass(scratch, number, "", error);
}

void whit_scratch_end_pass(const whit_scratch *scratch, const char *number)
{
    char last[64];
    whit_error ignored;
    read_pass(scratch, last);
    if (strcmp(last, number) == 0) (void)write_pass(scratch, number, WRITTEN, &ignored);
}

void whit_scratch_close(whit_scratch *scratch)
{
    if (scratch->lock >= 0) close(scratch->lock);
    if (scratch->tree_fd >= 0) close(scratch->tree_fd);
    scratch->lock = scratch->tree_fd = -1;
}
