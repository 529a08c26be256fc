/* SPDX-License-Identifier: MIT
 * Texts that the guard is told and keeps until the program ends: keys of endpoints, and folders. */
#ifndef WHIT_AGENT_GUARD_KNOWN_H
#define WHIT_AGENT_GUARD_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Puts a text from malloc(), which is taken over, into a free slot of `slots` unless one has it already. Returns false
 * if it is NULL or all slots are used. */
static inline bool keep_known(_Atomic(char *) *slots, size_t n_slots, char *kept)
{
    for (size_t i = 0; kept && i < n_slots; i++) {
        char *there = NULL;
        if (atomic_compare_exchange_strong(&slots[i], &there, kept)) return true;
        if (strcmp(there, kept) != 0) continue;
        free(kept);
        return true;
    }
    free(kept);
    return false;
}

#endif
