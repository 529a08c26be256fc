/* SPDX-License-Identifier: MIT
 * What it takes to talk with a model (chat, run --chat): the model, a session, its chat template
 * and the conversation. */
#ifndef WHIT_CLI_TALK_H
#define WHIT_CLI_TALK_H

#include "cli/flags.h"
#include "runtime/conversation.h"

typedef struct cli_talk {
    whit_model *model;
    whit_session *session;
    cli_adapters adapters; /* mounted on it */
    cli_text template;     /* of a file; data NULL: the model's own */
    whit_prompter *prompter;
    whit_conversation *conversation;
    bool told_system; /* that the template leaves the system message out */
} cli_talk;

/* `template_file` NULL: the model's own. CLI_OK or a status already reported; close in every case. */
int cli_talk_open(cli_call *call, const cli_model_flags *model, const cli_session_flags *session,
                  const cli_adapter_flags *adapters, const char *template_file, uint32_t n_draft, cli_talk *talk);
void cli_talk_close(cli_talk *talk);
/* The template's source; terminated. */
const char *cli_talk_template(const cli_talk *talk);

/* Speed and context use, one line on stderr. */
void cli_talk_statistics(const cli_talk *talk, const whit_answer *answer, uint64_t seed);
/* What a user should know about how an answer ended, if anything; on stderr. */
void cli_talk_remarks(const cli_talk *talk, const whit_answer *answer);
/* A line where the last prompt has no trace of the system message, once. */
void cli_talk_remark_system(cli_talk *talk);

#endif
