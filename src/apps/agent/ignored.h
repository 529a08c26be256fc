/* SPDX-License-Identifier: MIT
 * Finds whether a change of a .gitignore hides files from checks: ignored files are not copied for commands. */
#ifndef WHIT_AGENT_IGNORED_H
#define WHIT_AGENT_IGNORED_H

#include "agent/changes.h"

/* Returns whether a change of a .gitignore hides files of the project that were not ignored before, together with the
 * other changes of `set` (NULL: none): a rule may hide what another .gitignore shows no longer. `below` is the changed
 * file's path below the project with links resolved. Returns false if that file is not a .gitignore, and true if memory
 * runs out, since the question is then undecided. */
bool whit_ignored_more(const char *project, const whit_changes *set, const char *below, const whit_change *change);

#endif
