/* SPDX-License-Identifier: MIT */
#include "base/file.h"

bool whit_copy_metadata(int from, int to)
{
    /* Copies no metadata: like every new file, the new file inherits owner and access list from its folder. */
    (void)from, (void)to;
    return true;
}
