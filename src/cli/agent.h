/* SPDX-License-Identifier: MIT
 * Declares functions shared by the parts of whit agent: patches and turns (agent.c), tasks (agent_task.c). */
#ifndef WHIT_CLI_AGENT_H
#define WHIT_CLI_AGENT_H

#include "agent/find_server.h"
#include "agent/turns.h"
#include "cli/flags.h"

struct agent_values {
    const char *project, *file, *state, *prompt, *url, *model, *key_file, *local, *keep;
    uint32_t n_turns, n_tokens, n_jobs;
    int64_t seed;
    float temperature;
    int allow;
    bool preview, json, no_sandbox, acp, yes, resume;
    bool hides_key;                 /* whit found the server by itself, so $WHIT_API_KEY is not sent */
    const whit_found_server *found; /* the server that `url` names; NULL: an option names it */
    cli_session_flags session;
};
/* Lists the words of --allow; green and yellow are older names of the first two. */
enum { ALLOW_READ, ALLOW_WRITE, ALLOW_GREEN, ALLOW_YELLOW };

static inline bool cli_agent_may_write(const struct agent_values *values)
{
    return values->yes || values->allow == ALLOW_WRITE || values->allow == ALLOW_YELLOW;
}

/* Writes a diff on stdout, in colours on a terminal (unless NO_COLOR is set). */
void cli_agent_write_diff(cli_call *call, const char *text, size_t n_bytes);
/* Prints the exact difference of a change to stdout. */
whit_status cli_agent_show(cli_call *call, const whit_change *change, whit_error *error);
/* Shows all changes on stdout, except with --json; `shown` receives the same text for the terminal of the question.
 * Errors: memory. */
struct whit_changes;
whit_status cli_agent_show_all(cli_call *call, const struct whit_changes *set, whit_buf *shown, whit_error *error);
/* Returns whether the question is asked on a terminal that has not shown the text of stdout (--json, a pipe, a
 * file). */
bool cli_agent_asks_elsewhere(cli_call *call);
/* Returns whether the terminal of the question has shown a text that was written to stdout. If stdout is elsewhere or
 * failed, the text is written to the terminal; false if that fails, too. */
bool cli_agent_is_shown(cli_call *call, const char *text, size_t n_bytes);
/* Asks at the terminal; prints `shown` there before, if that terminal has not shown it. `why` receives the person's
 * words about a refusal; it may be NULL. */
bool cli_agent_agreed(cli_call *call, const whit_buf *shown, const char *reason, size_t n_files, whit_buf *why);
/* Prints the latest turn that can be undone as a diff. */
int cli_agent_latest(cli_call *call, const char *project);
/* Runs undo, redo or log; `which` NULL: the latest turn. */
int cli_agent_turns(cli_call *call, const char *project, const char *what, const char *which);
/* Lets the person edit staged changes in $VISUAL, $EDITOR or whit edit. Errors: io, memory. */
struct whit_changes;
whit_status cli_agent_edit(struct whit_changes *staged, whit_error *error);
/* Shows changes, asks for approval if needed, and writes them as one turn with the note `note`. The result is CLI_OK
 * also if there is nothing to write. */
struct whit_changes;
int cli_agent_write(cli_call *call, struct whit_changes *set, const char *project, const char *note);
/* Runs the tasks of -j in parallel. */
int cli_agent_parallel(cli_call *call, const char *project);
/* Runs the task of -p, or reads tasks line by line. */
int cli_agent_task(cli_call *call, const char *project);
/* Runs the tasks that an editor gives through stdin and stdout (--acp). */
int cli_agent_acp(cli_call *call, const char *project);

#endif
