/* SPDX-License-Identifier: MIT
 * The candidates of a sampler's last pick. */
#ifndef WHIT_RUNTIME_DRAWN_H
#define WHIT_RUNTIME_DRAWN_H

#include "whit.h"

/* Log-probabilities after the samplers, of the last pick: entries[0] is its own, then come the n_top most likely of the
 * tokens that the samplers had left for the draw. Where fewer were left, the rest has id -1. Without a temperature the
 * pick alone was left. `entries` has room for 1 + n_top. */
void whit_sampler_drawn(whit_sampler *sampler, uint32_t n_top, whit_logprob *entries);

#endif
