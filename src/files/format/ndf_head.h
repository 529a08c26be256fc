/* SPDX-License-Identifier: MIT
 * Reads the HEAD frame: sections, tables, tensor directory, part files. */
#ifndef WHIT_FORMAT_NDF_HEAD_H
#define WHIT_FORMAT_NDF_HEAD_H

#include "format/ndf_file.h"

/* Checks ndf->head and fills the views into it. Part files are not opened yet: parts are checked
 * against the DATA lengths that the directory of files states. */
whit_status whit_ndf_read_head(whit_ndf *ndf, const char *path, whit_error *error);

#endif
