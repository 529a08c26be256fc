/* SPDX-License-Identifier: MIT */
#include "hub/digest.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/flag.h"
#include "hub/sha1.h"

#define CHUNK_BYTES ((size_t)256 << 10)

/* State of a digest. Only the member for `kind` receives the file's data. */
struct hashing {
    whit_hub_digest_kind kind;
    crypto_hash_sha256_state sha256;
    whit_sha1 sha1;
};

static void begin_digest(struct hashing *hashing, whit_hub_digest_kind kind, uint64_t size_bytes)
{
    char head[40];
    hashing->kind = kind;
    crypto_hash_sha256_init(&hashing->sha256);
    whit_sha1_begin(&hashing->sha1);
    int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)size_bytes);
    whit_sha1_add(&hashing->sha1, head, (size_t)n + 1); /* the terminating zero belongs to git's header */
}

static void add_data(struct hashing *hashing, const uint8_t *data, size_t n_bytes)
{
    if (hashing->kind == WHIT_HUB_SHA256)
        crypto_hash_sha256_update(&hashing->sha256, data, n_bytes);
    else
        whit_sha1_add(&hashing->sha1, data, n_bytes);
}

static void end_digest(struct hashing *hashing, char text[65])
{
    uint8_t digest[32];
    size_t n = hashing->kind == WHIT_HUB_SHA256 ? 32 : WHIT_SHA1_BYTES;
    if (hashing->kind == WHIT_HUB_SHA256)
        crypto_hash_sha256_final(&hashing->sha256, digest);
    else
        whit_sha1_end(&hashing->sha1, digest);
    sodium_bin2hex(text, 65, digest, n);
}

whit_status whit_hub_digest_check(int fd, const char *path, const whit_hub_file *promised, const volatile bool *cancel,
                                  bool *same, whit_error *error)
{
    struct stat info;
    *same = false;
    if (fstat(fd, &info) != 0) return whit_fail_errno(error, path, "examine");
    uint64_t size_bytes = (uint64_t)info.st_size;
    if (promised->size_bytes != WHIT_HUB_SIZE_UNKNOWN && promised->size_bytes != size_bytes) return WHIT_OK;
    if (promised->digest_kind == WHIT_HUB_NO_DIGEST) {
        *same = true;
        return WHIT_OK;
    }
    uint8_t *chunk = malloc(CHUNK_BYTES);
    if (!chunk) return whit_fail_memory(error, path, CHUNK_BYTES);
    struct hashing hashing;
    whit_status status = WHIT_OK;
    begin_digest(&hashing, promised->digest_kind, size_bytes);
    for (uint64_t at = 0; at < size_bytes;) {
        ssize_t n = pread(fd, chunk, CHUNK_BYTES, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) status = whit_fail_errno(error, path, "read");
        if (whit_flag_is_set(cancel))
            status =
                whit_fail(error, WHIT_ERROR_CANCELLED, "%s: checking was interrupted; the same command resumes", path);
        if (n <= 0 || status != WHIT_OK) break;
        add_data(&hashing, chunk, (size_t)n);
        at += (uint64_t)n;
    }
    char text[65];
    end_digest(&hashing, text);
    *same = status == WHIT_OK && strcmp(text, promised->digest) == 0;
    free(chunk);
    return status;
}
