/* SPDX-License-Identifier: MIT
 * Declares the kernels of quat.inc. */
#ifndef WHIT_KERNELS_QUAT_DECLARE_H
#define WHIT_KERNELS_QUAT_DECLARE_H

#include "kernels/quat/quat.h"

#define WHIT_QUAT(type, op, isa, level, features) whit_quat_##type##_fn whit_quat_##op##_##isa;
#include "kernels/quat/quat.inc"
#undef WHIT_QUAT

#endif
