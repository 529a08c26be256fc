/* SPDX-License-Identifier: MIT
 * Declares rotated matrices: a matrix W (rows, n) is stored as W R^T, with R = H diag(signs) / sqrt(block) for each
 * block of its n inputs, where H is Sylvester's Hadamard matrix. The stored matrix is multiplied by R x, which gives W
 * x. A table of rows R w is rotated back after a look-up. A configuration has one bit for each rotated matrix; the
 * signs of inputs of n elements are the vector "hadamard.N". */
#ifndef WHIT_MODEL_HADAMARD_H
#define WHIT_MODEL_HADAMARD_H

#include <stdint.h>

#define WHIT_HADAMARD_BLOCK_MAX 65536

/* Returns the bit of a matrix, given by its name in a family's program (such as "q"); 0 if it cannot be rotated. */
uint32_t whit_hadamard_bit(const char *weight);

#endif
