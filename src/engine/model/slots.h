/* SPDX-License-Identifier: MIT
 * Assigns slots: every value of a plan gets a place in memory by liveness. This is a part of compiling (plan.c). */
#ifndef WHIT_MODEL_SLOTS_H
#define WHIT_MODEL_SLOTS_H

#include "model/plan.h"

/* Assigns a slot to every value. A value lives until the end of the last phase that reads it: the rows of a phase run
 * on several threads at once, so a slot must not be reused within a phase. Operations that read each element before
 * they overwrite it may overwrite their first input, if no later step reads that value and both have the same shape.
 * The slot of a kept value has no other value. */
whit_status whit_slots_assign(whit_plan *plan, whit_error *error);

#endif
