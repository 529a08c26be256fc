/* SPDX-License-Identifier: MIT
 * Tests that a server that stops listening answers every connection that the system has made for it. */
#include "test_folder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/http.h"
#include "server/server.h"

enum { TIMEOUT_S = 60, WAIT_MS = 60000, N_WAITING = 20, N_ROUNDS = 100 };
static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

static void answer(void *user, const whit_web_request *asked, whit_web_reply *reply)
{
    (void)user;
    if (!strcmp(asked->path, "/slow")) nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    if (asked->headers_only) return;
    reply->status = 503;
    reply->type = "text/plain";
    whit_buf_append_str(&reply->body, "the server is ending");
}

static int listen_somewhere(struct sockaddr_in *address)
{
    socklen_t n = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(listen(fd, 2 * N_WAITING), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &n), 0);
    return fd;
}

static int make_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    return fd;
}

static void connect_to(int fd, const struct sockaddr_in *address, const char *text)
{
    assert_int_equal(connect(fd, (const struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Ends the server as whit_server_run does. */
static void end_server(whit_web_server *server)
{
    const uint64_t begun_ns = whit_now_ns();
    whit_web_quiesce(server);
    while (whit_web_in_flight(server) && whit_now_ns() - begun_ns < WAIT_MS * 1000000ull)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    whit_web_close(server);
}

/* Reads until the server closes the connection, and closes it. */
static void assert_answered(int fd)
{
    char reply[1000];
    size_t n = 0;
    for (struct pollfd look = {fd, POLLIN, 0}; n + 1 < sizeof reply && poll(&look, 1, WAIT_MS) > 0;) {
        ssize_t more = recv(fd, reply + n, sizeof reply - 1 - n, 0);
        if (more <= 0) break;
        n += (size_t)more;
    }
    reply[n] = 0;
    assert_true(!strncmp(reply, "HTTP/1.1 503", 12));
    assert_non_null(strstr(reply, "the server is ending"));
    close(fd);
}

/* The server cannot accept while no descriptors are left, and the library waits for one of its connections to end. */
static void waiting_connections_are_answered(void **state)
{
    (void)state;
    if (!whit_server_library()) skip();
    struct sockaddr_in address;
    struct rlimit usual;
    whit_web_server *server;
    whit_error error;
    int kept, waiting[N_WAITING];
    assert_ok(whit_web_serve(listen_somewhere(&address), 64, TIMEOUT_S, NULL, answer, NULL, &server, &error), error);
    kept = make_socket();
    connect_to(kept, &address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    char byte;
    assert_int_equal(recv(kept, &byte, 1, 0), 1); /* this connection stays open */
    for (int i = 0; i < N_WAITING; i++) waiting[i] = make_socket();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const int next = dup(0);
    close(next);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, usual.rlim_max}), 0);
    for (int i = 0; i < N_WAITING; i++) connect_to(waiting[i], &address, request);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* the library's thread has tried to accept */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    end_server(server);
    for (int i = 0; i < N_WAITING; i++) assert_answered(waiting[i]);
    close(kept);
    int late = make_socket();
    assert_int_equal(connect(late, (const struct sockaddr *)&address, sizeof address), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(late);
}

/* Connections whose requests came just before, whether they were accepted or not. */
static void last_requests_are_answered(void **state)
{
    (void)state;
    if (!whit_server_library()) skip();
    for (int i = 0; i < N_ROUNDS; i++) {
        struct sockaddr_in address;
        whit_web_server *server;
        whit_error error;
        int fds[4];
        assert_ok(whit_web_serve(listen_somewhere(&address), 64, TIMEOUT_S, NULL, answer, NULL, &server, &error),
                  error);
        for (size_t k = 0; k < 4; k++) connect_to(fds[k] = make_socket(), &address, request);
        end_server(server);
        for (size_t k = 0; k < 4; k++) assert_answered(fds[k]);
    }
}

/* After the call the port is free, while running answers end. */
static void nobody_listens_afterwards(void **state)
{
    (void)state;
    if (!whit_server_library()) skip();
    struct sockaddr_in address;
    whit_web_server *server;
    whit_error error;
    assert_ok(whit_web_serve(listen_somewhere(&address), 64, TIMEOUT_S, NULL, answer, NULL, &server, &error), error);
    whit_web_quiesce(server);
    int late = make_socket();
    assert_int_equal(connect(late, (const struct sockaddr *)&address, sizeof address), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(late);
    whit_web_close(server);
}

/* Connections whose request has not come wholly are closed for new ones. Where their threads take a while to end, as on
 * a busy machine, new connections wait for that and are not reset. */
static void a_crowd_keeps_nobody_out(void **state)
{
    (void)state;
    if (!whit_server_library()) skip();
    enum { N_SLOW = 200 };
    struct sockaddr_in address;
    whit_web_server *server;
    whit_error error;
    int slow[N_SLOW], fd = listen_somewhere(&address);
    assert_int_equal(listen(fd, 2 * N_SLOW), 0);
    for (int i = 0; i < N_SLOW; i++)
        connect_to(slow[i] = make_socket(), &address, "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
    int honest = make_socket();
    connect_to(honest, &address, request);
    assert_ok(whit_web_serve(fd, 4, TIMEOUT_S, NULL, answer, NULL, &server, &error), error);
    assert_answered(honest);
    for (int i = 0; i < N_SLOW; i++) close(slow[i]);
    end_server(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_connections_are_answered),
        cmocka_unit_test(last_requests_are_answered),
        cmocka_unit_test(nobody_listens_afterwards),
        cmocka_unit_test(a_crowd_keeps_nobody_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
