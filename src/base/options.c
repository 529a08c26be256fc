/* SPDX-License-Identifier: MIT */
#include "base/options.h"

#include <string.h>

#define LARGEST_BYTES 4096 /* larger than any present or future struct, so a greater size is invalid */

static bool is_zero(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i]) return false;
    return true;
}

whit_status whit_options_read(void *own, size_t own_bytes, const void *given, const char *what, whit_error *error)
{
    size_t given_bytes;
    if (!given) return WHIT_OK;
    memcpy(&given_bytes, given, sizeof given_bytes);
    if (given_bytes <= sizeof given_bytes || given_bytes > LARGEST_BYTES)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: struct_bytes is %zu: begin with %s_default()", what,
                         given_bytes, what);
    if (given_bytes > own_bytes && !is_zero((const uint8_t *)given + own_bytes, given_bytes - own_bytes))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: a member is set that this library (%s) does not know: it is older than the program", what,
                         whit_version());
    memcpy(own, given, given_bytes < own_bytes ? given_bytes : own_bytes);
    memcpy(own, &own_bytes, sizeof own_bytes);
    return WHIT_OK;
}

whit_status whit_element_read(void *own, size_t elem_bytes, size_t least_bytes, const void *array, size_t i,
                              size_t stride_bytes, const char *what, whit_error *error)
{
    if (stride_bytes < least_bytes || stride_bytes > LARGEST_BYTES)
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "%s: struct_bytes of an element is %zu, which this library does not know: begin with the struct's default",
            what, stride_bytes);
    const uint8_t *element = (const uint8_t *)array + i * stride_bytes;
    if (stride_bytes > elem_bytes && !is_zero(element + elem_bytes, stride_bytes - elem_bytes))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: a member is set that this library (%s) does not know: it is older than the program", what,
                         whit_version());
    memset(own, 0, elem_bytes);
    memcpy(own, element, stride_bytes < elem_bytes ? stride_bytes : elem_bytes);
    return WHIT_OK;
}
