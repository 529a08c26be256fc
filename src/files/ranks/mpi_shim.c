/* SPDX-License-Identifier: MIT
 * Calls OpenMPI for whit. This file becomes libwhit_mpi.so, which is linked to OpenMPI, so that whit itself is not. */
#include "ranks/mpi_shim.h"

#include "base/ranks.h"

#include <mpi.h>
#include <sched.h>
#include <time.h>

enum {
    PIECE_BYTES = 1 << 30, /* limit of one message, since MPI counts bytes by int */
    /* Broadcasts up to this size are sent to each rank directly, which takes one latency; larger ones use MPI's
     * tree. */
    SMALL_BYTES = 1 << 16,
    SPINS = 200,    /* tests of a request before each further test yields the CPU */
    YIELDS = 100000 /* tests before the wait sleeps between tests, since a rank may wait long for a user's next line */
};

static int my_rank, n_world;

static int open_world(uint32_t *rank, uint32_t *n_ranks)
{
    int level;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (level < MPI_THREAD_SERIALIZED || MPI_Comm_rank(MPI_COMM_WORLD, &my_rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &n_world) != MPI_SUCCESS || n_world > WHIT_RANKS_MAX)
        return 1;
    *rank = (uint32_t)my_rank;
    *n_ranks = (uint32_t)n_world;
    return 0;
}

/* Waits until all requests are complete, and lets other ranks on the same machine use the CPU meanwhile. */
static int wait_all(MPI_Request *requests, int n)
{
    const struct timespec pause = {.tv_nsec = 200000};
    int are_done = 0;
    for (int i = 0; !are_done; i++) {
        if (MPI_Testall(n, requests, &are_done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) return 1;
        if (are_done || i < SPINS) continue;
        if (i < YIELDS) {
            sched_yield();
        } else {
            nanosleep(&pause, NULL);
            i = YIELDS;
        }
    }
    return 0;
}

static int piece_of(size_t left)
{
    return left < PIECE_BYTES ? (int)left : PIECE_BYTES;
}

static int send_all(uint32_t to, const void *data, size_t n_bytes)
{
    int status = 0;
    for (size_t at = 0; !status && at < n_bytes; at += PIECE_BYTES) {
        MPI_Request request;
        status = MPI_Isend((const char *)data + at, piece_of(n_bytes - at), MPI_BYTE, (int)to, 0, MPI_COMM_WORLD,
                           &request) != MPI_SUCCESS ||
            wait_all(&request, 1);
    }
    return status;
}

static int receive_all(uint32_t from, void *data, size_t n_bytes)
{
    int status = 0;
    for (size_t at = 0; !status && at < n_bytes; at += PIECE_BYTES) {
        MPI_Request request;
        status = MPI_Irecv((char *)data + at, piece_of(n_bytes - at), MPI_BYTE, (int)from, 0, MPI_COMM_WORLD,
                           &request) != MPI_SUCCESS ||
            wait_all(&request, 1);
    }
    return status;
}

static int broadcast_small(void *data, int n_bytes)
{
    MPI_Request requests[WHIT_RANKS_MAX];
    if (my_rank) return receive_all(0, data, (size_t)n_bytes);
    for (int r = 1; r < n_world; r++)
        if (MPI_Isend(data, n_bytes, MPI_BYTE, r, 0, MPI_COMM_WORLD, &requests[r - 1]) != MPI_SUCCESS) return 1;
    return wait_all(requests, n_world - 1);
}

static int broadcast_all(void *data, size_t n_bytes)
{
    int status = 0;
    if (n_bytes <= SMALL_BYTES) return broadcast_small(data, (int)n_bytes);
    for (size_t at = 0; !status && at < n_bytes; at += PIECE_BYTES) {
        MPI_Request request;
        status = MPI_Ibcast((char *)data + at, piece_of(n_bytes - at), MPI_BYTE, 0, MPI_COMM_WORLD, &request) !=
                MPI_SUCCESS ||
            wait_all(&request, 1);
    }
    return status;
}

/* Exchanges the pieces of all ranks. All messages are in transit at the same time, which takes one latency, and each
 * piece is sent directly to its receiver. */
static int gather_all(void *data, const size_t *offsets, bool to_first)
{
    MPI_Request requests[2 * WHIT_RANKS_MAX];
    int n = 0;
    for (int r = 0; r < n_world; r++) {
        if (offsets[r + 1] - offsets[r] > PIECE_BYTES) return 1;
        if (r == my_rank || offsets[r + 1] == offsets[r] || (to_first && my_rank)) continue;
        if (MPI_Irecv((char *)data + offsets[r], (int)(offsets[r + 1] - offsets[r]), MPI_BYTE, r, 0, MPI_COMM_WORLD,
                      &requests[n++]) != MPI_SUCCESS)
            return 1;
    }
    const size_t mine = offsets[my_rank], n_mine = offsets[my_rank + 1] - mine;
    /* Each rank begins with another receiver, so that no receiver is flooded. */
    for (int k = 1; k < n_world && n_mine; k++) {
        const int to = (my_rank + k) % n_world;
        if (to_first && to) continue;
        if (MPI_Isend((const char *)data + mine, (int)n_mine, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[n++]) !=
            MPI_SUCCESS)
            return 1;
    }
    return wait_all(requests, n);
}

static void close_world(bool failed)
{
    if (failed && n_world > 1) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
}

__attribute__((visibility("default"))) const whit_mpi_calls *whit_mpi_get(void);
const whit_mpi_calls *whit_mpi_get(void)
{
    static const whit_mpi_calls calls = {open_world, send_all, receive_all, broadcast_all, gather_all, close_world};
    return &calls;
}
