/* SPDX-License-Identifier: MIT
 * Included by every cmocka test. */
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

/* Factor for limits of processor time, which are meant for release builds; ThreadSanitizer makes code this much
 * slower. */
#ifdef __SANITIZE_THREAD__
#define TEST_SLOWER UINT64_C(20)
#else
#define TEST_SLOWER UINT64_C(1)
#endif

/* Asserts that an expression returns WHIT_OK; otherwise prints the error's message. */
#define assert_ok(expression, error)                                                                                   \
    do {                                                                                                               \
        whit_status assert_ok_status_ = (expression);                                                                  \
        if (assert_ok_status_ != WHIT_OK) fail_msg("%s: %s", #expression, (error).message);                            \
    } while (0)

/* Returns a path below ../shared. If the folder is missing, the test is skipped, or fails in CI. */
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

/* Returns whether tests must be brief: under an emulator, which is at least ten times as slow, they make fewer rounds
 * with the same checks. */
static inline bool tests_are_brief(void)
{
    return getenv("WHIT_TEST_BRIEF") != NULL;
}

#endif
