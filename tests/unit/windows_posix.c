/* SPDX-License-Identifier: MIT
 * Tests the POSIX functions for Windows (src/base/windows) on which the program relies. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/system.h"
#include "sandbox/sandbox.h"

static char folder[PATH_MAX];

static int make_folder(void **state)
{
    (void)state;
    const char *place = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/whit-\xC3\xBC\xE6\x97\xA5-XXXXXX", place ? place : ".");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Names beyond the code page, bytes that text mode would change, and the sizes and kinds of files. */
static void files_keep_their_bytes_and_names(void **state)
{
    static const char bytes[] = "a\r\nb\n\x1A\0c";
    char read_back[sizeof bytes];
    struct stat info;
    (void)state;
    int fd = open(path_of("\xD0\xB6 \xF0\x9F\x98\x80.bin"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    assert_int_equal(pread(fd, read_back, sizeof read_back, 0), sizeof bytes);
    assert_memory_equal(read_back, bytes, sizeof bytes);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_size, sizeof bytes);
    assert_true(S_ISREG(info.st_mode));
    assert_int_equal(open(path_of("\xD0\xB6 \xF0\x9F\x98\x80.bin"), O_RDWR | O_CREAT | O_EXCL, 0666), -1);
    assert_int_equal(errno, EEXIST);
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    size_t n_found = 0;
    while ((entry = readdir(entries))) n_found += !strcmp(entry->d_name, "\xD0\xB6 \xF0\x9F\x98\x80.bin");
    closedir(entries);
    assert_int_equal(n_found, 1);
    close(fd);
    assert_int_equal(unlink(path_of("\xD0\xB6 \xF0\x9F\x98\x80.bin")), 0);
    assert_int_equal(stat(path_of("\xD0\xB6 \xF0\x9F\x98\x80.bin"), &info), -1);
    assert_int_equal(errno, ENOENT);
}

/* An open file keeps its content when another file is renamed over its name. */
static void open_files_are_renamed_and_removed(void **state)
{
    char text[2];
    (void)state;
    assert_int_equal(whit_write_file(path_of("old"), "1", 1, NULL), WHIT_OK);
    int fd = open(path_of("old"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(whit_write_file(path_of("old"), "22", 2, NULL), WHIT_OK);
    assert_int_equal(read(fd, text, 2), 1);
    assert_int_equal(text[0], '1');
    close(fd);
    fd = open(path_of("old"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, text, 2), 2);
    close(fd);
    assert_int_equal(unlink(path_of("old")), 0);
}

static void locks_exclude_and_end_with_their_file(void **state)
{
    (void)state;
    int first = open(path_of("lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0666), second = open(path_of("lock"), O_RDONLY);
    char byte = 'x';
    assert_int_equal(flock(first, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(flock(second, LOCK_EX | LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    assert_int_equal(write(first, &byte, 1), 1);
    assert_int_equal(read(second, &byte, 1), 1); /* a lock does not prevent reading */
    close(first);
    assert_int_equal(flock(second, LOCK_EX | LOCK_NB), 0);
    close(second);
    assert_int_equal(unlink(path_of("lock")), 0);
}

static void maps_show_the_file_and_anonymous_memory_is_zero(void **state)
{
    whit_map map;
    (void)state;
    assert_int_equal(whit_write_file(path_of("map"), "mapped", 6, NULL), WHIT_OK);
    assert_int_equal(whit_map_open(path_of("map"), NULL, &map, NULL), WHIT_OK);
    assert_int_equal(map.size_bytes, 6);
    assert_memory_equal(map.data, "mapped", 6);
    whit_map_drop(&map, map.data, 6);
    assert_memory_equal(map.data, "mapped", 6);
    whit_map_close(&map);
    assert_int_equal(unlink(path_of("map")), 0);
    uint8_t *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(memory[(1 << 20) - 1], 0);
    assert_int_equal(munmap(memory, 1 << 20), 0);
}

static int compare_first(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

static void sorting_is_stable(void **state)
{
    char items[][2] = {{'b', 1}, {'a', 1}, {'b', 2}, {'a', 2}, {'c', 1}, {'a', 3}};
    (void)state;
    qsort(items, 6, 2, compare_first);
    static const char wanted[][2] = {{'a', 1}, {'a', 2}, {'a', 3}, {'b', 1}, {'b', 2}, {'c', 1}};
    assert_memory_equal(items, wanted, sizeof wanted);
}

static void patterns_match_as_in_posix(void **state)
{
    static const struct {
        const char *pattern, *name;
        int flags, result;
    } cases[] = {
        {"*.gguf", "a.gguf", 0, 0},       {"*.gguf", "a.ndf", 0, FNM_NOMATCH},
        {"*a*b", "xaybzb", 0, 0},         {"[!x]?", "ab", 0, 0},
        {"[a-c]x", "dx", 0, FNM_NOMATCH}, {"*", "a/b", FNM_PATHNAME, FNM_NOMATCH},
        {"*/b", "a/b", FNM_PATHNAME, 0},  {"\\*", "*", 0, 0},
        {"A*", "ab", FNM_CASEFOLD, 0},    {"", "a", 0, FNM_NOMATCH},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(fnmatch(cases[i].pattern, cases[i].name, cases[i].flags), cases[i].result);
}

static void paths_have_drives_and_backslashes(void **state)
{
    char path[] = "C:\\models\\a.ndf", resolved[PATH_MAX];
    (void)state;
    assert_true(whit_path_is_absolute(path));
    assert_true(whit_path_is_absolute("\\\\server\\share"));
    assert_false(whit_path_is_absolute("C:a"));
    assert_false(whit_path_is_absolute("a/b"));
    whit_path_adopt(path);
    assert_string_equal(path, "C:/models/a.ndf");
    assert_non_null(realpath(folder, resolved));
    assert_true(whit_path_is_absolute(resolved));
    assert_null(strchr(resolved, '\\'));
}

static void places_of_posix_are_those_of_windows(void **state)
{
    (void)state;
    assert_non_null(getenv("HOME"));
    assert_true(whit_path_is_absolute(getenv("XDG_CACHE_HOME")));
    assert_int_equal(setenv("WHIT_TEST_VALUE", "\xC3\xBC", 1), 0);
    assert_string_equal(getenv("WHIT_TEST_VALUE"), "\xC3\xBC");
    unsetenv("WHIT_TEST_VALUE");
    assert_null(getenv("WHIT_TEST_VALUE"));
}

static void names_that_stand_for_other_files_are_not_relative(void **state)
{
    static const char *const refused[] = {"a\\b",      "c:a",  "a:stream", "/a",   "con",
                                          "a/NUL.txt", "Lpt3", "a.",       "b /c", "conout$"};
    static const char *const taken[] = {"a/b.c", "console", "com", "com10", "nul_", ".gitignore", "..", "a..b"};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) assert_false(whit_path_is_relative(refused[i]));
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) assert_true(whit_path_is_relative(taken[i]));
}

/* Paths may be relative to the descriptor of a folder. */
static void files_are_found_below_open_folders(void **state)
{
    struct stat info;
    (void)state;
    int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(at >= 0);
    assert_int_equal(mkdirat(at, "below", 0700), 0);
    int below = openat(at, "below", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = openat(below, "file", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    assert_true(below >= 0 && fd >= 0);
    const struct timespec times[2] = {{1000000000, 0}, {1000000001, 500}};
    assert_int_equal(futimens(fd, times), 0);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_mtim.tv_sec, 1000000001);
    assert_int_equal(info.st_mtim.tv_nsec, 500);
    close(fd);
    assert_int_equal(renameat(below, "file", at, "moved"), 0);
    assert_int_equal(faccessat(at, "moved", F_OK, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(faccessat(below, "file", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(unlinkat(at, "moved", 0), 0);
    DIR *entries = fdopendir(below); /* takes over the descriptor */
    size_t n = 0;
    while (readdir(entries)) n++;
    assert_int_equal(n, 2);
    assert_int_equal(dirfd(entries), below);
    closedir(entries);
    assert_int_equal(unlinkat(at, "below", AT_REMOVEDIR), 0);
    close(at);
}

/* Runs a command line without a sandbox in the test's folder, for at most `seconds`. */
static whit_sandbox_result run_line(const char *line, uint32_t seconds)
{
    const char *arguments[4];
    whit_sandbox_result result;
    whit_error error;
    whit_sandbox_shell(line, arguments);
    whit_sandbox_command command = {.arguments = arguments,
                                    .folder = folder,
                                    .home = folder,
                                    .environment = (const char *const[]){"WHIT_TEST_NAME=\xC3\xBC", NULL},
                                    .limits = {.wall_s = seconds, .output_bytes = 1000},
                                    .is_unconfined = true};
    assert_int_equal(whit_sandbox_run(&command, &result, &error), WHIT_OK);
    assert_true(whit_buf_append(&result.output, "", 1));
    return result;
}

static const char *output_of(const whit_sandbox_result *result)
{
    return (const char *)result->output.data;
}

static void lines_of_the_shell_end_with_all_that_they_started(void **state)
{
    (void)state;
    setenv("WHIT_TEST_SECRET", "hidden", 1);
    whit_sandbox_result result = run_line("echo \"a b\"& echo err 1>&2& set WHIT& exit 7", 60);
    assert_int_equal(result.status, 7);
    assert_non_null(strstr(output_of(&result), "\"a b\""));
    assert_non_null(strstr(output_of(&result), "err"));
    assert_non_null(strstr(output_of(&result), "WHIT_TEST_NAME="));
    assert_null(strstr(output_of(&result), "hidden"));
    whit_sandbox_result_free(&result);
    unsetenv("WHIT_TEST_SECRET");

    result = run_line("for /l %i in (1,1,500) do @echo a line", 60);
    assert_int_equal(result.status, 0);
    assert_true(result.output_is_cut);
    assert_int_equal(result.output.size_bytes, 1001);
    whit_sandbox_result_free(&result);

    /* A program that is still running would write the file: the time limit must end it, too. */
    result = run_line("cmd /c \"for /l %i in (0,0,1) do @echo x> running\"", 1);
    assert_true(result.timed_out);
    whit_sandbox_result_free(&result);
    unlink(path_of("running"));
    usleep(300000);
    assert_int_equal(access(path_of("running"), F_OK), -1);

    whit_sandbox_command held = {
        .arguments = (const char *const[]){"cmd.exe", "exit 0", NULL}, .folder = folder, .home = folder};
    whit_error error;
    assert_int_equal(whit_sandbox_run(&held, &result, &error), WHIT_ERROR_UNSUPPORTED);
    whit_sandbox_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_keep_their_bytes_and_names),
        cmocka_unit_test(open_files_are_renamed_and_removed),
        cmocka_unit_test(locks_exclude_and_end_with_their_file),
        cmocka_unit_test(maps_show_the_file_and_anonymous_memory_is_zero),
        cmocka_unit_test(sorting_is_stable),
        cmocka_unit_test(patterns_match_as_in_posix),
        cmocka_unit_test(paths_have_drives_and_backslashes),
        cmocka_unit_test(places_of_posix_are_those_of_windows),
        cmocka_unit_test(names_that_stand_for_other_files_are_not_relative),
        cmocka_unit_test(files_are_found_below_open_folders),
        cmocka_unit_test(lines_of_the_shell_end_with_all_that_they_started),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
