/* SPDX-License-Identifier: MIT
 * Finds modules and headers that a change begins to use and that nothing is known about: they are neither of the
 * project nor in a list of modules that cannot run programs or text as code. */
#ifndef WHIT_AGENT_REVIEW_IMPORTS_H
#define WHIT_AGENT_REVIEW_IMPORTS_H

#include "agent/review.h"
#include "agent/review_text.h"

/* Looks at the imports that the old text does not have: modules of Python and JavaScript, headers of C. Returns the
 * reason, which names the module, why a person should review the change, or NULL. `room` may get the reason. */
const char *whit_review_imports(const whit_review_text *before, const whit_review_text *after,
                                const whit_review_project *project, char room[WHIT_REASON_BYTES]);

#endif
