/* SPDX-License-Identifier: MIT
 * Who may ask: API keys, pages of other sites, CORS. */
#include "server/access.h"

#include "base/clock.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_KEYS = 4096, MOST_KEY_BYTES = 512, MOST_LIST_BYTES = 2048 };

/* ---- keys -------------------------------------------------------------------------------------- */

static void hash_key(const char *key, size_t n, uint8_t hash[32])
{
    crypto_generichash(hash, 32, (const uint8_t *)key, n, NULL, 0);
}

/* Adds the key text[0..n) with its name. `place` is for messages. */
static whit_status add_key(whit_site *site, const char *place, const char *name, size_t n_name, const char *text,
                           size_t n, whit_error *error)
{
    if (n > MOST_KEY_BYTES || site->n_keys == MOST_KEYS)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: at most %d keys of %d bytes each", place, MOST_KEYS,
                         MOST_KEY_BYTES);
    if (n_name >= WHIT_KEY_NAME_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: a key's name has at most %d bytes", place,
                         WHIT_KEY_NAME_BYTES - 1);
    struct whit_key *larger = realloc(site->keys, (site->n_keys + 1) * sizeof *site->keys);
    if (!larger) return whit_fail_memory(error, "the keys", (site->n_keys + 1) * sizeof *site->keys);
    site->keys = larger;
    struct whit_key *key = &site->keys[site->n_keys++];
    *key = (struct whit_key){.models = NULL};
    memcpy(key->name, name, n_name);
    hash_key(text, n, key->hash);
    return WHIT_OK;
}

/* Whether a name and a key seem to be exchanged, as in a file for the other option: then the name would open the
 * server, and the key would stand in its log. Keys begin with "sk-" by custom. */
static bool are_exchanged(const char *name, size_t n_name, const char *key, size_t n_key)
{
    enum { NAME_USUAL_BYTES = 24, KEY_SHORT_BYTES = 16 };
    bool is_name_key = n_name > 3 && !memcmp(name, "sk-", 3), is_key_key = n_key > 3 && !memcmp(key, "sk-", 3);
    bool is_long_name =
        n_name >= NAME_USUAL_BYTES && n_name < WHIT_KEY_NAME_BYTES; /* a longer one is refused as such */
    return (is_name_key && !is_key_key) || (is_long_name && n_key < KEY_SHORT_BYTES);
}

static whit_status refuse_exchanged(const char *path, const char *name, size_t n_name, const char *wanted,
                                    whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_FORMAT, "%s: '%.*s' is in the place of a key: lines are %s", path,
                     (int)(n_name < 40 ? n_name : 40), name, wanted);
}

/* Adds the key of a line: "KEY" or "NAME KEY". Keys hold no blanks (RFC 6750, token68). */
static whit_status add_line(whit_site *site, const char *path, const char *line, whit_error *error)
{
    const char *word = line + strspn(line, " \t");
    size_t n = strcspn(word, " \t\r\n");
    const char *second = word + n + strspn(word + n, " \t");
    size_t n_second = strcspn(second, " \t\r\n");
    if (!n || *word == '#') return WHIT_OK;
    if (second[n_second + strspn(second + n_second, " \t\r\n")])
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: a line has more than a name and a key", path);
    if (n_second && are_exchanged(word, n, second, n_second))
        return refuse_exchanged(path, second, n_second, "NAME KEY (--keys has KEY NAME MODELS RATE)", error);
    return n_second ? add_key(site, path, word, n, second, n_second, error)
                    : add_key(site, path, "", 0, word, n, error);
}

/* Whether a key's list of models names this one of the server's models or adapters. */
static bool is_served(const whit_server_options *options, const char *name, size_t n)
{
    for (size_t i = 0; i < options->n_models; i++)
        if (strlen(options->models[i].name) == n && !memcmp(options->models[i].name, name, n)) return true;
    for (size_t i = 0; i < options->n_adapters; i++)
        if (strlen(options->adapters[i].name) == n && !memcmp(options->adapters[i].name, name, n)) return true;
    return options->store != NULL; /* a request may name any pulled model */
}

