/* SPDX-License-Identifier: MIT
 * Declarations shared by the parts of whit agent: patches and turns (agent.c), tasks (agent_task.c). */
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

/* Prints the exact difference that a change makes on stdout. */
whit_status cli_agent_show(cli_call *call, const whit_change *change, whit_error *error);
/* Is the question asked on a terminal that has not shown the text of stdout (--json, a pipe, a file)? */
bool cli_agent_asks_elsewhere(cli_call *call);
/* Asks at the terminal; prints `shown` there before, if that terminal has not shown it. */
bool cli_agent_agreed(cli_call *call, const whit_buf *shown, const char *reason, size_t n_files);
/* Runs undo, redo or log; `which` NULL: the latest turn. */
int cli_agent_turns(cli_call *call, const char *project, const char *what, const char *which);
/* Reads the endpoint's key, ended by a zero byte: from a file that nobody else may read, else from $WHIT_API_KEY; "" if
 * neither is set. Errors: argument (others may read the file), io. */
whit_status cli_agent_key(const char *key_file, whit_buf *key, whit_error *error);
/* Runs the task of -p, or reads tasks line by line. */
int cli_agent_task(cli_call *call, const char *project);
/* --acp: an editor gives the tasks through stdin and stdout. */
int cli_agent_acp(cli_call *call, const char *project);

#endif
