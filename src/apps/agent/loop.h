/* SPDX-License-Identifier: MIT
 * The loop of an agent: asks the model, runs the model's calls, shows the changes and writes the approved ones. The
 * changes of one answer are one turn of the journal (turns.h); each turn can be undone. */
#ifndef WHIT_AGENT_LOOP_H
#define WHIT_AGENT_LOOP_H

#include "agent/hunks.h"
#include "agent/runs.h"
#include "agent/mcp.h"
#include "agent/messages.h"
#include "agent/model.h"

typedef struct whit_agent_options {
    const char *project;   /* the project's folder, with links resolved */
    const char *state_dir; /* folder of the journal; NULL: the default state folder */
    const char *task;
    /* maximum number of answers of the model, including answers of sub-agents; each sub-agent has the same limit for
     * its own */
    uint32_t n_turns_max;
    /* maximum number of tokens read and generated over all answers that the report counts, checked before each answer,
     * so that the last one may exceed it; 0: no limit */
    uint64_t n_tokens_max;
    bool may_write;  /* writes changes without a question, except changes that always need approval */
    bool only_reads; /* plan only: all changes are refused */
    /* no person can answer questions, so every action that needs an answer is refused with this reason */
    bool is_alone;
    whit_runner *runner; /* runs commands; NULL: none are run, and changes are checked only for their syntax (gate.h) */
    whit_mcp *mcp;       /* MCP servers, which offer tools; may be NULL */
    /* Called with every change before `agreed` is asked about it or its file is written, unless `choose` has shown it.
     * An error ends the run. */
    whit_status (*show)(void *user, const whit_change *change, whit_error *error);
    bool (*agreed)(void *user, const char *reason, size_t n_files);
    /* Shows the hunks and asks about them, instead of `show` and `agreed`, if approval is needed. taken[i] is 0 at
     * first and is set to nonzero if the person agrees to hunk i. NULL: one question covers all hunks. */
    whit_status (*choose)(void *user, const whit_hunks *hunks, uint8_t *taken, whit_error *error);
    /* Lets the person edit the staged changes after `choose` has set WHIT_TAKEN_EDIT. NULL: `choose` must not set
     * it. */
    whit_status (*edit)(void *user, whit_changes *staged, whit_error *error);
    /* `agreed` and `choose` append the person's words about a refusal, which the model gets; may be NULL */
    whit_buf *why;
    /* Called with the changes that were made, to files and to open texts, and the files' turn in the journal (0: only
     * open texts were changed). n is 0 if no shown change was made. Not called if an error ends the run. May be
     * NULL. */
    void (*written)(void *user, uint32_t turn, const whit_change *changes, size_t n);
    const whit_open_texts *open; /* texts open in an editor that are not saved; may be NULL */
    bool (*ask)(void *user, const char *question, whit_buf *answer);
    void (*note)(void *user, const char *line); /* called with each line of progress */
    /* Called to save the conversation when each call in it has its result: after the task was added and after each
     * answer. May be NULL. */
    void (*keep)(void *user);
    /* when it becomes true, the run ends: no further call runs, nothing is written; may be NULL */
    const volatile bool *cancel;
    void *user;
} whit_agent_options;

typedef struct whit_agent_report {
    /* text of the last answer without calls, joined from its parts if it was cut at its length; the caller frees it */
    whit_buf answer;
    /* the model has finished; false: a limit, an error or the person ended the run */
    bool done;
    /* n_turns: number of answers whose changes were written, to files or to open texts */
    uint32_t n_answers, n_calls, n_turns;
    /* number of answers that the gate (gate.h) held back because the syntax of a change or a command of the
     * configuration failed, or the person did not agree to run such a command; checks that could not run are not
     * counted */
    uint32_t n_held;
    uint64_t tokens_in, tokens_out, written_bytes;
    uint64_t tokens_cached; /* part of tokens_in that the model read from its cache, if it reports this */
    /* for at least one answer the model reported no counts, so one token was counted for every four bytes */
    bool tokens_are_guessed;
} whit_agent_report;

/* Runs a task until the model has finished or a limit is reached. The task is appended to the existing messages. Adds
 * to the report's counters and sets its answer to the last answer, on failure, too. Errors: those of the model, the
 * journal and the callbacks; format (the model's answer has no valid form); limit; cancelled; memory. */
whit_status whit_agent_run(const whit_agent_options *options, const whit_agent_model *model,
                           whit_agent_messages *messages, whit_agent_report *report, whit_error *error);
/* Returns whether the person has written a message of the role "user", which follows the message `before`. The agent
 * writes the others: the result of a fenced patch, and the request to continue an answer that was cut. */
bool whit_agent_is_persons(const json_t *before, const json_t *message);

#endif
