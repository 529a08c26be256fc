/* SPDX-License-Identifier: MIT
 * Converts the two bytes u of WHIT_SCALE_L6 to and from the scales a and b of q2, because levels are fitted and trained
 * as q2 scales: a group of l2 has the levels of a q2 group with a = (high + low) / 2 and b = (high - low) / 2. */
#ifndef WHIT_KERNELS_LEVELS_H
#define WHIT_KERNELS_LEVELS_H

#include "kernels/codec.h"

/* Sets `pair` to the scales a and b of the q2 group with the same levels as an l2 group with the scale bytes u. */
static inline void whit_level_pair(unsigned u, float pair[2])
{
    float high = WHIT_LEVEL_HIGH * whit_level_scale(u), low = (float)whit_level_low(u) * whit_level_scale(u);
    pair[0] = 0.5f * (high + low);
    pair[1] = 0.5f * (high - low);
}
/* Returns the scale bytes whose levels are nearest to the levels of a q2 group with the scales pair[0] = a and pair[1]
 * = b. */
static inline unsigned whit_level_of_pair(const float pair[2])
{
    return whit_level_nearest(pair[0] + pair[1], pair[0] - pair[1]);
}

#endif
