/* SPDX-License-Identifier: MIT
 * Reads public structs that grow (whit/base.h) and that a program compiled with another size. A new member is added
 * after all others and after their padding, so that no older program ever set its bytes. */
#ifndef WHIT_BASE_OPTIONS_H
#define WHIT_BASE_OPTIONS_H

#include "base/status.h"

/* Copies the members that `given` has (NULL: none) into `own`, which holds the defaults, `own_bytes` of them. Both
 * structs begin with a size_t, their size. Refuses a size that no _default() function set, and members unknown here
 * that are not zero. `what` begins the message: the name of the struct. */
whit_status whit_options_read(void *own, size_t own_bytes, const void *given, const char *what, whit_error *error);

/* Copies one element of an array whose elements are `stride_bytes` apart, by the rule of whit_options_read; elem_bytes
 * is the size of an element here, least_bytes the size of its first version. */
whit_status whit_element_read(void *own, size_t elem_bytes, size_t least_bytes, const void *array, size_t i,
                              size_t stride_bytes, const char *what, whit_error *error);

#endif
