/* SPDX-License-Identifier: MIT */
#include "hub/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/flag.h"
#include "hub/digest.h"

/* ---- attempts ------------------------------------------------------------------------------- */

/* Waits `ms` milliseconds; false if cancelled. */
static bool wait_ms(const whit_hub_line *line, uint32_t ms)
{
    for (uint32_t slice; ms; ms -= slice) {
        if (whit_flag_is_set(line->cancel)) return false;
        slice = ms < 50 ? ms : 50;
        struct timespec pause = {.tv_nsec = (long)slice * 1000000};
        nanosleep(&pause, NULL); /* a signal shortens only this slice */
    }
    return !whit_flag_is_set(line->cancel);
}

/* Sends a GET request and retries it as long as its failure may be temporary. `have`: number of bytes of the file
 * received so far; it grows during an attempt that makes progress, and each attempt requests the rest (NULL: every
 * attempt requests the whole file). `before` (may be NULL) is called with the sink's user before each attempt. */
static whit_status hub_get(const whit_hub_line *line, const char *url, const uint64_t *have, const char *if_range,
                           whit_hub_try_fn *before, const whit_http_sink *sink, whit_http_answer *answer,
                           whit_error *error)
{
    uint32_t n_failed = 0, pause_ms = line->wait_ms;
    for (;;) {
        if (before) WHIT_TRY(before(sink->user, error));
        uint64_t from = have ? *have : 0;
        whit_status status = whit_http_get(line->http, url, from, if_range, sink, answer, error);
        if (!answer->again || status == WHIT_ERROR_CANCELLED) return status;
        if (have && *have > from) { /* this attempt made progress */
            n_failed = 0;
            pause_ms = line->wait_ms;
        }
        if (++n_failed >= line->n_tries) return status;
        uint32_t asked_ms = answer->retry_after_s * 1000;
        if (!wait_ms(line, asked_ms > pause_ms ? asked_ms : pause_ms))
            return whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
        pause_ms *= 2;
    }
}

whit_status whit_hub_refusal(const whit_http_answer *answer, const char *what, whit_error *error)
{
    const char *code = answer->error_code;
    if (strcmp(code, "GatedRepo") == 0)
        return whit_fail(
            error, WHIT_ERROR_IO,
            "%s: its owner restricts access to named accounts (%ld): accept the terms on its page, then pull with a "
            "token of that account (HF_TOKEN or --token)",
            what, answer->status);
    if (strcmp(code, "RevisionNotFound") == 0)
        return whit_fail(error, WHIT_ERROR_IO, "%s: the hub does not have this revision (HTTP status %ld)", what,
                         answer->status);
    if (strcmp(code, "EntryNotFound") == 0)
        return whit_fail(error, WHIT_ERROR_IO, "%s: the hub does not have this file (HTTP status %ld)", what,
                         answer->status);
    if (answer->status == 401)
        return whit_fail(error, WHIT_ERROR_IO,
                         "%s: the hub needs a valid token (401): set HF_TOKEN or give --token; hubs give the same "
                         "answer for repositories that do not exist",
                         what);
    if (answer->status == 403)
        return whit_fail(error, WHIT_ERROR_IO, "%s: access is refused (403): the token's account may not read it",
                         what);
    if (answer->status == 404)
        return whit_fail(error, WHIT_ERROR_IO, "%s: the hub has nothing of this name (404); is it written right?",
                         what);
    if (answer->status == 429)
        return whit_fail(error, WHIT_ERROR_IO, "%s: the hub limits the rate of requests (429); try again later", what);
    return whit_fail(error, WHIT_ERROR_IO, "%s: the hub answered with the HTTP status %ld%s%s", what, answer->status,
                     *code ? " " : "", code);
}

/* ---- downloads into memory ------------------------------------------------------------------ */

static whit_status begin_memory(void *user, const whit_http_answer *answer, whit_error *error)
{
    (void)answer, (void)error;
    ((whit_buf *)user)->size_bytes = 0; /* discard the data of an earlier attempt */
    return WHIT_OK;
}

static whit_status add_to_memory(void *user, const void *data, size_t n_bytes, whit_error *error)
{
    whit_buf *out = user;
    if (out->limit_bytes && n_bytes > out->limit_bytes - out->size_bytes)
        return whit_fail(error, WHIT_ERROR_LIMIT, "the hub's answer is larger than %zu MB, the limit",
                         out->limit_bytes >> 20);
    return whit_buf_append(out, data, n_bytes) ? WHIT_OK
                                               : whit_fail_memory(error, "the hub's answer", out->size_bytes + n_bytes);
}

