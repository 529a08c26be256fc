/* SPDX-License-Identifier: MIT
 * Publishes KV events by libzmq, which is loaded at first use.
 *
 * The messages are those of vLLM's publisher. The PUB socket sends [topic, number, batch]; the number has 8 bytes, most
 * significant first. The ROUTER socket serves replays. A request is an empty frame followed by [first number] or [first
 * number, topic]; it is answered by messages [number, batch] and a last one, [-1, ""]. A request without a topic refers
 * to the first model.
 *
 * The server listens before it enters its sandbox; inside it libzmq gets the listening descriptors (ZMQ_USE_FD). */
#include "base/phrase.h"
#include "base/sockets.h"
#include "server/kv_events.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

/* Limits of the batches that are kept for replays. KEPT_MAX must be a power of two. */
enum { KEPT_MAX = 1 << 14, KEPT_BYTES_MAX = 32 << 20, IDENTITY_BYTES = 256, TOPIC_BYTES = 1024 };

struct zmq {
    void *(*ctx_new)(void);
    int (*ctx_term)(void *context);
    void *(*socket)(void *context, int type);
    int (*close)(void *socket);
    int (*setsockopt)(void *socket, int option, const void *value, size_t n_bytes);
    int (*getsockopt)(void *socket, int option, void *value, size_t *n_bytes);
    int (*bind)(void *socket, const char *address);
    int (*send)(void *socket, const void *data, size_t n_bytes, int flags);
    int (*recv)(void *socket, void *data, size_t n_bytes, int flags);
    int (*poll)(zmq_pollitem_t *items, int n, long timeout_ms);
    void (*version)(int *major, int *minor, int *patch);
};

struct kept {
    const whit_event_channel *channel;
    uint64_t number;
    whit_buf batch;
};

struct whit_events {
    struct zmq zmq;
    void *context, *publisher, *router;
    int publisher_fd, router_fd; /* descriptors of listening sockets; -1 once libzmq owns them */
    /* a pipe by which the thread is woken: a byte is written to wake[1] at the end, and for a new batch if all batches
     * before it were sent */
    int wake[2];
    pthread_t thread;
    bool is_running;
    pthread_mutex_t lock; /* guards the following members */
    struct kept *kept;    /* (KEPT_MAX) ring buffer: the batch with position p is in kept[p % KEPT_MAX] */
    uint64_t begin, end;  /* positions of the kept batches: [begin, end); all channels share them */
    uint64_t sent;        /* all batches at positions below this were sent */
    size_t kept_bytes;
    bool is_ending;
    whit_event_channel *channels; /* array of n_channels */
    size_t n_channels;
};

static bool open_library(struct zmq *zmq)
{
    void *library = dlopen("libzmq.so.5", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return false;
    *(void **)&zmq->ctx_new = dlsym(library, "zmq_ctx_new");
    *(void **)&zmq->ctx_term = dlsym(library, "zmq_ctx_term");
    *(void **)&zmq->socket = dlsym(library, "zmq_socket");
    *(void **)&zmq->close = dlsym(library, "zmq_close");
    *(void **)&zmq->setsockopt = dlsym(library, "zmq_setsockopt");
    *(void **)&zmq->getsockopt = dlsym(library, "zmq_getsockopt");
    *(void **)&zmq->bind = dlsym(library, "zmq_bind");
    *(void **)&zmq->send = dlsym(library, "zmq_send");
    *(void **)&zmq->recv = dlsym(library, "zmq_recv");
    *(void **)&zmq->poll = dlsym(library, "zmq_poll");
    *(void **)&zmq->version = dlsym(library, "zmq_version");
    dlclose(library);
    return zmq->ctx_new && zmq->ctx_term && zmq->socket && zmq->close && zmq->setsockopt && zmq->getsockopt &&
        zmq->bind && zmq->send && zmq->recv && zmq->poll && zmq->version;
}

const char *whit_events_library(char version[16])
{
    struct zmq zmq;
    int parts[3];
    if (!open_library(&zmq)) return NULL;
    zmq.version(&parts[0], &parts[1], &parts[2]);
    snprintf(version, 16, "%d.%d.%d", parts[0] & 255, parts[1] & 255, parts[2] & 255);
    return version;
}

/* ---- opening the sockets ----------------------------------------------------------------------- */

/* Listens at "tcp://HOST:PORT"; the host * means all addresses. */
static whit_status listen_on(const char *endpoint, int *fd, whit_error *error)
{
    static const char scheme[] = "tcp://";
    char host[256], ignored[320];
    const char *name = endpoint + sizeof scheme - 1, *colon = strrchr(endpoint, ':');
    char *end = NULL;
    const bool has_scheme = !strncmp(endpoint, scheme, sizeof scheme - 1) && colon > name;
    const unsigned long port = has_scheme ? strtoul(colon + 1, &end, 10) : 0;
    if (!has_scheme || !port || port > 65535 || *end || (size_t)(colon - name) >= sizeof host)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: expected tcp://HOST:PORT, for example tcp://*:5557",
                         endpoint);
    snprintf(host, sizeof host, "%.*s", (int)(colon - name), name);
    const size_t n = strlen(host);
    if (!strcmp(host, "*")) snprintf(host, sizeof host, "0.0.0.0");
    if (host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = 0;
        memmove(host, host + 1, n - 1);
    }
    return whit_listen_tcp(host, (uint32_t)port, "give another port", fd, ignored, sizeof ignored, error);
}

