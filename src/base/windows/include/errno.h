/* SPDX-License-Identifier: MIT
 * Adds declarations to those of base/windows/posix.h. */
#include_next <errno.h>
#ifndef EDQUOT
#define EDQUOT 3122 /* never set: a quota that is used up is a full disk */
#endif
