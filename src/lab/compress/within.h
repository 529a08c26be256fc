/* SPDX-License-Identifier: MIT
 * Reports the progress within a long piece of work, such as a matrix or a pass over the text. */
#ifndef WHIT_COMPRESS_WITHIN_H
#define WHIT_COMPRESS_WITHIN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct whit_within {
    /* Called on the calling thread with the share of the work that is done, from 0 to 1. Returning false ends the work
     * early; its results must not be used then. NULL: not called. */
    bool (*tell)(void *user, double share);
    void *user;
} whit_within;

static inline bool whit_within_tell(const whit_within *within, double share)
{
    return !within->tell || within->tell(within->user, share < 1 ? share : 1);
}

#endif
