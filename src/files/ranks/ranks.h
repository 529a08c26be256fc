/* SPDX-License-Identifier: MIT
 * Opens ranks by MPI: the processes that mpirun starts. OpenMPI is loaded only by whit_ranks_open, which the program
 * calls only under mpirun. */
#ifndef WHIT_RANKS_RANKS_H
#define WHIT_RANKS_RANKS_H

#include "base/ranks.h"
#include "base/status.h"

/* Returns whether mpirun started this process. */
bool whit_ranks_are_wanted(void);
/* Joins the ranks of mpirun by OpenMPI; blocks until all ranks have called it. Errors: unsupported (whit's library for
 * OpenMPI is missing, see mpi.c), io, argument (an invalid WHIT_RANKS_DELAY).
 *
 * WHIT_RANKS_DELAY="MICROSECONDS,GBITS" makes every call that receives data take at least as long as it would on a
 * network of that latency and bandwidth, for measurements on one machine.
 *
 * If joining takes longer than WHIT_RANKS_PATIENCE_S, `waits` is called once, on another thread, on ranks 0 and 1, to
 * print a warning: mpirun ends the run when a rank fails, but not when a rank exits successfully before it has
 * joined. */
whit_status whit_ranks_open(whit_ranks *ranks, void (*waits)(void), whit_error *error);
enum { WHIT_RANKS_PATIENCE_S = 30 };
/* Leaves the ranks. With `failed` it aborts the other ranks too, and does not return if there are any. */
void whit_ranks_close(whit_ranks *ranks, bool failed);

#endif
