/* SPDX-License-Identifier: MIT
 * Schedules: what of a plan runs for so many rows, with neighbours fused into one operation where that is
 * offered. The steps of a schedule are what is bound and what is printed.
 *
 *   linear, linear + gate             -> linear+gate     half as much is written
 *   linear + add                      -> linear+add      a product is added to what lies there
 *   [add or gate +] norm + acts       -> ...norm+acts    rows stay in registers and L1
 *   rope, attention                   -> rope+attend     queries are read and written once less
 *   linear, rescore                   -> screen, rescore of a head whose largest outputs are wanted
 *
 * Values between fused steps are not made, so only those that nobody else reads or keeps are fused, and only
 * where outputs take the place of their inputs: slots are those of the plan. */
#ifndef WHIT_MODEL_PLAN_FUSE_H
#define WHIT_MODEL_PLAN_FUSE_H

#include "model/plan.h"

typedef struct whit_fuse_options {
    whit_row_set rows;      /* the steps of this set */
    bool is_adapted;        /* products stay as they are: adapters are added to them */
    bool is_screened;       /* the head's matrix is screened first, else read whole */
    bool rotates_in_attend; /* attention rotates its queries */
    /* Whether a product is offered for so many rows; steps are of the plan. */
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

/* Memory is of the plan's allocator; on failure the schedule is empty. The plan outlives it. */
whit_status whit_plan_fuse(const whit_plan *plan, const whit_fuse_options *options, whit_schedule *schedule,
                           whit_error *error);
void whit_schedule_free(const whit_plan *plan, whit_schedule *schedule);

/* The schedule as text: a line per step under one for its phase. */
void whit_schedule_print(const whit_plan *plan, const whit_schedule *schedule,
                         const char *(*name)(void *context, int32_t tensor), void *context, whit_buf *out);

#endif
