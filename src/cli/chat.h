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
    cli_stage stage; /* stages of the option --program */
    cli_chat_tools tools;
    cli_grammar grammar;    /* grammar that every answer must follow */
    cli_grammar_flags form; /* its text, from the options or from /set format */
    whit_buf form_text;     /* text of /set format; empty: `form` is of the options */
    /* /set can change these settings. */
    cli_sampler_flags sampler; /* all options have values, including a seed that was drawn */
    whit_thinking thinking;
    uint32_t n_thinking; /* maximum number of tokens in the thinking section; 0: no limit */
    bool verbose, wraps, has_markup;
    int32_t n_tokens; /* maximum number of tokens per answer; -1: as many as the context allows */
    uint32_t n_draft;
    cli_list stops;

    uint64_t n_answers; /* number of answers since the seed was set; added to the seed of the next answer */
    /* the chat has ended, by /bye, a signal, the end of the input, or a failure to read or write */
    bool over;
    int status; /* first exit status other than CLI_OK of a script */
} cli_chat;

/* Prints a greeting on stderr: the model's file, name and context (for the built-in model instead its abilities), and
 * how to use the chat. */
void cli_chat_greet(const cli_chat *chat, const char *path);

/* Runs a command, which is a line that begins with '/'. */
void cli_chat_command(cli_chat *chat, const char *line, size_t n_bytes);
/* Returns whether the line is a word that ends other programs, such as exit, quit or :q. */
bool cli_chat_leaves(const char *line, size_t n_bytes);
/* Words that Tab completes, with NULL at the end. */
extern const char *const cli_chat_words[];
/* Appends a message of the user and answers it; if there is no answer, removes the message. */
void cli_chat_say(cli_chat *chat, const char *text, size_t n_bytes);

/* Continues the chat with another model; closes the previous one. Messages and settings stay, the grammar too, but
 * sampling values that the previous model's authors advise become those of the new model, and --family and
 * --override-kv are not applied to it. After a failure, or with a session file, the previous model stays. */
void cli_chat_switch(cli_chat *chat, const char *name);
/* Puts the last answer into the terminal's clipboard; what: "code" for the last block of code in it, or "". */
void cli_chat_copy(cli_chat *chat, char *what);
/* Lets the user edit their last message in an editor, and answers it again. If there is no message, the user writes a
 * new one. */
void cli_chat_edit(cli_chat *chat, char *nothing);

/* Loads a conversation from a file. Returns CLI_OK, or a status that was already reported. */
int cli_chat_load(cli_chat *chat, const char *path);

/* Answers the last message; then answers the results of tool calls until an answer has no calls, the chat ends, or 20
 * results in a row have led to more calls, whose results are then not answered. Returns false if no answer was added to
 * the messages. */
bool cli_chat_answer(cli_chat *chat);
/* Saves the messages to the session file, if there is one. */
void cli_chat_keep_messages(cli_chat *chat);
/* Reads lines up to one that ends in """. `text` is the rest of the line after the opening """. If the input ends
 * before, prints a message. Then, and after Ctrl-C or a failure, returns false. */
bool cli_chat_read_block(cli_chat *chat, const char *text, size_t n_bytes, whit_buf *block);
/* Remembers the first status other than CLI_OK as the exit status of a script. At a terminal it is ignored, because the
 * user has seen the message. */
void cli_chat_remember(cli_chat *chat, int status);
/* Reports a failure and remembers its status. */
void cli_chat_fail(cli_chat *chat, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void cli_chat_fail_error(cli_chat *chat, const whit_error *error);

#endif
