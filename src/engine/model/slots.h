/* SPDX-License-Identifier: MIT
 * Assigns slots: every value of a plan gets a place in memory by liveness. This is a part of compiling (plan.c). */
#ifndef WHIT_MODEL_SLOTS_H
#define WHIT_MODEL_SLOTS_H

#include "model/plan.h"

/* Assigns slots. Values of a phase live until the phase ends: its rows run on several threads at once, so a slot must
 * not be reused inside it. An operation may write over its first input if that value is not read later and has the same
 * shape. A kept value does not share its slot. */
whit_status whit_slots_assign(whit_plan *plan, whit_error *error);

#endif
