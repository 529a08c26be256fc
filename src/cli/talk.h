/* SPDX-License-Identifier: MIT
 * Opens a chat with a model, for whit chat and whit run: the model, a session, a chat template and the conversation. */
#ifndef WHIT_CLI_TALK_H
#define WHIT_CLI_TALK_H

#include "cli/flags.h"
#include "runtime/conversation.h"

typedef struct cli_talk {
    whit_model *model;
    whit_model *drafter; /* separate model of --draft, or NULL */
    whit_session *session;
    cli_adapters adapters; /* the adapters mounted on the session */
    cli_text template;     /* template given by an option; data NULL: the model's own is used */
    whit_chat_template *chat;
    whit_conversation *conversation;
    bool told_system; /* the user has been told that the template leaves the system message out */
} cli_talk;

/* Opens a chat. On entry all members of *talk are zero, except that `model` may be an open model, whose ownership
 * passes to the chat. template_file: as `given` in cli_read_template; NULL: the model's own template. Returns CLI_OK,
 * or an exit status after a message; the caller calls cli_talk_close in both cases. */
int cli_talk_open(cli_call *call, const cli_model_flags *model, const cli_session_flags *session,
                  const cli_adapter_flags *adapters, const char *template_file, uint32_t n_draft, cli_talk *talk);
void cli_talk_close(cli_talk *talk);
/* Returns the zero-terminated source of the template in use, which belongs to the chat or its model. */
const char *cli_talk_template(const cli_talk *talk);

/* Returns message i as JSON, which the caller releases with json_decref; NULL if there is no such message or memory
 * runs out. */
json_t *cli_talk_message(const cli_talk *talk, size_t i);
/* If the message's role is system and its content is a string, returns this string, which belongs to the message, and
 * sets *n_bytes; otherwise returns "" and sets *n_bytes to 0. */
const char *cli_system_text(const json_t *message, size_t *n_bytes);

/* Prints the speed, the use of the context and the seed in one line on stderr; with a limited memory for experts, a
 * second line about them. */
void cli_talk_statistics(const cli_talk *talk, const whit_answer *answer, uint64_t seed);
/* Prints a remark on stderr if messages were left out because the context is full, or if the answer ended for this
 * reason. */
void cli_talk_remarks(const cli_talk *talk, const whit_answer *answer);
/* Prints a remark on stderr, once per chat, if the last prompt does not contain the system message. */
void cli_talk_remark_system(cli_talk *talk);

#endif
