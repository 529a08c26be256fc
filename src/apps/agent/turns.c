/* SPDX-License-Identifier: MIT */
#include "agent/turns.h"

#include "agent/commits.h"
#include "agent/folders.h"
#include "agent/guard.h"
#include "agent/turns_frames.h"
#include "base/exchange.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/items.h"
#include "base/path.h"
#include "base/pinned.h"
#include "base/utf8.h"
#include "format/ndf_append.h"
#include "format/ndf_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* name of the temporary file, in the folder of the file being written; one name suffices, because the journal is locked
 * by one process */
#define BESIDE ".whit-turn~"

uint32_t whit_turns_count(const whit_turns *journal)
{
    return (uint32_t)(journal->turns.size_bytes / sizeof(whit_turn));
}

const whit_turn *whit_turns_at(const whit_turns *journal, uint32_t i)
{
    return whit_frame_turn(journal, i);
}

/* ---- files of the project ------------------------------------------------------------------- */

/* Frees the list of created folders. If the turn failed, removes them, the innermost first; a folder that contains
 * other files stays. */
static void end_folders(whit_buf *made, bool has_failed)
{
    char **folders = (char **)WHIT_ITEMS(void, made);
    for (size_t i = made->size_bytes / sizeof *folders; i-- > 0;) {
        if (has_failed) (void)rmdir(folders[i]);
        free(folders[i]);
    }
    whit_buf_free(made);
}

/* Removes the folders that the turn of a change created for a file that is gone, the innermost first. A folder that is
 * not empty stays. */
static void remove_folders(const whit_turns *journal, const whit_change *change)
{
    char path[PATH_MAX], full[PATH_MAX];
    whit_error ignored;
    snprintf(path, sizeof path, "%s", change->path);
    for (uint32_t i = 0; i < change->n_folders; i++) {
        char *slash = strrchr(path, '/');
        if (!slash) return;
        *slash = 0;
        if (whit_project_resolve(journal->project, path, full, NULL, &ignored) != WHIT_OK) return;
        if (rmdir(full) != 0 && errno != ENOENT) return;
    }
}

/* Writes the path of the temporary file for a file of a turn. */
static bool name_beside(const char *full, char beside[PATH_MAX])
{
    const char *slash = strrchr(full, '/');
    return snprintf(beside, PATH_MAX, "%.*s" BESIDE, (int)(slash - full + 1), full) < PATH_MAX;
}

/* Reports that a file is not what it was when the change was made; for an undo or redo, since turn `of`. */
static whit_status has_changed(const whit_change *change, uint32_t of, whit_error *error)
{
    if (of)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: has changed since turn %u; nothing is written", change->path,
                         of);
    return whit_fail(error, WHIT_ERROR_ARGUMENT,
                     "%s: has changed since it was read; nothing is written: look at it again", change->path);
}

/* Makes sure that the name of a temporary file is free. A temporary file that a crash left is removed when its turn is
 * undone. If one exists before a turn, it belongs to the person, and the write fails. `full`: the file's path. */
static whit_status free_name(const char *full, const whit_pinned *pinned, bool after, whit_error *error)
{
    struct stat about;
    if (lstat(pinned->beside, &about) != 0 || (!after && unlink(pinned->beside) == 0)) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_IO,
                     "%.*s" BESIDE
                     ": a temporary file of this name must be created, but the name is taken: move that file away",
                     (int)(strrchr(full, '/') + 1 - full), full);
}

/* Creates the temporary file of a file to be written. is_private: only the owner may read it until it has its own
 * permissions. */
static whit_status open_beside(const char *full, const whit_pinned *pinned, bool after, bool is_private, int *fd,
                               whit_error *error)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const mode_t mode = is_private ? 0600 : 0666;
    WHIT_TRY(free_name(full, pinned, after, error));
    *fd = open(pinned->beside, flags, mode);
    return *fd < 0 ? whit_fail_errno(error, full, "create a file beside it") : WHIT_OK;
}

