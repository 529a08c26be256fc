/* SPDX-License-Identifier: MIT
 * Serves HTTP by libmicrohttpd. The library is loaded on first use, because it needs a TLS library that no other verb
 * of the program needs. */
#include "base/utf8.h"
#include "server/http.h"
#include "base/clock.h"
#include "base/items.h"
#include "base/sockets.h"
#include "server/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* The stack of each connection's thread is large enough for JSON nested as deeply as the parser allows (2,048 levels),
 * also in builds with sanitizers. */
enum { HEADER_BYTES = 32768, STACK_BYTES = 8 << 20 };
/* SPARE_CONNECTIONS: connections that may be open beyond the limit, while others are being closed for them.
 * DROPPED_BYTES_MAX: how much of a refused body is read. */
enum { SPARE_CONNECTIONS = 64, DROPPED_BYTES_MAX = 4 * WHIT_WEB_MAX_BODY_BYTES };
enum { NEW_NS = 1000000000 }; /* age up to which a connection without a request counts as in flight */
enum { TAKEN_NS = 20000000 }; /* time in which the library's thread counts a connection that it has taken */
/* CLOSING_MAX: how many connections may be closing before new ones are delayed, each by CLOSING_NS for every connection
 * beyond that. */
enum { CLOSING_MAX = SPARE_CONNECTIONS / 2, CLOSING_NS = 5000000 };

struct api {
    const char *(*version)(void);
    struct MHD_Daemon *(*start)(unsigned int flags, uint16_t port, MHD_AcceptPolicyCallback accept, void *accept_user,
                                MHD_AccessHandlerCallback handler, void *user, ...);
    void (*stop)(struct MHD_Daemon *daemon);
    MHD_socket (*quiesce)(struct MHD_Daemon *daemon);
    enum MHD_Result (*add_connection)(struct MHD_Daemon *daemon, MHD_socket fd, const struct sockaddr *address,
                                      socklen_t address_bytes);
    struct MHD_Response *(*from_buffer)(size_t size, void *data, enum MHD_ResponseMemoryMode mode);
    struct MHD_Response *(*from_callback)(uint64_t size, size_t block, MHD_ContentReaderCallback read, void *user,
                                          MHD_ContentReaderFreeCallback end);
    enum MHD_Result (*add_header)(struct MHD_Response *response, const char *name, const char *value);
    enum MHD_Result (*queue)(struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response);
    void (*destroy)(struct MHD_Response *response);
    const char *(*lookup)(struct MHD_Connection *connection, enum MHD_ValueKind kind, const char *key);
    int (*each_value)(struct MHD_Connection *connection, enum MHD_ValueKind kind, MHD_KeyValueIteratorN see,
                      void *user);
    const union MHD_ConnectionInfo *(*info)(struct MHD_Connection *connection, enum MHD_ConnectionInfoType type, ...);
    enum MHD_Result (*set_option)(struct MHD_Connection *connection, enum MHD_CONNECTION_OPTION option, ...);
};

/* A connection. It is at work while it answers a client that may use the server. Otherwise it waits: it is idle, or its
 * request is incomplete or refused. A new connection beyond the limit closes the connection that has waited longest. */
struct client {
    struct client *previous, *next;
    int fd;
    uint64_t begun_ns;
    bool is_at_work, is_closing, has_asked; /* has_asked: the headers of a request were read */
};

struct whit_web_server {
    struct api api;
    struct MHD_Daemon *daemon;
    whit_web_handler *handler;
    void *user;
    whit_budget *budget;
    uint32_t timeout_s;
    atomic_uint n_in_flight;
    pthread_mutex_t lock;  /* protects the members below */
    struct client clients; /* head of a circular list of connections; the first has waited or worked longest */
    uint32_t n_clients, n_clients_max;
    uint32_t n_closing; /* number of clients that are closing */
    uint32_t n_adopted; /* number of connections that whit_web_quiesce gave to the library and that are not in the list
                         * yet */
};

/* State of one request. */
struct exchange {
    whit_web_server *server;
    whit_claim claim;
    whit_buf body;
    bool is_too_long;
    size_t n_dropped;
    whit_claim_result body_claim;
    whit_web_reply refusal; /* the reply, if the headers were refused; status 0: they were accepted */
};

struct stream {
    const whit_web_server *server;
    struct MHD_Connection *connection;
    whit_web_stream_fn *read;
    void (*end)(void *user);
    void *user;
};

