/* SPDX-License-Identifier: MIT
 * Controls access: checks API keys, refuses requests from pages of other sites, and answers CORS requests of
 * browsers. */
#include "server/access.h"

#include "base/clock.h"
#include "base/opener.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_KEYS = 4096, MOST_KEY_BYTES = 512, MOST_LIST_BYTES = 2048 };

/* ---- reading and checking keys ----------------------------------------------------------------- */

static void hash_key(const char *key, size_t n, uint8_t hash[32])
{
    crypto_generichash(hash, 32, (const uint8_t *)key, n, NULL, 0);
}

static void free_keys(whit_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++) free(keys->items[i].models);
    free(keys->items);
    *keys = (whit_keys){.n = 0};
}

static whit_status refuse_size(const char *place, whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_LIMIT,
                     "%s: more keys or longer ones than possible: at most %d keys of %d bytes each", place, MOST_KEYS,
                     MOST_KEY_BYTES);
}

/* Adds the key text[0..n) with its name; only its hash is stored. `place` names the file or option in error
 * messages. */
static whit_status add_key(whit_keys *keys, const char *place, const char *name, size_t n_name, const char *text,
                           size_t n, whit_error *error)
{
    if (n > MOST_KEY_BYTES || keys->n == MOST_KEYS) return refuse_size(place, error);
    if (n_name >= WHIT_KEY_NAME_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: a key's name has at most %d bytes", place,
                         WHIT_KEY_NAME_BYTES - 1);
    struct whit_key *larger = realloc(keys->items, (keys->n + 1) * sizeof *larger);
    if (!larger) return whit_fail_memory(error, "the keys", (keys->n + 1) * sizeof *larger);
    keys->items = larger;
    struct whit_key *key = &keys->items[keys->n++];
    *key = (struct whit_key){.models = NULL};
    memcpy(key->name, name, n_name);
    hash_key(text, n, key->hash);
    return WHIT_OK;
}

/* Returns whether a line seems to have its name and key in the wrong order, as in a file for the other option.
 * Accepting it would make the public name a key, and would write the secret key to the log. Keys usually begin with
 * "sk-". */
static bool are_exchanged(const char *name, size_t n_name, const char *key, size_t n_key)
{
    enum { NAME_USUAL_BYTES = 24, KEY_SHORT_BYTES = 16 };
    bool is_name_key = n_name > 3 && !memcmp(name, "sk-", 3), is_key_key = n_key > 3 && !memcmp(key, "sk-", 3);
    bool is_long_name = n_name >= NAME_USUAL_BYTES && n_name < WHIT_KEY_NAME_BYTES; /* add_key refuses a name of
                                                                                     * WHIT_KEY_NAME_BYTES or more in
                                                                                     * any case */
    return (is_name_key && !is_key_key) || (is_long_name && n_key < KEY_SHORT_BYTES);
}

static whit_status refuse_exchanged(const char *path, const char *name, size_t n_name, const char *wanted,
                                    whit_error *error)
{
    return whit_fail(error, WHIT_ERROR_FORMAT, "%s: '%.*s' is not a key: lines are %s", path,
                     (int)(n_name < 40 ? n_name : 40), name, wanted);
}

/* Adds the key of a line of --api-key-file: "KEY" or "NAME KEY". Keys contain no blanks (RFC 6750, token68). */
static whit_status add_line(whit_keys *keys, const whit_server_options *options, const char *path, const char *line,
                            whit_error *error)
{
    (void)options;
    const char *word = line + strspn(line, " \t");
    size_t n = strcspn(word, " \t\r\n");
    const char *second = word + n + strspn(word + n, " \t");
    size_t n_second = *second == '#' ? 0 : strcspn(second, " \t\r\n"); /* a comment ends the line */
    if (!n || *word == '#') return WHIT_OK;
    if (!n_second && *second != '#' && second > word + n)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: a line ends with a blank after its only word: lines are KEY or NAME KEY", path);
    const char *third = second + n_second + strspn(second + n_second, " \t\r\n");
    if (*third && *third != '#')
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: a line has more than two words: lines are KEY or NAME KEY",
                         path);
    if (n_second && are_exchanged(word, n, second, n_second))
        return refuse_exchanged(path, second, n_second, "NAME KEY (--keys has KEY NAME MODELS RATE)", error);
    return n_second ? add_key(keys, path, word, n, second, n_second, error)
                    : add_key(keys, path, "", 0, word, n, error);
}

/* Returns whether the server can have a model or adapter of this name. */
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

