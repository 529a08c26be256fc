/* SPDX-License-Identifier: MIT
 * Checks whether a file on disk has the size and digest that a listing states. */
#ifndef WHIT_HUB_DIGEST_H
#define WHIT_HUB_DIGEST_H

#include "hub/listing.h"

/* Reads the file open as `fd` from its beginning. *same is true if its size and digest are the promised ones, as far as
 * size and digest are known. `path` is for messages. It stops with WHIT_ERROR_CANCELLED when *cancel is set (NULL:
 * never). */
whit_status whit_hub_digest_check(int fd, const char *path, const whit_hub_file *promised, const volatile bool *cancel,
                                  bool *same, whit_error *error);

#endif
