/* SPDX-License-Identifier: MIT
 * Tests programs that are started with pipes: input and output, exit status, and that the programs they started end
 * with them. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/piped.h"
#include "test.h"

enum { PATIENCE_MS = 120000 }; /* ends a test that hangs */

/* Reads until the end of the output, or `limit` bytes. Returns the number of bytes. */
static size_t read_output(const whit_piped *piped, char *text, size_t limit)
{
    size_t n = 0;
    while (n < limit) {
        struct pollfd wanted = {piped->out, POLLIN, 0};
        assert_true(poll(&wanted, 1, PATIENCE_MS) > 0);
        const ssize_t got = read(piped->out, text + n, limit - n);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        assert_true(got >= 0);
        if (!got) break;
        n += (size_t)got;
    }
    text[n < limit ? n : limit - 1] = 0;
    return n;
}

static void lines_of_the_shell(void **state)
{
    (void)state;
    whit_piped piped = {0};
    whit_error error;
    char text[100];
    assert_int_equal(whit_piped_start_line(&piped, "tr a-z A-Z; echo gone >&2; exit 3", ".", &error), WHIT_OK);
    assert_int_equal(write(piped.in, "words", 5), 5);
    whit_piped_close_input(&piped);
    assert_int_equal(read_output(&piped, text, sizeof text), 10);
    assert_string_equal(text, "WORDSgone\n");
    assert_int_equal(whit_piped_end(&piped, PATIENCE_MS), 3);
    assert_int_equal(piped.process, 0);
    assert_int_equal(whit_piped_end(&piped, 0), -1); /* no process is left to end */
}

static void words_without_a_shell(void **state)
{
    (void)state;
    whit_piped piped = {0};
    whit_error error;
    char text[100], *words[] = {(char *)"printf", (char *)"%s|", (char *)"a b", (char *)"$HOME", NULL};
    assert_int_equal(whit_piped_start(&piped, words, &(whit_piped_how){.folder = "/"}, &error), WHIT_OK);
    read_output(&piped, text, sizeof text);
    assert_string_equal(text, "a b|$HOME|");
    assert_int_equal(whit_piped_end(&piped, PATIENCE_MS), 0);
    words[0] = (char *)"/no/such/program";
    assert_int_equal(whit_piped_start(&piped, words, &(whit_piped_how){.folder = "/"}, &error), WHIT_OK);
    assert_int_equal(whit_piped_end(&piped, PATIENCE_MS), 127);
}

static void variables(void **state)
{
    (void)state;
    whit_piped piped = {0};
    whit_error error;
    char text[100],
        *words[] = {(char *)"sh", (char *)"-c", (char *)"echo $WHIT_A,$WHIT_AB,${WHIT_B-none},$WHIT_C", NULL};
    const char *changes[] = {"WHIT_B", "WHIT_A=new=1", "WHIT_C=c", NULL};
    setenv("WHIT_A", "old", 1);
    setenv("WHIT_AB", "kept", 1);
    setenv("WHIT_B", "old", 1);
    assert_int_equal(whit_piped_start(&piped, words, &(whit_piped_how){.changes = changes}, &error), WHIT_OK);
    read_output(&piped, text, sizeof text);
    assert_string_equal(text, "new=1,kept,none,c\n");
    assert_int_equal(whit_piped_end(&piped, PATIENCE_MS), 0);
    assert_string_equal(getenv("WHIT_B"), "old");
}

/* A program that does not end when its input ends gets SIGTERM, and its exit code counts. */
static void asked_to_end(void **state)
{
    (void)state;
    whit_piped piped = {0};
    whit_error error;
    char text[100];
    assert_int_equal(
        whit_piped_start_line(&piped, "trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done", ".", &error),
        WHIT_OK);
    struct pollfd wanted = {piped.out, POLLIN, 0};
    assert_int_equal(poll(&wanted, 1, PATIENCE_MS), 1);
    assert_int_equal(read(piped.out, text, sizeof text), 6);
    assert_int_equal(whit_piped_end(&piped, 6000), 4); /* asked after half of that time */
}

/* A program that uses the terminal stays in this process's group; ending it must not end the group. */
static void at_the_terminal(void **state)
{
    (void)state;
    whit_piped piped = {0};
    whit_error error;
    char text[100],
        *words[] = {(char *)"sh", (char *)"-c", (char *)"cut -d' ' -f5 /proc/$$/stat; exec sleep 600", NULL};
    assert_int_equal(whit_piped_start(&piped, words, &(whit_piped_how){.at_terminal = true}, &error), WHIT_OK);
    struct pollfd wanted = {piped.out, POLLIN, 0};
    assert_int_equal(poll(&wanted, 1, PATIENCE_MS), 1);
    const ssize_t n = read(piped.out, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = 0;
    assert_int_equal(strtol(text, NULL, 10), getpgrp());
    assert_int_equal(whit_piped_end(&piped, 0), -1);
}

static void all_of_it_ends(void **state)
{
    (void)state;
    whit_piped piped = {0};
    whit_error error;
    char text[100];
    assert_int_equal(whit_piped_start_line(&piped, "sleep 600 & echo $!; wait", ".", &error), WHIT_OK);
    struct pollfd wanted = {piped.out, POLLIN, 0};
    assert_int_equal(poll(&wanted, 1, PATIENCE_MS), 1);
    const ssize_t n = read(piped.out, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = 0;
    const pid_t grandchild = (pid_t)strtol(text, NULL, 10);
    assert_true(grandchild > 1);
    assert_int_equal(kill(grandchild, 0), 0);
    assert_int_equal(whit_piped_end(&piped, 0), -1);
    bool is_gone = false; /* the process may stay a zombie until its new parent waits for it */
    for (int i = 0; i < 2000 && !is_gone; i++) {
        char path[64], line[200] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)grandchild);
        FILE *file = fopen(path, "re");
        is_gone = !file || (fgets(line, sizeof line, file) && strstr(line, ") Z "));
        if (file) fclose(file);
        if (!is_gone) usleep(10000);
    }
    assert_true(is_gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_the_shell), cmocka_unit_test(words_without_a_shell), cmocka_unit_test(variables),
        cmocka_unit_test(asked_to_end),       cmocka_unit_test(at_the_terminal),       cmocka_unit_test(all_of_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
