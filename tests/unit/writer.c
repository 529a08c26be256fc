/* SPDX-License-Identifier: MIT
 * Tests atomic writes: links, devices and pipes as output, and that the next writer removes the
 * file of a killed one. */
#include "test_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"

/* Replaces `access` for the library: with `named_only` there is no support for unnamed files, as on file systems
 * without O_TMPFILE. */
static bool named_only;

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    return named_only && strcmp(path, "/proc/self/fd") == 0 ? -1 : __real_access(path, mode);
}

static int n_entries(void)
{
    DIR *folder = opendir(test_folder);
    assert_non_null(folder);
    int n = -2; /* the entries "." and ".." do not count */
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

static void assert_content(const char *path, const char *wanted)
{
    whit_buf text = {0};
    whit_error error;
    assert_ok(whit_read_file(path, 1 << 20, &text, &error), error);
    assert_int_equal(text.size_bytes, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.size_bytes);
    whit_buf_free(&text);
}

static void links_are_followed(void **state)
{
    (void)state;
    whit_error error;
    struct stat info;
    char target[512];
    snprintf(target, sizeof target, "%s", in_folder("target"));
    assert_int_equal(symlink("target", in_folder("relative")), 0);
    assert_int_equal(symlink(target, in_folder("absolute")), 0);
    assert_int_equal(symlink("relative", in_folder("twice")), 0);
    static const char *const names[] = {"relative", "absolute", "twice"}; /* the first has no target yet */
    for (size_t i = 0; i < 3; i++) {
        assert_ok(whit_write_file(in_folder(names[i]), names[i], strlen(names[i]), &error), error);
        assert_int_equal(lstat(in_folder(names[i]), &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        assert_int_equal(lstat(target, &info), 0);
        assert_true(S_ISREG(info.st_mode));
        assert_content(target, names[i]);
    }
    assert_int_equal(symlink("round", in_folder("round")), 0);
    assert_int_equal(whit_write_file(in_folder("round"), "x", 1, &error), WHIT_ERROR_IO);
    for (size_t i = 0; i < 3; i++) unlink(in_folder(names[i]));
    unlink(in_folder("round"));
    unlink(target);
}

static void devices_and_pipes_are_written_to(void **state)
{
    (void)state;
    whit_error error;
    struct stat before, after;
    assert_int_equal(stat("/dev/null", &before), 0);
    assert_ok(whit_write_file("/dev/null", "x", 1, &error), error);
    assert_int_equal(stat("/dev/null", &after), 0);
    assert_true(S_ISCHR(after.st_mode) && before.st_ino == after.st_ino);
    assert_int_equal(whit_write_file("/dev/full", "x", 1, &error), WHIT_ERROR_IO);

    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        char text[16] = {0};
        int fd = open(in_folder("pipe"), O_RDONLY);
        bool right = fd >= 0 && read(fd, text, sizeof text) == 5 && memcmp(text, "piped", 5) == 0;
        _exit(!right);
    }
    assert_ok(whit_write_file(in_folder("pipe"), "piped", 5, &error), error);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(lstat(in_folder("pipe"), &after), 0);
    assert_true(S_ISFIFO(after.st_mode));
    unlink(in_folder("pipe"));
    assert_int_equal(whit_write_file(test_folder, "x", 1, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "is a folder"));
    assert_int_equal(n_entries(), 0);
}

/* Starts a child that writes the same file again and again, and kills it after wait_us. */
static void kill_a_writer(const char *path, uint64_t wait_us)
{
    pid_t child = fork();
    if (child == 0) {
        static uint8_t bytes[1 << 16];
        whit_error error;
        for (;;) {
            whit_writer writer;
            if (whit_writer_open(path, NULL, &writer, &error) != WHIT_OK) _exit(1);
            for (int i = 0; i < 4; i++)
                if (whit_writer_append(&writer, bytes, sizeof bytes, &error) != WHIT_OK) _exit(1);
            if (whit_writer_commit(&writer, &error) != WHIT_OK) _exit(1);
        }
    }
    usleep((useconds_t)wait_us);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void killed_writers_leave_nothing(void **state)
{
    (void)state;
    whit_rng rng = {11};
    whit_error error;
    for (int named = 0; named < 2; named++) {
        named_only = named;
        for (int i = 0; i < 50; i++) {
            const char *path = in_folder("out");
            struct stat info;
            kill_a_writer(path, 200 + whit_rng_below(&rng, 4000));
            if (stat(path, &info) == 0) assert_int_equal(info.st_size, 4 << 16); /* whole, or not there */
            /* Somebody else's file of a like name stays, and so does one that is being written. */
            assert_ok(whit_write_file(in_folder("other.tmp-abc9kq"), "x", 1, &error), error);
            assert_ok(whit_write_file(in_folder("out.tmp-backup"), "x", 1, &error), error);
            assert_ok(whit_write_file(in_folder("out.tmp-abc9kq"), "x", 1, &error), error);
            whit_writer busy;
            assert_ok(whit_writer_open(path, NULL, &busy, &error), error);
            if (named) assert_false(busy.unnamed);
            int n_busy = busy.unnamed ? 0 : 1;
            assert_ok(whit_write_file(path, "new", 3, &error), error);
            assert_int_equal(n_entries(), 3 + n_busy); /* the leftover out.tmp-abc9kq is removed */
            assert_ok(whit_writer_commit(&busy, &error), error);
            assert_int_equal(n_entries(), 3);
            unlink(in_folder("other.tmp-abc9kq"));
            unlink(in_folder("out.tmp-backup"));
            unlink(path);
        }
    }
    named_only = false;
}

/* A name that the finished file cannot have must be refused before a byte is written. */
static void names_are_looked_at_first(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        bool fits;
    } lengths[] = {{NAME_MAX + 1, false}, {NAME_MAX - 10, false}, {NAME_MAX - 11, true}}; /* ".tmp-XXXXXX" */
    char name[NAME_MAX + 2], path[512];
    whit_error error;
    whit_writer writer;
    assert_int_equal(symlink("none/", in_folder("link")), 0);
    assert_int_equal(whit_writer_open("", NULL, &writer, &error), WHIT_ERROR_IO);
    assert_non_null(strstr(error.message, "is empty"));
    static const char *const folders[] = {"none/", "none//", "link"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        assert_int_equal(whit_writer_open(in_folder(folders[i]), NULL, &writer, &error), WHIT_ERROR_IO);
        assert_non_null(strstr(error.message, "is the name of a folder: add the name of a file"));
        whit_writer_discard(&writer);
    }
    unlink(in_folder("link"));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(name, 'n', lengths[i].n);
        name[lengths[i].n] = 0;
        snprintf(path, sizeof path, "%s/%s", test_folder, name);
        for (int round = 0; round < 2; round++) { /* round 0 writes a new file, round 1 replaces it */
            whit_status status = whit_write_file(path, "x", 1, &error);
            assert_int_equal(status, lengths[i].fits ? WHIT_OK : WHIT_ERROR_IO);
            if (status != WHIT_OK) assert_non_null(strstr(error.message, "is longer than"));
        }
        unlink(path);
    }
    assert_int_equal(n_entries(), 0);
}

static unsigned mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 0777;
}

