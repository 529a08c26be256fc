/* SPDX-License-Identifier: MIT
 * Tests that a request ends at its time limit, whatever the other side sends or does not read meanwhile. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/rpc.h"

static pid_t other;

/* Starts a process at the other end of a socket that sends a line again and again and never reads. */
static whit_rpc begin_chatter(const char *line)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    other = fork();
    if (other == 0) {
        close(ends[0]);
        while (write(ends[1], line, strlen(line)) > 0) {
        }
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    return (whit_rpc){.in = ends[0], .out = ends[0]};
}

static void end_chatter(whit_rpc *rpc)
{
    close(rpc->in);
    whit_rpc_free(rpc);
    assert_int_equal(waitpid(other, NULL, 0), other); /* ends when it writes to the closed socket */
}

/* With these lines a reader waited for ever, because its time limit began anew with every message. */
static void test_chatter(void **state)
{
    static const char *const lines[] = {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n",
                                        "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n", "\n", "{broken\n", "[]\n"};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        whit_rpc rpc = begin_chatter(lines[i]);
        assert_null(whit_rpc_converse(&rpc, "initialize", json_object(), 300));
        end_chatter(&rpc);
    }
}

/* The cancel flag must end the wait for a process that sends without reading, with a message that fills the socket. */
static void test_unread(void **state)
{
    static char text[8 << 20];
    bool cancel = true;
    (void)state;
    memset(text, 'x', sizeof text - 1);
    whit_rpc rpc = begin_chatter("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n");
    rpc.cancel = &cancel;
    assert_null(whit_rpc_converse(&rpc, "tools/call", json_pack("{s:s}", "text", text), 300));
    end_chatter(&rpc);
}

/* The reply must be found among other messages. */
static void test_reply(void **state)
{
    static const char words[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"roots/list\"}\n{\"id\":1,\"result\":{\"a\":5}}\n";
    char back[1000] = "";
    int in[2], out[2];
    (void)state;
    assert_true(pipe(in) == 0 && pipe(out) == 0);
    assert_int_equal(write(in[1], words, sizeof words - 1), sizeof words - 1);
    whit_rpc rpc = {.in = in[0], .out = out[1]};
    json_t *reply = whit_rpc_converse(&rpc, "initialize", json_object(), 60000);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(reply, "result"), "a")), 5);
    json_decref(reply);
    assert_true(read(out[0], back, sizeof back - 1) > 0);
    assert_non_null(strstr(back, "\"id\":7,\"result\":{}"));
    assert_non_null(strstr(back, "-32601"));
    whit_rpc_free(&rpc);
    for (int i = 0; i < 2; i++) close(in[i]), close(out[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chatter),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_reply),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
