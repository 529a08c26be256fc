/* SPDX-License-Identifier: MIT
 * Runs mixtures of experts that are larger than memory. whit.h does not include it. */
#ifndef WHIT_EXPERTS_H
#define WHIT_EXPERTS_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits the experts of a model's file to bytes_max of memory: pages of an expert are prefetched as soon as a router
 * has chosen it, and the pages of the least recently chosen experts are released. Results do not change by a bit. A
 * budget that is smaller than the experts read at a time in one layer is exceeded. Call this once, before the first
 * step. The error is WHIT_ERROR_UNSUPPORTED if the model has no experts, is not a file, or is run by several
 * processes. */
WHIT_API WHIT_CHECKED whit_status whit_session_limit_experts(whit_session *session, uint64_t bytes_max,
                                                             whit_error *error);
/* Holds counts of a session's experts; all are 0 without a limit. Set struct_bytes before the call. */
typedef struct whit_expert_counts {
    size_t struct_bytes;
    uint64_t bytes_max, bytes; /* the limit; bytes of the experts that may be in memory now */
    uint64_t all_bytes;        /* bytes of all experts */
    uint64_t n_read, n_given;  /* since the limit was set: number of times that an expert of a layer was prefetched, and
                                * was released */
    uint64_t read_bytes;       /* bytes of the experts prefetched since the limit was set */
} whit_expert_counts;
WHIT_API void whit_session_count_experts(const whit_session *session, whit_expert_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
