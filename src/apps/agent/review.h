/* SPDX-License-Identifier: MIT
 * Finds code in a change that a person should look at: programs that it runs, calls out of bounds, tests that it
 * weakens. The parser of the code graph decides, not a search for words: comments and strings do not count. */
#ifndef WHIT_AGENT_REVIEW_H
#define WHIT_AGENT_REVIEW_H

#include "agent/turns.h"

/* Returns the reason why a person should look, which is a constant text, or NULL. A function whose text is new needs
 * review if it runs programs or if it calls a function of the same file that does so: directly, by a macro or by a
 * pointer. A changed test needs review, too. */
const char *whit_review_code(const whit_change *change);

#endif
