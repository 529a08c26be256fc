/* SPDX-License-Identifier: MIT
 * Replaces a file only if its content is the expected one, in one step of the file system. So no text is lost that
 * another program saves between the last look at a file and its replacement. */
#ifndef WHIT_BASE_EXCHANGE_H
#define WHIT_BASE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

/* The state of a file that is expected before it is replaced. */
typedef struct whit_expected {
    bool exists;
    const char *text;
    size_t n_bytes;
    bool (*is)(const char *path, const void *user); /* called, if not NULL, in place of a comparison with `text` */
    const void *user;
} whit_expected;

typedef enum whit_exchanged {
    WHIT_EXCHANGE_DONE,
    WHIT_EXCHANGE_OTHER, /* the file is not the expected one; it is as it was */
    WHIT_EXCHANGE_FAILED /* errno has the cause; the file is as it was, unless it could not be renamed back */
} whit_exchanged;

/* Returns whether the file is a regular one with this content. */
bool whit_exchange_is(const char *path, const whit_expected *expected);
/* Renames the finished file `beside` to `full`, of the same folder. A file that has other hard links is not the
 * expected one. `beside` exists afterwards only if this failed or the file is another one. On systems and file systems
 * that cannot exchange two names, the file is only compared before it is replaced. */
whit_exchanged whit_exchange_put(const char *beside, const char *full, const whit_expected *expected);
/* Removes `full`, which is renamed to the free name `beside` before its content is compared. On systems and file
 * systems that cannot rename like this, removes the file as it is. */
whit_exchanged whit_exchange_remove(const char *beside, const char *full, const whit_expected *expected);

#endif
