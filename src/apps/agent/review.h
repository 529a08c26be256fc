/* SPDX-License-Identifier: MIT
 * Finds code in a change that a person should look at: programs that it runs, calls out of bounds, tests that it
 * weakens. Decided by the code graph's parser, not by words: comments and strings do not count. */
#ifndef WHIT_AGENT_REVIEW_H
#define WHIT_AGENT_REVIEW_H

#include "agent/turns.h"

/* Returns the reason, a constant, or NULL. A function that runs programs, or calls a function of the same file that
 * does, by its name, a macro or a pointer, needs a look whenever its text is new; so does an existing test. */
const char *whit_review_code(const whit_change *change);

#endif
