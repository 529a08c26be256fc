/* SPDX-License-Identifier: MIT
 * Tests that an answer which neither ends nor stalls is given up at the time limit of the whole request. */
#include "test_folder.h"

#include <arpa/inet.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint/certificates.h"
#include "endpoint/endpoint.h"

static void begin_nothing(void *user)
{
    (void)user;
}
static bool take_all(void *user, const char *data, size_t n_bytes)
{
    (void)data;
    *(size_t *)user += n_bytes;
    return true;
}
static bool is_unfinished(void *user)
{
    (void)user;
    return false;
}

/* Sends comments of an event stream, a few per second, on every connection. */
static void serve_comments(int listening)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    for (;;) {
        int fd = accept(listening, NULL, NULL);
        ssize_t sent = write(fd, head, sizeof head - 1);
        while (sent > 0) {
            usleep(50000);
            sent = write(fd, ": wait\n\n", 8);
        }
        close(fd);
    }
}

static void test_trickle(void **state)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t own_bytes = sizeof own;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    (void)state;
    assert_int_equal(bind(listening, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&own, &own_bytes), 0);
    assert_int_equal(listen(listening, 8), 0);
    pid_t server = fork();
    if (server == 0) serve_comments(listening);
    char url[64], limit[64];
    size_t n_taken = 0;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/v1", ntohs(own.sin_port));
    /* repeated with more time, because a loaded machine may not send anything within the limit */
    for (uint32_t answer_s = 1; !n_taken; answer_s *= 2) {
        const whit_endpoint_options options = {.url = url, .answer_s = answer_s};
        const whit_endpoint_sink sink = {begin_nothing, take_all, is_unfinished, is_unfinished, &n_taken};
        whit_endpoint *endpoint;
        whit_error error;
        whit_status status = whit_endpoint_open(&options, &endpoint, &error);
        if (status == WHIT_ERROR_UNSUPPORTED) {
            print_message("[ SKIPPED ] %s\n", error.message);
            break;
        }
        assert_int_equal(status, WHIT_OK);
        assert_int_equal(whit_endpoint_post(endpoint, "{}", 2, &sink, &error), WHIT_ERROR_IO);
        snprintf(limit, sizeof limit, "the answer was not complete after %u s", answer_s);
        assert_non_null(strstr(error.message, limit));
        assert_true(n_taken > 0 || answer_s < 64);
        whit_endpoint_close(endpoint);
    }
    kill(server, SIGKILL);
    assert_int_equal(waitpid(server, NULL, 0), server);
    close(listening);
}

/* Finds the file of certificate authorities: one that a variable names comes first, then the known places of
 * distributions. */
static void test_certificates(void **state)
{
    static const char *const places[][2] = {
        {"/etc/ssl/certs", "/ca-certificates.crt"},
        {"/etc/pki/ca-trust/extracted/pem", "/tls-ca-bundle.pem"},
        {"/etc/ssl", "/cert.pem"},
    };
    const char *root = test_folder;
    char path[600], found[600], command[700];
    bool is_chosen;
    (void)state;
    unsetenv("CURL_CA_BUNDLE");
    unsetenv("SSL_CERT_FILE");
    assert_false(whit_certificates_find(root, found, sizeof found, &is_chosen));
    assert_string_equal(found, "");
    for (size_t i = sizeof places / sizeof *places; i-- > 0;) { /* an earlier place has priority */
        snprintf(command, sizeof command, "mkdir -p %s%s", root, places[i][0]);
        assert_int_equal(system(command), 0);
        snprintf(path, sizeof path, "%s%s%s", root, places[i][0], places[i][1]);
        fclose(fopen(path, "w"));
        assert_true(whit_certificates_find(root, found, sizeof found, &is_chosen));
        assert_string_equal(found, path);
        assert_false(is_chosen);
    }
    assert_false(whit_certificates_find(root, found, 20, &is_chosen)); /* a path that does not fit is not cut */
    setenv("CURL_CA_BUNDLE", "/b.pem", 1);
    assert_true(whit_certificates_find(root, found, sizeof found, &is_chosen) && is_chosen);
    assert_string_equal(found, "/b.pem");
    setenv("SSL_CERT_FILE", "/a.pem", 1);
    assert_true(whit_certificates_find(root, found, sizeof found, &is_chosen) && is_chosen);
    assert_string_equal(found, "/a.pem");
    unsetenv("CURL_CA_BUNDLE");
    assert_true(whit_certificates_find(root, found, sizeof "/a.pem", &is_chosen));
    assert_false(whit_certificates_find(root, found, sizeof "/a.pem" - 1, &is_chosen));
    assert_string_equal(found, "");
    assert_true(is_chosen);
    unsetenv("SSL_CERT_FILE");
}

/* A chosen file whose path is too long is not replaced by the library's own. */
static void test_long_certificates(void **state)
{
    char path[PATH_MAX + 2];
    size_t n_taken = 0;
    const whit_endpoint_options options = {.url = "https://127.0.0.1:1/v1", .n_tries = 1};
    const whit_endpoint_sink sink = {begin_nothing, take_all, is_unfinished, is_unfinished, &n_taken};
    whit_endpoint *endpoint;
    whit_error error;
    (void)state;
    memset(path, 'a', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = 0;
    setenv("SSL_CERT_FILE", path, 1);
    whit_status status = whit_endpoint_open(&options, &endpoint, &error);
    if (status == WHIT_ERROR_UNSUPPORTED) {
        print_message("[ SKIPPED ] %s\n", error.message);
    } else {
        assert_int_equal(status, WHIT_OK);
        assert_int_equal(whit_endpoint_post(endpoint, "{}", 2, &sink, &error), WHIT_ERROR_IO);
        assert_non_null(strstr(error.message, "no file of certificate authorities was found"));
        whit_endpoint_close(endpoint);
    }
    unsetenv("SSL_CERT_FILE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trickle), cmocka_unit_test(test_certificates),
                                       cmocka_unit_test(test_long_certificates)};
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