/* Removes a file whose folder is open. */
static whit_status remove_file(const whit_change *change, bool after, const char *full, const whit_pinned *pinned,
                               const whit_expected *expected, uint32_t of, whit_error *error)
{
    WHIT_TRY(free_name(full, pinned, after, error));
    const whit_exchanged done = whit_exchange_remove(pinned->beside, pinned->full, expected);
    if (done == WHIT_EXCHANGE_FAILED) return whit_fail_errno(error, full, "remove");
    return done == WHIT_EXCHANGE_DONE ? WHIT_OK : has_changed(change, of, error);
}

/* Writes one side of a change to its file, whose folder is open. */
static whit_status write_file(const whit_change *change, bool after, const char *full, const whit_pinned *pinned,
                              const whit_expected *expected, uint32_t of, whit_error *error)
{
    whit_exchanged done;
    whit_error ignored;
    int fd;
    WHIT_TRY(open_beside(full, pinned, after, expected->exists || change->mode, &fd, error));
    const char *text = after ? change->after : change->before;
    size_t n_bytes = after ? change->after_bytes : change->before_bytes;
    int old = open(pinned->full, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    const bool has_links = old >= 0 && fstat(old, &about) == 0 && about.st_nlink > 1;
    bool is_kept = old < 0 ? !change->mode || fchmod(fd, change->mode) == 0 : !has_links && whit_copy_metadata(old, fd);
    bool in_place = old >= 0 && !is_kept, ok = whit_write_all(fd, text, n_bytes) && (!in_place || fsync(fd) == 0);
    if (old >= 0) close(old);
    ok = close(fd) == 0 && ok && (in_place || is_kept);
    whit_status status = ok ? WHIT_OK : whit_fail_errno(error, full, "write");
    if (ok && has_links && !change->has_links)
        status =
            whit_fail(error, WHIT_ERROR_ARGUMENT,
                      "%s: has other names now, whose text would change, too; nothing is written: look at it again",
                      change->path);
    else if (ok && in_place && !whit_exchange_is(pinned->full, expected))
        status = has_changed(change, of, error);
    else if (ok && in_place) {
        if (whit_write_over(pinned->full, text, n_bytes, error) != WHIT_OK) {
            status = whit_fail_errno(error, full, "write");
            (void)whit_write_over(pinned->full, expected->text, expected->n_bytes, &ignored);
        }
    } else if (ok) {
        done = whit_exchange_put(pinned->beside, pinned->full, expected);
        if (done == WHIT_EXCHANGE_FAILED) status = whit_fail_errno(error, full, "write");
        if (done == WHIT_EXCHANGE_OTHER) status = has_changed(change, of, error);
    }
    if (status != WHIT_OK || in_place) unlink(pinned->beside);
    return status;
}

/* Writes the content of one side atomically, and keeps the file's metadata; removes the file if it does not exist on
 * that side. Must be called right after is_side(), which has checked the path and that the file is `expected`. A file
 * with other hard links, or with metadata that a new file cannot get, is overwritten in place, while its folder
 * contains a complete copy of the new content. flush_files() must follow. Errors: argument (another program has written
 * the file since is_side(), and it is left as it is, or has replaced a folder of its path). */
static whit_status put_file(const whit_turns *journal, const whit_change *change, bool after,
                            const whit_expected *expected, uint32_t of, whit_buf *made, whit_error *error)
{
    char full[PATH_MAX];
    const bool exists = after ? change->is : change->was;
    whit_pinned pinned;
    if (snprintf(full, sizeof full, "%s/%s", journal->project, change->path) >= (int)sizeof full)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "'%s' is not a path below the project: give one relative to its folder", change->path);
    if (!exists && !expected->exists) return WHIT_OK;
    WHIT_TRY(whit_pinned_open(full, strlen(journal->project), BESIDE, exists, made, &pinned, error));
    const whit_status status = exists ? write_file(change, after, full, &pinned, expected, of, error)
                                      : remove_file(change, after, full, &pinned, expected, of, error);
    whit_pinned_close(&pinned);
    return status;
}

/* Returns whether the content is what is left of a file that was overwritten in place, by its turn or by the turn's
 * recovery, and not to its end: each of its bytes is that of one of the two sides, or zero beyond the end of the
 * shorter one. A file that somebody has changed since has other bytes. */