/* Writes the server's HOST:PORT, which topics contain: options->advertise or the server's address. If that is the
 * wildcard address, the machine's name replaces it. */
static void name_server(const whit_server_options *options, const char *address, char name[300])
{
    const char *plain = strstr(address, "://") ? strstr(address, "://") + 3 : address;
    snprintf(name, 300, "%s", options->advertise ? options->advertise : plain);
    const char *port = strrchr(plain, ':');
    char host[200] = "localhost";
    if (options->advertise || (strncmp(plain, "0.0.0.0:", 8) != 0 && strncmp(plain, "[::]:", 5) != 0)) return;
    (void)gethostname(host, sizeof host - 1);
    snprintf(name, 300, "%s%s", host, whit_or_empty(port));
}

static whit_status open_channels(whit_events *events, const whit_server_options *options, const char *address,
                                 whit_error *error)
{
    char server[300];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    name_server(options, address, server);
    events->channels = calloc(options->n_models, sizeof *events->channels);
    events->kept = calloc(KEPT_MAX, sizeof *events->kept);
    if (!events->channels || !events->kept)
        return whit_fail_memory(error, "KV events", KEPT_MAX * sizeof *events->kept);
    for (size_t i = 0; i < options->n_models; i++) {
        whit_event_channel *channel = &events->channels[events->n_channels++];
        const size_t n = strlen(server) + strlen(options->models[i].name) + 8;
        *channel = (whit_event_channel){.events = events,
                                        .model = options->models[i].name,
                                        .adapters = options->adapters,
                                        .topic = malloc(n),
                                        .n_batches = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000};
        if (!channel->topic) return whit_fail_memory(error, "KV events", n);
        snprintf(channel->topic, n, "kv@%s@%s", server, channel->model);
    }
    return WHIT_OK;
}