static whit_status check_models(const whit_server_options *options, const char *path, const char *list, size_t n_list,
                                whit_error *error)
{
    for (size_t i = 0, n; i < n_list; i += n + 1) {
        const char *comma = memchr(list + i, ',', n_list - i);
        n = comma ? (size_t)(comma - list) - i : n_list - i;
        if (n && !is_served(options, list + i, n))
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: no served model or adapter is called '%.*s'", path,
                             (int)(n < 80 ? n : 80), list + i);
    }
    return WHIT_OK;
}

/* Adds the key of a line of --keys: KEY NAME MODELS RATE, of which the last three may be absent. */
static whit_status add_row(whit_site *site, const char *path, const char *line, whit_error *error)
{
    const char *words[4] = {"", "-", "*", "0"}, *at = line;
    size_t n[4] = {0, 1, 1, 1}, n_words = 0;
    for (;; n_words++) {
        at += strspn(at, " \t\r\n");
        if (!*at || (!n_words && *at == '#')) break;
        if (n_words == 4)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: a line has more than KEY NAME MODELS RATE", path);
        words[n_words] = at;
        n[n_words] = strcspn(at, " \t\r\n");
        at += n[n_words];
    }
    if (!n_words) return WHIT_OK;
    char *end;
    unsigned long rate = strtoul(words[3], &end, 10);
    if (end != words[3] + n[3] || words[3][0] == '-' || rate > 1000000)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: RATE is a number of requests a minute, not '%.*s'", path,
                         (int)(n[3] < 40 ? n[3] : 40), words[3]);
    bool is_unnamed = n[1] == 1 && words[1][0] == '-', is_free = n[2] == 1 && words[2][0] == '*';
    if (are_exchanged(words[1], n[1], words[0], n[0]))
        return refuse_exchanged(path, words[0], n[0], "KEY NAME MODELS RATE (--api-key-file has NAME KEY)", error);
    if (!is_free) WHIT_TRY(check_models(site->options, path, words[2], n[2], error));
    WHIT_TRY(add_key(site, path, words[1], is_unnamed ? 0 : n[1], words[0], n[0], error));
    struct whit_key *key = &site->keys[site->n_keys - 1];
    key->n_minute = (uint32_t)rate;
    key->models = is_free ? NULL : strndup(words[2], n[2]);
    return is_free || key->models ? WHIT_OK : whit_fail_memory(error, "the keys", n[2]);
}

typedef whit_status read_line(whit_site *site, const char *path, const char *line, whit_error *error);

static whit_status read_file_keys(whit_site *site, const char *path, read_line *add, whit_error *error)
{
    char line[MOST_KEY_BYTES + WHIT_KEY_NAME_BYTES + MOST_LIST_BYTES + 16];
    FILE *file = fopen(path, "re");
    if (!file) return whit_fail_errno(error, path, "open");
    whit_status status = WHIT_OK;
    while (status == WHIT_OK && fgets(line, sizeof line, file)) {
        if (strlen(line) + 1 == sizeof line && line[sizeof line - 2] != '\n') /* a rest would be a key of its own */
            status = whit_fail(error, WHIT_ERROR_LIMIT, "%s: at most %d keys of %d bytes each", path, MOST_KEYS,
                               MOST_KEY_BYTES);
        else
            status = add(site, path, line, error);
    }
    fclose(file);
    sodium_memzero(line, sizeof line);
    WHIT_TRY(status);
    return site->n_keys ? WHIT_OK : whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: there is no key in it", path);
}

/* Refuses a --cors that no browser sends: an origin has a scheme and no path (RFC 6454, 7). */
static whit_status check_origin(const char *origin, whit_error *error)
{
    const char *host = strstr(origin, "://");
    if (!strcmp(origin, "*") || !strcmp(origin, "null") || (host && host[3] && !strpbrk(host + 3, "/ ,")))
        return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT,
                     "--cors: '%s' is no origin: give scheme and name without a path, as in https://chat.example.org",
                     origin);
}

