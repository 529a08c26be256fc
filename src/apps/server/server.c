/* SPDX-License-Identifier: MIT
 * Starts the server, runs it and ends it. */
#include "base/phrase.h"
#include "server/server.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/malloc.h"
#include "base/sockets.h"
#include "sandbox/sandbox.h"
#include "server/access.h"
#include "server/kv_events.h"
#include "server/models.h"
#include "server/notify.h"
#include "server/store.h"

enum { MOST_CONNECTIONS = 256, IDLE_SECONDS = 120, LAST_SECONDS = 10, TRIM_SECONDS = 20 };
enum { STOP_SECONDS = 120 }; /* time for running answers after the drain, as in deploy/whit.service */

enum { MOST_FOLDERS = 128 };

/* A list of folders for the sandbox. */
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

/* Enters the sandbox: open descriptors stay usable, the folders of models and adapters can only be read, and the
 * folders of converted models, of the store and of the cache can also be changed. Succeeds, too, if this machine has no
 * sandbox; `confined` is then called with the reason. */
static whit_status confine(const whit_site *site, whit_error *error)
{
    const whit_server_options *options = site->options;
    folders read = {.n = 0}, write = {.n = 0};
    whit_error why;
    if (!whit_server_library())
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "libmicrohttpd (libmicrohttpd.so.12) is not on this machine: install libmicrohttpd12");
    for (size_t i = 0; i < options->n_models; i++) {
        add_folder(&read, options->models[i].path);
        add_folder(options->models[i].is_converted ? &write : &read, options->models[i].file);
    }
    if (options->store) {
        (void)mkdir(options->store->folder, 0700);
        add_folder(&write, options->store->folder);
    }
    for (size_t i = 0; i < options->n_adapters; i++) add_folder(&read, options->adapters[i].path);
    if (options->cache_dir) {
        (void)mkdir(options->cache_dir, 0700); /* if this fails, whit_keep_open reports why */
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

/* Makes malloc return memory to the system after a request: large blocks, such as bodies, get their own mappings, and
 * the connections' threads share few arenas. */
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

static const struct timespec LOOK_PAUSE = {.tv_nsec = 50000000};

/* Until a signal tells the server to end: returns free memory to the system every TRIM_SECONDS, and reads replaced
 * files when *reload is set. */
static void look_after(whit_site *site, atomic_int *reload)
{
    for (uint64_t trimmed_ns = whit_now_ns(); *site->stop == 0; nanosleep(&LOOK_PAUSE, NULL)) {
        if (whit_now_ns() - trimmed_ns > TRIM_SECONDS * 1000000000ull) {
            trim_memory();
            trimmed_ns = whit_now_ns();
        }
        if (*reload) {
            *reload = 0;
            whit_access_reload(site);
            whit_models_reload(site);
        }
    }
}

/* Keeps serving for drain_s seconds, so that a load balancer learns from /health to send no more requests. A second
 * signal ends this early. */
static void drain(whit_site *site)
{
    const uint64_t end_ns = whit_now_ns() + site->options->drain_s * 1000000000ull;
    while (*site->stop == 1 && whit_now_ns() < end_ns) nanosleep(&LOOK_PAUSE, NULL);
    site->is_refusing = true;
}

/* Tells systemd that the service is stopping, and that it needs the drain's time and STOP_SECONDS more for running
 * answers, whatever the unit's TimeoutStopSec says. */
static void tell_stopping(int notify, uint32_t drain_s)
{
    char state[80];
    const unsigned long long seconds = (unsigned long long)drain_s + STOP_SECONDS;
    snprintf(state, sizeof state, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu", seconds * 1000000);
    whit_notify(notify, state);
}

whit_status whit_server_run(const whit_server_options *options, const atomic_int *stop, atomic_int *reload,
                            void (*ready)(void *user, const char *address, size_t n_bytes), void *user,
                            whit_error *error)
{
    whit_site site = {.options = options, .stop = stop, .log = {.fd = -1}, .store_fd = -1, .key_fd = -1, .keep_fd = -1};
    whit_web_server *server = NULL;
    char address[400];
    int fd = -1, notify = whit_notify_open();
    keep_memory_flat();
    snprintf(address, sizeof address, "unix:%s", whit_or_empty(options->socket_path));
    pthread_mutex_init(&site.store_lock, NULL);
    whit_status status = options->store ? whit_store_open(options->store, &site.store_fd, error) : WHIT_OK;
    if (status == WHIT_OK && !options->is_unconfined) status = whit_access_start(&site, error);
    if (status == WHIT_OK) status = whit_models_open(&site, error);
    if (status == WHIT_OK)
        status = options->socket_path
            ? whit_listen_unix(options->socket_path, &fd, error)
            : whit_listen_tcp(options->host, options->port, "choose another port by --port (0: any)", &fd, address,
                              sizeof address, error);
    site.is_local = !options->socket_path && whit_socket_is_local(fd);
    if (status == WHIT_OK) status = whit_events_open(options, address, &site.events, error);
    if (status == WHIT_OK) status = whit_site_open(&site, error);
    if (status == WHIT_OK) site.models->entries[0].api->log = site.log;
    if (status == WHIT_OK && !options->is_unconfined) status = confine(&site, error);
    if (status == WHIT_OK) status = whit_events_start(site.events, error);
    if (status == WHIT_OK) status = whit_models_start(&site, error);
    /* copied now, because requests may change the entry */
    const size_t n_bytes = status == WHIT_OK ? site.models->entries[0].n_bytes : 0;
    if (status == WHIT_OK)
        status =
            whit_web_serve(fd, MOST_CONNECTIONS, IDLE_SECONDS, &site.budget, whit_site_handle, &site, &server, error);
    if (status != WHIT_OK) {
        whit_socket_close(fd);
        if (notify >= 0) close(notify);
        whit_models_close(&site);
        whit_events_close(site.events);
        whit_site_close(&site);
        return status;
    }
    ready(user, address, n_bytes);
    whit_notify(notify, "READY=1");
    look_after(&site, reload);
    tell_stopping(notify, options->drain_s);
    drain(&site);
    /* The socket's file is removed before the socket is closed, because another server may use its name afterwards. In
     * the sandbox the removal fails; then the next server replaces the file. */
    if (options->socket_path) unlink(options->socket_path);
    whit_web_quiesce(server);
    /* Waits until the last replies are sent, but not for clients that read or send too slowly. */
    for (uint64_t idle_ns = 0; *stop == 1; nanosleep(&LOOK_PAUSE, NULL)) {
        bool idle = whit_models_are_idle(&site);
        if (idle && !whit_web_in_flight(server)) break;
        if (!idle || !idle_ns) idle_ns = whit_now_ns();
        if (whit_now_ns() - idle_ns > LAST_SECONDS * 1000000000ull) break;
    }
    whit_web_close(server);
    whit_models_close(&site);
    whit_events_close(site.events);
    whit_site_close(&site);
    if (notify >= 0) close(notify);
    return WHIT_OK;
}
