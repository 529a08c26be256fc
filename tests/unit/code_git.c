/* SPDX-License-Identifier: MIT
 * Reads files of commits of repositories in which a file of git's is a pipe that nobody writes. */
#include "test_folder.h"

#include "code/git.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The process that reads ends when nobody waits for its answer any more, at whatever moment. */
static void reading_ends_with_its_reader(void **state)
{
    (void)state;
    whit_git_file *file;
    char command[600];
    const char *path = in_folder("a.c");
    snprintf(command, sizeof command,
             "cd %s && mkdir -p .git/objects .git/refs && mkfifo pipe && : > a.c && echo 'ref: refs/heads/main' > "
             ".git/HEAD &&"
             "printf '[include]\\n\\tpath = ../pipe\\n' > .git/config",
             test_folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* the reading process becomes a child of this one */
    for (int i = 0; i < 40; i++) {
        int status;
        if (!whit_git_ask(path, &file)) skip(); /* a build without libgit2 */
        usleep((useconds_t)i * 500);
        whit_git_close(file);
        assert_true(waitpid(-1, &status, 0) > 0);
        assert_false(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reading_ends_with_its_reader)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
