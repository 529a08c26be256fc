/* SPDX-License-Identifier: MIT */
#include "format/ndf_sign.h"
#include "base/items.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define SECRET_WORD "whit-secret-key-ed25519 "
#define PUBLIC_WORD "whit-public-key-ed25519 "
#define KEY_LIMIT   4096

/* Data of a SIGNATURE frame. */
typedef struct signature {
    uint8_t public_key[crypto_sign_PUBLICKEYBYTES];
    uint8_t signature[crypto_sign_BYTES];
} signature;
_Static_assert(sizeof(signature) == 96, "signature");

/* The message that is signed: a domain of 16 bytes and the commit's frame hash. */
typedef struct message {
    char domain[16];
    uint8_t commit[WHIT_HASH_BYTES];
} message;

static message message_of(const uint8_t commit[WHIT_HASH_BYTES])
{
    message m = {.domain = "ndf.signature"};
    memcpy(m.commit, commit, sizeof m.commit);
    return m;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static whit_status write_key(const char *path, bool is_secret, const uint8_t key[WHIT_SIGN_KEY_BYTES],
                             whit_error *error)
{
    const char *word = is_secret ? SECRET_WORD : PUBLIC_WORD;
    char line[sizeof SECRET_WORD + 2 * WHIT_SIGN_KEY_BYTES + 2], hex[2 * WHIT_SIGN_KEY_BYTES + 1];
    whit_hash_hex(key, hex);
    int n = snprintf(line, sizeof line, "%s%s\n", word, hex);
    sodium_memzero(hex, sizeof hex);
    whit_writer out;
    whit_status status = (is_secret ? whit_writer_open_private : whit_writer_open)(path, NULL, &out, error);
    out.is_new = true; /* fail if the file exists: the public key of another pair must not be replaced */
    if (status == WHIT_OK) status = whit_writer_append(&out, line, (size_t)n, error);
    if (status == WHIT_OK) status = whit_writer_commit(&out, error);
    whit_writer_discard(&out);
    sodium_memzero(line, sizeof line);
    return status;
}

static whit_status read_key(const char *path, const char *word, const char *what, uint8_t key[WHIT_SIGN_KEY_BYTES],
                            whit_error *error)
{
    whit_buf text = {0};
    size_t n_word = strlen(word), n_key = 0;
    const char *end = NULL;
    WHIT_TRY(whit_read_file(path, KEY_LIMIT, &text, error));
    whit_status status = WHIT_OK;
    if (!whit_buf_append(&text, "", 1)) status = whit_fail_memory(error, path, text.size_bytes);
    if (status == WHIT_OK &&
        (strncmp(whit_chars(&text), word, n_word) != 0 ||
         sodium_hex2bin(key, WHIT_SIGN_KEY_BYTES, whit_chars(&text) + n_word, 2 * (size_t)WHIT_SIGN_KEY_BYTES, NULL,
                        &n_key, &end) != 0 ||
         n_key != WHIT_SIGN_KEY_BYTES || strspn(end, " \r\n") != strlen(end)))
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file is not a %s key that whit made", path, what);
    if (text.data) sodium_memzero(text.data, text.size_bytes);
    whit_buf_free(&text);
    return status;
}

whit_status whit_sign_new_key(const char *path, uint8_t public_key[WHIT_SIGN_KEY_BYTES], whit_error *error)
{
    uint8_t seed[crypto_sign_SEEDBYTES], secret[crypto_sign_SECRETKEYBYTES];
    whit_buf name = {0};
    if (sodium_init() < 0)
        return whit_fail(error, WHIT_ERROR_IO, "%s: the key cannot be made, because the system gives no random numbers",
                         path);
    randombytes_buf(seed, sizeof seed);
    crypto_sign_seed_keypair(public_key, secret, seed);
    whit_status status = whit_buf_printf(&name, "%s.pub", path) && whit_buf_append(&name, "", 1)
        ? WHIT_OK
        : whit_fail_memory(error, "a file name", name.size_bytes);
    /* The public key is written first: if its file exists, no secret key is left without its public key. */
    if (status == WHIT_OK) status = write_key(whit_chars(&name), false, public_key, error);
    if (status == WHIT_OK && (status = write_key(path, true, seed, error)) != WHIT_OK) (void)unlink(whit_chars(&name));
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    whit_buf_free(&name);
    return status;
}

whit_status whit_sign_read_secret(const char *path, uint8_t seed[WHIT_SIGN_KEY_BYTES], whit_error *error)
{
    return read_key(path, SECRET_WORD, "secret", seed, error);
}

whit_status whit_sign_read_public(const char *path, uint8_t public_key[WHIT_SIGN_KEY_BYTES], whit_error *error)
{
    return read_key(path, PUBLIC_WORD, "public", public_key, error);
}

/* ---- signing -------------------------------------------------------------------------------- */

whit_status whit_ndf_sign(const char *path, const char *key_path, const whit_allocator *allocator, whit_error *error)
{
    uint8_t seed[crypto_sign_SEEDBYTES], secret[crypto_sign_SECRETKEYBYTES];
    signature made;
    whit_ndf_log log;
    WHIT_TRY(whit_sign_read_secret(key_path, seed, error));
    whit_status status = whit_ndf_log_open(path, WHIT_NDF_LOG_APPEND, allocator, &log, error);
    if (status == WHIT_OK) {
        message m = message_of(log.chain.last_hash);
        crypto_sign_seed_keypair(made.public_key, secret, seed);
        crypto_sign_detached(made.signature, NULL, (const uint8_t *)&m, sizeof m, secret);
        status = whit_ndf_log_begin(&log, WHIT_NDF_SIGNATURE, "ed25519", sizeof made, error);
        if (status == WHIT_OK) status = whit_ndf_log_add(&log, &made, sizeof made, error);
        if (status == WHIT_OK) status = whit_ndf_log_commit(&log, error);
        if (status != WHIT_OK) whit_ndf_log_cancel(&log);
        whit_ndf_log_close(&log);
    }
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    return status;
}

whit_status whit_ndf_check_signed(const whit_ndf_log *log, const uint8_t *public_key, whit_ndf_signed *result,
                                  whit_error *error)
{
    *result = (whit_ndf_signed){0};
    for (uint32_t i = 0; i < log->chain.n_frames; i++) {
        const whit_ndf_frame *frame = whit_ndf_log_frame(log, i);
        if (frame->type >= WHIT_NDF_ADAPTER && frame->type != WHIT_NDF_SIGNATURE) result->n_unsigned++;
        if (frame->type != WHIT_NDF_SIGNATURE) continue;
        uint64_t offset, size_bytes;
        whit_ndf_header header;
        signature found;
        WHIT_TRY(whit_ndf_log_data(log, i, &offset, &size_bytes, error));
        if (size_bytes != sizeof found || i == 0) return whit_ndf_log_bad(log, i, "it is not a signature", error);
        WHIT_TRY(whit_ndf_log_read(log, offset, &found, sizeof found, error));
        WHIT_TRY(whit_ndf_log_read(log, frame->offset, &header, sizeof header, error));
        if (whit_ndf_log_frame(log, i - 1)->type != WHIT_NDF_COMMIT)
            return whit_ndf_log_bad(log, i, "it does not follow a commit", error);
        message m = message_of(header.previous);
        if (crypto_sign_verify_detached(found.signature, (const uint8_t *)&m, sizeof m, found.public_key) != 0)
            return whit_ndf_log_bad(log, i, "the signature is not valid: it was made for other contents", error);
        if (public_key && memcmp(found.public_key, public_key, WHIT_SIGN_KEY_BYTES) != 0) continue;
        result->n_signatures++;
        result->n_frames = i;
        result->n_unsigned = 0;
    }
    return WHIT_OK;
}
