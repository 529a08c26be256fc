/* SPDX-License-Identifier: MIT */
#include "agent/turns_frames.h"

#include "base/items.h"
#include "base/path.h"
#include "format/ndf_append.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PENDING_BYTES ((size_t)1 << 20)

/* A frame is a header, then for each change: this record, path, text before, text after. */
typedef struct frame_change {
    uint32_t path_bytes;
    uint32_t was; /* bit 0: the file existed before the turn; bit 1: has_links of whit_change */
    uint32_t is;  /* bit 0: the file exists after the turn; bits 1 to 31: n_folders of whit_change */
    uint32_t mode;
    uint64_t before_bytes, after_bytes;
} frame_change;

/* Counts the innermost folders of a change's path that do not exist. */
static uint32_t count_new_folders(const char *project, const whit_change *change)
{
    char full[PATH_MAX];
    uint32_t n = 0;
    if (!change->is || snprintf(full, sizeof full, "%s/%s", project, change->path) >= (int)sizeof full) return 0;
    for (char *slash; (slash = strrchr(full, '/')) && (size_t)(slash - full) > strlen(project); n++) {
        *slash = 0;
        if (whit_path_exists(full)) break;
    }
    return n;
}

/* Appends bytes to the current frame; small pieces are collected in `pending` before they are written. */
static whit_status add_bytes(whit_turns *journal, whit_buf *pending, const void *data, size_t n, whit_error *error)
{
    if (pending->size_bytes + n > PENDING_BYTES) {
        WHIT_TRY(whit_ndf_log_add(&journal->log, pending->data, pending->size_bytes, error));
        pending->size_bytes = 0;
    }
    if (n > PENDING_BYTES) return whit_ndf_log_add(&journal->log, data, n, error);
    return whit_buf_append(pending, data, n) ? WHIT_OK : whit_fail_memory(error, "a turn", n);
}

static whit_status add_change(whit_turns *journal, whit_buf *pending, const whit_change *c, whit_error *error)
{
    frame_change record = {.path_bytes = (uint32_t)strlen(c->path),
                           .was = c->was | (uint32_t)c->has_links << 1,
                           .is = c->is | count_new_folders(journal->project, c) << 1,
                           .mode = c->mode,
                           .before_bytes = c->before_bytes,
                           .after_bytes = c->after_bytes};
    WHIT_TRY(add_bytes(journal, pending, &record, sizeof record, error));
    WHIT_TRY(add_bytes(journal, pending, c->path, record.path_bytes, error));
    WHIT_TRY(add_bytes(journal, pending, c->before, c->before_bytes, error));
    return add_bytes(journal, pending, c->after, c->after_bytes, error);
}

whit_status whit_frame_append(whit_turns *journal, const whit_frame_head *head, const whit_change *changes, size_t n,
                              whit_error *error)
{
    uint64_t size = sizeof *head;
    whit_buf pending = {0};
    for (size_t i = 0; i < n; i++)
        size += sizeof(frame_change) + strlen(changes[i].path) + changes[i].before_bytes + changes[i].after_bytes;
    whit_status status = whit_ndf_log_begin(&journal->log, WHIT_NDF_JOURNAL, WHIT_FRAME_NAME, size, error);
    if (status == WHIT_OK) status = add_bytes(journal, &pending, head, sizeof *head, error);
    for (size_t i = 0; status == WHIT_OK && i < n; i++) status = add_change(journal, &pending, &changes[i], error);
    if (status == WHIT_OK && pending.size_bytes)
        status = whit_ndf_log_add(&journal->log, pending.data, pending.size_bytes, error);
    whit_buf_free(&pending);
    if (status == WHIT_OK) status = whit_ndf_log_commit(&journal->log, error);
    if (status != WHIT_OK) whit_ndf_log_cancel(&journal->log);
    return status;
}

void whit_frame_free(whit_frame *l)
{
    whit_buf_free(&l->data);
    whit_buf_free(&l->paths);
    whit_buf_free(&l->changes);
}

static whit_status bad_frame(const whit_turns *journal, uint32_t frame, whit_error *error)
{
    return whit_ndf_log_bad(&journal->log, frame, "its contents are not those of a turn", error);
}

