/* SPDX-License-Identifier: MIT
 * Finds the effect of a changed .gitignore: ignored files are not copied for commands, so checks do not see them. */
#ifndef WHIT_AGENT_IGNORED_H
#define WHIT_AGENT_IGNORED_H

#include "agent/turns.h"

/* Returns whether the change of a .gitignore, which is at `below` after resolving links, ignores files of the
 * project that were not ignored before. Returns false for other files, and true if memory runs out, so that it
 * cannot decide. */
bool whit_ignored_more(const char *project, const char *below, const whit_change *change);

#endif
