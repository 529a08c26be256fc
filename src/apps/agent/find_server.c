/* SPDX-License-Identifier: MIT
 * Finds a running model server on this machine, for whit agent and whit edit without -m and --url. */
#include "agent/find_server.h"
#include "agent/guard.h"
#include "base/file.h"
#include "base/items.h"
#include "base/plain.h"
#include "endpoint/endpoint.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TIMEOUT_MS = 1500, LIST_BYTES_MAX = 1 << 20 };

/* Known model servers: the environment variable that may set the port, the usual address, and the programs that use
 * it. */
static const struct {
    const char *variable, *usual, *what;
} servers[] = {
    {"WHIT_PORT", "127.0.0.1:8080", "whit serve or llama.cpp"},
    {"OLLAMA_HOST", "127.0.0.1:11434", "Ollama"},
};
enum { N_SERVERS = sizeof servers / sizeof *servers };

/* Writes the address of server i, such as "127.0.0.1:8080": always this machine, with the port from the server's
 * variable or the usual port. */
static void write_address(size_t i, char address[64])
{
    const char *given = getenv(servers[i].variable), *port = given ? strrchr(given, ':') : NULL;
    port = port ? port + 1 : given;
    if (port && strspn(port, "0123456789") == strlen(port) && *port && strlen(port) <= 5)
        snprintf(address, 64, "127.0.0.1:%.5s", port);
    else
        snprintf(address, 64, "%s", servers[i].usual);
}

/* Owner of the process that listens on a local port, read from /proc/net/tcp and /proc/net/tcp6, which list the user id
 * of each socket. */
enum owner { OWNER_UNKNOWN, OWNER_SELF, OWNER_SYSTEM, OWNER_OTHER };

static enum owner owner_of(unsigned port)
{
    enum { LISTENING = 0x0A, FIRST_PERSON = 1000 };
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    enum owner owner = OWNER_UNKNOWN;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char line[512];
        unsigned local, state, uid;
        FILE *table = fopen(tables[i], "re");
        while (table && fgets(line, sizeof line, table)) {
            if (sscanf(line, " %*u: %*[0-9A-F]:%x %*s %x %*s %*s %*s %u", &local, &state, &uid) != 3 || local != port ||
                state != LISTENING)
                continue;
            enum owner this = OWNER_OTHER;
            if (uid == getuid())
                this = OWNER_SELF;
            else if (uid < FIRST_PERSON)
                this = OWNER_SYSTEM;
            if (this > owner) owner = this;
        }
        if (table) fclose(table);
    }
    return owner;
}

/* Picks the first model of a /v1/models list that is not an embedding model. Returns NULL if there is no such model. */
static const char *pick_model(const json_t *list)
{
    size_t i;
    const json_t *model;
    json_array_foreach(json_object_get(list, "data"), i, model)
    {
        const char *id = json_string_value(json_object_get(model, "id"));
        if (id && *id && !strstr(id, "embed")) return id;
    }
    return NULL;
}

/* Asks a server for its models. Returns false if the server belongs to another user or does not answer or, with
 * `wanted` NULL, has no model except embedding models. Does not check that the server has the model `wanted`. */
static bool ask_server(const char *address, const char *wanted, whit_found_server *found)
{
    char url[256];
    whit_buf body = {0};
    whit_error error;
    const unsigned port = (unsigned)strtoul(strrchr(address, ':') + 1, NULL, 10);
    const enum owner owner = owner_of(port);
    if (owner == OWNER_OTHER) {
        whit_buf_printf(&found->notes,
                        "the model server at %s belongs to another user of this machine, so it is not used (--url "
                        "http://%s/v1 uses it)\n",
                        address, address);
        return false;
    }
    snprintf(url, sizeof url, "http://%s/v1/models", address);
    bool ok = whit_endpoint_get(url, TIMEOUT_MS, LIST_BYTES_MAX, &body, &error) == WHIT_OK;
    json_t *list = ok ? json_loadb(whit_chars(&body), body.size_bytes, 0, NULL) : NULL;
    const char *name = wanted ? wanted : pick_model(list);
    size_t n = json_array_size(json_object_get(list, "data"));
    whit_buf_free(&body);
    if (list && name) {
        const size_t n_url = (size_t)snprintf(url, sizeof url, "http://%s/v1", address) + 1;
        whit_buf_append_str(&found->notes, "the model is ");
        (void)whit_plain_show(name, strlen(name), WHIT_PLAIN_NAME, &found->notes);
        whit_buf_printf(&found->notes, " at %s%s\n", url,
                        wanted || n < 2 ? "" : " (--model NAME chooses another of its models, /model lists them)");
        ok = whit_buf_append(&found->texts, url, n_url) && whit_buf_append(&found->texts, name, strlen(name) + 1);
        found->url = whit_chars(&found->texts);
        found->name = whit_chars(&found->texts) + n_url;
        found->port = port;
        found->hides_key = owner != OWNER_SELF;
    }
    ok = ok && list && name && !found->texts.failed;
    json_decref(list);
    return ok;
}

whit_status whit_find_server(const char *wanted, whit_found_server *found, whit_error *error)
{
    char addresses[N_SERVERS][64];
    *found = (whit_found_server){.url = NULL};
    for (size_t i = 0; i < N_SERVERS; i++) {
        write_address(i, addresses[i]);
        if (ask_server(addresses[i], wanted, found)) return WHIT_OK;
    }
    return whit_fail(
        error, WHIT_ERROR_ARGUMENT,
        "no model given, and no server answers at %s (%s) nor at %s (%s): -m MODEL runs one here, --url URL asks "
        "elsewhere; docs/use/agent.md names models that call tools well",
        addresses[0], servers[0].what, addresses[1], servers[1].what);
}

whit_status whit_found_server_check(const void *found, whit_error *error)
{
    const whit_found_server *server = found;
    const enum owner owner = owner_of(server->port);
    if (owner == OWNER_SELF || (server->hides_key && owner != OWNER_OTHER)) return WHIT_OK;
    if (owner == OWNER_UNKNOWN)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: nothing answers there; is the server running?", server->url);
    return whit_fail(
        error, WHIT_ERROR_ARGUMENT,
        "%s: another user of this machine has a server there now, so nothing is sent to it (--url uses it)",
        server->url);
}

void whit_found_server_free(whit_found_server *found)
{
    whit_buf_free(&found->texts);
    whit_buf_free(&found->notes);
    *found = (whit_found_server){.url = NULL};
}

static void trim_key(whit_buf *key)
{
    while (key->size_bytes && strchr(" \t\r\n", key->data[key->size_bytes - 1])) key->size_bytes--;
}

whit_status whit_agent_key(const char *key_file, whit_buf *key, whit_error *error)
{
    const char *given = getenv("WHIT_API_KEY");
    struct stat info;
    if (key_file) {
        if (stat(key_file, &info) != 0) return whit_fail_errno(error, key_file, "read");
        if (info.st_mode & 077)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "%s: other users of this machine may read the key in this file; run chmod 600 on it",
                             key_file);
        WHIT_TRY(whit_read_file(key_file, 4096, key, error));
        trim_key(key);
        if (!key->size_bytes)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: contains no key; write the endpoint's key into it",
                             key_file);
    } else if (given) {
        whit_buf_append_str(key, given);
        trim_key(key);
    }
    if (!whit_buf_append(key, "", 1)) return whit_fail_memory(error, "a key", key->size_bytes);
    if (whit_guard_know_key(whit_chars(key))) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_LIMIT,
                     "this process has used too many different keys to keep them hidden; start it again");
}
