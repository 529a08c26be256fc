/* SPDX-License-Identifier: MIT
 * Listening, running and ending. */
#include "server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/sandbox.h"
#include "server/api.h"
#include "server/notify.h"

enum { MOST_CONNECTIONS = 256, IDLE_SECONDS = 120 };

static whit_status listen_unix(const char *path, int *fd, whit_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: too long for a socket's path", path);
    strcpy(address.sun_path, path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = *fd >= 0;
    if (ok && bind(*fd, (struct sockaddr *)&address, sizeof address) != 0) {
        /* A socket that nobody listens on is left from a server that was killed. */
        int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool stale = errno == EADDRINUSE && connect(probe, (struct sockaddr *)&address, sizeof address) != 0 &&
            errno == ECONNREFUSED;
        close(probe);
        ok = stale && unlink(path) == 0 && bind(*fd, (struct sockaddr *)&address, sizeof address) == 0;
        if (!ok && !stale) errno = EADDRINUSE;
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
    if (!ok) return whit_fail_errno(error, name, "listen on");
    struct sockaddr_storage own;
    socklen_t n = sizeof own;
    char digits[16] = "";
    if (getsockname(*fd, (struct sockaddr *)&own, &n) == 0)
        getnameinfo((struct sockaddr *)&own, n, NULL, 0, digits, sizeof digits, NI_NUMERICSERV);
    snprintf(address, room, strchr(host, ':') ? "http://[%s]:%s" : "http://%s:%s", host, digits);
    return WHIT_OK;
}

/* From here on: what is open stays open, and nothing else can be reached. */
static whit_status confine(const whit_server_options *options, whit_error *error)
{
    whit_sandbox_rules nothing = {0};
    whit_error why;
    if (!whit_server_library())
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "libmicrohttpd (libmicrohttpd.so.12) is not on this machine");
    whit_status status = whit_sandbox_enter(&nothing, &why);
    if (status == WHIT_OK || status == WHIT_ERROR_UNSUPPORTED) {
        options->confined(options->confined_user, status == WHIT_OK ? NULL : why.message);
        return WHIT_OK;
    }
    *error = why;
    return status;
}

whit_status whit_server_run(const whit_model *model, const whit_server_options *options, const volatile int *stop,
                            void (*ready)(void *user, const char *address), void *user, whit_error *error)
{
    whit_api api = {.model = model, .options = options, .stop = stop};
    whit_web_server *server = NULL;
    char address[400];
    int fd = -1, notify = whit_notify_open();
    snprintf(address, sizeof address, "unix:%s", options->socket_path ? options->socket_path : "");
    whit_status status = options->socket_path
        ? listen_unix(options->socket_path, &fd, error)
        : listen_tcp(options->host, options->port, &fd, address, sizeof address, error);
    if (status == WHIT_OK) status = whit_api_open(&api, error);
    if (status == WHIT_OK && !options->is_unconfined) status = confine(options, error);
    if (status == WHIT_OK) status = whit_api_start(&api, error);
    if (status == WHIT_OK)
        status = whit_web_serve(fd, MOST_CONNECTIONS, IDLE_SECONDS, whit_api_handle, &api, &server, error);
    if (status != WHIT_OK) {
        if (fd >= 0) close(fd);
        if (notify >= 0) close(notify);
        whit_api_close(&api);
        return status;
    }
    ready(user, address);
    whit_notify(notify, "READY=1");
    const struct timespec moment = {.tv_nsec = 50000000};
    while (*stop == 0) nanosleep(&moment, NULL);
    whit_notify(notify, "STOPPING=1");
    whit_web_quiesce(server);
    while (*stop == 1 && !whit_engine_is_idle(api.engine)) nanosleep(&moment, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* the last replies go out */
    whit_web_close(server);
    whit_api_close(&api);
    /* In the sandbox it stays; the next server takes its place. */
    if (options->socket_path) unlink(options->socket_path);
    if (notify >= 0) close(notify);
    return WHIT_OK;
}
