/* SPDX-License-Identifier: MIT
 * Implements the option --session of run and chat: a sequence is saved in a file, and the next call continues it. */
#ifndef WHIT_CLI_KEEP_H
#define WHIT_CLI_KEEP_H

#include "cli/flags.h"
#include "runtime/conversation.h"

typedef struct cli_keep_flags {
    const char *path; /* NULL: no session file */
    int kv;           /* index into the words of --session-kv: 0: KV blocks are saved, too; 1: only tokens */
} cli_keep_flags;

/* Rows for option tables of verbs. at: offset of their cli_keep_flags. */
#define CLI_KEEP_OPTIONS(at)                                                                                           \
    {"--session", CLI_FILE, (at) + offsetof(cli_keep_flags, path), "FILE",                                             \
     "Keep what was said in this file: create it, or go on with what it holds (docs/use/context.md)."},                \
    {                                                                                                                  \
        "--session-kv", CLI_CHOICE, (at) + offsetof(cli_keep_flags, kv), "blocks|none",                                \
            "With --session, keep the KV cache's closed blocks, so that going on needs no computing; none keeps "      \
            "tokens only."                                                                                             \
    }

/* An open session file; zero-initialised, none is open. */
typedef struct cli_keep {
    whit_session_file *file;
    bool tokens_only;
    size_t n_stages;           /* number of sampling stages through which the tokens of this turn are picked */
    bool goes_on;              /* the next cli_keep_begin sets the sampler to the state `before` */
    whit_sampler_state before; /* state of the sampler before the turn's first pick */
    whit_buf seen;             /* hashes of the conversation's messages in the file */
} cli_keep;

/* Loads the session file into sequence 0, or creates it; does nothing if flags->path is NULL, as do the functions below
 * then. purpose: "chat" or "text", which the file records. Sampling options that were not given, except biases, are set
 * to those of the last turn; in a chat, 1 is added to the seed. Returns CLI_OK, or a status that was already reported;
 * the caller must close in both cases. */
int cli_keep_open(cli_call *call, const cli_keep_flags *flags, whit_session *session, const char *purpose,
                  cli_sampler_flags *sampler, cli_keep *keep);
void cli_keep_close(cli_keep *keep);

/* Records the sampler's state, which the first turn after loading a text takes from the file if no seed was given. Must
 * be called before the first pick of a turn. */
void cli_keep_begin(cli_keep *keep, whit_sampler *sampler, size_t n_stages);
/* Appends a turn to the file. Returns an exit status. */
int cli_keep_turn(cli_call *call, cli_keep *keep, whit_session_turn turn);

/* Restores the conversation from the file. Returns an exit status. */
int cli_keep_resume(cli_call *call, cli_keep *keep, whit_conversation *conversation);
/* Appends the conversation's last answer to the file; with sampler NULL, other changes of its messages. Returns an exit
 * status. */
int cli_keep_conversation(cli_call *call, cli_keep *keep, whit_conversation *conversation, const whit_sampler *sampler,
                          whit_finish finish);

#endif