static bool is_mixture(const whit_change *c, const whit_buf *content)
{
    const bool grows = c->after_bytes > c->before_bytes;
    const size_t longer = grows ? c->after_bytes : c->before_bytes;
    const size_t shorter = grows ? c->before_bytes : c->after_bytes;
    if (content->size_bytes < c->before_bytes || content->size_bytes > longer) return false;
    for (size_t i = 0; i < content->size_bytes; i++) {
        const char byte = (char)content->data[i];
        const bool is_old = i < c->before_bytes && byte == c->before[i], is_reserved = i >= shorter && !byte;
        if (!is_old && !is_reserved && !(i < c->after_bytes && byte == c->after[i])) return false;
    }
    return true;
}

/* Returns whether the program ended while it overwrote this file in place. The temporary copy in its folder is then
 * complete, and the file, whose content is appended to `content`, is a mixture of both sides. */
static bool was_cut_off(const whit_turns *journal, const whit_change *change, whit_buf *content)
{
    char full[PATH_MAX], beside[PATH_MAX];
    whit_error ignored;
    const whit_expected after = {true, change->after, change->after_bytes},
                        before = {true, change->before, change->before_bytes};
    bool exists;
    uint32_t mode;
    return change->was && change->is &&
        whit_project_resolve(journal->project, change->path, full, NULL, &ignored) == WHIT_OK &&
        name_beside(full, beside) && (whit_exchange_is(beside, &after) || whit_exchange_is(beside, &before)) &&
        whit_project_read(journal->project, change->path, content, &exists, &mode, &ignored) == WHIT_OK && exists &&
        is_mixture(change, content);
}

