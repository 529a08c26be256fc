/* SPDX-License-Identifier: MIT
 * Windows has no sandbox that whit supports: every command is refused, except commands that the user wants to run
 * without a sandbox. */
#include "sandbox/sandbox.h"

#include "base/clock.h"
#include "base/windows/run_line.h"

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

void whit_sandbox_shell(const char *line, const char *arguments[4])
{
    arguments[0] = "cmd.exe", arguments[1] = line, arguments[2] = arguments[3] = NULL;
}

whit_status whit_sandbox_run(const whit_sandbox_command *command, whit_sandbox_result *result, whit_error *error)
{
    const whit_sandbox_limits *limits = &command->limits;
    const whit_run_line line = {
        .line = command->arguments[1],
        .folder = command->folder,
        .home = command->home,
        .environment = command->environment,
        .wall_s = limits->wall_s ? limits->wall_s : 600,
        .n_processes = limits->n_processes ? limits->n_processes : 512,
        .process_bytes = limits->memory_bytes ? limits->memory_bytes : (uint64_t)16 << 30,
        .output_bytes = limits->output_bytes ? limits->output_bytes : 1 << 20,
        .cancel = command->cancel,
    };
    *result = (whit_sandbox_result){0};
    if (!command->is_unconfined) return whit_fail(error, WHIT_ERROR_UNSUPPORTED, NO_SANDBOX);
    const uint64_t begin_ns = whit_now_ns();
    whit_run_line_result got = {0};
    whit_status status = whit_run_line_wait(&line, &got, error);
    result->status = got.status;
    result->timed_out = got.timed_out;
    result->was_cancelled = got.was_cancelled;
    result->output_is_cut = got.output_is_cut;
    result->output = got.output;
    result->wall_ns = whit_now_ns() - begin_ns;
    return status;
}

void whit_sandbox_result_free(whit_sandbox_result *result)
{
    whit_buf_free(&result->output);
    *result = (whit_sandbox_result){0};
}

whit_status whit_sandbox_enter(const whit_sandbox_rules *rules, whit_error *error)
{
    (void)rules;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, NO_SANDBOX);
}
