/* SPDX-License-Identifier: MIT */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "whit_config.h"

const char *whit_version(void)
{
    return WHIT_VERSION_STRING;
}

const char *whit_status_name(whit_status status)
{
    switch (status) {
    case WHIT_OK: return "ok";
    case WHIT_ERROR_ARGUMENT: return "argument";
    case WHIT_ERROR_MEMORY: return "memory";
    case WHIT_ERROR_IO: return "io";
    case WHIT_ERROR_FORMAT: return "format";
    case WHIT_ERROR_UNSUPPORTED: return "unsupported";
    case WHIT_ERROR_LIMIT: return "limit";
    case WHIT_ERROR_CANCELLED: return "cancelled";
    case WHIT_ERROR_NUMERIC: return "numeric";
    }
    return "unknown";
}

whit_status whit_fail(whit_error *error, whit_status status, const char *format, ...)
{
    if (!error) return status;
    /* The line is first formatted into a buffer, because error->message itself may be one of the arguments. */
    char line[sizeof error->message];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (n < 0) line[0] = 0;
    size_t length = strlen(line);
    if ((size_t)n >= sizeof line) {
        while (length && ((unsigned char)line[length - 1] & 0xC0) == 0x80) length--;
        if (length && (unsigned char)line[length - 1] >= 0x80) length--;
        line[length] = 0;
    }
    length = whit_plain_line(line, length);
    line[length] = 0;
    error->status = status;
    memcpy(error->message, line, length + 1);
    return status;
}

whit_status whit_fail_memory(whit_error *error, const char *what, size_t size_bytes)
{
    if (!size_bytes) return whit_fail(error, WHIT_ERROR_MEMORY, "not enough memory for %s", what);
    return whit_fail(error, WHIT_ERROR_MEMORY, "not enough memory for %s (%zu bytes)", what, size_bytes);
}

whit_status whit_fail_errno(whit_error *error, const char *path, const char *verb)
{
    int number = errno;
    return whit_fail(error, number == ENOMEM ? WHIT_ERROR_MEMORY : WHIT_ERROR_IO, "%s: cannot %s: %s", path, verb,
                     strerror(number));
}