static bool open_library(struct api *api)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return false;
    *(void **)&api->version = dlsym(library, "MHD_get_version");
    *(void **)&api->start = dlsym(library, "MHD_start_daemon");
    *(void **)&api->stop = dlsym(library, "MHD_stop_daemon");
    *(void **)&api->quiesce = dlsym(library, "MHD_quiesce_daemon");
    *(void **)&api->add_connection = dlsym(library, "MHD_add_connection");
    *(void **)&api->from_buffer = dlsym(library, "MHD_create_response_from_buffer");
    *(void **)&api->from_callback = dlsym(library, "MHD_create_response_from_callback");
    *(void **)&api->add_header = dlsym(library, "MHD_add_response_header");
    *(void **)&api->queue = dlsym(library, "MHD_queue_response");
    *(void **)&api->destroy = dlsym(library, "MHD_destroy_response");
    *(void **)&api->lookup = dlsym(library, "MHD_lookup_connection_value");
    *(void **)&api->each_value = dlsym(library, "MHD_get_connection_values_n");
    *(void **)&api->info = dlsym(library, "MHD_get_connection_info");
    *(void **)&api->set_option = dlsym(library, "MHD_set_connection_option");
    dlclose(library);
    return api->version && api->start && api->stop && api->quiesce && api->add_connection && api->from_buffer &&
        api->from_callback && api->add_header && api->queue && api->destroy && api->lookup && api->each_value &&
        api->info && api->set_option;
}

const char *whit_server_library(void)
{
    struct api api;
    return open_library(&api) ? api.version() : NULL;
}

struct connection {
    const struct api *api;
    struct MHD_Connection *of;
};

const char *whit_web_header(const whit_web_request *request, const char *name)
{
    const struct connection *c = request->connection;
    return c->api->lookup(c->of, MHD_HEADER_KIND, name);
}

const char *whit_web_query(const whit_web_request *request, const char *name)
{
    const struct connection *c = request->connection;
    return c->api->lookup(c->of, MHD_GET_ARGUMENT_KIND, name);
}

/* Restarts the library's measurement of the time without reading or writing, by setting the timeout to 0 and back. The
 * library checks the timeout between the handler and the sending of the reply, and would drop an answer that took
 * longer. */
static void restart_timeout(const whit_web_server *server, struct MHD_Connection *connection)
{
    server->api.set_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    server->api.set_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)server->timeout_s);
}

static ssize_t read_stream(void *user, uint64_t at, char *data, size_t room)
{
    struct stream *s = user;
    (void)at;
    long n = s->read(s->user, data, room);
    restart_timeout(s->server, s->connection);
    if (n > 0) return n;
    return n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void end_stream(void *user)
{
    struct stream *s = user;
    s->end(s->user);
    free(s);
}

static enum MHD_Result send_reply(const whit_web_server *server, struct MHD_Connection *connection,
                                  whit_web_reply *reply)
{
    const struct api *api = &server->api;
    struct MHD_Response *response = NULL;
    if (reply->stream) {
        struct stream *s = malloc(sizeof *s);
        if (s) {
            *s = (struct stream){server, connection, reply->stream, reply->end_stream, reply->stream_user};
            response = api->from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, s, end_stream);
        }
        if (!response) {
            reply->end_stream(reply->stream_user);
            free(s);
        }
    } else {
        static char none[1];
        response = api->from_buffer(reply->body.size_bytes, reply->body.data ? WHIT_ITEMS(void, &reply->body) : none,
                                    MHD_RESPMEM_MUST_COPY);
    }
    whit_buf_free(&reply->body);
    if (!response) return MHD_NO;
    if (reply->type) api->add_header(response, "Content-Type", reply->type);
    if (reply->id[0]) {
        api->add_header(response, "X-Request-Id", reply->id);
        api->add_header(response, "request-id", reply->id); /* Anthropic's client libraries read this header */
    }
    for (size_t i = 0; i < reply->n_headers; i++)
        api->add_header(response, reply->headers[2 * i], reply->headers[2 * i + 1]);
    enum MHD_Result result = api->queue(connection, (unsigned)reply->status, response);
    api->destroy(response);
    return result;
}

/* Facts about the headers that determine where a request ends. If a proxy before this server understood them
 * differently, a request could be hidden in the body of another (request smuggling), so only one plain form is
 * accepted. The library does not show three things: lines that end in LF alone, bytes after a zero byte in a value, and
 * chunk extensions, which should be ignored (RFC 9112, 2.2 and 7.1.1). */
struct framing {
    uint32_t n_lengths, n_codings, n_hosts;
    bool is_odd;     /* a header's name or value is ambiguous */
    bool is_encoded; /* the body has a content encoding such as gzip, which is not supported */
};