static whit_status flush_file(const whit_turns *journal, const char *path, whit_error *error)
{
    char full[PATH_MAX];
    WHIT_TRY(whit_project_resolve(journal->project, path, full, NULL, error));
    int fd = open(full, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return WHIT_OK; /* the file was removed */
    whit_status status = fd >= 0 && fsync(fd) == 0 ? WHIT_OK : whit_fail_errno(error, full, "flush it to the disk");
    if (fd >= 0) close(fd);
    return status;
}

/* Flushes all written files with one syncfs() if the system supports it, since a hundred single flushes take a hundred
 * times as long. */
static whit_status flush_files(const whit_turns *journal, const whit_change *changes, size_t n, whit_error *error)
{
    int fd = open(journal->project, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && syncfs(fd) == 0, is_lacking = fd >= 0 && !ok && errno == ENOSYS;
    whit_status status = ok || is_lacking ? WHIT_OK : whit_fail_errno(error, journal->project, "flush it to the disk");
    if (fd >= 0) close(fd);
    for (size_t i = 0; is_lacking && status == WHIT_OK && i < n; i++)
        status = flush_file(journal, changes[i].path, error);
    return status;
}

/* Sets *same to whether the file has the content of the given side of the change. Errors: argument (the path leads to
 * another place than when the change was shown). */
static whit_status is_side(const whit_turns *journal, const whit_change *change, bool after, bool *same,
                           whit_error *error)
{
    whit_buf content = {0};
    const bool wanted = after ? change->is : change->was;
    whit_project_file file;
    size_t n = after ? change->after_bytes : change->before_bytes;
    const char *text = after ? change->after : change->before;
    whit_status status = whit_project_read_file(journal->project, change->path, &content, &file, error);
    if (status == WHIT_OK && change->place && change->place != file.place)
        status = whit_fail(error, WHIT_ERROR_ARGUMENT,
                           "%s: leads to another place than when it was shown; nothing is written: look at it again",
                           change->path);
    *same = status == WHIT_OK && file.exists == wanted &&
        (!wanted || (content.size_bytes == n && (!n || memcmp(content.data, text, n) == 0)));
    whit_buf_free(&content);
    return status;
}

/* Fails if a folder of the path has become a link since the turn was written: turns keep the real names of files
 * (whit_project_name), so another file has the name now, even if its content is the same. */
static whit_status is_at_name(const whit_turns *journal, const whit_change *change, whit_error *error)
{
    char name[PATH_MAX];
    WHIT_TRY(whit_project_name(journal->project, change->path, name, error));
    if (strcmp(name, change->path) == 0) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT,
                     "%s: leads to another place than when it was written; nothing is written: look at it again",
                     change->path);
}

/* ---- opening the journal -------------------------------------------------------------------- */

static whit_turn turn_of(const whit_frame_head *head, size_t n_bytes)
{
    whit_turn turn = {.number = head->number,
                      .kind = (whit_turn_kind)head->kind,
                      .of = head->of,
                      .time_s = head->time_s,
                      .n_changes = head->n_changes,
                      .n_bytes = n_bytes};
    memcpy(turn.note, head->note, sizeof turn.note - 1);
    /* the note is cut to valid UTF-8, because it is shown in JSON */
    turn.note[whit_utf8_valid_bytes((const uint8_t *)turn.note, strlen(turn.note))] = 0;
    return turn;
}

static whit_status remember(whit_turns *journal, const whit_frame_head *head, uint32_t frame, size_t n_bytes,
                            whit_error *error)
{
    whit_turn turn = turn_of(head, n_bytes);
    uint32_t n = whit_turns_count(journal);
    for (uint32_t i = 0; i < n; i++) /* the last undo or redo of a turn determines whether it is undone */
        if (turn.kind != WHIT_TURN_WRITE && whit_frame_turn(journal, i)->number == turn.of) {
            whit_frame_turn(journal, i)->undone = turn.kind == WHIT_TURN_UNDO;
            turn.n_bytes = whit_frame_turn(journal, i)->n_bytes;
        }
    if (!whit_buf_append(&journal->turns, &turn, sizeof turn) ||
        !whit_buf_append(&journal->frames, &frame, sizeof frame))
        return whit_fail_memory(error, "the list of turns", n * sizeof turn);
    return WHIT_OK;
}

/* Sets *is_needed to whether a file has the content that its turn has written, or a mixture, which is appended to
 * `mixture`. *expected gets its content. A file that has changed since is left as it is. */
static whit_status needs_return(const whit_turns *journal, const whit_change *change, whit_buf *mixture,
                                whit_expected *expected, bool *is_needed, whit_error *error)
{
    *is_needed = false;
    whit_status status = is_at_name(journal, change, error);
    if (status == WHIT_OK) status = is_side(journal, change, true, is_needed, error);
    /* After a crash, what the person has put in the file's place stays, too. A turn that fails has its places. */
    if (status == WHIT_ERROR_ARGUMENT && !change->place) return WHIT_OK;
    WHIT_TRY(status);
    const bool is_mixed = !*is_needed && was_cut_off(journal, change, mixture);
    *expected = (whit_expected){change->is, change->after, change->after_bytes};
    if (is_mixed) *expected = (whit_expected){true, whit_chars(mixture), mixture->size_bytes};
    *is_needed = *is_needed || is_mixed;
    return WHIT_OK;
}

/* Restores the old content of a file that a turn has written, unless the file has changed since. */
static whit_status take_back(const whit_turns *journal, const whit_change *change, whit_error *error)
{
    whit_buf mixture = {0};
    whit_expected expected;
    bool is_needed;
    whit_status status = needs_return(journal, change, &mixture, &expected, &is_needed, error);
    if (status == WHIT_OK && is_needed) status = put_file(journal, change, false, &expected, 0, NULL, error);
    whit_buf_free(&mixture);
    return status == WHIT_ERROR_ARGUMENT ? WHIT_OK : status; /* the file has changed since */
}

/* Rolls back a turn that has no end frame: each file with the turn's new content gets its old content again, the last
 * one first. It may be a mixture, whose complete copy has the name of the temporary files of its folder. */
static whit_status roll_back(whit_turns *journal, uint32_t frame, whit_error *error)
{
    whit_frame l;
    whit_status status = whit_frame_load(journal, frame, true, &l, error);
    const whit_change *changes = WHIT_ITEMS(const whit_change, &l.changes);
    for (uint32_t i = l.head.n_changes; status == WHIT_OK && i-- > 0;) status = take_back(journal, &changes[i], error);
    for (uint32_t i = 0; status == WHIT_OK && i < l.head.n_changes; i++) {
        char full[PATH_MAX], beside[PATH_MAX];
        if (whit_project_resolve(journal->project, changes[i].path, full, NULL, error) == WHIT_OK &&
            name_beside(full, beside))
            unlink(beside);
    }
    for (uint32_t i = 0; status == WHIT_OK && i < l.head.n_changes; i++)
        if (!changes[i].was) remove_folders(journal, &changes[i]);
    if (status == WHIT_OK) status = flush_files(journal, changes, l.head.n_changes, error);
    whit_frame_head end = {.record = WHIT_FRAME_END, .number = 0};
    if (status == WHIT_OK) status = whit_frame_append(journal, &end, NULL, 0, error);
    whit_frame_free(&l);
    return status;
}

static whit_status read_turns(whit_turns *journal, uint32_t *recovered, whit_error *error)
{
    uint32_t open_frame = 0;
    whit_frame_head open = {0};
    uint64_t open_bytes = 0;
    for (uint32_t i = 0; i < journal->log.chain.n_frames; i++) {
        const whit_ndf_frame *frame = whit_ndf_log_frame(&journal->log, i);
        whit_frame l;
        if (frame->type != WHIT_NDF_JOURNAL) continue;
        WHIT_TRY(whit_frame_load(journal, i, false, &l, error));
        if (l.head.record == WHIT_FRAME_BEGIN) {
            open = l.head;
            open_frame = i;
            open_bytes = frame->payload_bytes;
        } else if (l.head.record == WHIT_FRAME_END && open.number) {
            if (l.head.number == open.number) WHIT_TRY(remember(journal, &open, open_frame, open_bytes, error));
            open.number = 0;
        }
    }
    *recovered = open.number;
    if (!open.number) return WHIT_OK;
    if (!journal->only_looks) return roll_back(journal, open_frame, error);
    journal->interrupted = turn_of(&open, open_bytes);
    journal->interrupted_frame = open_frame;
    return WHIT_OK;
}

static whit_status open_log(whit_turns *journal, whit_error *error)
{
    whit_frame_head head = {.record = WHIT_FRAME_HEAD};
    if (!whit_path_exists(journal->path)) {
        whit_status status =
            whit_ndf_create_loose(journal->path, WHIT_NDF_JOURNAL, WHIT_FRAME_NAME, &head, sizeof head, NULL, error);
        if (status != WHIT_OK && !whit_path_exists(journal->path)) return status;
    }
    return whit_ndf_log_open(journal->path, WHIT_NDF_LOG_APPEND_SOON, NULL, &journal->log, error);
}

whit_status whit_turns_open(const char *project, const char *state_dir, whit_turns **out, uint32_t *recovered,
                            whit_error *error)
{
    char path[PATH_MAX];
    *out = NULL;
    *recovered = 0;
    whit_turns *journal = calloc(1, sizeof *journal);
    if (!journal) return whit_fail_memory(error, "a journal", sizeof *journal);
    whit_status status = WHIT_OK;
    if (!(journal->project = realpath(project, NULL))) status = whit_fail_errno(error, project, "find this folder");
    if (status == WHIT_OK) status = whit_agent_state_path(journal->project, state_dir, "agent", ".ndf", path, error);
    if (status == WHIT_OK && !(journal->path = strdup(path))) status = whit_fail_memory(error, "a name", PATH_MAX);
    if (status == WHIT_OK) status = open_log(journal, error);
    if (status == WHIT_OK) status = read_turns(journal, recovered, error);
    journal->recovered = *recovered;
    if (status == WHIT_OK)
        *out = journal;
    else
        whit_turns_close(journal);
    return status;
}

whit_status whit_turns_look(const char *project, const char *state_dir, whit_turns **out, whit_error *error)
{
    char path[PATH_MAX];
    bool exists = false;
    uint32_t interrupted;
    whit_turns *journal = *out = calloc(1, sizeof *journal);
    if (!journal) return whit_fail_memory(error, "a journal", sizeof *journal);
    journal->only_looks = true;
    whit_status status = WHIT_OK;
    if (!(journal->project = realpath(project, NULL))) status = whit_fail_errno(error, project, "find this folder");
    if (status == WHIT_OK)
        status = whit_agent_find_state(journal->project, state_dir, "agent", ".ndf", path, &exists, error);
    if (status == WHIT_OK && !(journal->path = strdup(path))) status = whit_fail_memory(error, "a name", PATH_MAX);
    if (status == WHIT_OK && exists)
        status = whit_ndf_log_open(path, WHIT_NDF_LOG_READ_SOON, NULL, &journal->log, error);
    if (status == WHIT_OK && exists) status = read_turns(journal, &interrupted, error);
    if (status == WHIT_OK) return WHIT_OK;
    whit_turns_close(journal);
    *out = NULL;
    return status;
}

const whit_turn *whit_turns_interrupted(const whit_turns *journal)
{
    return journal->interrupted.number ? &journal->interrupted : NULL;
}

whit_status whit_turns_show_interrupted(const whit_turns *journal, whit_change_fn *on_change, void *user,
                                        whit_error *error)
{
    whit_frame l;
    if (!journal->interrupted.number) return WHIT_OK;
    whit_status status = whit_frame_load(journal, journal->interrupted_frame, true, &l, error);
    const whit_change *changes = WHIT_ITEMS(const whit_change, &l.changes);
    for (uint32_t i = l.head.n_changes; status == WHIT_OK && i-- > 0;) {
        whit_change back = changes[i];
        whit_buf mixture = {0};
        whit_expected now = {0};
        bool is_needed;
        status = needs_return(journal, &changes[i], &mixture, &now, &is_needed, error);
        whit_frame_swap(&back);
        back.before = now.text;
        back.before_bytes = now.n_bytes;
        /* a program that ended just before it overwrote a file has left the old content */
        const bool is_old = back.was == back.is && back.before_bytes == back.after_bytes &&
            (!back.before_bytes || memcmp(back.before, back.after, back.before_bytes) == 0);
        if (status == WHIT_OK && is_needed && !is_old) on_change(user, &back);
        whit_buf_free(&mixture);
    }
    whit_frame_free(&l);
    return status;
}

uint32_t whit_turns_find_interrupted(const char *project, const char *state_dir)
{
    whit_turns *journal;
    whit_error ignored;
    if (whit_turns_look(project, state_dir, &journal, &ignored) != WHIT_OK) return 0;
    const uint32_t number = journal->interrupted.number;
    whit_turns_close(journal);
    return number;
}

uint32_t whit_turns_recover(const char *project, const char *state_dir)
{
    char path[PATH_MAX];
    whit_turns *journal;
    whit_error ignored;
    bool exists;
    uint32_t recovered = 0;
    if (whit_agent_find_state(project, state_dir, "agent", ".ndf", path, &exists, &ignored) != WHIT_OK || !exists)
        return 0;
    if (whit_turns_open(project, state_dir, &journal, &recovered, &ignored) != WHIT_OK) return 0;
    whit_turns_close(journal);
    return recovered;
}

void whit_turns_close(whit_turns *journal)
{
    if (!journal) return;
    if (journal->log.is_open) whit_ndf_log_close(&journal->log);
    whit_buf_free(&journal->turns);
    whit_buf_free(&journal->frames);
    free(journal->project);
    free(journal->path);
    free(journal);
}

/* Reads the log again if the turn was written since the journal was opened, because the index of its frame is not known
 * yet. */
static whit_status read_again(whit_turns *journal, uint32_t index, whit_error *error)
{
    uint32_t recovered;
    if ((WHIT_ITEMS(const uint32_t, &journal->frames))[index] != UINT32_MAX) return WHIT_OK;
    whit_ndf_log_close(&journal->log);
    journal->turns.size_bytes = journal->frames.size_bytes = 0;
    WHIT_TRY(whit_ndf_log_open(journal->path, WHIT_NDF_LOG_APPEND_SOON, NULL, &journal->log, error));
    return read_turns(journal, &recovered, error);
}

/* ---- writing, undoing and redoing turns ----------------------------------------------------- */

/* Commits a written turn to git. A failed git commit is reported but does not fail the turn. */
static void commit_turn(whit_turns *journal, const whit_frame_head *head, const whit_change *changes, size_t n)
{
    char message[220];
    bool made;
    if (head->of)
        snprintf(message, sizeof message, "turn %u: %s of turn %u\n", head->number,
                 head->kind == WHIT_TURN_UNDO ? "undo" : "redo", head->of);
    else
        snprintf(message, sizeof message, "turn %u: %.*s\n", head->number, (int)strcspn(head->note, "\r\n"),
                 head->note);
    journal->commit = whit_commit_turn(journal->project, changes, n, message, &made, &journal->commit_error);
}

const whit_error *whit_turns_commit_error(const whit_turns *journal)
{
    return journal->commit == WHIT_OK ? NULL : &journal->commit_error;
}

/* Fails if the file's content is not the one from which the change was made, or if its path leads to another place than
 * when the change was shown. */
static whit_status need_before(const whit_turns *journal, const whit_change *change, uint32_t of, whit_error *error)
{
    bool same;
    WHIT_TRY(is_side(journal, change, false, &same, error));
    return same ? WHIT_OK : has_changed(change, of, error);
}

static whit_status write_turn(whit_turns *journal, whit_frame_head head, const whit_change *changes, size_t n,
                              whit_error *error)
{
    size_t done = 0, n_bytes = 0;
    if (!n || n > WHIT_FRAME_CHANGES_MAX)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a change of %zu files at once is not possible, only of 1 to %u",
                         n, WHIT_FRAME_CHANGES_MAX);
    for (size_t i = 0; i < n; i++) {
        WHIT_TRY(need_before(journal, &changes[i], head.of, error));
        n_bytes += changes[i].before_bytes + changes[i].after_bytes;
    }
    uint32_t n_turns = whit_turns_count(journal);
    head.record = WHIT_FRAME_BEGIN;
    head.number = n_turns ? whit_frame_turn(journal, n_turns - 1)->number + 1 : 1;
    head.n_changes = (uint32_t)n;
    head.time_s = (int64_t)time(NULL);
    head.where = head.of ? WHIT_FRAME_OTHER : WHIT_FRAME_OWN;
    WHIT_TRY(whit_frame_append(journal, &head, changes, head.of ? 0 : n, error));
    whit_buf made = {0};
    whit_status status = WHIT_OK;
    while (status == WHIT_OK && done < n) {
        /* check the file again, since flushing the journal takes time in which a person may write the file */
        status = need_before(journal, &changes[done], head.of, error);
        const whit_change *c = &changes[done];
        const whit_expected expected = {c->was, c->before, c->before_bytes};
        if (status == WHIT_OK) status = put_file(journal, c, true, &expected, head.of, &made, error);
        if (status == WHIT_OK) done++;
    }
    for (size_t i = 0; status == WHIT_OK && head.kind == WHIT_TURN_UNDO && i < n; i++)
        if (!changes[i].is) remove_folders(journal, &changes[i]);
    if (status == WHIT_OK) status = flush_files(journal, changes, n, error);
    char first[200] = "";
    if (status != WHIT_OK && error) snprintf(first, sizeof first, "%.199s", error->message);
    whit_frame_head end = {.record = WHIT_FRAME_END, .number = status == WHIT_OK ? head.number : 0};
    whit_error inner, why = {.status = WHIT_OK};
    while (status != WHIT_OK && done-- > 0)
        if (take_back(journal, &changes[done], &inner) != WHIT_OK) why = inner;
    end_folders(&made, status != WHIT_OK);
    if (why.status != WHIT_OK) /* the turn has no end frame, so it is rolled back when the journal is opened next */
        return whit_fail(error, WHIT_ERROR_IO,
                         "%s, and the files of the turn that were written could not be restored (%s); they are "
                         "restored when the project is opened next",
                         first, why.message);
    if (status != WHIT_OK) (void)flush_files(journal, changes, n, &inner);
    whit_status ended = whit_frame_append(journal, &end, NULL, 0, status == WHIT_OK ? error : &inner);
    if (status == WHIT_OK) status = ended;
    if (status == WHIT_OK) status = remember(journal, &head, UINT32_MAX, n_bytes, error);
    if (status == WHIT_OK) commit_turn(journal, &head, changes, n);
    return status;
}