/* Adds the key of a line of --keys: KEY NAME MODELS RATE. The last three words may be missing. */
static whit_status add_row(whit_keys *keys, const whit_server_options *options, const char *path, const char *line,
                           whit_error *error)
{
    const char *words[4] = {"", "-", "*", "0"}, *at = line;
    size_t n[4] = {0, 1, 1, 1}, n_words = 0;
    for (;; n_words++) {
        at += strspn(at, " \t\r\n");
        if (!*at || *at == '#') break;
        if (n_words == 4)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: a line has more than the four words KEY NAME MODELS RATE",
                             path);
        words[n_words] = at;
        n[n_words] = strcspn(at, " \t\r\n");
        at += n[n_words];
    }
    if (!n_words) return WHIT_OK;
    char *end;
    unsigned long rate = strtoul(words[3], &end, 10);
    if (end != words[3] + n[3] || words[3][0] == '-' || rate > 1000000)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: RATE is a number of requests a minute from 0 to 1000000, not '%.*s'", path,
                         (int)(n[3] < 40 ? n[3] : 40), words[3]);
    bool is_unnamed = n[1] == 1 && words[1][0] == '-', is_free = n[2] == 1 && words[2][0] == '*';
    if (are_exchanged(words[1], n[1], words[0], n[0]))
        return refuse_exchanged(path, words[0], n[0], "KEY NAME MODELS RATE (--api-key-file has NAME KEY)", error);
    if (!is_free) WHIT_TRY(check_models(options, path, words[2], n[2], error));
    WHIT_TRY(add_key(keys, path, words[1], is_unnamed ? 0 : n[1], words[0], n[0], error));
    struct whit_key *key = &keys->items[keys->n - 1];
    key->n_minute = (uint32_t)rate;
    key->models = is_free ? NULL : strndup(words[2], n[2]);
    return is_free || key->models ? WHIT_OK : whit_fail_memory(error, "the keys", n[2]);
}

typedef whit_status read_line(whit_keys *keys, const whit_server_options *options, const char *path, const char *line,
                              whit_error *error);

static whit_status read_file_keys(const whit_server_options *options, FILE *file, const char *path, read_line *add,
                                  whit_keys *keys, whit_error *error)
{
    char line[MOST_KEY_BYTES + WHIT_KEY_NAME_BYTES + MOST_LIST_BYTES + 16];
    const size_t n_before = keys->n;
    whit_status status = WHIT_OK;
    while (status == WHIT_OK && fgets(line, sizeof line, file)) {
        /* An overlong line is refused, because its rest would be read as another key. */
        if (strlen(line) + 1 == sizeof line && line[sizeof line - 2] != '\n')
            status = refuse_size(path, error);
        else
            status = add(keys, options, path, line, error);
    }
    if (status == WHIT_OK && ferror(file)) status = whit_fail_errno(error, path, "read");
    sodium_memzero(line, sizeof line);
    WHIT_TRY(status);
    return keys->n > n_before ? WHIT_OK
                              : whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: contains no key: write one a line", path);
}

/* The files with keys that the options may name. */
enum { KEY_FILES_MAX = 2 };
struct key_file {
    const char *path;
    read_line *add;
};

static size_t list_key_files(const whit_server_options *options, struct key_file files[KEY_FILES_MAX])
{
    size_t n = 0;
    if (options->key_file) files[n++] = (struct key_file){options->key_file, add_line};
    if (options->key_table) files[n++] = (struct key_file){options->key_table, add_row};
    return n;
}

/* Reads the keys of all options. With `again`, when the server is already in its sandbox, a helper process opens the
 * files. On failure the caller frees the keys that were read. */
static whit_status read_keys(const whit_site *site, bool again, whit_keys *keys, whit_error *error)
{
    const whit_server_options *options = site->options;
    struct key_file files[KEY_FILES_MAX];
    const size_t n_files = list_key_files(options, files);
    for (size_t i = 0; i < n_files; i++) {
        /* The server's first reading opens the file here, because it may be a pipe of the shell. */
        FILE *file = again ? NULL : fopen(files[i].path, "re");
        if (again)
            WHIT_TRY(whit_opener_open(site->key_fd, i, files[i].path, &file, error));
        else if (!file)
            return whit_fail_errno(error, files[i].path, "open");
        whit_status status = read_file_keys(options, file, files[i].path, files[i].add, keys, error);
        fclose(file);
        WHIT_TRY(status);
    }
    for (size_t i = 0; i < options->n_keys; i++) /* --api-key may be repeated or, as in llama.cpp, a comma-separated
                                                  * list */
        for (const char *at = options->keys[i]; *at; at += *at == ',') {
            at += strspn(at, " \t\r\n");
            const size_t n_item = strcspn(at, ",");
            size_t n = n_item;
            while (n && strchr(" \t\r\n", at[n - 1])) n--;
            if (n) WHIT_TRY(add_key(keys, "--api-key", "", 0, at, n, error));
            at += n_item;
        }
    if (options->n_keys && !keys->n)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "--api-key: the value contains no key");
    return WHIT_OK;
}

