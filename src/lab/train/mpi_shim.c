/* SPDX-License-Identifier: MIT
 * libwhit_mpi.so: OpenMPI's calls for whit, which does not link OpenMPI itself. */
#include "train/mpi_shim.h"

#include <mpi.h>

enum { PIECE_BYTES = 1 << 30 }; /* counts of MPI are ints */

static int open_world(uint32_t *rank, uint32_t *n_ranks)
{
    int level, r, n;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Comm_rank(MPI_COMM_WORLD, &r) != MPI_SUCCESS || MPI_Comm_size(MPI_COMM_WORLD, &n) != MPI_SUCCESS) return 1;
    *rank = (uint32_t)r;
    *n_ranks = (uint32_t)n;
    return 0;
}

static int piece(size_t left)
{
    return left < PIECE_BYTES ? (int)left : PIECE_BYTES;
}

static int send_all(uint32_t to, const void *data, size_t n_bytes)
{
    int status = MPI_SUCCESS;
    for (size_t at = 0; status == MPI_SUCCESS && at < n_bytes; at += PIECE_BYTES)
        status = MPI_Send((const char *)data + at, piece(n_bytes - at), MPI_BYTE, (int)to, 0, MPI_COMM_WORLD);
    return status != MPI_SUCCESS;
}

static int receive_all(uint32_t from, void *data, size_t n_bytes)
{
    int status = MPI_SUCCESS;
    for (size_t at = 0; status == MPI_SUCCESS && at < n_bytes; at += PIECE_BYTES)
        status =
            MPI_Recv((char *)data + at, piece(n_bytes - at), MPI_BYTE, (int)from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return status != MPI_SUCCESS;
}

static int broadcast_all(void *data, size_t n_bytes)
{
    int status = MPI_SUCCESS;
    for (size_t at = 0; status == MPI_SUCCESS && at < n_bytes; at += PIECE_BYTES)
        status = MPI_Bcast((char *)data + at, piece(n_bytes - at), MPI_BYTE, 0, MPI_COMM_WORLD);
    return status != MPI_SUCCESS;
}

static void close_world(bool failed)
{
    int n = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (failed && n > 1) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
}

__attribute__((visibility("default"))) const whit_mpi_calls *whit_mpi_get(void);
const whit_mpi_calls *whit_mpi_get(void)
{
    static const whit_mpi_calls calls = {open_world, send_all, receive_all, broadcast_all, close_world};
    return &calls;
}
