/* SPDX-License-Identifier: MIT
 * Tests that the limit on a connection's idle time does not end an answer that takes longer to compute. */
#include "test_folder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "server/http.h"
#include "server/server.h"

enum { TIMEOUT_S = 1, ANSWER_MS = 2600, WAIT_MS = 120000 };

static void make_answer(void)
{
    const struct timespec long_one = {ANSWER_MS / 1000, ANSWER_MS % 1000 * 1000000};
    nanosleep(&long_one, NULL);
}

static long read_part(void *user, char *data, size_t room)
{
    int *n_parts = user;
    if (*n_parts == 2) return 0;
    make_answer();
    (void)room;
    memcpy(data, *n_parts ? "late" : "very ", *n_parts ? 4 : 5);
    return (*n_parts)++ ? 4 : 5;
}

static void end_parts(void *user)
{
    *(int *)user = 0;
}

static void handle(void *user, const whit_web_request *request, whit_web_reply *reply)
{
    if (request->headers_only) return;
    reply->status = 200;
    reply->type = "text/plain";
    if (!strcmp(request->path, "/stream")) {
        reply->stream = read_part;
        reply->end_stream = end_parts;
        reply->stream_user = user;
        return;
    }
    make_answer();
    whit_buf_append_str(&reply->body, "very late");
}

static int listen_somewhere(struct sockaddr_in *address)
{
    socklen_t n = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &n), 0);
    return fd;
}

/* Sends a request and reads until the server closes the connection. Returns how long that took, in nanoseconds. */
static uint64_t ask(const struct sockaddr_in *address, const char *request, char *reply, size_t room)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint64_t began_ns = whit_now_ns();
    assert_int_equal(connect(fd, (const struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    size_t n = 0;
    for (struct pollfd look = {fd, POLLIN, 0}; n + 1 < room && poll(&look, 1, WAIT_MS) > 0;) {
        ssize_t more = recv(fd, reply + n, room - 1 - n, 0);
        if (more <= 0) break;
        n += (size_t)more;
    }
    reply[n] = 0;
    close(fd);
    return whit_now_ns() - began_ns;
}

static void late_answers_arrive(void **state)
{
    (void)state;
    if (!whit_server_library()) skip();
    struct sockaddr_in address;
    whit_web_server *server;
    whit_error error;
    int n_parts = 0, fd = listen_somewhere(&address);
    char reply[4096];
    assert_ok(whit_web_serve(fd, 8, TIMEOUT_S, NULL, handle, &n_parts, &server, &error), error);
    static const char *const paths[] = {"/whole", "/stream"};
    for (size_t i = 0; i < 2; i++) {
        char request[100];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", paths[i]);
        ask(&address, request, reply, sizeof reply);
        assert_true(!strncmp(reply, "HTTP/1.1 200", 12));
        assert_non_null(strstr(reply, "very "));
        assert_non_null(strstr(reply, "late"));
    }
    /* a client that never finishes its request is disconnected */
    assert_true(ask(&address, "GET /whole HTTP/1.1\r\n", reply, sizeof reply) < 60000000000u);
    assert_string_equal(reply, "");
    whit_web_quiesce(server);
    whit_web_close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(late_answers_arrive)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