whit_status whit_access_start(whit_site *site, whit_error *error)
{
    struct key_file files[KEY_FILES_MAX];
    const char *paths[KEY_FILES_MAX];
    const size_t n = list_key_files(site->options, files);
    for (size_t i = 0; i < n; i++) paths[i] = files[i].path;
    return n ? whit_opener_start(paths, n, &site->key_fd, error) : WHIT_OK;
}

/* Refuses a value of --cors that is neither "*" nor an origin as browsers send it: "null", or a scheme and a host
 * without a path (RFC 6454, 7). */
static whit_status check_origin(const char *origin, whit_error *error)
{
    const char *host = strstr(origin, "://");
    if (!strcmp(origin, "*") || !strcmp(origin, "null") || (host && host[3] && !strpbrk(host + 3, "/ ,")))
        return WHIT_OK;
    return whit_fail(
        error, WHIT_ERROR_ARGUMENT,
        "--cors: '%s' is not an origin: give scheme and name without a path, as in https://chat.example.org", origin);
}

whit_status whit_access_read(whit_site *site, whit_error *error)
{
    if (site->options->cors_origin) WHIT_TRY(check_origin(site->options->cors_origin, error));
    site->keyring = calloc(1, sizeof *site->keyring);
    if (!site->keyring) return whit_fail_memory(error, "the keys", sizeof *site->keyring);
    pthread_rwlock_init(&site->keyring->lock, NULL);
    return read_keys(site, false, &site->keyring->keys, error);
}

void whit_access_free(whit_site *site)
{
    if (!site->keyring) return;
    free_keys(&site->keyring->keys);
    pthread_rwlock_destroy(&site->keyring->lock);
    free(site->keyring);
    site->keyring = NULL;
}

/* Returns the key whose hash begins with these 8 bytes, or NULL. The caller must hold the keyring's lock. */
static struct whit_key *find_key(const whit_keys *keys, uint64_t key)
{
    for (size_t i = 0; i < keys->n; i++)
        if (memcmp(&key, keys->items[i].hash, sizeof key) == 0) return &keys->items[i];
    return NULL;
}

void whit_access_reload(whit_site *site)
{
    const whit_server_options *options = site->options;
    whit_keys keys = {.n = 0}, before;
    whit_error error;
    if (!options->key_file && !options->key_table) return;
    if (read_keys(site, true, &keys, &error) != WHIT_OK) {
        fprintf(stderr, "whit: the keys are unchanged: %s\n", error.message);
        free_keys(&keys);
        return;
    }
    pthread_rwlock_wrlock(&site->keyring->lock);
    for (size_t i = 0; i < keys.n; i++) { /* a key that existed before keeps its count of requests */
        uint64_t hash;
        memcpy(&hash, keys.items[i].hash, sizeof hash);
        const struct whit_key *same = find_key(&site->keyring->keys, hash);
        if (same) atomic_init(&keys.items[i].due_ns, atomic_load(&same->due_ns));
    }
    before = site->keyring->keys;
    site->keyring->keys = keys;
    pthread_rwlock_unlock(&site->keyring->lock);
    fprintf(stderr, "whit: read %zu keys again; there were %zu before\n", keys.n, before.n);
    free_keys(&before);
}

bool whit_key_allows(const whit_site *site, const whit_web_request *request, uint64_t *key)
{
    const char *given = whit_web_header(request, "Authorization"), *other = whit_web_header(request, "X-Api-Key");
    if (!other) other = whit_web_header(request, "X-Goog-Api-Key");
    uint8_t hash[32];
    bool ok = false;
    /* "Bearer" may be written in either case (RFC 9110, 11.1). */
    if (given && !strncasecmp(given, "Bearer ", 7))
        given = given + 7;
    else if (other)
        given = other;
    else
        given = "";
    hash_key(given, strlen(given), hash);
    pthread_rwlock_rdlock(&site->keyring->lock);
    const size_t n_keys = site->keyring->keys.n;
    for (size_t i = 0; i < n_keys; i++) ok |= sodium_memcmp(hash, site->keyring->keys.items[i].hash, sizeof hash) == 0;
    pthread_rwlock_unlock(&site->keyring->lock);
    *key = 0; /* a wrong key must not count as a requester of its own in the queue */
    if (ok) memcpy(key, hash, sizeof *key);
    return ok || !n_keys;
}

