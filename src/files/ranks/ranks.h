/* SPDX-License-Identifier: MIT
 * Declares ranks by MPI: the processes that mpirun starts. OpenMPI is opened only here, and only under mpirun. */
#ifndef WHIT_RANKS_RANKS_H
#define WHIT_RANKS_RANKS_H

#include "base/ranks.h"
#include "base/status.h"

/* Returns whether mpirun started this process. */
bool whit_ranks_are_wanted(void);
/* Joins the ranks of mpirun by OpenMPI, through a library of whit that is opened only here (mpi.c). Errors: unsupported
 * (no such library), io, argument (an invalid WHIT_RANKS_DELAY).
 *
 * WHIT_RANKS_DELAY="MICROSECONDS,GBITS" makes every call take as long as it would on a network of that latency and
 * bandwidth, for measurements on one machine.
 *
 * The call returns when all ranks have called it. `waits` is called once, on another thread, if that takes longer than
 * WHIT_RANKS_PATIENCE_S, on ranks 0 and 1: mpirun ends the run when a rank fails, but not when one ends well before it
 * has joined the others. */
whit_status whit_ranks_open(whit_ranks *ranks, void (*waits)(void), whit_error *error);
enum { WHIT_RANKS_PATIENCE_S = 30 };
/* Leaves the ranks. `failed`: also ends the other ranks, and does not return if there are any other ranks. */
void whit_ranks_close(whit_ranks *ranks, bool failed);

#endif