static bool is_word(const char *text, size_t n, const char *word)
{
    return n == strlen(word) && !strncasecmp(text, word, n);
}

static enum MHD_Result see_header(void *user, enum MHD_ValueKind kind, const char *name, size_t n_name,
                                  const char *value, size_t n_value)
{
    struct framing *f = user;
    (void)kind;
    if (!value) value = "", n_value = 0;
    bool is_coding = is_word(name, n_name, "Transfer-Encoding");
    f->n_lengths += is_word(name, n_name, "Content-Length");
    f->n_codings += is_coding;
    f->n_hosts += is_word(name, n_name, "Host");
    f->is_odd |= is_coding && !is_word(value, n_value, "chunked");
    f->is_odd |= !n_name || strcspn(name, " \t") < n_name || memchr(name, 0, n_name) || memchr(value, 0, n_value) ||
        memchr(value, '\r', n_value) || memchr(value, '\n', n_value);
    f->is_encoded |= is_word(name, n_name, "Content-Encoding") && !is_word(value, n_value, "identity");
    return MHD_YES;
}

/* Returns the reason why the headers must be refused, or NULL if they are accepted. */
static const char *find_oddity(const whit_web_server *server, struct MHD_Connection *connection, const char *version)
{
    struct framing f = {0};
    bool is_newer = !strcmp(version, "HTTP/1.1");
    server->api.each_value(connection, MHD_HEADER_KIND, see_header, &f);
    if (f.is_odd || f.n_lengths + f.n_codings > 1 || (f.n_codings && !is_newer))
        return "The request must give the length of its body exactly once, in plain fields.\n";
    if (f.n_hosts > 1 || (is_newer && !f.n_hosts)) return "The request must name its host exactly once.\n";
    return f.is_encoded ? "Compressed bodies are not supported: send the body without a Content-Encoding.\n" : NULL;
}

/* Returns whether the trailer after a chunked body has a field that is allowed only before the body. */
static bool has_odd_trailer(const whit_web_server *server, struct MHD_Connection *connection)
{
    struct framing f = {0};
    server->api.each_value(connection, MHD_FOOTER_KIND, see_header, &f);
    return f.is_odd || f.is_encoded || f.n_lengths || f.n_codings || f.n_hosts;
}

/* Replies 400 with the reason. The library closes the connection, because the reply comes before the body. */
static enum MHD_Result refuse_framing(const whit_web_server *server, struct MHD_Connection *connection,
                                      const char *reason)
{
    whit_web_reply reply = {.status = 400, .type = "text/plain"};
    whit_buf_append_str(&reply.body, reason);
    return send_reply(server, connection, &reply);
}

/* ---- connections --------------------------------------------------------------------------------- */

static void unlink_client(struct client *client)
{
    client->previous->next = client->next;
    client->next->previous = client->previous;
}

static void append_client(whit_web_server *server, struct client *client)
{
    client->next = &server->clients;
    client->previous = server->clients.previous;
    client->previous->next = server->clients.previous = client;
}

/* Closes the connection that has waited longest; never the newest one. Must be called with the lock held. */
static void close_waiting_client(whit_web_server *server)
{
    struct client *client = server->clients.next;
    while (client != server->clients.previous && (client->is_at_work || client->is_closing)) client = client->next;
    if (client == server->clients.previous) return;
    client->is_closing = true;
    server->n_closing++;
    whit_socket_end(client->fd); /* the connection's thread then finds the end of the stream */
}

/* Waits for some of the closing connections to end. The library resets connections beyond its limit, which a flood
 * would reach on a busy machine, where the threads of closed connections wait for a processor. The caller is the
 * library's thread, which accepts connections and removes ended ones. */
static void await_closing(uint32_t n_closing)
{
    const uint64_t ns = n_closing > CLOSING_MAX ? (uint64_t)(n_closing - CLOSING_MAX) * CLOSING_NS : 0;
    const struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    if (ns) nanosleep(&pause, NULL);
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    whit_web_server *server = user;
    struct client *client = *context;
    const bool begins = what == MHD_CONNECTION_NOTIFY_STARTED;
    const union MHD_ConnectionInfo *info = server->api.info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (begins && info && (client = calloc(1, sizeof *client)) != NULL)
        *client = (struct client){.fd = (int)info->connect_fd, .begun_ns = whit_now_ns()};
    *context = begins ? client : NULL;
    if (!client) return;
    pthread_mutex_lock(&server->lock);
    if (begins) {
        if (server->n_adopted) server->n_adopted--;
        append_client(server, client);
        if (++server->n_clients > server->n_clients_max) close_waiting_client(server);
    } else {
        unlink_client(client);
        server->n_clients--;
        server->n_closing -= client->is_closing;
    }
    const uint32_t n_closing = server->n_closing;
    pthread_mutex_unlock(&server->lock);
    if (begins)
        await_closing(n_closing);
    else
        free(client);
}

