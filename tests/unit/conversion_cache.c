/* SPDX-License-Identifier: MIT
 * Tests who may remove a converted file: nobody does while a process converts its source or is about to use it. */
#include "test.h"
#include "test_folder.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/conversion_cache.h"

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool is_there(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* Makes a source, and finds its entry in a cache folder below the test's folder. */
static whit_cache_entry make_entry(char folder[200], char source[200])
{
    whit_cache_entry entry;
    whit_error error;
    snprintf(folder, 200, "%s", in_folder("cache"));
    snprintf(source, 200, "%s", in_folder("model.gguf"));
    write_text(source, "a model");
    assert_ok(whit_cache_find(folder, source, WHIT_CONVERT_VERSION, "", &entry, &error), error);
    return entry;
}

static void locked_entries_stay(void **state)
{
    (void)state;
    char folder[200], source[200];
    whit_error error;
    whit_cache_entry entry = make_entry(folder, source);
    assert_ok(whit_cache_lock(&entry, &error), error);
    assert_int_equal(whit_cache_forget(folder, source), 0); /* the conversion has not ended yet */
    assert_true(is_there(entry.lock));
    write_text(entry.path, "converted");
    assert_int_equal(whit_cache_forget(folder, source), 0);
    assert_true(is_there(entry.path) && is_there(entry.lock));
    whit_cache_unlock(&entry);
    assert_int_equal(whit_cache_forget(folder, source), sizeof "converted" - 1);
    assert_false(is_there(entry.path) || is_there(entry.lock));
    assert_int_equal(whit_cache_forget(folder, source), 0);
    /* the lock file that a failed conversion left is removed, too */
    assert_ok(whit_cache_lock(&entry, &error), error);
    whit_cache_unlock(&entry);
    assert_int_equal(whit_cache_forget(folder, source), 0);
    assert_false(is_there(entry.lock));
}

static void *wait_for_lock(void *context)
{
    whit_error error;
    return whit_cache_lock(context, &error) == WHIT_OK ? context : NULL;
}

/* Whoever waits for a lock whose file is removed meanwhile must not hold a lock that nobody else can see. */
static void removed_locks_are_not_held(void **state)
{
    (void)state;
    char folder[200], source[200];
    whit_error error;
    pthread_t thread;
    void *locked;
    whit_cache_entry first = make_entry(folder, source), second = first;
    struct stat held, named;
    assert_ok(whit_cache_lock(&first, &error), error);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &second), 0);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL); /* the thread now waits */
    assert_int_equal(unlink(first.lock), 0);
    whit_cache_unlock(&first);
    assert_int_equal(pthread_join(thread, &locked), 0);
    assert_non_null(locked);
    assert_int_equal(stat(second.lock, &named), 0);
    assert_int_equal(fstat(second.lock_fd, &held), 0);
    assert_true(held.st_ino == named.st_ino);
    whit_cache_unlock(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locked_entries_stay),
        cmocka_unit_test(removed_locks_are_not_held),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
