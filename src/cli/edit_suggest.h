/* SPDX-License-Identifier: MIT
 * Makes the editor's suggestions on a thread, with a model in this process or at an endpoint. */
#ifndef WHIT_CLI_EDIT_SUGGEST_H
#define WHIT_CLI_EDIT_SUGGEST_H

#include "cli/edit_agent.h"
#include "editor/suggest.h"

struct cli_edit_suggester;
/* Starts no thread yet: it begins with the first question, and opens the model then. `wish` is from the command line;
 * its texts must outlive the suggester. */
whit_status cli_edit_suggester_open(const struct cli_edit_wish *wish, struct cli_edit_suggester **suggester,
                                    whit_error *error);
void cli_edit_suggester_close(struct cli_edit_suggester *suggester);
const whit_suggester *cli_edit_suggester_callbacks(const struct cli_edit_suggester *suggester);

#endif
