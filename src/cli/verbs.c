/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"
#include "cli/absent.h"

const cli_absent cli_absent_verbs[] = {{0}};

#define VERB(name)            &cli_##name##_verb,
#define POSIX_VERB(name, why) &cli_##name##_verb,
const cli_verb *const cli_verbs[] = {
#include "cli/verbs.inc"
    NULL,
};
