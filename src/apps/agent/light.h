/* SPDX-License-Identifier: MIT
 * What an agent may do without a question, and the question. */
#ifndef WHIT_AGENT_LIGHT_H
#define WHIT_AGENT_LIGHT_H

#include "agent/hunks.h"

/* Why a change needs a person whatever is allowed; NULL: it does not. Folders are looked at both as
 * written and as links lead. */
const char *whit_light_red(const char *project, const whit_change *change);
/* Is the path one whose content is not given to a model: version control's own, keys, secrets? */
bool whit_light_secret(const char *project, const char *path);

/* Is there a terminal at which somebody could be asked? */
bool whit_light_has_terminal(void);
/* Writes a text that is safe for a terminal (whit_change_show) to the terminal where questions are asked. */
void whit_light_tell(const char *text, size_t n);
/* Asks on the terminal; without one nobody agrees. `reason` may be NULL where files are to be written;
 * n_files 0: something else, which it says. */
bool whit_light_agreed(const char *reason, size_t n_files);
/* The same for hunks: asks about all of them, or about each where the answer is h, which `show` then prints. A byte
 * of `taken` is set for each that is agreed to. */
void whit_light_choose(const whit_hunks *hunks, void (*show)(void *user, const whit_hunk *hunk), void *user,
                       uint8_t *taken);

#endif
