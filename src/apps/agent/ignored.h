/* SPDX-License-Identifier: MIT
 * What a change of a .gitignore hides: ignored files are not copied for commands, so that checks do not see them. */
#ifndef WHIT_AGENT_IGNORED_H
#define WHIT_AGENT_IGNORED_H

#include "agent/turns.h"

/* Does the change of a .gitignore, which lies at `below` once links are followed, ignore files of the project that were
 * not ignored? False for other files; true if it cannot be told (memory). */
bool whit_ignored_more(const char *project, const char *below, const whit_change *change);

#endif
