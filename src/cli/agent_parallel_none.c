/* SPDX-License-Identifier: MIT
 * Refuses whit agent -j on systems without fork. */
#include "cli/agent.h"

int cli_agent_parallel(cli_call *call, const char *project)
{
    (void)project;
    return cli_fail(call, CLI_REFUSED, "-j is not supported on this system: give the tasks one after the other");
}
