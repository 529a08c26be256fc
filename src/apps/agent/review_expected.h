/* SPDX-License-Identifier: MIT
 * Finds changes of what existing tests expect. */
#ifndef WHIT_AGENT_REVIEW_EXPECTED_H
#define WHIT_AGENT_REVIEW_EXPECTED_H

#include "agent/changes.h"

/* Returns whether a change removes or changes lines of a snapshot ("*.snap", "__snapshots__/"), or of a file in a
 * folder testdata, golden, goldens or expected, or a script of package.json that runs tests, or of a paragraph of a
 * build file that names tests; also if memory runs out. */
bool whit_review_takes_expected(const whit_change *change);

#endif
