/* SPDX-License-Identifier: MIT
 * Declares the selection of kernels for quaternary vectors (base/quat.h), and operations on such vectors by a table
 * that two bytes index. Every level gives the same bits as generic.c. */
#ifndef WHIT_KERNELS_QUAT_QUAT_H
#define WHIT_KERNELS_QUAT_QUAT_H

#include "base/quat.h"
#include "base/status.h"

/* Selects the fastest function of each kind that the CPU and `cap` allow (a level's name as in the environment variable
 * WHIT_CPU; NULL or "": no cap). Returns WHIT_ERROR_ARGUMENT if `cap` is not the name of a level. */
whit_status whit_quat_select(const whit_cpu *cpu, const char *cap, whit_quat_kernels *kernels, whit_error *error);

/* ---- operations by a table that two bytes of four lanes each index ---------------------------- */

/* Computes the table of sums of two bytes with four lanes each: the entry at a * 256 + b is the byte of the sums. A
 * byte has four signs in its low nibble and four extras in its high nibble. */
#define WHIT_QUAT_TABLE_BYTES 65536
void whit_quat_table_add(uint8_t table[WHIT_QUAT_TABLE_BYTES]);
/* Computes out[i] = table[a[i] * 256 + b[i]] for n_bytes bytes; out may be a or b. */
void whit_quat_table_run(const uint8_t *table, uint8_t *out, const uint8_t *a, const uint8_t *b, uint32_t n_bytes);
/* Converts two planes to n_elems / 4 bytes with four lanes each; n_elems is a multiple of 4. */
void whit_quat_table_pack(whit_quat_view a, uint32_t n_elems, uint8_t *out);

#endif