whit_status whit_hub_read(const whit_hub_line *line, const char *url, size_t limit_bytes, whit_buf *out,
                          whit_http_answer *answer, whit_error *error)
{
    const whit_http_sink sink = {begin_memory, add_to_memory, out};
    out->limit_bytes = limit_bytes;
    return hub_get(line, url, NULL, "", NULL, &sink, answer, error);
}

/* ---- downloads into a file ------------------------------------------------------------------ */

struct transfer {
    const whit_hub_line *line;
    const char *what, *part;
    char etag_path[4200];
    char etag[WHIT_HTTP_ETAG_BYTES]; /* ETag of the version that the part was downloaded from */
    whit_hub_file *file;
    int fd;
    uint64_t have; /* bytes of the part that are on disk */
    uint64_t end;  /* size of the whole file according to the current response; WHIT_HTTP_UNKNOWN if not stated */
    bool resumed;  /* the part has data from an earlier response */
};

static whit_status start_over(struct transfer *t, whit_error *error)
{
    t->have = 0;
    t->resumed = false;
    t->etag[0] = 0;
    unlink(t->etag_path);
    return ftruncate(t->fd, 0) == 0 ? WHIT_OK : whit_fail_errno(error, t->part, "empty");
}

static void learn(whit_hub_file *file, const whit_http_answer *answer)
{
    const char *etag = answer->linked_etag;
    size_t n = strlen(etag);
    if (file->digest_kind != WHIT_HUB_NO_DIGEST) return;
    if (whit_hub_is_hex(etag, n, 64)) file->digest_kind = WHIT_HUB_SHA256;
    if (whit_hub_is_hex(etag, n, 40)) file->digest_kind = WHIT_HUB_GIT_SHA1;
    if (file->digest_kind != WHIT_HUB_NO_DIGEST) memcpy(file->digest, etag, n + 1);
}

static whit_status begin_file(void *user, const whit_http_answer *answer, whit_error *error)
{
    struct transfer *t = user;
    learn(t->file, answer);
    if (answer->status == 206 && answer->range_start != t->have)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the server sent another part of the file than requested; try again later", t->what);
    if (answer->status != 206) {
        if (t->have) WHIT_TRY(start_over(t, error)); /* the file has changed, or ranges are unsupported */
        t->end = answer->content_bytes;
    } else {
        t->end = answer->range_total;
        t->resumed = true;
    }
    uint64_t promised = t->file->size_bytes;
    if (promised != WHIT_HUB_SIZE_UNKNOWN && t->end != WHIT_HTTP_UNKNOWN && t->end != promised)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: has %llu bytes, but the hub's listing says %llu; try again later", t->what,
                         (unsigned long long)t->end, (unsigned long long)promised);
    /* Only equal strong ETags guarantee that two responses have bytes of the same version. */
    if (*answer->etag != '"' || strcmp(answer->etag, t->etag) == 0) return WHIT_OK;
    memcpy(t->etag, answer->etag, sizeof t->etag);
    return whit_write_file(t->etag_path, t->etag, strlen(t->etag), error);
}

static whit_status add_to_file(void *user, const void *data, size_t n_bytes, whit_error *error)
{
    struct transfer *t = user;
    const uint8_t *bytes = data;
    uint64_t promised = t->file->size_bytes;
    if (promised != WHIT_HUB_SIZE_UNKNOWN && n_bytes > promised - t->have)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the server sends more than the %llu bytes that the hub's listing says; try again later",
                         t->what, (unsigned long long)promised);
    while (n_bytes) {
        ssize_t n = pwrite(t->fd, bytes, n_bytes, (off_t)t->have);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
            return whit_fail(error, WHIT_ERROR_IO,
                             "%s: %s; the bytes received are kept, and 'whit pull' resumes after them", t->part,
                             strerror(errno));
        if (n < 0) return whit_fail_errno(error, t->part, "write");
        bytes += n;
        n_bytes -= (size_t)n;
        t->have += (uint64_t)n;
        if (t->line->on_bytes && !t->line->on_bytes(t->line->user, (uint64_t)n))
            return whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
    }
    return WHIT_OK;
}

static whit_status ends_early(const struct transfer *t, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_FORMAT,
                     "%s: ends after %llu bytes, but the hub's listing says %llu; try again later", t->what,
                     (unsigned long long)t->have, (unsigned long long)t->file->size_bytes);
}

/* Discards a part of unknown version, before each attempt. Such a part has no ETag, and the file no digest, so that a
 * wrong combination of old and new bytes would not be noticed. */
