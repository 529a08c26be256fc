/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#define VERB(name) &cli_##name##_verb,
const cli_verb *const cli_verbs[] = {
#include "cli/verbs.inc"
    NULL,
};
