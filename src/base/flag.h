/* SPDX-License-Identifier: MIT
 * Declares flags that another thread or a signal handler sets while they are read. */
#ifndef WHIT_BASE_FLAG_H
#define WHIT_BASE_FLAG_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the flag is set; false for NULL. */
static inline bool whit_flag_is_set(const volatile bool *flag)
{
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static inline void whit_flag_put(volatile bool *flag, bool value)
{
    __atomic_store_n(flag, value, __ATOMIC_RELAXED);
}

#endif
