/* SPDX-License-Identifier: MIT
 * The scratch copy of a project: emptied, it is filled again by the next update. */
#include "test_folder.h"

#include <sys/stat.h>

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
        assert_int_equal(scratch.n_copied, 1); /* not taken for one that is there already */
        snprintf(left, sizeof left, "%s/large", scratch.tree);
        assert_ok(whit_write_file(left, "x", 1, &error), error);
        snprintf(left, sizeof left, "%s/cache", scratch.home);
        assert_ok(whit_write_file(left, "x", 1, &error), error);
        whit_scratch_empty(&scratch);
        assert_false(is_there(&scratch, "a.c") || is_there(&scratch, "large") || access(left, F_OK) == 0);
    }
    whit_scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(emptied_copies_are_filled_again)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
