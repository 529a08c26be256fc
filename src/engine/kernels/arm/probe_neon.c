/* SPDX-License-Identifier: MIT
 * Probes the rate of int8 products at the level neon. */
#include "kernels/arm/lanes_neon.inc"

#include "kernels/wide/quads.inc"

#include "kernels/arm/probe.inc"
