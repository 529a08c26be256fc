/* SPDX-License-Identifier: MIT
 * Where the system has no sandbox that whit knows: everything is refused. */
#include "sandbox/sandbox.h"

#define NO_SANDBOX "whit knows no sandbox of this system"

void whit_sandbox_probe(whit_sandbox_support *support)
{
    *support = (whit_sandbox_support){0};
}

const char *whit_sandbox_lacks(const whit_sandbox_support *support)
{
    (void)support;
    return NO_SANDBOX;
}

const char *whit_sandbox_misses(const whit_sandbox_support *support)
{
    (void)support;
    return NULL;
}

whit_status whit_sandbox_run(const whit_sandbox_command *command, whit_sandbox_result *result, whit_error *error)
{
    (void)command;
    *result = (whit_sandbox_result){0};
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, NO_SANDBOX);
}

void whit_sandbox_result_free(whit_sandbox_result *result)
{
    *result = (whit_sandbox_result){0};
}

whit_status whit_sandbox_enter(const whit_sandbox_rules *rules, whit_error *error)
{
    (void)rules;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, NO_SANDBOX);
}
