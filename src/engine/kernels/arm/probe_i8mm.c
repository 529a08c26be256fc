/* SPDX-License-Identifier: MIT
 * Probes the rate of int8 products at the level i8mm. */
#include "kernels/arm/lanes_i8mm.inc"

#include "kernels/arm/pairs_i8mm.inc"

#include "kernels/arm/probe.inc"
