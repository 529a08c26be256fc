/* SPDX-License-Identifier: MIT
 * Declares how the library sets errors: the public whit_status and whit_error, and the only functions that set them. */
#ifndef WHIT_BASE_STATUS_H
#define WHIT_BASE_STATUS_H

#include "whit.h"

/* Writes a formatted line to error->message (`error` may be NULL) and returns `status`, so that a failing function says
 * `return whit_fail(error, WHIT_ERROR_FORMAT, "%s: ...", path)`. Controls, hidden characters and bytes that are not
 * UTF-8 become '?' (whit_plain_line), and the line is cut to fit, never inside a UTF-8 character. */
whit_status whit_fail(whit_error *error, whit_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes an error message about a failed allocation of size_bytes (0: unknown) for `what`, and returns
 * WHIT_ERROR_MEMORY. */
whit_status whit_fail_memory(whit_error *error, const char *what, size_t size_bytes);

/* Writes the error message "PATH: cannot VERB: ..." with the text of errno for a failed system call; returns
 * WHIT_ERROR_IO, for ENOMEM WHIT_ERROR_MEMORY. */
whit_status whit_fail_errno(whit_error *error, const char *path, const char *verb);

/* Makes a public function return WHIT_ERROR_ARGUMENT, and not crash, if a pointer that must not be NULL is NULL. */
#define WHIT_NEED(pointer)                                                                                             \
    do {                                                                                                               \
        if (!(pointer)) return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: '%s' is NULL", __func__, #pointer);          \
    } while (0)
#define WHIT_NEED_ARRAY(pointer, n)                                                                                    \
    do {                                                                                                               \
        if ((n) && !(pointer)) return whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: '%s' is NULL", __func__, #pointer);   \
    } while (0)

/* Discards a result that the caller need not check; a comment at the call gives the reason. */
static inline void whit_ignore(whit_status status)
{
    (void)status;
}

#define WHIT_TRY(expression)                                                                                           \
    do {                                                                                                               \
        whit_status whit_try_status_ = (expression);                                                                   \
        if (whit_try_status_ != WHIT_OK) return whit_try_status_;                                                      \
    } while (0)

#endif