static size_t count_keys(const whit_site *site)
{
    pthread_rwlock_rdlock(&site->keyring->lock);
    const size_t n = site->keyring->keys.n;
    pthread_rwlock_unlock(&site->keyring->lock);
    return n;
}

void whit_access_log_key(const whit_site *site, uint64_t key, json_t *line)
{
    char digits[20], name[WHIT_KEY_NAME_BYTES] = "";
    pthread_rwlock_rdlock(&site->keyring->lock);
    const struct whit_key *found = find_key(&site->keyring->keys, key);
    if (found) memcpy(name, found->name, sizeof name);
    pthread_rwlock_unlock(&site->keyring->lock);
    if (!found) return;
    snprintf(digits, sizeof digits, "%08x", (unsigned)key);
    json_object_set_new(line, "key", json_string(digits));
    if (name[0]) json_object_set_new(line, "name", json_string(name));
}

/* ---- limits of a key ------------------------------------------------------------------------------- */

bool whit_key_is_limited(const whit_site *site, uint64_t key)
{
    pthread_rwlock_rdlock(&site->keyring->lock);
    const struct whit_key *found = find_key(&site->keyring->keys, key);
    const bool is_limited = found ? found->models != NULL : key != 0;
    pthread_rwlock_unlock(&site->keyring->lock);
    return is_limited;
}

/* Returns whether a comma-separated list contains this name. */
static bool has_name(const char *list, const char *name)
{
    size_t n_name = strlen(name);
    for (const char *at = list; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n == n_name && !memcmp(at, name, n)) return true;
        at += n;
    }
    return false;
}

bool whit_key_may_use(const whit_site *site, uint64_t key, const char *model)
{
    pthread_rwlock_rdlock(&site->keyring->lock);
    const struct whit_key *found = find_key(&site->keyring->keys, key);
    const bool may_use = found ? !found->models || has_name(found->models, model) : !key;
    pthread_rwlock_unlock(&site->keyring->lock);
    return may_use;
}

void whit_key_refuse_model(whit_web_reply *reply)
{
    whit_api_fail(reply, 403, "permission_error", "model", "this key may not use that model or adapter");
}

/* Counts one more request. Returns 0, or the number of seconds to wait if the key's requests of a minute are used up.
 * By the generic cell rate algorithm: due_ns is the time at which all requests so far would be finished at the key's
 * rate, and may be at most a minute from now. A key may thus use its requests of a minute at once. */
static uint64_t count_request(struct whit_key *key)
{
    const uint64_t minute_ns = 60000000000u, now_ns = whit_now_ns();
    unsigned long long due_ns = atomic_load(&key->due_ns), next_ns;
    do {
        next_ns = (due_ns > now_ns ? due_ns : now_ns) + minute_ns / key->n_minute;
        if (next_ns > now_ns + minute_ns) return (next_ns - now_ns - minute_ns) / 1000000000u + 1;
    } while (!atomic_compare_exchange_weak(&key->due_ns, &due_ns, next_ns));
    return 0;
}

bool whit_key_count(const whit_site *site, uint64_t key, whit_web_reply *reply)
{
    pthread_rwlock_rdlock(&site->keyring->lock);
    struct whit_key *found = find_key(&site->keyring->keys, key);
    const uint32_t n_minute = found ? found->n_minute : 0;
    const uint64_t wait_s = n_minute ? count_request(found) : 0;
    pthread_rwlock_unlock(&site->keyring->lock);
    if (!wait_s) return true;
    whit_api_fail(reply, 429, "rate_limit_error", NULL, "this key may make %u requests a minute; try again in %llu s",
                  n_minute, (unsigned long long)wait_s);
    whit_api_set_code(reply, "rate_limit_exceeded");
    snprintf(reply->retry_after, sizeof reply->retry_after, "%llu", (unsigned long long)wait_s);
    whit_reply_header(reply, "Retry-After", reply->retry_after);
    return false;
}

/* ---- pages from other sites ---------------------------------------------------------------------- */

/* Returns the number of bytes before the port of a host, which is a name or an address; without the "]" of IPv6. */
static size_t name_bytes(const char *host)
{
    return *host == '[' ? strcspn(host, "]") : strcspn(host, ":/");
}

/* Returns whether the first n bytes of `host` end in `ending`, and have at least one byte before it. */
static bool ends_in(const char *host, size_t n, const char *ending)
{
    const size_t n_end = strlen(ending);
    return n > n_end && !strncasecmp(host + n - n_end, ending, n_end);
}

