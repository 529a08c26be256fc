/* SPDX-License-Identifier: MIT
 * Experts of a mapped file within a budget of memory: an expert's pages are prefetched as soon as a router has chosen
 * it, and those of the experts that were not chosen for longest are given back. Which bytes are read, and so every bit
 * of a result, stays the same; an expert that is chosen again is read from the file again. */
#ifndef WHIT_MODEL_RESIDENCY_H
#define WHIT_MODEL_RESIDENCY_H

#include "model/plan.h"
#include "whit/experts.h"

typedef struct whit_residency whit_residency;

/* The matrices of the plan's experts, which lie in a file's mapping and outlive the residency. A budget below what one
 * layer wants at a time is exceeded by it. WHIT_ERROR_UNSUPPORTED if the plan has no experts. */
whit_status whit_residency_open(const whit_plan *plan, const whit_tensor *tensors, uint64_t bytes_max,
                                const whit_allocator *allocator, whit_residency **residency, whit_error *error);
void whit_residency_close(whit_residency *residency); /* NULL is closed */
/* Reports that a layer's router has chosen these experts, (n). One thread at a time; allocates nothing. */
void whit_residency_want(whit_residency *residency, uint32_t layer, const uint32_t *experts, uint32_t n);
/* Its counts, but for struct_bytes. */
const whit_expert_counts *whit_residency_counts(const whit_residency *residency);

#endif
