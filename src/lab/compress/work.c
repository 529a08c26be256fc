/* SPDX-License-Identifier: MIT */
#include "compress/work.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char magic[8] = "whitwrk3";

enum { RECORD_BYTES = 8 + WHIT_HASH_BYTES };

/* Hashes a record together with the settings, so that a record which another run has written to the same file is not
 * accepted. */
static void digest(const whit_work *work, const void *data, size_t size_bytes, uint8_t hash[WHIT_HASH_BYTES])
{
    whit_hash state;
    whit_hash_begin(&state, "whit.work");
    whit_hash_add(&state, work->settings, sizeof work->settings);
    whit_hash_add(&state, data, size_bytes);
    whit_hash_end(&state, hash);
}

static whit_status write_all(const whit_work *work, const void *data, size_t size_bytes, whit_error *error)
{
    for (size_t done = 0; done < size_bytes;) {
        ssize_t n = write(work->fd, (const uint8_t *)data + done, size_bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return whit_fail_errno(error, work->path, "write");
        done += (size_t)n;
    }
    return WHIT_OK;
}

/* ---- payload of a record: name, type, digest and sizes of the parts of each matrix, and the parts ------------ */

static bool put_matrix(whit_buf *buf, const whit_finished *f)
{
    whit_buf_append(buf, f->name, sizeof f->name);
    whit_buf_append(buf, &f->tensor.type, sizeof f->tensor.type);
    whit_buf_append(buf, f->digest, sizeof f->digest);
    whit_buf_append(buf, f->tensor.part_bytes, sizeof f->tensor.part_bytes);
    for (int p = 0; p < WHIT_PART_COUNT; p++)
        whit_buf_append(buf, f->part[p], f->part[p] ? f->tensor.part_bytes[p] : 0);
    return !buf->failed;
}

struct reader {
    const uint8_t *at;
    size_t left;
};

static bool take_bytes(struct reader *r, void *to, size_t n)
{
    if (n > r->left) return false;
    memcpy(to, r->at, n);
    r->at += n;
    r->left -= n;
    return true;
}

/* Reads a matrix from a payload. *fits is false if the payload does not have the form that put_matrix writes. The type
 * is checked before it is used. */
static whit_status get_matrix(struct reader *r, const whit_allocator *a, whit_finished *f, bool *fits,
                              whit_error *error)
{
    uint64_t lengths[WHIT_PART_COUNT] = {0};
    *f = (whit_finished){0};
    *fits = take_bytes(r, f->name, sizeof f->name) && take_bytes(r, &f->tensor.type, sizeof f->tensor.type) &&
        take_bytes(r, f->digest, sizeof f->digest) && take_bytes(r, lengths, sizeof lengths) &&
        memchr(f->name, 0, sizeof f->name) && whit_tensor_type_check(&f->tensor.type, NULL) == WHIT_OK;
    for (int p = 0; *fits && p < WHIT_PART_COUNT; p++) {
        uint64_t bytes = lengths[p];
        *fits = bytes <= r->left;
        if (!*fits || !bytes) continue;
        f->part[p] = whit_alloc(a, bytes);
        f->tensor.part[p] = f->part[p];
        f->tensor.part_bytes[p] = bytes;
        if (!f->part[p]) {
            whit_finished_free(f, a);
            return whit_fail_memory(error, "a matrix", bytes);
        }
        take_bytes(r, f->part[p], bytes);
    }
    *fits = *fits && whit_tensor_check(&f->tensor, NULL) == WHIT_OK;
    if (!*fits) whit_finished_free(f, a);
    return WHIT_OK;
}

/* ---- reading ------------------------------------------------------------------------------------- */

/* Reads the complete records. *end is the position after the last of them. */
static whit_status read_records(whit_work *work, const whit_map *map, size_t *end, whit_work_fn *take, void *user,
                                whit_error *error)
{
    for (*end = WHIT_WORK_HEADER_BYTES; map->size_bytes - *end >= RECORD_BYTES;) {
        const uint8_t *record = map->data + *end;
        uint64_t length = whit_load_u64(record);
        uint8_t hash[WHIT_HASH_BYTES];
        if (!whit_in_bounds(*end + RECORD_BYTES, length, map->size_bytes)) break;
        digest(work, record + RECORD_BYTES, length, hash);
        if (memcmp(hash, record + 8, sizeof hash) != 0) break;
        struct reader reader = {record + RECORD_BYTES, length};
        while (reader.left) {
            whit_finished finished;
            bool fits;
            WHIT_TRY(get_matrix(&reader, work->allocator, &finished, &fits, error));
            if (!fits)
                return whit_fail(error, WHIT_ERROR_FORMAT,
                                 "%s: is not a work file of whit, or is damaged: remove it to start again", map->path);
            WHIT_TRY(take(user, &finished, error));
        }
        *end += RECORD_BYTES + length;
        work->n_records++;
    }
    return WHIT_OK;
}

static whit_status go_on(whit_work *work, size_t *end, whit_work_fn *take, void *user, whit_error *error)
{
    whit_map map = {0};
    WHIT_TRY(whit_map_open_fd(work->fd, work->path, work->allocator, &map, error));
    whit_status status = WHIT_OK;
    *end = 0;
    if (map.size_bytes < WHIT_WORK_HEADER_BYTES)
        status = WHIT_OK;
    else if (memcmp(map.data, magic, sizeof magic) != 0)
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s: is not a work file of whit; move it away", work->path);
    else if (memcmp(map.data + sizeof magic, work->settings, WHIT_HASH_BYTES) != 0)
        status = whit_fail(error, WHIT_ERROR_ARGUMENT,
                           "%s: was made from another model, text or settings, or by another version of whit, kind of "
                           "CPU or BLAS library, or with or without ranks: use the same, or remove it to begin anew",
                           work->path);
    else
        status = read_records(work, &map, end, take, user, error);
    whit_map_close(&map);
    return status;
}

whit_status whit_work_open(whit_work *work, const char *path, const uint8_t settings[WHIT_HASH_BYTES], bool resume,
                           whit_work_fn *take, void *user, const whit_allocator *allocator, whit_error *error)
{
    *work = (whit_work){.fd = -1, .allocator = allocator};
    memcpy(work->settings, settings, sizeof work->settings);
    work->path = whit_strndup(allocator, path, strlen(path));
    if (!work->path) return whit_fail_memory(error, "a file name", strlen(path) + 1);
    work->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    whit_status status = work->fd < 0 ? whit_fail_errno(error, path, "open") : WHIT_OK;
    size_t end = 0;
    off_t size = status == WHIT_OK ? lseek(work->fd, 0, SEEK_END) : 0;
    if (status == WHIT_OK && resume && size > 0) status = go_on(work, &end, take, user, error);
    if (status == WHIT_OK && (ftruncate(work->fd, (off_t)end) != 0 || lseek(work->fd, (off_t)end, SEEK_SET) < 0))
        status = whit_fail_errno(error, path, "write");
    work->ours = status == WHIT_OK;
    if (status == WHIT_OK && !end) {
        status = write_all(work, magic, sizeof magic, error);
        if (status == WHIT_OK) status = write_all(work, work->settings, sizeof work->settings, error);
    }
    if (status != WHIT_OK) whit_work_close(work, false);
    return status;
}

whit_status whit_work_read(const char *path, const uint8_t settings[WHIT_HASH_BYTES], whit_work_fn *take, void *user,
                           const whit_allocator *allocator, whit_error *error)
{
    whit_work work = {.fd = open(path, O_RDONLY | O_CLOEXEC), .path = (char *)(uintptr_t)path, .allocator = allocator};
    size_t end;
    if (work.fd < 0) return errno == ENOENT ? WHIT_OK : whit_fail_errno(error, path, "open");
    memcpy(work.settings, settings, sizeof work.settings);
    const whit_status status = go_on(&work, &end, take, user, error);
    close(work.fd);
    return status;
}

whit_status whit_work_add(whit_work *work, whit_finished *const *finished, uint32_t n, whit_error *error)
{
    whit_buf payload = {.allocator = work->allocator};
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++) ok = put_matrix(&payload, finished[i]);
    uint8_t head[RECORD_BYTES];
    uint64_t length = payload.size_bytes;
    whit_status status = ok ? WHIT_OK : whit_fail_memory(error, "a finished layer", payload.size_bytes);
    if (status == WHIT_OK) {
        memcpy(head, &length, sizeof length);
        digest(work, payload.data, payload.size_bytes, head + 8);
        status = write_all(work, head, sizeof head, error);
    }
    if (status == WHIT_OK) status = write_all(work, payload.data, payload.size_bytes, error);
    if (status == WHIT_OK && fsync(work->fd) != 0) status = whit_fail_errno(error, work->path, "write");
    whit_buf_free(&payload);
    work->n_records += status == WHIT_OK;
    return status;
}

void whit_work_close(whit_work *work, bool remove)
{
    if (!work->path) return;
    if (work->fd >= 0) {
        if (remove || (work->ours && !work->n_records)) unlink(work->path);
        close(work->fd);
    }
    whit_free(work->allocator, work->path, strlen(work->path) + 1);
    *work = (whit_work){.fd = -1};
}
