/* SPDX-License-Identifier: MIT
 * Saves turns, which are the changes of one answer of an agent, as commits of the project's git repository under
 * refs/whit/turns. They are another way to undo an agent's changes besides its journal, and git's own tools can show
 * them. Index, HEAD, branches, stash and work tree stay unchanged, and no hook runs. libgit2 is loaded at first use. */
#ifndef WHIT_AGENT_COMMITS_H
#define WHIT_AGENT_COMMITS_H

#include "agent/turns.h"

#define WHIT_COMMITS_REF "refs/whit/turns"

/* Adds a commit whose tree is the last turn's tree (at first HEAD's) with the changes applied. Leaves out files that
 * git ignores and files with secrets. Sets *made to false without an error if no file is left, if the project is not in
 * a repository, or if this build or machine has no libgit2. Errors: io (git's message), memory. */
whit_status whit_commit_turn(const char *project, const whit_change *changes, size_t n, const char *message, bool *made,
                             whit_error *error);

#endif
