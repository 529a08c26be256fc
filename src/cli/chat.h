/* SPDX-License-Identifier: MIT
 * A chat as it runs: what its loop (chat.c) and its commands (chat_commands.c) share. */
#ifndef WHIT_CLI_CHAT_H
#define WHIT_CLI_CHAT_H

#include "cli/input.h"
#include "cli/keep.h"
#include "cli/stage.h"
#include "cli/talk.h"

typedef struct cli_chat {
    cli_call *call;
    cli_input *input;
    cli_talk talk;
    cli_keep keep;
    cli_stage stage;     /* --program */
    cli_grammar grammar; /* of every answer */
    /* Settings, changed by /set. */
    cli_sampler_flags sampler; /* all filled in, the seed drawn */
    whit_thinking thinking;
    bool verbose, wraps;
    int32_t n_tokens; /* -1: until the context is full */
    uint32_t n_draft;
    cli_list stops;

    uint64_t n_answers; /* with this seed: each draws its own numbers */
    bool over;          /* /bye, or a signal */
    int status;         /* of the first thing that failed in a script */
} cli_chat;

/* What a person is told first: which model this is, and what it can do. */
void cli_chat_greet(const cli_chat *chat, const char *path);

/* A line that begins with '/'. */
void cli_chat_command(cli_chat *chat, const char *line, size_t n_bytes);

/* CLI_OK or a status already reported. */
int cli_chat_load(cli_chat *chat, const char *path);

/* Answers the last message; false where nothing came of it, and there is no message more. */
bool cli_chat_answer(cli_chat *chat);
/* Reads on up to the line that ends in """. `text` is what follows the opening ones. False after a
 * line where the input ends before. */
bool cli_chat_read_block(cli_chat *chat, const char *text, size_t n_bytes, whit_buf *block);
/* A script ends with the first status that is not CLI_OK; a person has read the line. */
void cli_chat_remember(cli_chat *chat, int status);
/* Says what went wrong and remembers the status. */
void cli_chat_fail(cli_chat *chat, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void cli_chat_fail_error(cli_chat *chat, const whit_error *error);

#endif
