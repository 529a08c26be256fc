/* SPDX-License-Identifier: MIT
 * Reads the HEAD frame: its sections, tables, tensor directory and list of part files. */
#ifndef WHIT_FORMAT_NDF_HEAD_H
#define WHIT_FORMAT_NDF_HEAD_H

#include "format/ndf_file.h"

/* Checks ndf->head and sets the members of `ndf` that point into it. Part files need not be open: the tensors' parts
 * are checked against the DATA sizes that the list of part files states. */
whit_status whit_ndf_read_head(whit_ndf *ndf, const char *path, whit_error *error);

#endif
