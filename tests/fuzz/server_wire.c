/* SPDX-License-Identifier: MIT
 * Sends bytes on connections to a running server: whole requests, pieces, half-open and broken connections. If there
 * is an answer, it begins as HTTP; the connection ends, and the next request is answered. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "server_site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QUIET_US = 2000, WAIT_S = 120, CHECK_EVERY = 64 };

static whit_web_server *server;
static struct sockaddr_in address = {.sin_family = AF_INET};

static void close_server(void)
{
    whit_web_close(server);
}

static void open_server(void)
{
    whit_error error;
    socklen_t n = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &n) != 0)
        abort();
    open_site();
    if (whit_web_serve(fd, 64, WAIT_S, &site.budget, whit_site_handle, &site, &server, &error) != WHIT_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    atexit(close_server);
}

static void wait_at_most(int fd, time_t s, suseconds_t us)
{
    const struct timeval limit = {s, us};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) abort();
}

static int connect_to_server(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) abort();
    return fd;
}

/* Reads until the connection ends, and keeps the first `room` bytes. Returns false if the server sends nothing for too
 * long. */
static bool read_reply(int fd, char *reply, size_t room, size_t *n)
{
    char rest[4096];
    ssize_t got = 1;
    while (got > 0) {
        bool first = *n < room - 1;
        got = recv(fd, first ? reply + *n : rest, first ? room - 1 - *n : sizeof rest, 0);
        if (got > 0 && first) *n += (size_t)got;
    }
    reply[*n] = 0;
    return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static void fail_input(const char *what, const char *reply)
{
    fprintf(stderr, "%s: %.200s\n", what, reply);
    abort();
}

static void check_health(void)
{
    static const char ask[] = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    char reply[512];
    size_t n = 0;
    int fd = connect_to_server();
    wait_at_most(fd, WAIT_S, 0);
    if (send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL) != sizeof ask - 1) abort();
    if (!read_reply(fd, reply, sizeof reply, &n) || strncmp(reply, "HTTP/1.1 200", 12) != 0)
        fail_input("the server is not well", reply);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t n_inputs;
    char reply[512] = "";
    size_t n = 0, sum = size;
    if (!whit_server_library()) return 0;
    if (!server) open_server();
    for (size_t i = 0; i < size; i++) sum = sum * 31 + data[i];
    size_t cut = size ? sum % size : 0; /* position at which the input is divided into two sends */
    int fd = connect_to_server();
    /* the server may refuse and close the connection before all is sent */
    (void)!send(fd, data, cut, MSG_NOSIGNAL);
    (void)!send(fd, data + cut, size - cut, MSG_NOSIGNAL);
    /* reads: the client reads the reply, otherwise it closes at once; waits: it reads before it ends its side */
    bool reads = sum / 7 % 8 != 0, waits = sum / 56 % 8 == 0;
    if (reads) {
        wait_at_most(fd, 0, QUIET_US);
        bool closed = waits && read_reply(fd, reply, sizeof reply, &n);
        if (!closed) {
            shutdown(fd, SHUT_WR);
            wait_at_most(fd, WAIT_S, 0);
            if (!read_reply(fd, reply, sizeof reply, &n)) fail_input("a connection does not end", reply);
        }
        if (n && strncmp(reply, "HTTP/1.", n < 7 ? n : 7) != 0) fail_input("no answer", reply);
    }
    close(fd);
    if (n_inputs++ % CHECK_EVERY == 0) check_health();
    return 0;
}
