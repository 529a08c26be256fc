/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

const cli_verb *const cli_verbs[] = {
    &cli_verify_verb,
    &cli_kernels_verb,
    &cli_doctor_verb,
    &cli_help_verb,
    NULL,
};
