/* SPDX-License-Identifier: MIT
 * Finds code in a change that a person should review: programs that it runs, calls that write out of bounds, tests
 * that it weakens. The code graph's parser finds the names, so comments and strings do not count. */
#ifndef WHIT_AGENT_REVIEW_H
#define WHIT_AGENT_REVIEW_H

#include "agent/turns.h"

/* Returns the reason, a constant text, why a person should review a change, or NULL. A changed function needs review if
 * it runs programs or if it calls, directly or by a macro or pointer, a function of the same file that does. A changed
 * test needs review, too. */
const char *whit_review_code(const whit_change *change);

#endif
