/* SPDX-License-Identifier: MIT
 * Makes the editor's suggestions on a thread, with a model in this process or at an endpoint. */
#ifndef WHIT_ASSISTANT_SUGGESTER_H
#define WHIT_ASSISTANT_SUGGESTER_H

#include "assistant/answering_model.h"
#include "editor/suggest.h"

typedef struct whit_model_suggester whit_model_suggester;

/* Opens the suggester. Its thread starts with the first question and then opens the model. Strings of the options must
 * outlive the suggester. */
whit_status whit_model_suggester_open(const whit_assistant_options *options, whit_model_suggester **suggester,
                                      whit_error *error);
void whit_model_suggester_close(whit_model_suggester *suggester);
const whit_suggester *whit_model_suggester_callbacks(const whit_model_suggester *suggester);

#endif