whit_status whit_turns_write(whit_turns *journal, const whit_change *changes, size_t n, const char *note,
                             whit_error *error)
{
    whit_frame_head head = {.kind = WHIT_TURN_WRITE};
    /* The caller has not seen the files that the rollback of the interrupted turn has just restored. */
    if (journal->recovered) {
        const uint32_t recovered = journal->recovered;
        journal->recovered = 0;
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "turn %u had been interrupted, and its files are as they were before it; nothing else is "
                         "written: look at it again",
                         recovered);
    }
    whit_buf kept = {0}; /* git keeps the note, too, and a text that a person typed may contain a key */
    const bool ok = !note || whit_guard_append_cut(&kept, note, strlen(note), sizeof head.note - 1);
    if (kept.size_bytes) memcpy(head.note, kept.data, kept.size_bytes);
    whit_buf_free(&kept);
    return ok ? write_turn(journal, head, changes, n, error)
              : whit_fail_memory(error, "the note of a turn", strlen(note));
}

/* Returns the number of the turn whose undo was last among the turns that are still undone, or 0. Only this turn can be
 * redone safely: the files may not have the content from which another undone turn was made. */
static uint32_t undone_last(const whit_turns *journal)
{
    for (uint32_t i = whit_turns_count(journal); i-- > 0;) {
        const whit_turn *undo = whit_frame_turn(journal, i);
        for (uint32_t k = 0; undo->kind == WHIT_TURN_UNDO && k < i; k++) {
            const whit_turn *turn = whit_frame_turn(journal, k);
            if (turn->number == undo->of && turn->kind == WHIT_TURN_WRITE && turn->undone) return turn->number;
        }
    }
    return 0;
}

