/* SPDX-License-Identifier: MIT
 * Declares the functions that libwhit_mpi.so exports to the program; base/ranks.h describes each. They return 0 on
 * success and another number on failure. */
#ifndef WHIT_RANKS_MPI_SHIM_H
#define WHIT_RANKS_MPI_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct whit_mpi_calls {
    int (*open)(uint32_t *rank, uint32_t *n_ranks);
    int (*send)(uint32_t to, const void *data, size_t n_bytes);
    int (*receive)(uint32_t from, void *data, size_t n_bytes);
    int (*broadcast)(void *data, size_t n_bytes);
    int (*gather)(void *data, const size_t *offsets, bool to_first);
    void (*close)(bool failed);
} whit_mpi_calls;

#endif
