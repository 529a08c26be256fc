/* SPDX-License-Identifier: MIT */
#include "base/file.h"

bool whit_copy_metadata(int from, int to)
{
    /* Owner and access list are inherited from the folder, as for every new file of Windows. */
    (void)from, (void)to;
    return true;
}
