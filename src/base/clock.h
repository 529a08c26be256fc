/* SPDX-License-Identifier: MIT
 * Time: nanoseconds of a clock that never goes back. */
#ifndef WHIT_BASE_CLOCK_H
#define WHIT_BASE_CLOCK_H

#include <stdint.h>

uint64_t whit_now_ns(void);
/* Time that the calling thread has had a processor for: limits on it do not depend on the load. */
uint64_t whit_thread_cpu_ns(void);

#endif
