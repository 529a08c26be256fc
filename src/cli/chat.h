/* SPDX-License-Identifier: MIT
 * Declares the state of a running chat, which its loop (chat.c) and its commands (chat_commands.c) share. */
#ifndef WHIT_CLI_CHAT_H
#define WHIT_CLI_CHAT_H

#include "cli/chat_tools.h"
#include "cli/input.h"
#include "cli/keep.h"
#include "cli/stage.h"
#include "cli/talk.h"

typedef struct cli_chat {
    cli_call *call;
    cli_input *input;
    cli_talk talk;
    cli_keep keep;
    cli_stage stage; /* the stage of --program */
    cli_chat_tools tools;
    cli_grammar grammar; /* the grammar that every answer must match */
    /* /set changes the settings below. */
    cli_sampler_flags sampler; /* completely filled in, with the seed drawn */
    whit_thinking thinking;
    uint32_t n_thinking; /* most tokens of thinking; 0: no limit */
    bool verbose, wraps, has_markup;
    int32_t n_tokens; /* -1: until the context is full */
    uint32_t n_draft;
    cli_list stops;

    uint64_t n_answers; /* number of answers with this seed, each with its own random numbers */
    bool over;          /* /bye or a signal ended the chat */
    int status;         /* status of the first failure in a script */
} cli_chat;

/* Prints the greeting: the model's name and its abilities. */
void cli_chat_greet(const cli_chat *chat, const char *path);

/* Runs a command: a line that begins with '/'. */
void cli_chat_command(cli_chat *chat, const char *line, size_t n_bytes);
/* Returns whether the line is a word that ends other programs: exit, quit, :q. */
bool cli_chat_leaves(const char *line, size_t n_bytes);
/* Lists the commands for completion by Tab; the list ends with NULL. */
extern const char *const cli_chat_words[];
/* Appends a message of the person and answers it; removes it if there is no answer. */
void cli_chat_say(cli_chat *chat, const char *text, size_t n_bytes);

/* Continues with another model: messages and settings stay, and the former model is closed. */
void cli_chat_switch(cli_chat *chat, const char *name);
/* Puts the last answer, or with "code" its last block of code, into the terminal's clipboard. */
void cli_chat_copy(cli_chat *chat, char *what);
/* Lets the person edit the last message in an editor, and answers it anew; without messages a new one. */
void cli_chat_edit(cli_chat *chat, char *nothing);

/* Loads a conversation. The result is CLI_OK or a status already reported. */
int cli_chat_load(cli_chat *chat, const char *path);

/* Answers the last message, and calls of tools after it; false if no answer was added to the messages. */
bool cli_chat_answer(cli_chat *chat);
/* Records changes of the messages in the session file. */
void cli_chat_keep_messages(cli_chat *chat);
/* Reads up to the line that ends in """. `text` is what follows the opening """. The result is false, after a message,
 * if the input ends before. */
bool cli_chat_read_block(cli_chat *chat, const char *text, size_t n_bytes, whit_buf *block);
/* Keeps the first status other than CLI_OK for the end of a script; a person has seen the message. */
void cli_chat_remember(cli_chat *chat, int status);
/* Reports a failure and remembers its status. */
void cli_chat_fail(cli_chat *chat, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void cli_chat_fail_error(cli_chat *chat, const whit_error *error);

#endif
