/* SPDX-License-Identifier: MIT
 * whit doctor --tune where there is no bench: refused. */
#include "cli/doctor_tune.h"

int cli_doctor_tune(cli_call *call, json_t *report)
{
    (void)report;
    return cli_fail(call, CLI_REFUSED, "--tune is not in the program for this system");
}

void cli_doctor_profile(json_t *report)
{
    (void)report;
}

void cli_doctor_print_profile(cli_call *call, const json_t *report)
{
    (void)call, (void)report;
}