static whit_status drop_unknown_half(void *user, whit_error *error)
{
    struct transfer *t = user;
    bool unknown = t->have && !*t->etag && t->file->digest_kind == WHIT_HUB_NO_DIGEST;
    return unknown ? start_over(t, error) : WHIT_OK;
}

/* Downloads the missing bytes until the part has the size that the listing or, without one, the server states. */
static whit_status fetch(struct transfer *t, const char *url, whit_error *error)
{
    const whit_http_sink sink = {begin_file, add_to_file, t};
    uint64_t promised = t->file->size_bytes;
    whit_http_answer answer;
    bool emptied = false;
    for (;;) {
        uint64_t before = t->have;
        WHIT_TRY(hub_get(t->line, url, &t->have, t->etag, drop_unknown_half, &sink, &answer, error));
        if (answer.status == 416 && answer.range_total == t->have) /* the part was already complete */
            return promised == WHIT_HUB_SIZE_UNKNOWN || t->have == promised ? WHIT_OK : ends_early(t, error);
        if (answer.status == 416 && !emptied) {
            emptied = true;
            WHIT_TRY(start_over(t, error));
            continue;
        }
        if (answer.status / 100 != 2) return whit_hub_refusal(&answer, t->what, error);
        if (promised == WHIT_HUB_SIZE_UNKNOWN || t->have >= promised) return WHIT_OK;
        /* Without a Content-Length a broken connection cannot be told from the end of the file, so the rest is
         * requested. No further byte means that the file is really shorter. */
        if (t->have <= before) return ends_early(t, error);
    }
}

static whit_status open_part(struct transfer *t, whit_error *error)
{
    whit_buf etag = {0};
    struct stat info;
    if (snprintf(t->etag_path, sizeof t->etag_path, "%s.etag", t->part) >= (int)sizeof t->etag_path)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the path is longer than %zu bytes, the limit", t->part,
                         sizeof t->etag_path - 6);
    t->fd = open(t->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (t->fd < 0 || fstat(t->fd, &info) != 0) return whit_fail_errno(error, t->part, "create");
    t->have = (uint64_t)info.st_size;
    t->resumed = t->have > 0;
    if (whit_read_file(t->etag_path, sizeof t->etag - 1, &etag, NULL) == WHIT_OK)
        memcpy(t->etag, etag.data, etag.size_bytes);
    /* The ETag is sent as a header, so a damaged one is ignored. */
    if (strlen(t->etag) != etag.size_bytes || strpbrk(t->etag, "\r\n")) t->etag[0] = 0;
    whit_buf_free(&etag);
    return t->have > t->file->size_bytes ? start_over(t, error) : WHIT_OK;
}

static whit_status download(struct transfer *t, const char *url, whit_error *error)
{
    for (bool again = false, fetched = false;; again = true) {
        /* Without a digest the part may belong to an older version even if its length is right: the server is asked
         * once. */
        bool unknown = t->file->digest_kind == WHIT_HUB_NO_DIGEST && !fetched, same = false;
        if (!t->have || t->have != t->file->size_bytes || unknown) {
            WHIT_TRY(fetch(t, url, error));
            fetched = true;
        }
        WHIT_TRY(whit_hub_digest_check(t->fd, t->part, t->file, t->line->cancel, &same, error));
        if (same) break;
        bool was_resumed = t->resumed;
        WHIT_TRY(start_over(t, error));
        /* The part from an earlier response may be damaged: download the whole file once more. */
        if (was_resumed && !again) continue;
        unlink(t->part);
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the downloaded file does not match the hub's digest; it was removed", t->what);
    }
    t->file->size_bytes = t->have;
    if (fsync(t->fd) != 0) return whit_fail_errno(error, t->part, "flush it to the disk");
    /* Without a digest a later run needs the ETag again if this run does not complete. */
    if (t->file->digest_kind != WHIT_HUB_NO_DIGEST) unlink(t->etag_path);
    return WHIT_OK;
}

whit_status whit_hub_download(const whit_hub_line *line, const char *url, const char *what, const char *part,
                              whit_hub_file *file, whit_error *error)
{
    struct transfer t = {.line = line, .what = what, .part = part, .file = file, .fd = -1};
    whit_status status = open_part(&t, error);
    if (status == WHIT_OK) status = download(&t, url, error);
    if (status != WHIT_OK && t.fd >= 0 && t.have == 0) unlink(part); /* an empty part is useless for a resume */
    if (t.fd >= 0) close(t.fd);
    return status;
}
