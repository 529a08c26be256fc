/* SPDX-License-Identifier: MIT
 * Tests that a project's scratch copy whose files were deleted is filled again by the next update, and that files that
 * change during the copying are not copied unseen. */
#include "test_folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/folders.h"
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

static void put_text(const char *name)
{
    whit_error error;
    assert_ok(whit_write_file(in_folder(name), "x", 1, &error), error);
}

/* Between two commands, a file of the project becomes a folder, and a folder a file, as a checkout of another branch
 * makes them. */
static void files_become_folders_and_folders_files(void **state)
{
    (void)state;
    const whit_scratch_wait wait = {NULL, NULL, NULL};
    whit_scratch scratch;
    whit_error error;
    char project[300], cache[300];
    snprintf(project, sizeof project, "%s", in_folder("kinds"));
    snprintf(cache, sizeof cache, "%s", in_folder("cache"));
    assert_int_equal(mkdir(project, 0755), 0);
    assert_int_equal(mkdir(in_folder("kinds/folder"), 0755), 0);
    put_text("kinds/file");
    put_text("kinds/folder/a");
    put_text("kinds/folder/b");
    put_text("kinds/folder-c"); /* sorted between the folder's name and its files */
    assert_ok(whit_scratch_open(project, cache, "run", &wait, &scratch, &error), error);
    assert_ok(whit_scratch_update(&scratch, project, NULL, &error), error);
    assert_true(is_there(&scratch, "file") && is_there(&scratch, "folder/b") && is_there(&scratch, "folder-c"));
    for (int round = 0; round < 2; round++) {
        if (round == 0) {
            assert_int_equal(unlink(in_folder("kinds/file")), 0);
            assert_int_equal(mkdir(in_folder("kinds/file"), 0755), 0);
            put_text("kinds/file/a");
            put_text("kinds/file-c");
            whit_agent_remove_all(AT_FDCWD, in_folder("kinds/folder"));
            put_text("kinds/folder");
        }
        assert_ok(whit_scratch_update(&scratch, project, NULL, &error), error);
        assert_true(is_there(&scratch, "file/a") && is_there(&scratch, "file-c") && is_there(&scratch, "folder-c"));
        assert_true(is_there(&scratch, "folder") && !is_there(&scratch, "folder/."));
    }
    assert_int_equal(unlink(in_folder("kinds/folder")), 0);
    assert_ok(whit_scratch_update(&scratch, project, NULL, &error), error);
    assert_false(is_there(&scratch, "folder"));
    whit_scratch_close(&scratch);
}

/* Commands may read /usr. A project in it is closed to them with the files beside it, which belong to no program. */
static void projects_in_system_folders_are_closed(void **state)
{
    (void)state;
    static const struct {
        const char *project, *folder;
    } cases[] = {
        {"/opt/p", "/opt/p"},
        {"/usr", "/usr"},
        {"/usr/src", "/usr/src"},
        {"/usr/src/app", "/usr/src/app"},
        {"/usr/src/app/web/a", "/usr/src/app"},
        {"/usr/local/src/app/web", "/usr/local/src/app"},
        {"/usr/local/app/web", "/usr/local/app"},
        {"/usr/share/nginx/html", "/usr/share/nginx"},
        {"/usr/app/web", "/usr/app"},
        {"/usr/lib/python3/dist-packages/p", "/usr/lib/python3/dist-packages/p"},
        {"/usrlocal/src/app/web", "/usrlocal/src/app/web"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[PATH_MAX];
        whit_agent_closed_folder(cases[i].project, folder);
        assert_string_equal(folder, cases[i].folder);
    }
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

/* Exchanges a file without a key for one with a key, and a folder for a link out of the project, until `ended`. */
struct exchange {
    pthread_t thread;
    char names[4][300];
    atomic_bool ended;
};

static void *exchange_all(void *user)
{
    struct exchange *x = user;
    while (!atomic_load(&x->ended)) {
        for (int i = 0; i < 4; i += 2)
            (void)syscall(SYS_renameat2, AT_FDCWD, x->names[i], AT_FDCWD, x->names[i + 1], 2u /* exchange */);
        usleep(500);
    }
    return NULL;
}

static bool begins_with(const whit_scratch *scratch, const char *name, const char *text)
{
    char path[PATH_MAX + 64], got[8] = "";
    snprintf(path, sizeof path, "%s/%s", scratch->tree, name);
    int fd = open(path, O_RDONLY);
    bool same = fd >= 0 && read(fd, got, strlen(text)) == (ssize_t)strlen(text) && strcmp(got, text) == 0;
    if (fd >= 0) close(fd);
    return same;
}

/* What a command sees is what was searched for keys, and a file of the project, although another program changes both
 * during the copying. */
static void files_that_change_are_not_copied_unseen(void **state)
{
    (void)state;
    enum { SIZE = 2 << 20, ROUNDS = 60 };
    static const char key[] = "k = 'ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'\n";
    const whit_scratch_wait wait = {NULL, NULL, NULL};
    whit_scratch scratch;
    whit_error error;
    struct exchange x = {.ended = false};
    char project[300], cache[300], *text = malloc(SIZE);
    int n_keys = 0, n_outside = 0;
    assert_non_null(text);
    memset(text, 'x', SIZE);
    snprintf(project, sizeof project, "%s", in_folder("changed"));
    snprintf(cache, sizeof cache, "%s", in_folder("cache"));
    assert_int_equal(mkdir(project, 0755), 0);
    assert_int_equal(mkdir(in_folder("changed/d"), 0755), 0);
    assert_int_equal(mkdir(in_folder("elsewhere"), 0755), 0);
    assert_ok(whit_write_file(in_folder("changed/d/f"), text, 1, &error), error);
    assert_ok(whit_write_file(in_folder("elsewhere/f"), "outside", 7, &error), error);
    assert_int_equal(symlink("../elsewhere", in_folder("changed/link")), 0);
    assert_ok(whit_write_file(in_folder("changed/a"), text, SIZE, &error), error);
    memcpy(text, key, sizeof key - 1);
    assert_ok(whit_write_file(in_folder("with_key"), text, SIZE, &error), error);
    static const char *const names[] = {"changed/a", "with_key", "changed/d", "changed/link"};
    for (int i = 0; i < 4; i++) snprintf(x.names[i], sizeof x.names[i], "%s", in_folder(names[i]));
    assert_ok(whit_scratch_open(project, cache, "run", &wait, &scratch, &error), error);
    assert_int_equal(pthread_create(&x.thread, NULL, exchange_all, &x), 0);
    for (int round = 0; round < ROUNDS; round++) {
        assert_ok(whit_scratch_update(&scratch, project, NULL, &error), error);
        n_keys += begins_with(&scratch, "a", "k = ");
        n_outside += begins_with(&scratch, "d/f", "out") || begins_with(&scratch, "link/f", "out");
    }
    atomic_store(&x.ended, true);
    pthread_join(x.thread, NULL);
    assert_int_equal(n_keys, 0);
    assert_int_equal(n_outside, 0);
    whit_scratch_close(&scratch);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(emptied_copies_are_filled_again),
                                       cmocka_unit_test(files_become_folders_and_folders_files),
                                       cmocka_unit_test(projects_in_system_folders_are_closed),
                                       cmocka_unit_test(deep_folders_are_removed),
                                       cmocka_unit_test(closed_folders_are_opened),
                                       cmocka_unit_test(files_that_change_are_not_copied_unseen)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