/* Returns whether a host, with or without a port, is a name that its owner can make resolve to any address. It is one
 * if it has a dot, is no address, and does not end in a reserved name: ".localhost" (RFC 6761) or ".internal" (reserved
 * by ICANN; containers use it for their host). */
static bool is_public_name(const char *host)
{
    static const char *const reserved[] = {".localhost", ".internal"};
    const size_t n = name_bytes(host);
    if (*host == '[' || !memchr(host, '.', n) || strspn(host, "0123456789.") >= n) return false;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (ends_in(host, n, reserved[i])) return false;
    return true;
}

/* Returns the host and port of an origin with http or https; NULL for another scheme. */
static const char *origin_host(const char *origin)
{
    if (!strncasecmp(origin, "http://", 7)) return origin + 7;
    if (!strncasecmp(origin, "https://", 8)) return origin + 8;
    return NULL;
}

/* Returns whether the server trusts every client on this machine: it has no keys and is reachable from this machine
 * only. Such a server can be attacked by a page whose name was made to resolve to this machine (DNS rebinding): the
 * browser treats page and server as one site, so only the name reveals the attack. */
static bool trusts_this_machine(const whit_site *site)
{
    return site->is_local && !count_keys(site);
}

/* Decides for a request without the header Sec-Fetch-Site whether a page of another site sent it. Browsers omit that
 * header if the server is on another machine and has no TLS. Origins on this machine and of programs (app://) are
 * allowed; the origin "null" is not. */
static bool is_elsewhere(const char *origin, const char *host)
{
    const char *named = origin ? origin_host(origin) : NULL;
    if (origin && !strcmp(origin, "null")) return true;
    if (!named || !host) return false;
    const size_t n = name_bytes(named);
    /* A name may also begin with "127.", so all characters are checked. */
    const bool is_this_machine = (!strncmp(named, "127.", 4) && strspn(named, "0123456789.") >= n) ||
        !strncmp(named, "[::1]", 5) || (n == 9 && !strncasecmp(named, "localhost", n)) ||
        ends_in(named, n, ".localhost");
    return !is_this_machine && (n != name_bytes(host) || strncasecmp(named, host, n) != 0);
}

/* Returns whether the server trusts this machine and the request's Host is a public name that --cors does not allow.
 * Ports are not compared, because some proxies remove them. */
static bool is_foreign_host(const whit_site *site, const char *host)
{
    const char *friend = site->options->cors_origin, *known;
    if (!host || !trusts_this_machine(site) || !is_public_name(host)) return false;
    if (!friend || !strcmp(friend, "*")) return !friend;
    known = origin_host(friend);
    size_t n = strcspn(host, ":/");
    return !known || strcspn(known, ":/") != n || strncasecmp(known, host, n) != 0;
}

bool whit_request_is_foreign(const whit_site *site, const whit_web_request *request, bool opens_model)
{
    const char *from = whit_web_header(request, "Sec-Fetch-Site"), *origin = whit_web_header(request, "Origin");
    const char *friend = site->options->cors_origin, *named = origin ? origin_host(origin) : NULL;
    const char *host = whit_web_header(request, "Host");
    if (is_foreign_host(site, host)) return true;
    if ((!strcmp(request->method, "GET") && !opens_model) || !strcmp(request->method, "OPTIONS")) return false;
    bool foreign =
        (from && !strcmp(from, "cross-site")) || (named && trusts_this_machine(site) && is_public_name(named));
    foreign |= !from && !count_keys(site) && is_elsewhere(origin, host);
    return foreign && (!friend || !origin || (strcmp(friend, "*") != 0 && strcmp(friend, origin) != 0));
}

/* Returns whether an origin may appear in a message that a user copies into a shell: it has fewer than 300 characters,
 * all of them ASCII letters, digits or one of . : / [ ] _ - */
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
    /* This is called for the headers and again after the body; the second call makes the reply. */
    if (request->headers_only) return true;
    /* All requested headers are allowed: clients send many of their own, such as x-stainless-lang or anthropic-version,
     * and only the key's header has an effect here. */
    const char *wanted = whit_web_header(request, "Access-Control-Request-Headers");
    whit_reply_header(reply, "Access-Control-Allow-Headers",
                      wanted ? wanted : "Authorization, Content-Type, X-Api-Key");
    whit_reply_header(reply, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    whit_reply_header(reply, "Access-Control-Max-Age", "600");
    reply->status = 204;
    return true;
}
