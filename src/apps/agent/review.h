/* SPDX-License-Identifier: MIT
 * What of a change's code a person should look at: programs that it runs, calls out of bounds, tests that it weakens.
 * Decided by the code graph's parser, not by words: comments and strings do not count. */
#ifndef WHIT_AGENT_REVIEW_H
#define WHIT_AGENT_REVIEW_H

#include "agent/turns.h"

/* The reason, a constant; NULL where there is none. A function that runs programs, or calls one of the same file that
 * does, by its name, a macro or a pointer, needs a look whenever its text is new; so does a test that is there. */
const char *whit_review_code(const whit_change *change);

#endif
