/* SPDX-License-Identifier: MIT
 * Reads public structs that grow from version to version (whit/base.h), from a program that may have been compiled with
 * another size of the struct. A new member is added after all others and after their padding, so that no older program
 * ever wrote its bytes. */
#ifndef WHIT_BASE_OPTIONS_H
#define WHIT_BASE_OPTIONS_H

#include "base/status.h"

/* Copies the members of `given` (NULL: no member) into `own`, a struct of own_bytes that contains the defaults. Both
 * structs begin with a size_t that is their size. A size that no _default() function can have set is an error, and so
 * are members beyond own_bytes that are not zero. `what` is the struct's name, with which messages begin. */
whit_status whit_options_read(void *own, size_t own_bytes, const void *given, const char *what, whit_error *error);

/* Copies element i of an array whose elements have stride_bytes each into `own`, which has elem_bytes. Members that the
 * element lacks become 0; members beyond elem_bytes must be 0. A stride below least_bytes, the size of the element's
 * first version, or above 4096 is an error. `what` is as in whit_options_read. */
whit_status whit_element_read(void *own, size_t elem_bytes, size_t least_bytes, const void *array, size_t i,
                              size_t stride_bytes, const char *what, whit_error *error);

#endif
