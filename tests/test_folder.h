/* SPDX-License-Identifier: MIT
 * Makes a folder before a program's tests, and removes it with all its content after them. */
#ifndef WHIT_TESTS_TEST_FOLDER_H
#define WHIT_TESTS_TEST_FOLDER_H

#include "test.h"

static char test_folder[] = "/tmp/whit-test-XXXXXX";

/* Returns a path in the test's folder. It is valid until eight others were requested. */
static inline const char *in_folder(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder, name);
    return path;
}

/* fixtures of cmocka */
static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(test_folder) ? 0 : -1;
}
static inline int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", test_folder);
    return system(command);
}

/* Opens a model without using the cache of conversions. */
static inline whit_model *open_model_at(const char *path)
{
    whit_error error;
    whit_model *model;
    whit_model_options options = {.struct_bytes = sizeof options, .no_cache = true};
    assert_ok(whit_model_open(path, &options, &model, &error), error);
    return model;
}
static inline whit_model *open_model(const char *name)
{
    return open_model_at(in_folder(name));
}

#endif
