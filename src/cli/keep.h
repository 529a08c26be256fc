/* SPDX-License-Identifier: MIT
 * Implements the option --session of run and chat: a sequence is stored in a file from call to call. */
#ifndef WHIT_CLI_KEEP_H
#define WHIT_CLI_KEEP_H

#include "cli/flags.h"
#include "runtime/conversation.h"

typedef struct cli_keep_flags {
    const char *path; /* NULL: no session file */
    int kv;           /* 0: also KV blocks, 1: tokens only */
} cli_keep_flags;

/* Makes rows of the option tables of verbs: AT is the offset of their cli_keep_flags. */
#define CLI_KEEP_OPTIONS(at)                                                                                           \
    {"--session", CLI_FILE, (at) + offsetof(cli_keep_flags, path), "FILE",                                             \
     "Keep what was said in this file: create it, or go on with what it holds (docs/use/context.md)."},                \
    {                                                                                                                  \
        "--session-kv", CLI_CHOICE, (at) + offsetof(cli_keep_flags, kv), "blocks|none",                                \
            "With --session, keep the KV cache's closed blocks, so that going on needs no computing; none keeps "      \
            "tokens only."                                                                                             \
    }

/* Holds an open session file; if zero-initialised, no file is open. */
typedef struct cli_keep {
    whit_session_file *file;
    bool tokens_only;
    size_t n_stages;           /* number of stages that take part in the picks of its turns */
    bool goes_on;              /* resume the sampler from `before` */
    whit_sampler_state before; /* sampler state at the turn's first pick */
    whit_buf seen;             /* hashes of the conversation's messages that are in the file */
} cli_keep;

/* Loads or creates the file for sequence 0; does nothing without a path. Sampling options that were not given are set
 * to those of the last turn. The result is CLI_OK or a status already reported; close in every case. */
int cli_keep_open(cli_call *call, const cli_keep_flags *flags, whit_session *session, const char *purpose,
                  cli_sampler_flags *sampler, cli_keep *keep);
void cli_keep_close(cli_keep *keep);

/* Notes the sampler's state; call it before the picks of a turn. */
void cli_keep_begin(cli_keep *keep, whit_sampler *sampler, size_t n_stages);
/* Appends the turn to the file. */
int cli_keep_turn(cli_call *call, cli_keep *keep, whit_session_turn turn);

/* Restores the conversation from the file. */
int cli_keep_resume(cli_call *call, cli_keep *keep, whit_conversation *conversation);
/* Appends the conversation's last answer, or, with sampler NULL, the changes of its messages. */
int cli_keep_conversation(cli_call *call, cli_keep *keep, whit_conversation *conversation, const whit_sampler *sampler,
                          whit_finish finish);

#endif
