/* SPDX-License-Identifier: MIT
 * Tests appending to .ndf files: reading it again, crashes at any byte, and which bytes are never cut off. */
#include "test.h"

#include "format/ndf_append.h"
#include "format/ndf_frame.h"
#include "format/ndf_verify.h"
#include "ndf_sample.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int remove_folder(void **state)
{
    (void)state;
    return ndf_sample_path(NULL) ? 0 : -1;
}

static const char *path_of(int fd)
{
    static char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static off_t size_of(int fd)
{
    return lseek(fd, 0, SEEK_END);
}

static int make_model(void)
{
    whit_error error;
    int fd = -1;
    ndf_sample_options options = {.n_tensors = 3, .row_bytes = 100};
    assert_ok(ndf_sample_write(NULL, &options, NULL, &fd, &error), error);
    return fd;
}

static void check_appended(const whit_ndf *ndf, uint32_t i, uint32_t type, const char *name, const void *data,
                           size_t size_bytes)
{
    whit_error error;
    whit_ndf_appended appended;
    assert_ok(whit_ndf_appended_at(ndf, i, &appended, &error), error);
    assert_int_equal(appended.type, type);
    assert_string_equal(appended.name, name);
    assert_int_equal(appended.size_bytes, size_bytes);
    assert_int_equal((uintptr_t)appended.data % 64, 0);
    assert_memory_equal(appended.data, data, size_bytes);
}

static void appends_frames(void **state)
{
    (void)state;
    whit_error error;
    const char *path = ndf_sample_path("a.ndf");
    uint8_t identity[WHIT_HASH_BYTES];
    assert_ok(ndf_sample_write(path, NULL, identity, NULL, &error), error);
    whit_ndf *before, *ndf;
    assert_ok(whit_ndf_open(path, NULL, &before, &error), error);
    size_t large_bytes = (size_t)3 << 20;
    uint8_t *large = malloc(large_bytes);
    for (size_t i = 0; i < large_bytes; i++) large[i] = (uint8_t)(i * i >> 7);
    assert_ok(whit_ndf_append(path, WHIT_NDF_ADAPTER, "tune", large, large_bytes, NULL, &error), error);
    assert_ok(whit_ndf_append(path, 99, "future kind", "", 0, NULL, &error), error);
    assert_ok(whit_ndf_append(path, WHIT_NDF_SESSION, "s", "abc", 3, NULL, &error), error);
    assert_ok(whit_ndf_open(path, NULL, &ndf, &error), error);
    assert_int_equal(whit_ndf_n_appended(ndf), 3);
    check_appended(ndf, 0, WHIT_NDF_ADAPTER, "tune", large, large_bytes);
    check_appended(ndf, 1, 99, "future kind", "", 0);
    check_appended(ndf, 2, WHIT_NDF_SESSION, "s", "abc", 3);
    assert_memory_equal(whit_ndf_identity(ndf), identity, sizeof identity);
    assert_ok(whit_ndf_verify(ndf, 2, NULL, NULL, NULL, &error), error);
    whit_ndf_close(ndf);
    /* A reader that had the file open still sees the old content. */
    assert_int_equal(whit_ndf_n_appended(before), 0);
    assert_ok(whit_ndf_verify(before, 1, NULL, NULL, NULL, &error), error);
    whit_ndf_close(before);

    assert_int_equal(whit_ndf_append(path, WHIT_NDF_DATA, "x", "", 0, NULL, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_ndf_append(path, WHIT_NDF_SESSION, "", "", 0, NULL, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_ndf_append(ndf_sample_path("none"), WHIT_NDF_SESSION, "x", "", 0, NULL, &error),
                     WHIT_ERROR_IO);
    free(large);
    unlink(path);
}

static void a_crash_costs_nothing(void **state)
{
    (void)state;
    whit_error error;
    int fd = make_model();
    assert_ok(whit_ndf_append(path_of(fd), WHIT_NDF_SESSION, "first", "one", 3, NULL, &error), error);
    off_t base = size_of(fd);
    assert_ok(whit_ndf_append(path_of(fd), WHIT_NDF_SESSION, "second", "two", 3, NULL, &error), error);
    off_t full = size_of(fd);
    size_t tail_bytes = (size_t)(full - base);
    uint8_t *tail = malloc(tail_bytes), *zeros = calloc(1, tail_bytes);
    assert_int_equal(pread(fd, tail, tail_bytes, base), (ssize_t)tail_bytes);
    /* Two kinds of crash after byte `cut` of the appended tail: the file ends there, or it has its full length and
     * zeros from there on. */
    for (size_t cut = 0; cut <= tail_bytes; cut++)
        for (int holes = 0; holes < 2; holes++) {
            assert_int_equal(ftruncate(fd, base), 0);
            assert_int_equal(pwrite(fd, tail, cut, base), (ssize_t)cut);
            if (holes)
                assert_int_equal(pwrite(fd, zeros, tail_bytes - cut, base + (off_t)cut), (ssize_t)(tail_bytes - cut));
            /* The last bytes of a commit may be zeros anyway. */
            bool whole = holes ? memcmp(tail + cut, zeros, tail_bytes - cut) == 0 : cut == tail_bytes;
            whit_ndf *ndf;
            assert_ok(whit_ndf_open_fd(fd, "crash", NULL, &ndf, &error), error);
            assert_int_equal(whit_ndf_n_appended(ndf), whole ? 2 : 1);
            check_appended(ndf, 0, WHIT_NDF_SESSION, "first", "one", 3);
            assert_int_equal(whit_ndf_torn_bytes(ndf), whole ? 0 : size_of(fd) - base);
            whit_status status = whit_ndf_verify(ndf, 1, NULL, NULL, NULL, &error);
            assert_int_equal(status, whole || whit_ndf_torn_bytes(ndf) == 0 ? WHIT_OK : WHIT_ERROR_FORMAT);
            if (status != WHIT_OK) assert_non_null(strstr(error.message, "not committed"));
            whit_ndf_close(ndf);
            if (whole) continue;
            assert_ok(whit_ndf_append(path_of(fd), WHIT_NDF_SESSION, "third", "three", 5, NULL, &error), error);
            assert_ok(whit_ndf_open_fd(fd, "crash", NULL, &ndf, &error), error);
            assert_int_equal(whit_ndf_n_appended(ndf), 2);
            check_appended(ndf, 1, WHIT_NDF_SESSION, "third", "three", 5);
            assert_ok(whit_ndf_verify(ndf, 1, NULL, NULL, NULL, &error), error);
            whit_ndf_close(ndf);
        }
    free(tail);
    free(zeros);
    close(fd);
}

static void damage_is_not_cut_off(void **state)
{
    (void)state;
    whit_error error;
    int fd = make_model();
    off_t base = size_of(fd);
    assert_ok(whit_ndf_append(path_of(fd), WHIT_NDF_SESSION, "one", "1", 1, NULL, &error), error);
    assert_ok(whit_ndf_append(path_of(fd), WHIT_NDF_SESSION, "two", "2", 1, NULL, &error), error);
    off_t full = size_of(fd);
    uint8_t byte = 0xFF;
    assert_int_equal(pwrite(fd, &byte, 1, base + 70), 1);
    assert_int_equal(whit_ndf_append(path_of(fd), WHIT_NDF_SESSION, "x", "3", 1, NULL, &error), WHIT_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "its header is damaged, although later commits follow"));
    assert_int_equal(size_of(fd), full);
    close(fd);

    /* A whole .ndf file as payload, whose append was cut off, does not count as damage. */
    fd = make_model();
    base = size_of(fd);
    uint8_t *copy = malloc((size_t)base);
    assert_int_equal(pread(fd, copy, (size_t)base, 0), base);
    assert_ok(whit_ndf_append(path_of(fd), WHIT_NDF_ADAPTER, "m", copy, (size_t)base, NULL, &error), error);
    assert_int_equal(ftruncate(fd, size_of(fd) - 1), 0);
    assert_ok(whit_ndf_append(path_of(fd), WHIT_NDF_SESSION, "x", "3", 1, NULL, &error), error);
    free(copy);
    close(fd);
}

static void two_appenders_take_turns(void **state)
{
    (void)state;
    whit_error error;
    const char *path = ndf_sample_path("turns.ndf");
    assert_ok(ndf_sample_write(path, NULL, NULL, NULL, &error), error);
    enum { CHILDREN = 4, EACH = 5 };
    for (int c = 0; c < CHILDREN; c++)
        if (fork() == 0) {
            char name[32];
            whit_status status = WHIT_OK;
            for (int i = 0; i < EACH && status == WHIT_OK; i++) {
                snprintf(name, sizeof name, "%d.%d", c, i);
                status = whit_ndf_append(path, WHIT_NDF_SESSION, name, name, strlen(name), NULL, NULL);
            }
            _exit(status != WHIT_OK);
        }
    for (int c = 0; c < CHILDREN; c++) {
        int code;
        wait(&code);
        assert_int_equal(code, 0);
    }
    whit_ndf *ndf;
    assert_ok(whit_ndf_open(path, NULL, &ndf, &error), error);
    assert_int_equal(whit_ndf_n_appended(ndf), CHILDREN * EACH);
    assert_ok(whit_ndf_verify(ndf, 2, NULL, NULL, NULL, &error), error);
    whit_ndf_close(ndf);
    unlink(path);
}

/* When the disk is full, the file must remain as it was. */
static void a_failed_append_leaves_the_file(void **state)
{
    (void)state;
    whit_error error;
    const char *path = ndf_sample_path("full.ndf");
    assert_ok(ndf_sample_write(path, NULL, NULL, NULL, &error), error);
    size_t before, after;
    uint8_t *was = ndf_sample_load(path, &before);
    fflush(NULL);
    int code;
    if (fork() == 0) {
        struct rlimit limit = {before + 1000, before + 1000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        uint8_t *data = calloc(1, 5000);
        whit_status status = whit_ndf_append(path, WHIT_NDF_SESSION, "s", data, 5000, NULL, &error);
        free(data);
        _exit(status == WHIT_ERROR_IO && strstr(error.message, "cannot write") ? 0 : 1);
    }
    wait(&code);
    assert_int_equal(code, 0);
    uint8_t *is = ndf_sample_load(path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(was, is, before);
    free(was);
    free(is);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_frames),
        cmocka_unit_test(a_crash_costs_nothing),
        cmocka_unit_test(damage_is_not_cut_off),
        cmocka_unit_test(two_appenders_take_turns),
        cmocka_unit_test(a_failed_append_leaves_the_file),
    };
    return cmocka_run_group_tests_name("ndf_append", tests, NULL, remove_folder);
}
