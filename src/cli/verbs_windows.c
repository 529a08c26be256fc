/* SPDX-License-Identifier: MIT
 * The commands of the program for Windows. */
#include "cli/absent.h"
#include "cli/verbs.h"

#define VERB(name) &cli_##name##_verb,
#define POSIX_VERB(name, why)
const cli_verb *const cli_verbs[] = {
#include "cli/verbs.inc"
    NULL,
};
#undef VERB
#undef POSIX_VERB

#define VERB(name)
#define POSIX_VERB(name, why) {#name, why},
const cli_absent cli_absent_verbs[] = {
#include "cli/verbs.inc"
    {0},
};