/* A new file is as readable as the umask says, and a replaced one never more than before. */
static void a_private_file_stays_private(void **state)
{
    (void)state;
    static const struct {
        unsigned before, after;
    } modes[] = {{0600, 0600}, {0640, 0640}, {0644, 0644}, {0444, 0644}, {0666, 0644}, {0400, 0600}, {0000, 0600}};
    whit_error error;
    char path[512];
    snprintf(path, sizeof path, "%s", in_folder("private"));
    const mode_t mask = umask(022);
    for (int round = 0; round < 2; round++) {
        named_only = round == 1;
        assert_ok(whit_write_file(path, "x", 1, &error), error);
        assert_int_equal(mode_of(path), 0644);
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
            whit_writer writer;
            assert_int_equal(chmod(path, modes[i].before), 0);
            assert_ok(whit_writer_open(path, NULL, &writer, &error), error);
            if (named_only) assert_int_equal(mode_of(writer.temporary), modes[i].after);
            assert_ok(whit_writer_append(&writer, "y", 1, &error), error);
            assert_ok(whit_writer_commit(&writer, &error), error);
            assert_int_equal(mode_of(path), modes[i].after);
        }
        unlink(path);
    }
    named_only = false;
    umask(mask);
    assert_int_equal(n_entries(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_followed),           cmocka_unit_test(devices_and_pipes_are_written_to),
        cmocka_unit_test(killed_writers_leave_nothing), cmocka_unit_test(names_are_looked_at_first),
        cmocka_unit_test(a_private_file_stays_private),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
