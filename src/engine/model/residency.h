/* SPDX-License-Identifier: MIT
 * Limits the memory of the experts of a mapped file: an expert's pages are prefetched as soon as a router has chosen
 * it, and the pages of the least recently chosen experts are released. Results do not change by a bit; an expert that
 * is chosen again after its release is read from the file again. */
#ifndef WHIT_MODEL_RESIDENCY_H
#define WHIT_MODEL_RESIDENCY_H

#include "model/plan.h"
#include "whit/experts.h"

typedef struct whit_residency whit_residency;

/* Limits the experts of a plan to bytes_max. Their matrices must be in a file's mapping and outlive the residency. A
 * layer that uses more experts at a time than bytes_max allows exceeds the limit. Returns WHIT_ERROR_UNSUPPORTED if the
 * plan has no experts. */
whit_status whit_residency_open(const whit_plan *plan, const whit_tensor *tensors, uint64_t bytes_max,
                                const whit_allocator *allocator, whit_residency **residency, whit_error *error);
void whit_residency_close(whit_residency *residency); /* accepts NULL */
/* Reports that the router of a layer has chosen the experts `experts` (n). One thread at a time may call it; it
 * allocates nothing. */
void whit_residency_want(whit_residency *residency, uint32_t layer, const uint32_t *experts, uint32_t n);
/* Returns the limit, the bytes of experts in memory and in all, and how many experts were prefetched and released since
 * whit_residency_open (whit/experts.h). struct_bytes is 0: a caller that passes the struct on sets it. */
const whit_expert_counts *whit_residency_counts(const whit_residency *residency);

#endif