static whit_status split_frame(const whit_turns *journal, uint32_t frame, whit_frame *l, whit_error *error)
{
    size_t at = sizeof l->head, n_paths = 0;
    const uint8_t *data = l->data.data;
    if (l->head.n_changes > WHIT_FRAME_CHANGES_MAX) return bad_frame(journal, frame, error);
    /* pass 0 sums the lengths, so that `paths` need not grow, and pointers into it stay valid, in pass 1 */
    for (int pass = 0; pass < 2; pass++) {
        at = sizeof l->head;
        for (uint32_t i = 0; i < l->head.n_changes; i++) {
            frame_change r;
            if (!whit_in_bounds(at, sizeof r, l->data.size_bytes)) return bad_frame(journal, frame, error);
            memcpy(&r, data + at, sizeof r);
            at += sizeof r;
            if (r.path_bytes >= PATH_MAX || !whit_in_bounds(at, r.path_bytes, l->data.size_bytes) ||
                memchr(data + at, 0, r.path_bytes))
                return bad_frame(journal, frame, error);
            const char *path = (const char *)data + at;
            at += r.path_bytes;
            if (!whit_in_bounds(at, r.before_bytes, l->data.size_bytes)) return bad_frame(journal, frame, error);
            const char *before = (const char *)data + at;
            at += r.before_bytes;
            if (!whit_in_bounds(at, r.after_bytes, l->data.size_bytes)) return bad_frame(journal, frame, error);
            const char *after = (const char *)data + at;
            at += r.after_bytes;
            if (pass == 0) {
                n_paths += r.path_bytes + 1;
                continue;
            }
            whit_change change = {.path = WHIT_ITEMS(char, &l->paths) + l->paths.size_bytes,
                                  .was = r.was & 1,
                                  .has_links = r.was >> 1 & 1,
                                  .is = r.is & 1,
                                  .n_folders = r.is >> 1,
                                  .mode = r.mode & 07777,
                                  .before = before,
                                  .before_bytes = r.before_bytes,
                                  .after = after,
                                  .after_bytes = r.after_bytes};
            whit_buf_append(&l->paths, path, r.path_bytes);
            whit_buf_append(&l->paths, "", 1);
            whit_buf_append(&l->changes, &change, sizeof change);
        }
        if (pass == 0 && !whit_buf_reserve(&l->paths, n_paths + 1))
            return whit_fail_memory(error, "the list of paths", n_paths);
    }
    if (at != l->data.size_bytes) return bad_frame(journal, frame, error);
    return l->changes.failed ? whit_fail_memory(error, "a turn", l->data.size_bytes) : WHIT_OK;
}

void whit_frame_swap(whit_change *c)
{
    whit_change old = *c;
    c->was = old.is;
    c->is = old.was;
    c->before = old.after;
    c->before_bytes = old.after_bytes;
    c->after = old.before;
    c->after_bytes = old.before_bytes;
}

/* Returns the frame of the turn with this number if it is a write, or UINT32_MAX. */
static uint32_t frame_of(const whit_turns *journal, uint32_t number)
{
    for (uint32_t i = 0; i < whit_turns_count(journal); i++)
        if (whit_frame_turn(journal, i)->number == number && whit_frame_turn(journal, i)->kind == WHIT_TURN_WRITE)
            return (WHIT_ITEMS(const uint32_t, &journal->frames))[i];
    return UINT32_MAX;
}

static whit_status load_of(const whit_turns *journal, uint32_t frame, whit_frame *l, whit_error *error)
{
    whit_frame_head head = l->head;
    uint32_t other = frame_of(journal, head.of);
    if (other >= frame) return bad_frame(journal, frame, error);
    WHIT_TRY(whit_frame_load(journal, other, true, l, error));
    if (l->head.n_changes != head.n_changes || l->head.where != WHIT_FRAME_OWN) return bad_frame(journal, frame, error);
    l->head = head;
    whit_change *changes = WHIT_ITEMS(whit_change, &l->changes);
    for (uint32_t i = 0; head.kind == WHIT_TURN_UNDO && i < head.n_changes; i++) whit_frame_swap(&changes[i]);
    return WHIT_OK;
}

whit_status whit_frame_load(const whit_turns *journal, uint32_t frame, bool whole, whit_frame *l, whit_error *error)
{
    uint64_t offset, size;
    *l = (whit_frame){0};
    WHIT_TRY(whit_ndf_log_data(&journal->log, frame, &offset, &size, error));
    if (size < sizeof l->head) return bad_frame(journal, frame, error);
    WHIT_TRY(whit_ndf_log_read(&journal->log, offset, &l->head, sizeof l->head, error));
    if (!whole) return WHIT_OK;
    WHIT_TRY(whit_ndf_log_check(&journal->log, frame, error));
    if (l->head.where == WHIT_FRAME_OTHER && l->head.kind != WHIT_TURN_WRITE)
        return size == sizeof l->head ? load_of(journal, frame, l, error) : bad_frame(journal, frame, error);
    if (!whit_buf_append_zeros(&l->data, size)) return whit_fail_memory(error, "a turn", size);
    WHIT_TRY(whit_ndf_log_read(&journal->log, offset, l->data.data, size, error));
    return split_frame(journal, frame, l, error);
}
