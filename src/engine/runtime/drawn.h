/* SPDX-License-Identifier: MIT
 * Declares the access to the candidates of a sampler's last pick. */
#ifndef WHIT_RUNTIME_DRAWN_H
#define WHIT_RUNTIME_DRAWN_H

#include "whit.h"

/* Writes the log-probabilities of the last pick, computed over the tokens that the samplers had left for the draw:
 * entries[0] is that of the picked token, then come the n_top most likely tokens. If fewer were left, the remaining
 * entries have id -1. Without a temperature only the picked token was left. `entries` has 1 + n_top elements. */
void whit_sampler_drawn(whit_sampler *sampler, uint32_t n_top, whit_logprob *entries);

#endif
