/* SPDX-License-Identifier: MIT
 * Opens the parts of a chat with a model (chat, run --chat): the model, a session, its chat template and the
 * conversation. */
#ifndef WHIT_CLI_TALK_H
#define WHIT_CLI_TALK_H

#include "cli/flags.h"
#include "runtime/conversation.h"

typedef struct cli_talk {
    whit_model *model;
    whit_model *drafter; /* model of --draft; NULL: none, or the model itself */
    whit_session *session;
    cli_adapters adapters; /* mounted on the session */
    cli_text template;     /* template from a file; data NULL: the model's own template */
    whit_chat_template *chat;
    whit_conversation *conversation;
    bool told_system; /* the user was told that the template drops the system message */
} cli_talk;

/* Opens a chat. `talk` holds zeros, or a model that is open already and belongs to it from now on. `template_file` is
 * as in cli_read_template; NULL: the model's own template. The result is CLI_OK or a status already reported; close in
 * every case. */
int cli_talk_open(cli_call *call, const cli_model_flags *model, const cli_session_flags *session,
                  const cli_adapter_flags *adapters, const char *template_file, uint32_t n_draft, cli_talk *talk);
void cli_talk_close(cli_talk *talk);
/* Returns the template's source, zero-terminated. */
const char *cli_talk_template(const cli_talk *talk);

/* Returns message i as JSON, for json_decref; NULL if there is no such message, or no memory. */
json_t *cli_talk_message(const cli_talk *talk, size_t i);
/* Returns the text of a message if its role is system, else "". */
const char *cli_system_text(const json_t *message, size_t *n_bytes);

/* Prints speed and context use in one line on stderr. */
void cli_talk_statistics(const cli_talk *talk, const whit_answer *answer, uint64_t seed);
/* Prints a remark on stderr if messages were left out of the context, or the answer ended because the context is
 * full. */
void cli_talk_remarks(const cli_talk *talk, const whit_answer *answer);
/* Prints a remark, once, if the last prompt does not contain the system message. */
void cli_talk_remark_system(cli_talk *talk);

#endif
