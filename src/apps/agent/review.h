/* SPDX-License-Identifier: MIT
 * Finds code in a change that a person should review: programs that it runs, calls that write out of bounds, tests
 * that it weakens. The code graph's parser finds the names, so comments and strings do not count. */
#ifndef WHIT_AGENT_REVIEW_H
#define WHIT_AGENT_REVIEW_H

#include "agent/changes.h"

/* Project of a change, whose modules and headers a change may use. */
typedef struct whit_review_project {
    const char *folder;         /* NULL: no file is of the project */
    const whit_changes *staged; /* changes that are reviewed together; NULL: the change is alone */
} whit_review_project;

/* Returns the reason why a person should review a change, or NULL. A changed function needs review if it runs programs
 * or if it calls, directly or by a macro or pointer, a function of the same file that does; a changed statement, if it
 * calls a function that writes out of bounds. A changed test needs review, and a new import of a module that is neither
 * of the project nor known to be harmless. The reason is a constant text or in `room`. */
const char *whit_review_code(const whit_change *change, const whit_review_project *project,
                             char room[WHIT_REASON_BYTES]);

#endif
