/* SPDX-License-Identifier: MIT
 * Models whose matrices are stored rotated: a matrix W (rows, n) is held as W R^T, R = H diag(signs) / sqrt(block) for
 * each block of its n inputs, H Sylvester's Hadamard matrix. Its products are those with R x. A table of rows R w is
 * rotated back after a look-up. A configuration names the matrices by a bit each; signs of inputs of n elements are the
 * vector "hadamard.N". */
#ifndef WHIT_MODEL_HADAMARD_H
#define WHIT_MODEL_HADAMARD_H

#include <stdint.h>

#define WHIT_HADAMARD_BLOCK_MAX 65536

/* Returns the bit of a matrix by its name in a family's program ("q"); 0 if it cannot be rotated. */
uint32_t whit_hadamard_bit(const char *weight);

#endif