static struct client *client_of(const whit_web_server *server, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = server->api.info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* Counts a request whose headers were read. */
static void note_request(whit_web_server *server, struct MHD_Connection *connection)
{
    struct client *client = client_of(server, connection);
    atomic_fetch_add(&server->n_in_flight, 1);
    pthread_mutex_lock(&server->lock);
    if (client) client->has_asked = true;
    pthread_mutex_unlock(&server->lock);
}

/* Records that a connection is now at work or, if `is_at_work` is false, that it waits. */
static void note_work(whit_web_server *server, struct MHD_Connection *connection, bool is_at_work)
{
    struct client *client = client_of(server, connection);
    if (!client) return;
    pthread_mutex_lock(&server->lock);
    client->is_at_work = is_at_work;
    unlink_client(client);
    append_client(server, client);
    pthread_mutex_unlock(&server->lock);
}

/* ---- requests ------------------------------------------------------------------------------------ */

/* Appends a part of the request's body. If the body becomes too long or its memory cannot be claimed, discards it. */
static void keep_body(struct exchange *x, const char *data, size_t n)
{
    if (x->refusal.status || x->is_too_long || x->body_claim != WHIT_CLAIM_TAKEN) return;
    x->body_claim = whit_claim_take(&x->claim, n);
    if (x->body_claim == WHIT_CLAIM_TAKEN && whit_buf_append(&x->body, data, n)) return;
    if (x->body_claim == WHIT_CLAIM_TAKEN) x->is_too_long = true;
    whit_buf_free(&x->body);
    x->body = (whit_buf){0};
    whit_claim_release(&x->claim);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path, const char *method,
                                  const char *version, const char *data, size_t *data_bytes, void **own)
{
    whit_web_server *server = user;
    struct exchange *x = *own;
    if (!strcmp(method, "HEAD")) method = "GET"; /* for HEAD the library itself omits the body of the reply */
    struct connection c = {&server->api, connection};
    if (!x) {
        const char *oddity = find_oddity(server, connection, version);
        whit_web_request headers = {.method = method, .path = path, .fd = -1, .connection = &c, .headers_only = true};
        if (oddity) return refuse_framing(server, connection, oddity);
        x = calloc(1, sizeof *x);
        if (!x) return MHD_NO;
        x->server = server;
        x->claim.budget = server->budget;
        note_request(server, connection);
        x->body.limit_bytes = WHIT_WEB_MAX_BODY_BYTES;
        server->handler(server->user, &headers, &x->refusal);
        *own = x;
        return MHD_YES;
    }
    if (*data_bytes) { /* a refused body is still read, up to a limit, so that the client gets the reply */
        keep_body(x, data, *data_bytes);
        if (!x->body.size_bytes) x->n_dropped += *data_bytes;
        *data_bytes = 0;
        return x->n_dropped < DROPPED_BYTES_MAX ? MHD_YES : MHD_NO;
    }
    if (has_odd_trailer(server, connection))
        return refuse_framing(
            server, connection,
            "The request gives the length of its body in a trailer, which is not supported: give it in a header.\n");
    if (x->refusal.status) return send_reply(server, connection, &x->refusal);
    const union MHD_ConnectionInfo *info = server->api.info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    whit_web_request request = {.method = method,
                                .path = path,
                                .body = whit_chars(&x->body),
                                .body_bytes = x->body.size_bytes,
                                .is_too_long = x->is_too_long,
                                .body_claim = x->body_claim,
                                .fd = info ? (int)info->connect_fd : -1,
                                .connection = &c};
    whit_web_reply reply = {.status = 500, .claim = &x->claim};
    if (x->refusal.is_known) note_work(server, connection, true);
    server->handler(server->user, &request, &reply);
    restart_timeout(server, connection);
    return send_reply(server, connection, &reply);
}

static void on_completed(void *user, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode why)
{
    struct exchange *x = *own;
    (void)why;
    note_work(user, connection, false);
    if (x) whit_buf_free(&x->body);
    if (x) whit_buf_free(&x->refusal.body);
    if (x) whit_claim_release(&x->claim);
    if (x) atomic_fetch_sub(&x->server->n_in_flight, 1);
    free(x);
    *own = NULL;
}

/* Replaces escapes such as %41 by their characters, in place; returns the new length. %00 is left as it is, because a
 * zero byte would end the path for C code. */
static size_t unescape(void *user, struct MHD_Connection *connection, char *text)
{
    char *out = text;
    (void)user, (void)connection;
    for (const char *at = text; *at; at++) {
        int high = *at == '%' ? whit_hex_digit((uint8_t)at[1]) : -1;
        int low = high >= 0 ? whit_hex_digit((uint8_t)at[2]) : -1;
        bool is_byte = low >= 0 && (high || low);
        *out++ = is_byte ? (char)(high << 4 | low) : *at;
        at += is_byte ? 2 : 0;
    }
    *out = 0;
    return (size_t)(out - text);
}

static void free_server(whit_web_server *server)
{
    pthread_mutex_destroy(&server->lock);
    free(server);
}

whit_status whit_web_serve(int listening, uint32_t n_connections, uint32_t timeout_s, whit_budget *budget,
                           whit_web_handler *handler, void *user, whit_web_server **server, whit_error *error)
{
    *server = NULL;
    whit_web_server *s = calloc(1, sizeof *s);
    if (!s) return whit_fail_memory(error, "the server", sizeof *s);
    s->handler = handler;
    s->user = user;
    s->budget = budget;
    s->timeout_s = timeout_s;
    s->n_clients_max = n_connections;
    s->clients.previous = s->clients.next = &s->clients;
    pthread_mutex_init(&s->lock, NULL);
    if (!open_library(&s->api)) {
        free_server(s);
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "libmicrohttpd (libmicrohttpd.so.12) is not on this machine, so whit cannot serve: install "
                         "libmicrohttpd12");
    }
    s->daemon = s->api.start(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL,
        on_request, s, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)listening, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)n_connections + SPARE_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)timeout_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!s->daemon) {
        free_server(s);
        return whit_fail(error, WHIT_ERROR_IO,
                         "libmicrohttpd could not start the server: lower -np, or close open files and processes");
    }
    *server = s;
    return WHIT_OK;
}

