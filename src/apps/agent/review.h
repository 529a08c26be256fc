/* SPDX-License-Identifier: MIT
 * Finds code in a change that a person should look at: programs that it runs, calls out of bounds, tests that it
 * weakens. Decided by the code graph's parser, not by words: comments and strings do not count. */
#ifndef WHIT_AGENT_REVIEW_H
#define WHIT_AGENT_REVIEW_H

#include "agent/turns.h"

/* Returns the reason, a constant, or NULL. A function needs review whenever its text is new if it runs programs or
 * calls, directly, by a macro or a pointer, a function of the same file that does; so does an existing test. */
const char *whit_review_code(const whit_change *change);

#endif