whit_status whit_events_open(const whit_server_options *options, const char *address, whit_events **events,
                             whit_error *error)
{
    *events = NULL;
    if (!options->kv_events && !options->kv_replay) return WHIT_OK;
    if (!options->kv_events)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a replay of KV events needs an endpoint for the events");
    whit_events *e = calloc(1, sizeof *e);
    if (!e) return whit_fail_memory(error, "KV events", sizeof *e);
    e->publisher_fd = e->router_fd = e->wake[0] = e->wake[1] = -1;
    pthread_mutex_init(&e->lock, NULL);
    whit_status status = WHIT_OK;
    if (!open_library(&e->zmq))
        status = whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                           "KV events need libzmq (libzmq.so.5), which is not on this machine: install libzmq5");
    if (status == WHIT_OK) status = open_channels(e, options, address, error);
    if (status == WHIT_OK) status = listen_on(options->kv_events, &e->publisher_fd, error);
    if (status == WHIT_OK && options->kv_replay) status = listen_on(options->kv_replay, &e->router_fd, error);
    if (status == WHIT_OK && pipe2(e->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        status = whit_fail_errno(error, "KV events", "open a pipe");
    if (status != WHIT_OK) {
        whit_events_close(e);
        return status;
    }
    *events = e;
    return WHIT_OK;
}

/* Makes a socket of libzmq from a listening descriptor, and takes ownership of the descriptor (*fd becomes -1). Returns
 * NULL on failure. */
static void *take_over(whit_events *e, int type, int *fd)
{
    const int no_wait = 100, no_limit = 2 * KEPT_MAX;
    void *socket = e->zmq.socket(e->context, type);
    if (!socket) return NULL;
    if (e->zmq.setsockopt(socket, ZMQ_USE_FD, fd, sizeof *fd) == 0 &&
        e->zmq.setsockopt(socket, ZMQ_LINGER, &no_wait, sizeof no_wait) == 0 &&
        e->zmq.setsockopt(socket, ZMQ_SNDHWM, &no_limit, sizeof no_limit) == 0 &&
        e->zmq.bind(socket, "tcp://127.0.0.1:1") == 0) { /* bind needs an address, but uses the descriptor */
        *fd = -1;
        return socket;
    }
    e->zmq.close(socket);
    return NULL;
}

/* ---- sending batches and replays --------------------------------------------------------------- */

static void write_number(uint64_t number, uint8_t bytes[8])
{
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(number >> (56 - 8 * i));
}

/* Sends all batches that were not sent yet. This never blocks: if a subscriber is too slow, libzmq drops batches for
 * it, and the subscriber sees the gap. */
static void send_new(whit_events *e)
{
    uint8_t number[8];
    pthread_mutex_lock(&e->lock);
    if (e->sent < e->begin) e->sent = e->begin;
    for (; e->sent < e->end; e->sent++) {
        const struct kept *one = &e->kept[e->sent % KEPT_MAX];
        if (one->batch.failed) continue;
        write_number(one->number, number);
        e->zmq.send(e->publisher, one->channel->topic, strlen(one->channel->topic), ZMQ_SNDMORE | ZMQ_DONTWAIT);
        e->zmq.send(e->publisher, number, sizeof number, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        e->zmq.send(e->publisher, one->batch.data, one->batch.size_bytes, ZMQ_DONTWAIT);
    }
    pthread_mutex_unlock(&e->lock);
}

/* A request for a replay. */
struct request {
    uint8_t identity[IDENTITY_BYTES], first[8];
    char topic[TOPIC_BYTES];
    int n_identity, n_first, n_topic;
};

/* Receives a request if one has arrived; returns false if no request has arrived or it is malformed. */
static bool receive_request(whit_events *e, struct request *request)
{
    struct {
        void *data;
        size_t n_max;
        int *n;
    } frames[] = {{request->identity, sizeof request->identity, &request->n_identity},
                  {NULL, 0, NULL},
                  {request->first, sizeof request->first, &request->n_first},
                  {request->topic, sizeof request->topic - 1, &request->n_topic}};
    uint8_t ignored[8];
    *request = (struct request){.n_first = 0};
    int more = 1, n_frames = 0;
    for (; more; n_frames++) {
        const bool is_known = n_frames < 4 && frames[n_frames].data;
        size_t room = is_known ? frames[n_frames].n_max : sizeof ignored;
        int n = e->zmq.recv(e->router, is_known ? frames[n_frames].data : ignored, room, ZMQ_DONTWAIT);
        if (n < 0) return false;
        if (is_known) *frames[n_frames].n = n;
        size_t n_bytes = sizeof more;
        if (e->zmq.getsockopt(e->router, ZMQ_RCVMORE, &more, &n_bytes) != 0) return false;
    }
    return n_frames >= 3 && n_frames <= 4 && request->n_first == 8 && request->n_identity <= IDENTITY_BYTES &&
        request->n_topic < TOPIC_BYTES;
}

static bool send_reply(whit_events *e, const struct request *request, uint64_t number, const whit_buf *batch)
{
    uint8_t bytes[8];
    write_number(number, bytes);
    return e->zmq.send(e->router, request->identity, (size_t)request->n_identity, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
        e->zmq.send(e->router, "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
        e->zmq.send(e->router, bytes, sizeof bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
        e->zmq.send(e->router, batch->data, batch->size_bytes, ZMQ_DONTWAIT) >= 0;
}

/* Copies the next kept batch of a channel whose number is at least `first`; the search begins at position *at, which it
 * advances. Returns false if there is no such batch. The lock is held only for one batch at a time, so that a long
 * replay does not delay an engine. */
static bool copy_next(whit_events *e, const whit_event_channel *channel, uint64_t first, uint64_t *at, uint64_t *number,
                      whit_buf *batch)
{
    bool found = false;
    pthread_mutex_lock(&e->lock);
    if (*at < e->begin) *at = e->begin;
    for (; !found && *at < e->end; ++*at) {
        const struct kept *one = &e->kept[*at % KEPT_MAX];
        if (one->channel != channel || one->number < first || one->batch.failed) continue;
        *number = one->number;
        batch->size_bytes = 0;
        found = whit_buf_append(batch, one->batch.data, one->batch.size_bytes);
    }
    pthread_mutex_unlock(&e->lock);
    return found;
}

static void replay(whit_events *e, const struct request *request)
{
    const whit_event_channel *channel = request->n_topic ? NULL : &e->channels[0];
    uint64_t first = 0, at = 0, number;
    whit_buf batch = {0};
    const whit_buf nothing = {0};
    for (size_t i = 0; i < e->n_channels && request->n_topic; i++)
        if (!strcmp(e->channels[i].topic, request->topic)) channel = &e->channels[i];
    for (int i = 0; i < 8; i++) first = first << 8 | request->first[i];
    bool is_connected = true;
    while (channel && is_connected && copy_next(e, channel, first, &at, &number, &batch))
        is_connected = send_reply(e, request, number, &batch);
    send_reply(e, request, UINT64_MAX, &nothing);
    whit_buf_free(&batch);
}

static void *send_batches(void *user)
{
    whit_events *e = user;
    zmq_pollitem_t items[] = {{.fd = e->wake[0], .events = ZMQ_POLLIN}, {.socket = e->router, .events = ZMQ_POLLIN}};
    for (bool is_ending = false; !is_ending;) {
        char ignored[64];
        struct request request;
        if (e->zmq.poll(items, e->router ? 2 : 1, -1) < 0 && errno != EINTR) break;
        /* each wake-up has written one byte */
        while (read(e->wake[0], ignored, sizeof ignored) > 0) {
        }
        send_new(e);
        /* Only one replay request is answered per turn, so that many requests do not delay new batches. */
        if (e->router && receive_request(e, &request)) replay(e, &request);
        pthread_mutex_lock(&e->lock);
        is_ending = e->is_ending && e->sent == e->end;
        pthread_mutex_unlock(&e->lock);
    }
    return NULL;
}

whit_status whit_events_start(whit_events *e, whit_error *error)
{
    if (!e) return WHIT_OK;
    e->context = e->zmq.ctx_new();
    if (e->context) e->publisher = take_over(e, ZMQ_PUB, &e->publisher_fd);
    if (e->publisher && e->router_fd >= 0) e->router = take_over(e, ZMQ_ROUTER, &e->router_fd);
    if (!e->publisher || e->router_fd >= 0)
        return whit_fail_errno(error, "KV events", "publish them at --kv-events and --kv-replay");
    e->is_running = pthread_create(&e->thread, NULL, send_batches, e) == 0;
    return e->is_running
        ? WHIT_OK
        : whit_fail(error, WHIT_ERROR_IO, "the system starts no thread to publish KV events: end some processes");
}

void whit_events_close(whit_events *e)
{
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->is_ending = true;
    pthread_mutex_unlock(&e->lock);
    if (e->is_running) {
        (void)!write(e->wake[1], "", 1);
        pthread_join(e->thread, NULL);
    }
    if (e->publisher) e->zmq.close(e->publisher);
    if (e->router) e->zmq.close(e->router);
    if (e->context) e->zmq.ctx_term(e->context);
    const int fds[] = {e->publisher_fd, e->router_fd, e->wake[0], e->wake[1]};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0) close(fds[i]);
    for (size_t i = 0; e->kept && i < KEPT_MAX; i++) whit_buf_free(&e->kept[i].batch);
    for (size_t i = 0; i < e->n_channels; i++) {
        free(e->channels[i].topic);
        whit_buf_free(&e->channels[i].batch);
    }
    pthread_mutex_destroy(&e->lock);
    free(e->kept);
    free(e->channels);
    free(e);
}

/* ---- functions that the engines call ----------------------------------------------------------- */

whit_event_channel *whit_events_channel(whit_events *e, const char *model)
{
    for (size_t i = 0; e && i < e->n_channels; i++)
        if (!strcmp(e->channels[i].model, model)) return &e->channels[i];
    return NULL;
}

void whit_events_send(whit_event_channel *channel, whit_buf *batch)
{
    whit_events *e = channel->events;
    pthread_mutex_lock(&e->lock);
    e->kept_bytes += batch->size_bytes;
    while (e->begin < e->end && (e->end - e->begin == KEPT_MAX || e->kept_bytes > KEPT_BYTES_MAX)) {
        struct kept *oldest = &e->kept[e->begin++ % KEPT_MAX];
        e->kept_bytes -= oldest->batch.size_bytes;
        whit_buf_free(&oldest->batch);
        oldest->batch = (whit_buf){0};
    }
    e->kept[e->end++ % KEPT_MAX] = (struct kept){channel, channel->n_batches++, *batch};
    const bool was_idle = e->sent + 1 == e->end;
    pthread_mutex_unlock(&e->lock);
    *batch = (whit_buf){0};
    if (was_idle) (void)!write(e->wake[1], "", 1);
}
