/* SPDX-License-Identifier: MIT
 * Tests that a project's scratch copy whose files were deleted is filled again by the next update. */
#include "test_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/scratch.h"
#include "base/file.h"

static bool is_there(const whit_scratch *scratch, const char *name)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", scratch->tree, name);
    return access(path, F_OK) == 0;
}

static void emptied_copies_are_filled_again(void **state)
{
    (void)state;
    const whit_scratch_wait wait = {NULL, NULL, NULL};
    whit_scratch scratch;
    whit_error error;
    char project[300], cache[300], left[PATH_MAX + 64];
    snprintf(project, sizeof project, "%s", in_folder("project"));
    snprintf(cache, sizeof cache, "%s", in_folder("cache"));
    assert_int_equal(mkdir(project, 0755), 0);
    assert_ok(whit_write_file(in_folder("project/a.c"), "int a;\n", 7, &error), error);
    assert_ok(whit_scratch_open(project, cache, "run", &wait, &scratch, &error), error);
    for (int round = 0; round < 2; round++) {
        assert_ok(whit_scratch_update(&scratch, project, NULL, &error), error);
        assert_true(is_there(&scratch, "a.c"));
        assert_int_equal(scratch.n_copied, 1); /* a file that is new for the copy, not recognised as copied already */
        snprintf(left, sizeof left, "%s/large", scratch.tree);
        assert_ok(whit_write_file(left, "x", 1, &error), error);
        snprintf(left, sizeof left, "%s/cache", scratch.home);
        assert_ok(whit_write_file(left, "x", 1, &error), error);
        whit_scratch_empty(&scratch);
        assert_false(is_there(&scratch, "a.c") || is_there(&scratch, "large") || access(left, F_OK) == 0);
    }
    whit_scratch_close(&scratch);
}

/* Folders nested deeper than open descriptors reach must be removed, too; otherwise a command could leave a copy that
 * cannot be emptied. */
static void deep_folders_are_removed(void **state)
{
    (void)state;
    const whit_scratch_wait wait = {NULL, NULL, NULL};
    whit_scratch scratch;
    whit_error error;
    char project[300], cache[300];
    snprintf(project, sizeof project, "%s", in_folder("project"));
    snprintf(cache, sizeof cache, "%s", in_folder("cache"));
    assert_ok(whit_scratch_open(project, cache, "run", &wait, &scratch, &error), error);
    int at = dup(scratch.tree_fd);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(mkdirat(at, "deep", 0755), 0);
        int next = openat(at, "deep", O_RDONLY | O_DIRECTORY);
        assert_true(next >= 0);
        close(at);
        at = next;
    }
    close(at);
    whit_scratch_empty(&scratch);
    assert_false(is_there(&scratch, "deep"));
    assert_int_equal(rmdir(scratch.tree), 0);
    whit_scratch_close(&scratch);
}

/* A command that removes permissions of the copy's folders must not keep old files in it, nor make it unusable. */
static int update_closed_copy(void)
{
    const whit_scratch_wait wait = {NULL, NULL, NULL};
    whit_scratch scratch;
    whit_error error;
    whit_buf text = {0};
    char project[300], cache[300], path[PATH_MAX + 64], secret[300];
    snprintf(project, sizeof project, "%s", in_folder("own/project"));
    snprintf(cache, sizeof cache, "%s", in_folder("own/cache"));
    snprintf(secret, sizeof secret, "%s", in_folder("own/secret"));
    if (mkdir(project, 0755) != 0 || mkdir(in_folder("own/project/d"), 0755) != 0 || mkdir(secret, 0500) != 0) return 1;
    if (whit_write_file(in_folder("own/project/d/a.c"), "old\n", 4, &error) != WHIT_OK) return 2;
    if (whit_scratch_open(project, cache, "run", &wait, &scratch, &error) != WHIT_OK) return 3;
    if (whit_scratch_update(&scratch, project, NULL, &error) != WHIT_OK) return 4;
    whit_scratch_close(&scratch);
    snprintf(path, sizeof path, "%s/d/link", scratch.tree);
    if (symlink(secret, path) != 0) return 5;
    snprintf(path, sizeof path, "%s/d", scratch.tree);
    if (chmod(path, 0500) != 0 || chmod(scratch.tree, 0) != 0 || chmod(scratch.home, 0) != 0) return 6;
    if (whit_write_file(in_folder("own/project/d/a.c"), "new\n", 4, &error) != WHIT_OK) return 7;
    if (whit_scratch_open(project, cache, "run", &wait, &scratch, &error) != WHIT_OK) return 8;
    if (whit_scratch_update(&scratch, project, NULL, &error) != WHIT_OK || scratch.n_copied != 1) return 9;
    snprintf(path, sizeof path, "%s/d/a.c", scratch.tree);
    if (whit_read_file(path, 100, &text, &error) != WHIT_OK || text.size_bytes != 4 ||
        memcmp(text.data, "new\n", 4) != 0)
        return 10;
    whit_buf_free(&text);
    snprintf(path, sizeof path, "%s/d", scratch.tree);
    if (chmod(path, 0) != 0 || chmod(scratch.home, 0) != 0) return 11;
    whit_scratch_empty(&scratch);
    if (access(path, F_OK) == 0 || access(scratch.home, W_OK) != 0) return 12;
    whit_scratch_close(&scratch);
    struct stat info;
    return stat(secret, &info) == 0 && (info.st_mode & 0777) == 0500 ? 0 : 13;
}

static void closed_folders_are_opened(void **state)
{
    (void)state;
    const uid_t nobody = 65534;
    int status;
    assert_int_equal(mkdir(in_folder("own"), 0755), 0);
    assert_int_equal(chmod(test_folder, 0755), 0);
    if (geteuid() == 0) assert_int_equal(chown(in_folder("own"), nobody, nobody), 0);
    pid_t child = fork(); /* root ignores permissions */
    if (child == 0) _exit(geteuid() == 0 && setuid(nobody) != 0 ? 99 : update_closed_copy());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(emptied_copies_are_filled_again),
                                       cmocka_unit_test(deep_folders_are_removed),
                                       cmocka_unit_test(closed_folders_are_opened)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
