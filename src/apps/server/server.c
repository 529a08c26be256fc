/* SPDX-License-Identifier: MIT
 * Listening, running and ending. */
#include "server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/malloc.h"
#include "sandbox/sandbox.h"
#include "server/models.h"
#include "server/notify.h"

enum { MOST_CONNECTIONS = 256, IDLE_SECONDS = 120, LAST_SECONDS = 10, TRIM_SECONDS = 20 };

/* Detects the socket of a server that was killed, on which nobody listens. connect() refuses other files as well, but
 * these must not be removed. */
static bool is_stale(const struct sockaddr_un *address)
{
    struct stat about;
    if (lstat(address->sun_path, &about) != 0 || !S_ISSOCK(about.st_mode)) return false;
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool stale =
        probe >= 0 && connect(probe, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
    if (probe >= 0) close(probe);
    return stale;
}

static whit_status listen_unix(const char *path, int *fd, whit_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: too long for a socket's path", path);
    strcpy(address.sun_path, path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = *fd >= 0;
    if (ok && bind(*fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int failure = errno;
        bool stale = failure == EADDRINUSE && is_stale(&address);
        ok = stale && unlink(path) == 0 && bind(*fd, (struct sockaddr *)&address, sizeof address) == 0;
        if (!stale) errno = failure;
    }
    if (!ok || listen(*fd, 128) != 0) return whit_fail_errno(error, path, "listen on");
    return WHIT_OK;
}

static whit_status listen_tcp(const char *host, uint32_t port, int *fd, char *address, size_t room, whit_error *error)
{
    char service[8], name[300];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    snprintf(service, sizeof service, "%u", port);
    snprintf(name, sizeof name, "%s:%u", host, port);
    int reason = getaddrinfo(host, service, &hints, &found);
    if (reason) return whit_fail(error, WHIT_ERROR_IO, "%s: %s", name, gai_strerror(reason));
    int yes = 1;
    *fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = *fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(*fd, found->ai_addr, found->ai_addrlen) == 0 && listen(*fd, 128) == 0;
    int failure = errno;
    freeaddrinfo(found);
    errno = failure;
    if (!ok && failure == EADDRINUSE)
        return whit_fail(error, WHIT_ERROR_IO, "%s: another program listens there; --port takes another, 0 any", name);
    if (!ok) return whit_fail_errno(error, name, "listen on");
    struct sockaddr_storage own;
    socklen_t n = sizeof own;
    char digits[16] = "";
    if (getsockname(*fd, (struct sockaddr *)&own, &n) == 0)
        getnameinfo((struct sockaddr *)&own, n, NULL, 0, digits, sizeof digits, NI_NUMERICSERV);
    snprintf(address, room, strchr(host, ':') ? "http://[%s]:%s" : "http://%s:%s", host, digits);
    return WHIT_OK;
}

enum { MOST_FOLDERS = 128 };

/* Folders that files are in. */
typedef struct folders {
    char *paths[MOST_FOLDERS + 1];
    size_t n;
} folders;

static void add_folder(folders *list, const char *path)
{
    struct stat about;
    char *own = path && list->n < MOST_FOLDERS ? realpath(path, NULL) : NULL;
    if (!own || stat(own, &about) != 0) {
        free(own);
        return;
    }
    char *end = S_ISDIR(about.st_mode) ? NULL : strrchr(own, '/');
    if (end) end[end == own] = 0;
    list->paths[list->n++] = own;
}

static void free_folders(folders *list)
{
    for (size_t i = 0; i < list->n; i++) free(list->paths[i]);
}

/* Confines the server: descriptors that are open stay usable, the folders of models and adapters can be read, and the
 * folders of converted models and of the cache changed. */
static whit_status confine(const whit_site *site, whit_error *error)
{
    const whit_server_options *options = site->options;
    folders read = {.n = 0}, write = {.n = 0};
    whit_error why;
    if (!whit_server_library())
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "libmicrohttpd (libmicrohttpd.so.12) is not on this machine");
    for (size_t i = 0; i < options->n_models; i++) {
        add_folder(&read, options->models[i].path);
        add_folder(options->models[i].is_converted ? &write : &read, options->models[i].file);
    }
    for (size_t i = 0; i < options->n_adapters; i++) add_folder(&read, options->adapters[i].path);
    if (options->cache_dir) {
        (void)mkdir(options->cache_dir, 0700); /* else whit_keep_open says why not */
        add_folder(&write, options->cache_dir);
    }
    whit_sandbox_rules rules = {.read = (const char *const *)read.paths, .write = (const char *const *)write.paths};
    whit_status status = whit_sandbox_enter(&rules, &why);
    free_folders(&read);
    free_folders(&write);
    if (status == WHIT_OK || status == WHIT_ERROR_UNSUPPORTED) {
        options->confined(options->confined_user, status == WHIT_OK ? NULL : why.message);
        return WHIT_OK;
    }
    *error = why;
    return status;
}

/* Returns a request's memory to the system after the request: bodies are mapped on their own, and the connection
 * threads share few arenas. */
static void keep_memory_flat(void)
{
    whit_malloc_map_from(256 << 10);
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 2);
#endif
}

static void trim_memory(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

whit_status whit_server_run(const whit_server_options *options, const atomic_int *stop, atomic_int *reload,
                            void (*ready)(void *user, const char *address, size_t n_bytes), void *user,
                            whit_error *error)
{
    whit_site site = {.options = options, .stop = stop, .log = {.fd = -1}};
    whit_web_server *server = NULL;
    char address[400];
    int fd = -1, notify = whit_notify_open();
    keep_memory_flat();
    snprintf(address, sizeof address, "unix:%s", options->socket_path ? options->socket_path : "");
    whit_status status = whit_models_open(&site, error);
    if (status == WHIT_OK)
        status = options->socket_path ? listen_unix(options->socket_path, &fd, error)
                                      : listen_tcp(options->host, options->port, &fd, address, sizeof address, error);
    if (status == WHIT_OK) status = whit_site_open(&site, error);
    if (status == WHIT_OK) site.models->entries[0].api->log = site.log;
    if (status == WHIT_OK && !options->is_unconfined) status = confine(&site, error);
    if (status == WHIT_OK) status = whit_models_start(&site, error);
    if (status == WHIT_OK)
        status =
            whit_web_serve(fd, MOST_CONNECTIONS, IDLE_SECONDS, &site.budget, whit_site_handle, &site, &server, error);
    if (status != WHIT_OK) {
        if (fd >= 0) close(fd);
        if (notify >= 0) close(notify);
        whit_models_close(&site);
        whit_site_close(&site);
        return status;
    }
    ready(user, address, site.models->entries[0].n_bytes);
    whit_notify(notify, "READY=1");
    const struct timespec moment = {.tv_nsec = 50000000};
    for (uint64_t trimmed_ns = whit_now_ns(); *stop == 0;) {
        if (whit_now_ns() - trimmed_ns > TRIM_SECONDS * 1000000000ull) {
            trim_memory();
            trimmed_ns = whit_now_ns();
        }
        if (*reload) {
            *reload = 0;
            whit_models_reload(&site);
        }
        nanosleep(&moment, NULL);
    }
    whit_notify(notify, "STOPPING=1");
    /* Removed before the socket closes, since another server may take its name afterwards. In the sandbox it cannot be
     * removed, and the next server replaces it. */
    if (options->socket_path) unlink(options->socket_path);
    whit_web_quiesce(server);
    /* The last replies go out; a client that reads or sends too slowly is not waited for. */
    for (uint64_t idle_ns = 0; *stop == 1; nanosleep(&moment, NULL)) {
        bool idle = whit_models_are_idle(&site);
        if (idle && !whit_web_in_flight(server)) break;
        if (!idle || !idle_ns) idle_ns = whit_now_ns();
        if (whit_now_ns() - idle_ns > LAST_SECONDS * 1000000000ull) break;
    }
    whit_web_close(server);
    whit_models_close(&site);
    whit_site_close(&site);
    if (notify >= 0) close(notify);
    return WHIT_OK;
}
