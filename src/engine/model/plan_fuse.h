/* SPDX-License-Identifier: MIT
 * Makes schedules, which are the steps of a plan that run for a number of rows, with neighbours fused into one
 * operation if kernels offer that. The executor binds the steps of a schedule, and whit_schedule_print writes them as
 * text.
 *
 *   linear, linear + gate             -> linear+gate     half as much is written
 *   linear + add                      -> linear+add      a product is accumulated onto its output
 *   [add or gate +] norm + acts       -> ...norm+acts    rows stay in registers and L1
 *   rope, attention                   -> rope+attend     queries are read and written once less
 *   linear, rescore                   -> screen, rescore for a head whose largest outputs are wanted
 *
 * Values between fused steps, except the sum before a norm, are not stored, so steps are fused only if these values
 * are not kept and no other step reads them. Schedules use the slots of the plan, so steps are fused only if outputs
 * may be written in place of inputs. */
#ifndef WHIT_MODEL_PLAN_FUSE_H
#define WHIT_MODEL_PLAN_FUSE_H

#include "model/plan.h"

typedef struct whit_fuse_options {
    whit_row_set rows;      /* row set whose steps are scheduled */
    bool is_adapted;        /* adapters are added to the products, so products are not fused */
    bool is_screened;       /* the head is screened: its logits are estimated first */
    bool rotates_in_attend; /* attention also rotates its queries */
    /* These functions return whether kernels offer the fused product for the number of rows in question; the arguments
     * are steps of the plan. */
    void *context;
    bool (*offers_gated)(void *context, const whit_plan_step *gate, const whit_plan_step *gated);
    bool (*offers_added)(void *context, const whit_plan_step *linear);
} whit_fuse_options;

typedef struct whit_schedule {
    whit_plan_step *steps;
    whit_plan_phase *phases;
    uint32_t n_steps, n_phases;
    uint32_t capacity_steps, capacity_phases;
} whit_schedule;

/* Builds a schedule of a plan; the plan must outlive the schedule. Memory comes from the plan's allocator; on failure
 * the schedule is empty. */
whit_status whit_plan_fuse(const whit_plan *plan, const whit_fuse_options *options, whit_schedule *schedule,
                           whit_error *error);
void whit_schedule_free(const whit_plan *plan, whit_schedule *schedule);

/* Appends the schedule as text: a line for each phase, then a line for each of its steps. */
void whit_schedule_print(const whit_plan *plan, const whit_schedule *schedule,
                         const char *(*name)(void *context, int32_t tensor), void *context, whit_buf *out);

#endif
