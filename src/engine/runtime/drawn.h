/* SPDX-License-Identifier: MIT
 * Declares the access to the candidates of a sampler's last pick. */
#ifndef WHIT_RUNTIME_DRAWN_H
#define WHIT_RUNTIME_DRAWN_H

#include "whit.h"

/* Writes log-probabilities of the last pick, computed over the candidates that the samplers had left for the draw:
 * entries[0] is the picked token, the next entries are the n_top most likely candidates. If fewer candidates were left,
 * the remaining entries have id -1. At temperature 0 only the picked token was left. `entries` has 1 + n_top
 * elements. */
void whit_sampler_drawn(whit_sampler *sampler, uint32_t n_top, whit_logprob *entries);

#endif
