/* SPDX-License-Identifier: MIT */
#include "hub_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "hub/sha1.h"

struct hub_server {
    struct hub_repository *repository;
    pthread_t thread;
    pthread_mutex_t mutex; /* locked while a request is answered */
    int ports[2], listeners[2], wake[2];
    char addresses[2][40];
    whit_buf log;
    char *shown;
    bool verbose;
};

struct request {
    char target[2048], range[64], if_range[256], auth[600];
    int port; /* index of the port: 0 or 1 */
};

/* ---- sending -------------------------------------------------------------------------------- */

static bool send_all(int fd, const void *data, size_t n_bytes)
{
    const char *bytes = data;
    while (n_bytes) {
        ssize_t n = send(fd, bytes, n_bytes, MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

static void answer(int fd, long status, const char *headers, const void *body, size_t n_bytes)
{
    whit_buf head = {0};
    whit_buf_printf(&head, "HTTP/1.1 %ld Whatever\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n", status,
                    n_bytes, headers);
    if (send_all(fd, head.data, head.size_bytes)) send_all(fd, body, n_bytes);
    whit_buf_free(&head);
}

static void refuse(int fd, long status, const char *code)
{
    char header[100] = "";
    if (code) snprintf(header, sizeof header, "X-Error-Code: %s\r\n", code);
    answer(fd, status, header, "no\n", 3);
}

/* ---- replies of the hub's API --------------------------------------------------------------- */

static void digest_of(const struct hub_file *file, char text[65])
{
    uint8_t digest[32];
    if (file->is_large) {
        crypto_hash_sha256(digest, file->data, file->size_bytes);
    } else {
        whit_sha1 sha1;
        char head[40];
        int n = snprintf(head, sizeof head, "blob %zu", file->size_bytes);
        whit_sha1_begin(&sha1);
        whit_sha1_add(&sha1, head, (size_t)n + 1);
        whit_sha1_add(&sha1, file->data, file->size_bytes);
        whit_sha1_end(&sha1, digest);
    }
    sodium_bin2hex(text, 65, digest, file->is_large ? 32 : WHIT_SHA1_BYTES);
}

static void add_entry(whit_buf *out, const struct hub_file *file)
{
    char digest[65];
    digest_of(file, digest);
    const char *said = file->listed_digest ? file->listed_digest : digest;
    long long size = file->listed_bytes ? file->listed_bytes : (long long)file->size_bytes;
    whit_buf_printf(out, "{\"type\":\"file\",\"path\":\"%s\",\"size\":%lld", file->path, size);
    if (file->is_large)
        whit_buf_printf(out, ",\"oid\":\"%040d\",\"lfs\":{\"oid\":\"%s\",\"size\":%lld,\"pointerSize\":134}", 7, said,
                        size);
    else
        whit_buf_printf(out, ",\"oid\":\"%s\"", said);
    whit_buf_append_str(out, "}");
}

static void send_tree(const hub_server *server, int fd, const char *target)
{
    const struct hub_repository *repository = server->repository;
    if (repository->tree) {
        answer(fd, 200, "", repository->tree, strlen(repository->tree));
        return;
    }
    whit_buf body = {0};
    char link[600] = "";
    const char *cursor = strstr(target, "cursor=");
    size_t first = cursor ? strtoul(cursor + 7, NULL, 10) : 0, last = repository->n_files;
    if (repository->page_files && repository->page_files < last - first) last = first + repository->page_files;
    if (last < repository->n_files || repository->endless_pages)
        snprintf(link, sizeof link, "Link: <%s/api/models/%s/tree/main?recursive=true&cursor=%zu>; rel=\"next\"\r\n",
                 server->addresses[0], repository->name, repository->endless_pages ? repository->n_files : last);
    whit_buf_append_str(&body, "[{\"type\":\"directory\",\"path\":\"some\",\"size\":0}");
    for (size_t i = first; i < last; i++) {
        whit_buf_append_str(&body, ",");
        add_entry(&body, &repository->files[i]);
    }
    whit_buf_append_str(&body, "]");
    answer(fd, 200, link, body.data, body.size_bytes);
    whit_buf_free(&body);
}

static void send_info(const hub_server *server, int fd)
{
    const struct hub_repository *repository = server->repository;
    whit_buf body = {0};
    whit_buf_printf(&body, "{\"id\":\"%s\",\"sha\":\"%s\",", repository->name,
                    repository->commit ? repository->commit : HUB_COMMIT);
    if (repository->licence) whit_buf_printf(&body, "\"cardData\":{\"license\":\"%s\"},", repository->licence);
    whit_buf_append_str(&body, "\"siblings\":[");
    for (size_t i = 0; i < repository->n_files; i++)
        whit_buf_printf(&body, "%s{\"rfilename\":\"%s\"}", i ? "," : "", repository->files[i].path);
    whit_buf_append_str(&body, "]}");
    answer(fd, 200, "", body.data, body.size_bytes);
    whit_buf_free(&body);
}

static void send_body(int fd, struct hub_file *file, size_t first)
{
    const char *data = file->data;
    size_t end = file->size_bytes;
    bool cut = file->n_cuts && end - first > file->cut_after_bytes;
    if (cut) {
        end = first + file->cut_after_bytes;
        file->n_cuts--;
    }
    size_t slice = file->bytes_per_s ? file->bytes_per_s / 50 + 1 : end - first;
    while (first < end) {
        size_t n = end - first < slice ? end - first : slice;
        if (!send_all(fd, data + first, n)) return;
        first += n;
        struct timespec pause = {.tv_nsec = 20000000};
        if (file->bytes_per_s) nanosleep(&pause, NULL);
    }
}

static void send_file(const hub_server *server, int fd, const struct request *request, struct hub_file *file)
{
    char digest[65], etag[128] = "", linked[128] = "";
    whit_buf head = {0};
    digest_of(file, digest);
    snprintf(etag, sizeof etag, "\"%s\"", digest);
    if (file->etag) snprintf(etag, sizeof etag, "%s", file->etag);
    if (request->port == 0 && !file->no_linked_etag)
        snprintf(linked, sizeof linked, "X-Linked-Etag: \"%s\"\r\n", digest);
    if (file->status) {
        refuse(fd, file->status, file->error_code);
        return;
    }
    if (request->port == 0 && (file->is_elsewhere || file->redirects_for_ever)) {
        whit_buf_printf(&head,
                        "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 5\r\n%sLocation: %s%s\r\n\r\nmoved",
                        linked, server->addresses[!file->redirects_for_ever], request->target);
        send_all(fd, head.data, head.size_bytes);
        whit_buf_free(&head);
        return;
    }
    size_t first = 0;
    bool same = !request->if_range[0] || strcmp(request->if_range, etag) == 0;
    if (strncmp(request->range, "bytes=", 6) == 0 && same && !file->no_ranges)
        first = strtoul(request->range + 6, NULL, 10);
    if (first >= file->size_bytes && first) {
        char range[64];
        snprintf(range, sizeof range, "Content-Range: bytes */%zu\r\n", file->size_bytes);
        answer(fd, 416, range, "", 0);
        return;
    }
    whit_buf_printf(&head, "HTTP/1.1 %s\r\nConnection: close\r\n%s", first ? "206 Partial Content" : "200 OK", linked);
    if (*etag) whit_buf_printf(&head, "ETag: %s\r\n", etag);
    if (!file->no_length) whit_buf_printf(&head, "Content-Length: %zu\r\n", file->size_bytes - first);
    if (first)
        whit_buf_printf(&head, "Content-Range: bytes %zu-%zu/%zu\r\n", first, file->size_bytes - 1, file->size_bytes);
    whit_buf_append_str(&head, "\r\n");
    if (send_all(fd, head.data, head.size_bytes)) {
        sleep(file->pause_s);
        send_body(fd, file, first);
    }
    whit_buf_free(&head);
}

/* Returns the file that /OWNER/NAME/resolve/REVISION/PATH names, or NULL. */
static struct hub_file *asked_for(const struct hub_repository *repository, const char *target)
{
    size_t n = strlen(repository->name);
    if (strncmp(target + 1, repository->name, n) != 0 || strncmp(target + 1 + n, "/resolve/", 9) != 0) return NULL;
    const char *path = strchr(target + 1 + n + 9, '/');
    for (size_t i = 0; path && i < repository->n_files; i++)
        if (strcmp(repository->files[i].path, path + 1) == 0) return &repository->files[i];
    return NULL;
}

static void route(const hub_server *server, int fd, const struct request *request)
{
    struct hub_repository *repository = server->repository;
    char tree[300], info[300], wanted[600];
    int n_tree = snprintf(tree, sizeof tree, "/api/models/%s/tree/", repository->name);
    int n_info = snprintf(info, sizeof info, "/api/models/%s", repository->name);
    snprintf(wanted, sizeof wanted, "Bearer %s", repository->token ? repository->token : "");
    struct hub_file *file = asked_for(repository, request->target);
    if (repository->n_busy) {
        repository->n_busy--;
        refuse(fd, 503, NULL);
    } else if (request->port == 0 && repository->token && strcmp(request->auth, wanted) != 0) {
        refuse(fd, 401, NULL);
    } else if (!repository->no_tree && strncmp(request->target, tree, (size_t)n_tree) == 0) {
        send_tree(server, fd, request->target);
    } else if (!repository->no_info && strncmp(request->target, info, (size_t)n_info) == 0 &&
               strncmp(request->target, tree, (size_t)n_tree) != 0) {
        send_info(server, fd);
    } else if (file) {
        send_file(server, fd, request, file);
    } else {
        refuse(fd, 404, repository->no_tree || repository->no_info ? NULL : "RepoNotFound");
    }
}

/* ---- connections ---------------------------------------------------------------------------- */

static void take_header(const char *head, const char *name, char *value, size_t value_bytes)
{
    const char *at = strcasestr(head, name);
    value[0] = 0;
    if (!at) return;
    at += strlen(name);
    at += strspn(at, " ");
    size_t n = strcspn(at, "\r\n");
    snprintf(value, value_bytes, "%.*s", (int)n, at);
}

static void serve(hub_server *server, int fd, int port)
{
    char head[8192];
    size_t n = 0;
    struct request request = {.port = port};
    const struct timeval patience = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    do {
        ssize_t got = recv(fd, head + n, sizeof head - 1 - n, 0);
        if (got <= 0) return;
        n += (size_t)got;
        head[n] = 0;
    } while (!strstr(head, "\r\n\r\n") && n < sizeof head - 1);
    if (sscanf(head, "GET %2047s", request.target) != 1) return;
    take_header(head, "\r\nRange:", request.range, sizeof request.range);
    take_header(head, "\r\nIf-Range:", request.if_range, sizeof request.if_range);
    take_header(head, "\r\nAuthorization:", request.auth, sizeof request.auth);
    pthread_mutex_lock(&server->mutex);
    whit_buf_printf(&server->log, "%d GET %s range=%s if-range=%s auth=%s\n", port + 1, request.target, request.range,
                    request.if_range, request.auth);
    if (server->verbose)
        fprintf(stderr, "%d GET %s range=%s auth=%s\n", port + 1, request.target, request.range, request.auth);
    route(server, fd, &request);
    pthread_mutex_unlock(&server->mutex);
}

static void *run(void *user)
{
    hub_server *server = user;
    for (;;) {
        struct pollfd wait[3] = {{.fd = server->listeners[0], .events = POLLIN},
                                 {.fd = server->listeners[1], .events = POLLIN},
                                 {.fd = server->wake[0], .events = POLLIN}};
        if (poll(wait, 3, -1) < 0) continue;
        if (wait[2].revents) return NULL;
        for (int port = 0; port < 2; port++) {
            int fd = wait[port].revents ? accept(server->listeners[port], NULL, NULL) : -1;
            if (fd < 0) continue;
            serve(server, fd, port);
            shutdown(fd, SHUT_WR);
            close(fd);
        }
    }
}

static bool listen_on_any_port(hub_server *server, int i)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    server->listeners[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server->listeners[i] < 0 || bind(server->listeners[i], (struct sockaddr *)&address, n) != 0 ||
        listen(server->listeners[i], 16) != 0 ||
        getsockname(server->listeners[i], (struct sockaddr *)&address, &n) != 0)
        return false;
    snprintf(server->addresses[i], sizeof server->addresses[i], "http://127.0.0.1:%d", ntohs(address.sin_port));
    return true;
}

hub_server *hub_server_start(struct hub_repository *repository, bool verbose)
{
    hub_server *server = calloc(1, sizeof *server);
    if (!server) return NULL;
    server->repository = repository;
    server->verbose = verbose;
    server->listeners[0] = server->listeners[1] = -1;
    pthread_mutex_init(&server->mutex, NULL);
    if (listen_on_any_port(server, 0) && listen_on_any_port(server, 1) && pipe(server->wake) == 0 &&
        pthread_create(&server->thread, NULL, run, server) == 0)
        return server;
    for (int i = 0; i < 2; i++)
        if (server->listeners[i] >= 0) close(server->listeners[i]);
    free(server);
    return NULL;
}

void hub_server_rest(hub_server *server)
{
    pthread_mutex_lock(&server->mutex);
    pthread_mutex_unlock(&server->mutex);
}

void hub_server_stop(hub_server *server)
{
    if (!server) return;
    ssize_t ignored = write(server->wake[1], "", 1);
    (void)ignored;
    pthread_join(server->thread, NULL);
    for (int i = 0; i < 2; i++) {
        close(server->listeners[i]);
        close(server->wake[i]);
    }
    pthread_mutex_destroy(&server->mutex);
    whit_buf_free(&server->log);
    free(server->shown);
    free(server);
}

const char *hub_server_address(const hub_server *server)
{
    return server->addresses[0];
}

const char *hub_server_log(hub_server *server)
{
    pthread_mutex_lock(&server->mutex);
    free(server->shown);
    server->shown = strndup(server->log.size_bytes ? (const char *)server->log.data : "", server->log.size_bytes);
    server->log.size_bytes = 0;
    pthread_mutex_unlock(&server->mutex);
    return server->shown ? server->shown : "";
}
