/* SPDX-License-Identifier: MIT
 * Probes the rate of int8 products at the level dotprod. */
#include "kernels/arm/lanes_dotprod.inc"

#include "kernels/wide/quads.inc"

#include "kernels/arm/probe.inc"
