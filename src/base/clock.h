/* SPDX-License-Identifier: MIT
 * Reads a monotonic clock and the CPU time of a thread, in nanoseconds. */
#ifndef WHIT_BASE_CLOCK_H
#define WHIT_BASE_CLOCK_H

#include <stdint.h>

uint64_t whit_now_ns(void);
/* Returns the CPU time of the calling thread in ns. Unlike wall time it does not depend on the load of the machine. */
uint64_t whit_thread_cpu_ns(void);

#endif
