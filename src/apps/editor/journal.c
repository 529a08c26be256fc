/* SPDX-License-Identifier: MIT */
#include "editor/journal.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRAME_BYTES    8 /* size in bytes of a record's kind and length */
#define CHECK_BYTES    crypto_shorthash_BYTES
#define IDENTITY_BYTES 40
enum { BASE_HAS_DATA = 1, BASE_HAS_MARK = 2 }; /* flags of a base record, in the byte after the identity */

static const uint8_t check_key[crypto_shorthash_KEYBYTES] = "whit journal 1";

bool whit_journal_folder(char *folder, size_t room_bytes, whit_error *error)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (state && *state == '/')
        n = snprintf(folder, room_bytes, "%s/whit/edit", state);
    else if (home && *home == '/')
        n = snprintf(folder, room_bytes, "%s/.local/state/whit/edit", home);
    if (n < 0 || (size_t)n >= room_bytes) {
        whit_fail(error, WHIT_ERROR_IO,
                  "unsaved text is not kept: set XDG_STATE_HOME or HOME to a folder's absolute path");
        return false;
    }
    for (char *at = folder + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(folder, 0700);
        *at = '/';
    }
    if (mkdir(folder, 0700) == 0 || errno == EEXIST) return true;
    whit_fail_errno(error, folder, "create this folder for unsaved text");
    return false;
}

whit_status whit_journal_open(const char *folder, const char *file_path, whit_journal *journal, whit_span *contents,
                              bool *busy, whit_error *error)
{
    *contents = (whit_span){0};
    whit_hash hash;
    uint8_t digest[WHIT_HASH_BYTES];
    char name[2 * WHIT_HASH_BYTES + 1], path[PATH_MAX];
    *journal = (whit_journal){.fd = -1};
    *busy = false;
    whit_hash_begin(&hash, "whit journal");
    whit_hash_add(&hash, file_path, strlen(file_path));
    whit_hash_end(&hash, digest);
    whit_hash_hex(digest, name);
    if (snprintf(path, sizeof path, "%s/%.32s", folder, name) >= (int)sizeof path - 8)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: the folder's path is longer than %zu bytes, the limit: set XDG_STATE_HOME to another",
                         folder, sizeof path - 42);
    journal->path = strdup(path);
    if (!journal->path) return whit_fail_memory(error, "a journal", strlen(path));
    struct stat about;
    for (;;) {
        struct stat named;
        journal->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (journal->fd < 0) {
            whit_status status = whit_fail_errno(error, path, "keep unsaved text in this file");
            whit_journal_close(journal, false);
            return status;
        }
        if (flock(journal->fd, LOCK_EX | LOCK_NB)) {
            *busy = true;
            whit_journal_close(journal, false);
            return WHIT_OK;
        }
        /* if the file at `path` is another one or gone, an editor removed it before the lock was taken: open it
         * again */
        if (fstat(journal->fd, &about) || (lstat(path, &named) == 0 && named.st_ino == about.st_ino)) break;
        close(journal->fd);
    }
    if (about.st_size > 0) {
        void *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, journal->fd, 0);
        if (map == MAP_FAILED) {
            whit_status status = whit_fail_errno(error, path, "read unsaved text of an earlier run from this file");
            whit_journal_close(journal, false);
            return status;
        }
        *contents = (whit_span){map, (uint64_t)about.st_size};
    }
    journal->size_bytes = contents->size_bytes;
    return WHIT_OK;
}

void whit_journal_unmap(whit_span *contents)
{
    if (contents->data) munmap((void *)(uintptr_t)contents->data, contents->size_bytes);
    *contents = (whit_span){0};
}

void whit_journal_close(whit_journal *journal, bool remove)
{
    if (journal->fd >= 0) {
        if (remove) unlink(journal->path);
        close(journal->fd);
    }
    free(journal->path);
    whit_buf_free(&journal->pending);
    *journal = (whit_journal){.fd = -1};
}

/* ---- records ------------------------------------------------------------------------------- */

static void put_u64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, 8);
}

static void put_identity(uint8_t *at, const whit_file_identity *identity)
{
    put_u64(at, identity->device);
    put_u64(at + 8, identity->inode);
    put_u64(at + 16, identity->size_bytes);
    put_u64(at + 24, (uint64_t)identity->modified_ns);
    put_u64(at + 32, identity->exists);
}

static whit_file_identity get_identity(const uint8_t *at)
{
    return (whit_file_identity){whit_load_u64(at), whit_load_u64(at + 8), whit_load_u64(at + 16),
                                (int64_t)whit_load_u64(at + 24), whit_load_u64(at + 32) == 1};
}

