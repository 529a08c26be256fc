/* SPDX-License-Identifier: MIT
 * Declares fused multiply-add for processors without the instruction. */
#ifndef WHIT_BASE_WINDOWS_FMA_H
#define WHIT_BASE_WINDOWS_FMA_H

float whit_soft_fmaf(float x, float y, float z);
double whit_soft_fma(double x, double y, double z);

#endif
