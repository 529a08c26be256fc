/* SPDX-License-Identifier: MIT
 * Slots: gives every value of a plan a place by liveness. Part of compiling (plan.c). */
#ifndef WHIT_MODEL_SLOTS_H
#define WHIT_MODEL_SLOTS_H

#include "model/plan.h"

/* Values of a phase live until the phase ends: its rows run on several threads at once, so a slot
 * must not change hands inside it. An operation may write over its first input where that ends
 * there and has the same shape. A kept value shares its slot with nothing. */
whit_status whit_slots_assign(whit_plan *plan, whit_error *error);

#endif
