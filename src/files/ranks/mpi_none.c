/* SPDX-License-Identifier: MIT
 * Replaces mpi.c in builds without OpenMPI: the program computes in one process, and opening ranks under mpirun
 * fails. */
#include "ranks/ranks.h"

#include <stdlib.h>

bool whit_ranks_are_wanted(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL;
}

whit_status whit_ranks_open(whit_ranks *ranks, void (*waits)(void), whit_error *error)
{
    (void)waits;
    *ranks = (whit_ranks){.n_ranks = 1};
    return whit_fail(
        error, WHIT_ERROR_UNSUPPORTED,
        "mpirun started this program, which was built without OpenMPI: install libopenmpi-dev and build it "
        "again");
}

void whit_ranks_close(whit_ranks *ranks, bool failed)
{
    (void)ranks, (void)failed;
}
