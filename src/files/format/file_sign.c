/* SPDX-License-Identifier: MIT */
#include "format/file_sign.h"
#include "base/items.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SIGNATURE_WORD "whit-signature-ed25519 "
#define SIG_LIMIT      4096
#define DOMAIN         "file.signature"

/* The message that is signed. The domain differs from that of containers, so that a container's signature is never
 * valid for a file. */
typedef struct message {
    char domain[16];
    uint8_t hash[WHIT_HASH_BYTES];
} message;

static whit_status hash_content(const char *path, message *m, whit_error *error)
{
    uint8_t block[16384];
    whit_hash hash;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return whit_fail_errno(error, path, "open");
    *m = (message){.domain = DOMAIN};
    whit_hash_begin(&hash, DOMAIN);
    while ((n = read(fd, block, sizeof block)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) whit_hash_add(&hash, block, (size_t)n);
    int failure = errno;
    close(fd);
    errno = failure;
    if (n < 0) return whit_fail_errno(error, path, "read");
    whit_hash_end(&hash, m->hash);
    return WHIT_OK;
}

static whit_status beside(const char *path, whit_buf *name, whit_error *error)
{
    return whit_buf_printf(name, "%s.sig", path) && whit_buf_append(name, "", 1)
        ? WHIT_OK
        : whit_fail_memory(error, "a file name", name->size_bytes);
}

whit_status whit_file_sign(const char *path, const char *key_path, whit_error *error)
{
    uint8_t seed[crypto_sign_SEEDBYTES], secret[crypto_sign_SECRETKEYBYTES], public_key[WHIT_SIGN_KEY_BYTES];
    uint8_t signature[crypto_sign_BYTES];
    char key_hex[2 * sizeof public_key + 1], hex[2 * sizeof signature + 1];
    char line[sizeof SIGNATURE_WORD + sizeof key_hex + sizeof hex + 2];
    message m;
    whit_buf name = {0};
    if (sodium_init() < 0)
        return whit_fail(error, WHIT_ERROR_IO,
                         "%s: libsodium, which computes signatures, could not be started on this system", path);
    WHIT_TRY(hash_content(path, &m, error));
    WHIT_TRY(whit_sign_read_secret(key_path, seed, error));
    crypto_sign_seed_keypair(public_key, secret, seed);
    crypto_sign_detached(signature, NULL, (const uint8_t *)&m, sizeof m, secret);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    sodium_bin2hex(key_hex, sizeof key_hex, public_key, sizeof public_key);
    sodium_bin2hex(hex, sizeof hex, signature, sizeof signature);
    int n = snprintf(line, sizeof line, "%s%s %s\n", SIGNATURE_WORD, key_hex, hex);
    whit_writer out;
    whit_status status = beside(path, &name, error);
    if (status == WHIT_OK && (status = whit_writer_open(whit_chars(&name), NULL, &out, error)) == WHIT_OK) {
        status = whit_writer_append(&out, line, (size_t)n, error);
        if (status == WHIT_OK) status = whit_writer_commit(&out, error);
        whit_writer_discard(&out);
    }
    whit_buf_free(&name);
    return status;
}

/* Parses the line "whit-signature-ed25519 KEY SIGNATURE"; false if it is malformed. */
static bool parse_line(const char *text, uint8_t key[WHIT_SIGN_KEY_BYTES], uint8_t signature[crypto_sign_BYTES])
{
    const size_t n_word = strlen(SIGNATURE_WORD), n_key_hex = 2 * (size_t)WHIT_SIGN_KEY_BYTES;
    size_t n_key = 0, n_signature = 0;
    const char *end = NULL;
    if (strncmp(text, SIGNATURE_WORD, n_word) != 0 || strlen(text) < n_word + n_key_hex + 1) return false;
    text += n_word;
    if (sodium_hex2bin(key, WHIT_SIGN_KEY_BYTES, text, n_key_hex, NULL, &n_key, &end) != 0 || *end != ' ') return false;
    text = end + 1;
    return n_key == WHIT_SIGN_KEY_BYTES &&
        sodium_hex2bin(signature, crypto_sign_BYTES, text, strcspn(text, " \r\n"), NULL, &n_signature, &end) == 0 &&
        n_signature == crypto_sign_BYTES && strspn(end, " \r\n") == strlen(end);
}

whit_status whit_file_check_signed(const char *path, const uint8_t public_key[WHIT_SIGN_KEY_BYTES], whit_error *error)
{
    uint8_t key[WHIT_SIGN_KEY_BYTES], signature[crypto_sign_BYTES];
    message m;
    whit_buf name = {0}, text = {0};
    if (sodium_init() < 0)
        return whit_fail(error, WHIT_ERROR_IO,
                         "%s: libsodium, which computes signatures, could not be started on this system", path);
    whit_status status = beside(path, &name, error);
    if (status == WHIT_OK) status = whit_read_found_file(whit_chars(&name), SIG_LIMIT, &text, error);
    if (status == WHIT_OK && !whit_buf_append(&text, "", 1)) status = whit_fail_memory(error, path, text.size_bytes);
    if (status == WHIT_OK && !parse_line(whit_chars(&text), key, signature))
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s.sig: the file is not a signature: sign the file again", path);
    if (status == WHIT_OK && memcmp(key, public_key, sizeof key) != 0)
        status = whit_fail(error, WHIT_ERROR_FORMAT,
                           "%s.sig: the signature was made with another key: give the signer's public key", path);
    if (status == WHIT_OK) status = hash_content(path, &m, error);
    if (status == WHIT_OK && crypto_sign_verify_detached(signature, (const uint8_t *)&m, sizeof m, key) != 0)
        status = whit_fail(error, WHIT_ERROR_FORMAT, "%s: the signature is not valid: the file was changed", path);
    whit_buf_free(&name);
    whit_buf_free(&text);
    return status;
}