/* Finds turn *number. If *number is 0, finds the latest turn that can be undone (undo) or the turn that was undone last
 * (redo). *number and *index get the turn. */
static whit_status pick(const whit_turns *journal, bool undo, uint32_t *number, uint32_t *index, whit_error *error)
{
    const char *verb = undo ? "undone" : "redone";
    if (!undo && !*number) *number = undone_last(journal);
    for (uint32_t i = whit_turns_count(journal); i-- > 0;) {
        const whit_turn *turn = whit_frame_turn(journal, i);
        if (*number ? turn->number != *number : turn->kind != WHIT_TURN_WRITE || turn->undone == undo) continue;
        if (turn->kind != WHIT_TURN_WRITE)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "turn %u is itself an undo or redo, of turn %u", turn->number,
                             turn->of);
        if (turn->undone == undo)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "turn %u is %s already", turn->number, verb);
        *number = turn->number;
        *index = i;
        return WHIT_OK;
    }
    return *number
        ? whit_fail(error, WHIT_ERROR_ARGUMENT, "there is no turn %u; 'whit agent log' lists the turns", *number)
        : whit_fail(error, WHIT_ERROR_ARGUMENT, "there is no turn to be %s; 'whit agent log' lists the turns", verb);
}

static whit_status turn_back(whit_turns *journal, bool undo, uint32_t *number, bool preview, whit_change_fn *on_change,
                             void *user, whit_error *error)
{
    uint32_t index = 0;
    whit_frame l;
    WHIT_TRY(pick(journal, undo, number, &index, error));
    WHIT_TRY(read_again(journal, index, error));
    uint32_t frame = (WHIT_ITEMS(const uint32_t, &journal->frames))[index];
    whit_status status = whit_frame_load(journal, frame, true, &l, error);
    whit_change *changes = WHIT_ITEMS(whit_change, &l.changes);
    for (uint32_t i = 0; status == WHIT_OK && i < l.head.n_changes; i++)
        status = is_at_name(journal, &changes[i], error);
    for (uint32_t i = 0; status == WHIT_OK && i < l.head.n_changes; i++) {
        if (undo) whit_frame_swap(&changes[i]);
        changes[i].place = whit_project_place(journal->project, changes[i].path);
        if (on_change) on_change(user, &changes[i]);
    }
    whit_frame_head head = {.kind = undo ? WHIT_TURN_UNDO : WHIT_TURN_REDO, .of = *number};
    if (status == WHIT_OK && !preview) status = write_turn(journal, head, changes, l.head.n_changes, error);
    whit_frame_free(&l);
    return status;
}

whit_status whit_turns_undo(whit_turns *journal, uint32_t *number, bool preview, whit_change_fn *on_change, void *user,
                            whit_error *error)
{
    return turn_back(journal, true, number, preview, on_change, user, error);
}

whit_status whit_turns_redo(whit_turns *journal, uint32_t *number, bool preview, whit_change_fn *on_change, void *user,
                            whit_error *error)
{
    return turn_back(journal, false, number, preview, on_change, user, error);
}