bool whit_journal_next(const uint8_t *bytes, size_t size_bytes, size_t *offset, whit_record *record)
{
    *record = (whit_record){0};
    if (!whit_in_bounds(*offset, FRAME_BYTES + CHECK_BYTES, size_bytes)) return false;
    const uint8_t *frame = bytes + *offset;
    uint32_t kind = whit_load_u32(frame), n = whit_load_u32(frame + 4);
    if (!whit_in_bounds(*offset, (uint64_t)FRAME_BYTES + n + CHECK_BYTES, size_bytes)) return false;
    uint8_t check[CHECK_BYTES];
    crypto_shorthash(check, frame, FRAME_BYTES + (size_t)n, check_key);
    const uint8_t *body = frame + FRAME_BYTES;
    if (memcmp(check, body + n, CHECK_BYTES)) return false;
    record->kind = (whit_record_kind)kind;
    switch (kind) {
    case WHIT_RECORD_BASE:
        if (n < IDENTITY_BYTES + 1) return false;
        record->identity = get_identity(body);
        record->size_bytes = n - IDENTITY_BYTES - 1;
        record->data = body[IDENTITY_BYTES] & BASE_HAS_DATA ? body + IDENTITY_BYTES + 1 : NULL;
        record->has_mark = body[IDENTITY_BYTES] & BASE_HAS_MARK;
        break;
    case WHIT_RECORD_SAVED:
        if (n != IDENTITY_BYTES) return false;
        record->identity = get_identity(body);
        break;
    case WHIT_RECORD_EDIT:
    case WHIT_RECORD_STEP:
        if (n < 16) return false;
        record->offset = whit_load_u64(body);
        record->n_removed = whit_load_u64(body + 8);
        record->data = body + 16;
        record->size_bytes = n - 16;
        break;
    case WHIT_RECORD_UNDO:
    case WHIT_RECORD_REDO:
    case WHIT_RECORD_BRANCH:
        if (n) return false;
        break;
    default: return false;
    }
    *offset += FRAME_BYTES + (size_t)n + CHECK_BYTES;
    return true;
}

void whit_journal_add(whit_journal *journal, const whit_record *record)
{
    if (journal->fd < 0 || journal->failed) return;
    uint8_t head[FRAME_BYTES + IDENTITY_BYTES + 1];
    size_t n_head = FRAME_BYTES, n_data = 0;
    if (record->kind == WHIT_RECORD_BASE || record->kind == WHIT_RECORD_SAVED) {
        put_identity(head + n_head, &record->identity);
        n_head += IDENTITY_BYTES;
        if (record->kind == WHIT_RECORD_BASE) {
            head[n_head] = record->data ? BASE_HAS_DATA : 0;
            head[n_head++] |= record->has_mark ? BASE_HAS_MARK : 0;
            n_data = record->data ? record->size_bytes : 0;
            journal->has_base = true;
        }
    } else if (record->kind == WHIT_RECORD_EDIT || record->kind == WHIT_RECORD_STEP) {
        put_u64(head + n_head, record->offset);
        put_u64(head + n_head + 8, record->n_removed);
        n_head += 16;
        n_data = record->size_bytes;
    }
    /* a record of 4 GiB or more cannot be written, so later edits are not journalled */
    if (n_data > UINT32_MAX - n_head) {
        journal->failed = true;
        return;
    }
    uint32_t kind = (uint32_t)record->kind, n = (uint32_t)(n_head - FRAME_BYTES + n_data);
    memcpy(head, &kind, 4);
    memcpy(head + 4, &n, 4);
    size_t begin = journal->pending.size_bytes;
    uint8_t check[CHECK_BYTES];
    whit_buf_append(&journal->pending, head, n_head);
    if (n_data) whit_buf_append(&journal->pending, record->data, n_data);
    if (journal->pending.failed) return;
    crypto_shorthash(check, journal->pending.data + begin, FRAME_BYTES + (size_t)n, check_key);
    whit_buf_append(&journal->pending, check, sizeof check);
}

whit_status whit_journal_flush(whit_journal *journal, whit_error *error)
{
    if (journal->fd < 0 || journal->failed || !journal->pending.size_bytes) return WHIT_OK;
    size_t done = 0, size_bytes = journal->pending.size_bytes;
    whit_status status = journal->pending.failed ? whit_fail_memory(error, "a journal", size_bytes) : WHIT_OK;
    while (status == WHIT_OK && done < size_bytes) {
        ssize_t n = write(journal->fd, journal->pending.data + done, size_bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) status = whit_fail_errno(error, journal->path, "keep unsaved text in this file");
        if (n > 0) done += (size_t)n;
    }
    journal->failed = status != WHIT_OK;
    journal->size_bytes += done;
    journal->pending.size_bytes = 0;
    if (journal->pending.capacity_bytes > (1u << 20)) whit_buf_free(&journal->pending);
    return status;
}

void whit_journal_cut(whit_journal *journal, uint64_t size_bytes)
{
    if (journal->fd < 0) return;
    if (ftruncate(journal->fd, (off_t)size_bytes)) {
        journal->failed = true;
        return;
    }
    journal->size_bytes = size_bytes;
}

void whit_journal_restart(whit_journal *journal)
{
    journal->failed = false;
    journal->has_base = false;
    journal->pending.size_bytes = 0;
    journal->pending.failed = false;
    whit_journal_cut(journal, 0);
}
