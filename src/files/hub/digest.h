/* SPDX-License-Identifier: MIT
 * Checks whether a file on disk has the size and digest that a listing states. */
#ifndef WHIT_HUB_DIGEST_H
#define WHIT_HUB_DIGEST_H

#include "hub/listing.h"

/* Compares an open file with the size and digest of `promised`; an unknown size or digest counts as equal. *same
 * receives the result. `path` is for messages. Stops with WHIT_ERROR_CANCELLED when *cancel is set (cancel NULL:
 * never). */
whit_status whit_hub_digest_check(int fd, const char *path, const whit_hub_file *promised, const volatile bool *cancel,
                                  bool *same, whit_error *error);

#endif
