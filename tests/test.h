/* SPDX-License-Identifier: MIT
 * What every cmocka test includes. */
#ifndef WHIT_TESTS_TEST_H
#define WHIT_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "whit.h"

/* Limits of processor time are for code as it ships; under ThreadSanitizer the same work may take so many
 * times as long. */
#ifdef __SANITIZE_THREAD__
#define TEST_SLOWER UINT64_C(20)
#else
#define TEST_SLOWER UINT64_C(1)
#endif

/* Asserts success and shows the error's line otherwise. */
#define assert_ok(expression, error)                                                                                   \
    do {                                                                                                               \
        whit_status assert_ok_status_ = (expression);                                                                  \
        if (assert_ok_status_ != WHIT_OK) fail_msg("%s: %s", #expression, (error).message);                            \
    } while (0)

/* A path under ../shared, or a clear skip where a clone has none (CI must have it). */
static inline const char *shared_path(const char *relative)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", WHIT_SHARED_DIR, relative);
    if (access(path, R_OK) != 0) {
        if (getenv("CI")) fail_msg("CI must have %s", path);
        print_message("[ SKIPPED ] no %s: this test needs the shared test data\n", path);
        skip();
    }
    return path;
}

/* Under an emulator, where an instruction takes ten times as long and more, tests take fewer rounds;
 * what a round looks at stays the same. */
static inline bool tests_are_brief(void)
{
    return getenv("WHIT_TEST_BRIEF") != NULL;
}

#endif
