/* SPDX-License-Identifier: MIT
 * What the parts of whit agent share: patches and turns (agent.c), tasks (agent_task.c). */
#ifndef WHIT_CLI_AGENT_H
#define WHIT_CLI_AGENT_H

#include "agent/turns.h"
#include "cli/flags.h"

struct agent_values {
    const char *project, *file, *state, *prompt, *url, *model, *key_file, *local, *keep;
    uint32_t n_turns, n_tokens;
    int64_t seed;
    float temperature;
    int allow;
    bool preview, json, no_sandbox, acp;
    cli_session_flags session;
};
enum { ALLOW_GREEN, ALLOW_YELLOW };

/* The exact difference that a change makes, on stdout. */
whit_status cli_agent_show(cli_call *call, const whit_change *change, whit_error *error);
/* Does the question stand on a terminal that has not seen what went to stdout (--json, a pipe, a file)? */
bool cli_agent_asks_elsewhere(cli_call *call);
/* Asks at the terminal, after `shown` where that has not been seen there. */
bool cli_agent_agreed(cli_call *call, const whit_buf *shown, const char *reason, size_t n_files);
/* undo, redo or log; `which` NULL: the latest. */
int cli_agent_turns(cli_call *call, const char *project, const char *what, const char *which);
/* The endpoint's key, ended by a zero byte: of a file that nobody else may read, else of $WHIT_API_KEY; "" for
 * none. Errors: argument (others may read it), io. */
whit_status cli_agent_key(const char *key_file, whit_buf *key, whit_error *error);
/* -p, or tasks line by line. */
int cli_agent_task(cli_call *call, const char *project);
/* --acp: an editor at stdin and stdout gives the tasks. */
int cli_agent_acp(cli_call *call, const char *project);

#endif