/* Gives the library every connection that waits at the listening socket. */
static void adopt_connections(whit_web_server *s, int listening)
{
    for (int fd; (fd = whit_socket_accept(listening)) >= 0;) {
        struct sockaddr_storage peer = {0};
        socklen_t peer_bytes = sizeof peer;
        if (getpeername((MHD_socket)fd, (struct sockaddr *)&peer, &peer_bytes) != 0) peer_bytes = 0;
        pthread_mutex_lock(&s->lock);
        s->n_adopted++;
        pthread_mutex_unlock(&s->lock);
        if (s->api.add_connection(s->daemon, (MHD_socket)fd, (struct sockaddr *)&peer, peer_bytes) == MHD_YES) continue;
        pthread_mutex_lock(&s->lock); /* the library has closed the connection */
        if (s->n_adopted) s->n_adopted--;
        pthread_mutex_unlock(&s->lock);
    }
}

/* Closing a listening socket resets the connections that wait at it. So they are accepted first, and once more after
 * the socket was shut down, which refuses new connections and leaves a Unix socket's queue as it is. The library allows
 * the socket to be closed only after its own end, because its thread might still poll or accept; these calls then fail,
 * and the thread does not look at the socket again. */
void whit_web_quiesce(whit_web_server *s)
{
    const int listening = (int)s->api.quiesce(s->daemon);
    if (listening < 0) return;
    /* The library's thread may just have taken a connection that is in no list yet, and nothing tells that. */
    nanosleep(&(struct timespec){.tv_nsec = TAKEN_NS}, NULL);
    adopt_connections(s, listening);
    whit_socket_end(listening);
    adopt_connections(s, listening);
    whit_socket_close(listening);
}

uint32_t whit_web_in_flight(whit_web_server *s)
{
    const uint64_t now_ns = whit_now_ns();
    uint32_t n = atomic_load(&s->n_in_flight);
    pthread_mutex_lock(&s->lock);
    n += s->n_adopted;
    for (const struct client *client = s->clients.next; client != &s->clients; client = client->next)
        n += (!client->has_asked && now_ns - client->begun_ns < NEW_NS) ||
            (!client->is_at_work && !client->is_closing && whit_socket_has_bytes(client->fd));
    pthread_mutex_unlock(&s->lock);
    return n;
}

void whit_web_close(whit_web_server *s)
{
    if (!s) return;
    s->api.stop(s->daemon);
    free_server(s);
}