whit_status whit_access_read(whit_site *site, whit_error *error)
{
    const whit_server_options *options = site->options;
    if (options->cors_origin) WHIT_TRY(check_origin(options->cors_origin, error));
    if (options->key_file) WHIT_TRY(read_file_keys(site, options->key_file, add_line, error));
    if (options->key_table) WHIT_TRY(read_file_keys(site, options->key_table, add_row, error));
    for (size_t i = 0; i < options->n_keys; i++)
        for (const char *at = options->keys[i]; *at; at += *at == ',') { /* as llama.cpp has them: one, or a list */
            size_t n = strcspn(at, ",");
            if (n) WHIT_TRY(add_key(site, "--api-key", "", 0, at, n, error));
            at += n;
        }
    if (options->n_keys && !site->n_keys)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "--api-key: there is no key in it");
    return WHIT_OK;
}

static struct whit_key *find_key(const whit_site *site, uint64_t key)
{
    for (size_t i = 0; i < site->n_keys; i++)
        if (memcmp(&key, site->keys[i].hash, sizeof key) == 0) return &site->keys[i];
    return NULL;
}

bool whit_key_allows(const whit_site *site, const whit_web_request *request, uint64_t *key)
{
    const char *given = whit_web_header(request, "Authorization"), *other = whit_web_header(request, "X-Api-Key");
    if (!other) other = whit_web_header(request, "X-Goog-Api-Key");
    uint8_t hash[32];
    bool ok = false;
    /* The scheme's letters may be of either case (RFC 9110, 11.1). */
    if (given && !strncasecmp(given, "Bearer ", 7))
        given = given + 7;
    else if (other)
        given = other;
    else
        given = "";
    hash_key(given, strlen(given), hash);
    *key = 0; /* a name that is not checked gives no place in the queue */
    if (site->n_keys) memcpy(key, hash, sizeof *key);
    for (size_t i = 0; i < site->n_keys; i++) ok |= sodium_memcmp(hash, site->keys[i].hash, sizeof hash) == 0;
    return ok || !site->n_keys;
}

void whit_access_log_key(const whit_site *site, uint64_t key, json_t *line)
{
    const struct whit_key *found = find_key(site, key);
    char digits[20];
    if (!found) return;
    snprintf(digits, sizeof digits, "%08x", (unsigned)key);
    json_object_set_new(line, "key", json_string(digits));
    if (found->name[0]) json_object_set_new(line, "name", json_string(found->name));
}

/* ---- limits of a key ------------------------------------------------------------------------------- */

bool whit_key_is_limited(const whit_site *site, uint64_t key)
{
    const struct whit_key *found = find_key(site, key);
    return found && found->models;
}

bool whit_key_may_use(const whit_site *site, uint64_t key, const char *model)
{
    const struct whit_key *found = find_key(site, key);
    size_t n_model = strlen(model);
    if (!found || !found->models) return true;
    for (const char *at = found->models; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n == n_model && !memcmp(at, model, n)) return true;
        at += n;
    }
    return false;
}

void whit_key_refuse_model(whit_web_reply *reply)
{
    whit_api_fail(reply, 403, "permission_error", "model", "this key may not use that model or adapter");
}

/* The generic cell rate algorithm: each request moves `due` on by its share of a minute, and is refused where `due`
 * would be more than a minute away. A key may thus use its whole minute at once. */
bool whit_key_count(const whit_site *site, uint64_t key, whit_web_reply *reply)
{
    const uint64_t minute_ns = 60000000000u, now_ns = whit_now_ns();
    struct whit_key *found = find_key(site, key);
    if (!found || !found->n_minute) return true;
    unsigned long long due_ns = atomic_load(&found->due_ns), next_ns;
    do {
        next_ns = (due_ns > now_ns ? due_ns : now_ns) + minute_ns / found->n_minute;
        if (next_ns > now_ns + minute_ns) {
            uint64_t wait_s = (next_ns - now_ns - minute_ns) / 1000000000u + 1;
            whit_api_fail(reply, 429, "rate_limit_error", NULL,
                          "this key may make %u requests a minute; try again in %llu s", found->n_minute,
                          (unsigned long long)wait_s);
            whit_api_set_code(reply, "rate_limit_exceeded");
            snprintf(reply->retry_after, sizeof reply->retry_after, "%llu", (unsigned long long)wait_s);
            whit_reply_header(reply, "Retry-After", reply->retry_after);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&found->due_ns, &due_ns, next_ns));
    return true;
}

