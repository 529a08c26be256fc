/* SPDX-License-Identifier: MIT
 * Who may ask: API keys, pages of other sites, CORS. */
#include "server/access.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_KEYS = 4096, MOST_KEY_BYTES = 512 };

/* ---- keys -------------------------------------------------------------------------------------- */

static void hash_key(const char *key, size_t n, uint8_t hash[32])
{
    crypto_generichash(hash, 32, (const uint8_t *)key, n, NULL, 0);
}

whit_status whit_keys_read(whit_site *site, whit_error *error)
{
    const char *path = site->options->key_file;
    char line[MOST_KEY_BYTES + 2];
    if (!path) return WHIT_OK;
    FILE *file = fopen(path, "re");
    if (!file) return whit_fail_errno(error, path, "open");
    whit_status status = WHIT_OK;
    while (status == WHIT_OK && fgets(line, sizeof line, file)) {
        size_t n = strcspn(line, "\r\n");
        if (!n) continue;
        uint8_t(*larger)[32] = realloc(site->keys, (site->n_keys + 1) * sizeof *site->keys);
        if (larger) site->keys = larger;
        if (n > MOST_KEY_BYTES || site->n_keys == MOST_KEYS) /* a rest would be a key of its own */
            status = whit_fail(error, WHIT_ERROR_LIMIT, "%s: at most %d keys of %d bytes each", path, MOST_KEYS,
                               MOST_KEY_BYTES);
        else if (!larger)
            status = whit_fail_memory(error, "the keys", (site->n_keys + 1) * sizeof *site->keys);
        else
            hash_key(line, n, site->keys[site->n_keys++]);
    }
    fclose(file);
    sodium_memzero(line, sizeof line);
    WHIT_TRY(status);
    return site->n_keys ? WHIT_OK : whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: there is no key in it", path);
}

bool whit_key_allows(const whit_site *site, const whit_web_request *request, uint64_t *key)
{
    const char *given = whit_web_header(request, "Authorization"), *other = whit_web_header(request, "X-Api-Key");
    if (!other) other = whit_web_header(request, "X-Goog-Api-Key");
    uint8_t hash[32];
    bool ok = false;
    /* The scheme's letters may be of either case (RFC 9110, 11.1). */
    given = given && !strncasecmp(given, "Bearer ", 7) ? given + 7 : other ? other : "";
    hash_key(given, strlen(given), hash);
    *key = 0; /* names that nobody checks give no place in the queue */
    if (site->options->key_file) memcpy(key, hash, sizeof *key);
    for (size_t i = 0; i < site->n_keys; i++) ok |= sodium_memcmp(hash, site->keys[i], sizeof hash) == 0;
    return ok || !site->options->key_file;
}

/* ---- pages of other sites ------------------------------------------------------------------------ */

/* Whether the origin is a page that came from another machine: http or https, and a name with a dot. */
static bool is_named_page(const char *origin)
{
    size_t n_scheme = !strncmp(origin, "http://", 7) ? 7 : !strncmp(origin, "https://", 8) ? 8 : 0;
    const char *host = origin + n_scheme;
    size_t n = strcspn(host, ":/");
    if (!n_scheme || *host == '[' || !memchr(host, '.', n)) return false;
    return strspn(host, "0123456789.") < n && !(n > 10 && !strncasecmp(host + n - 10, ".localhost", 10));
}

/* Without a key, a server for this machine alone trusts who reaches it. A page from elsewhere does where its name was
 * made to lead here (DNS rebinding): to the browser both are one site then, and only the name tells. */
static bool trusts_this_machine(const whit_server_options *options)
{
    const char *host = options->host;
    return !options->socket_path && !options->key_file && host &&
        (!strncmp(host, "127.", 4) || !strcmp(host, "localhost") || !strcmp(host, "::1"));
}

bool whit_request_is_foreign(const whit_site *site, const whit_web_request *request)
{
    const char *from = whit_web_header(request, "Sec-Fetch-Site"), *origin = whit_web_header(request, "Origin");
    const char *friend = site->options->cors_origin;
    if (!strcmp(request->method, "GET") || !strcmp(request->method, "OPTIONS")) return false;
    bool foreign = (from && !strcmp(from, "cross-site")) ||
        (origin && trusts_this_machine(site->options) && is_named_page(origin));
    return foreign && (!friend || !origin || (strcmp(friend, "*") != 0 && strcmp(friend, origin) != 0));
}

/* Whether an origin may be repeated in a line that a person copies into a shell: printable, without quotes. */
static bool is_plain_origin(const char *origin)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:/[]_-";
    size_t n = strlen(origin);
    return n && n < 300 && strspn(origin, plain) == n;
}

void whit_foreign_refuse(const whit_web_request *request, whit_web_reply *reply)
{
    const char *origin = whit_web_header(request, "Origin");
    if (!origin || !is_plain_origin(origin)) origin = "ORIGIN";
    whit_api_fail(
        reply, 403, "permission_error", NULL,
        "the server does not know the name %s, by which this page was opened: start it with --cors %s, or with "
        "keys (--api-key-file FILE)",
        origin, origin);
}

bool whit_cors_answer(const whit_site *site, const whit_web_request *request, whit_web_reply *reply)
{
    if (!site->options->cors_origin) return false;
    whit_reply_header(reply, "Access-Control-Allow-Origin", site->options->cors_origin);
    if (strcmp(request->method, "OPTIONS") != 0) {
        whit_reply_header(reply, "Access-Control-Expose-Headers", "X-Request-Id, request-id, Retry-After");
        return false;
    }
    if (request->headers_only) return true; /* told after the body */
    /* Clients send headers of their own (x-stainless-lang, anthropic-version): none means anything here but the key. */
    const char *wanted = whit_web_header(request, "Access-Control-Request-Headers");
    whit_reply_header(reply, "Access-Control-Allow-Headers",
                      wanted ? wanted : "Authorization, Content-Type, X-Api-Key");
    whit_reply_header(reply, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    whit_reply_header(reply, "Access-Control-Max-Age", "600");
    reply->status = 204;
    return true;
}
