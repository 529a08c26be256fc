/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <copyfile.h>

bool whit_copy_metadata(int from, int to)
{
    return fcopyfile(from, to, NULL, COPYFILE_METADATA) == 0;
}