/* ---- pages of other sites ------------------------------------------------------------------------ */

/* Whether a host, a port after it or not, is a name that the public name system can lead anywhere: it has a dot, is no
 * address, and does not end in one of the names that are reserved for machines and private networks (RFC 6761 and
 * ICANN's resolution on "internal", which containers use for the machine that they run on). */
static bool is_public_name(const char *host)
{
    static const char *const reserved[] = {".localhost", ".internal"};
    size_t n = strcspn(host, ":/");
    if (*host == '[' || !memchr(host, '.', n) || strspn(host, "0123456789.") >= n) return false;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        size_t n_end = strlen(reserved[i]);
        if (n > n_end && !strncasecmp(host + n - n_end, reserved[i], n_end)) return false;
    }
    return true;
}

/* The host and port of an origin of http or https; NULL: another scheme. */
static const char *origin_host(const char *origin)
{
    if (!strncmp(origin, "http://", 7)) return origin + 7;
    if (!strncmp(origin, "https://", 8)) return origin + 8;
    return NULL;
}

/* Without a key, a server for this machine alone trusts who reaches it. A page from elsewhere does where its name was
 * made to lead here (DNS rebinding): to the browser both are one site then, and only the name tells. */
static bool trusts_this_machine(const whit_site *site)
{
    const char *host = site->options->host;
    return !site->options->socket_path && !site->n_keys && host &&
        (!strncmp(host, "127.", 4) || !strcmp(host, "localhost") || !strcmp(host, "::1"));
}

/* Whether a request's Host is a public name other than the one of --cors. Ports are not compared: proxies differ in
 * whether they pass them on. */
static bool is_foreign_host(const whit_site *site, const char *host)
{
    const char *friend = site->options->cors_origin, *known;
    if (!host || !trusts_this_machine(site) || !is_public_name(host)) return false;
    if (!friend || !strcmp(friend, "*")) return !friend;
    known = origin_host(friend);
    size_t n = strcspn(host, ":/");
    return !known || strcspn(known, ":/") != n || strncasecmp(known, host, n) != 0;
}

bool whit_request_is_foreign(const whit_site *site, const whit_web_request *request)
{
    const char *from = whit_web_header(request, "Sec-Fetch-Site"), *origin = whit_web_header(request, "Origin");
    const char *friend = site->options->cors_origin, *named = origin ? origin_host(origin) : NULL;
    if (is_foreign_host(site, whit_web_header(request, "Host"))) return true;
    if (!strcmp(request->method, "GET") || !strcmp(request->method, "OPTIONS")) return false;
    bool foreign =
        (from && !strcmp(from, "cross-site")) || (named && trusts_this_machine(site) && is_public_name(named));
    return foreign && (!friend || !origin || (strcmp(friend, "*") != 0 && strcmp(friend, origin) != 0));
}

/* Whether an origin may be repeated in a line that a person copies into a shell: printable, without quotes. */
static bool is_plain_origin(const char *origin)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:/[]_-";
    size_t n = strlen(origin);
    return n && n < 300 && strspn(origin, plain) == n;
}

void whit_foreign_refuse(const whit_site *site, const whit_web_request *request, whit_web_reply *reply)
{
    const char *origin = whit_web_header(request, "Origin"), *host = whit_web_header(request, "Host");
    const char *scheme = whit_web_header(request, "X-Forwarded-Proto");
    char address[320];
    if (is_foreign_host(site, host)) {
        snprintf(address, sizeof address, "%s://%s", scheme && !strcmp(scheme, "https") ? scheme : "http", host);
        origin = address;
    }
    if (!origin || !is_plain_origin(origin)) origin = "ORIGIN";
    whit_api_fail(reply, 403, "permission_error", NULL,
                  "the server does not know the name %s, by which it was opened: start it with --cors %s, or with "
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
