/* SPDX-License-Identifier: MIT
 * --session of run and chat: a sequence kept in a file from call to call. */
#ifndef WHIT_CLI_KEEP_H
#define WHIT_CLI_KEEP_H

#include "cli/flags.h"
#include "runtime/conversation.h"

typedef struct cli_keep_flags {
    const char *path; /* NULL: nothing is kept */
    int kv;           /* 0: blocks too, 1: tokens only */
} cli_keep_flags;

/* For the option tables of verbs: AT is the place of their cli_keep_flags. */
#define CLI_KEEP_OPTIONS(at)                                                                                           \
    {"--session", CLI_FILE, (at) + offsetof(cli_keep_flags, path), "FILE",                                             \
     "Keep what was said in this file: create it, or go on with what it holds (docs/context.md)."},                    \
    {                                                                                                                  \
        "--session-kv", CLI_CHOICE, (at) + offsetof(cli_keep_flags, kv), "blocks|none",                                \
            "With --session, keep the KV cache's closed blocks, so that going on needs no computing; none keeps "      \
            "tokens only."                                                                                             \
    }

/* Zero-initialised keeps nothing. */
typedef struct cli_keep {
    whit_session_file *file;
    bool tokens_only;
    size_t n_stages;           /* that have a part in its turns' picks */
    bool goes_on;              /* the sampler begins at `before` */
    whit_sampler_state before; /* of the turn's first pick */
    whit_buf seen;             /* of a conversation's messages that the file has, a hash each */
} cli_keep;

/* Loads or creates the file for sequence 0; nothing without a path. Sampling options that were not given
 * are then those of the last turn. CLI_OK or a status already reported; close in every case. */
int cli_keep_open(cli_call *call, const cli_keep_flags *flags, whit_session *session, const char *purpose,
                  cli_sampler_flags *sampler, cli_keep *keep);
void cli_keep_close(cli_keep *keep);

/* In front of the picks of a turn. */
void cli_keep_begin(cli_keep *keep, whit_sampler *sampler, size_t n_stages);
/* Appends the turn. */
int cli_keep_turn(cli_call *call, cli_keep *keep, whit_session_turn turn);

/* A conversation: makes it what the file holds. */
int cli_keep_resume(cli_call *call, cli_keep *keep, whit_conversation *conversation);
/* Appends its last answer, or with sampler NULL what changed of its messages. */
int cli_keep_conversation(cli_call *call, cli_keep *keep, whit_conversation *conversation, const whit_sampler *sampler,
                          whit_finish finish);

#endif
