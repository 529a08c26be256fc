/* SPDX-License-Identifier: MIT
 * Implements ranks by OpenMPI. The program is not linked to OpenMPI: it loads libwhit_mpi.so (mpi_shim.c) from the
 * program's folder or ../lib/whit/, and only if mpirun has set its environment. */
#include "ranks/ranks.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/system.h"
#include "ranks/mpi_shim.h"

#define LIBRARY "libwhit_mpi.so"

static void *open_library(void)
{
    char program[4096], path[4096 + 64];
    const char *const places[] = {"", "../lib/whit/"};
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    void *library = NULL;
    program[n > 0 ? n : 0] = 0;
    char *slash = strrchr(program, '/');
    if (slash) slash[1] = 0;
    for (size_t i = 0; !library && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s" LIBRARY, program, places[i]);
        /* RTLD_GLOBAL, because OpenMPI's plug-ins use symbols of the library */
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    }
    return library;
}

bool whit_ranks_are_wanted(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL;
}

struct mpi {
    const whit_mpi_calls *calls;
    uint32_t rank, n_ranks;
    double latency_ns, ns_per_byte; /* simulated network; 0: no simulation */
};

/* Waits until a call that began at `from_ns` has taken as long as it would take on the simulated network; returns
 * `ok`. */
static bool end_call(const struct mpi *mpi, uint64_t from_ns, size_t n_bytes, bool ok)
{
    if (mpi->latency_ns == 0 && mpi->ns_per_byte == 0) return ok;
    const uint64_t until_ns = from_ns + (uint64_t)(mpi->latency_ns + mpi->ns_per_byte * (double)n_bytes);
    while (ok && whit_now_ns() < until_ns) sched_yield();
    return ok;
}

static bool send_bytes(void *user, uint32_t to, const void *data, size_t n_bytes)
{
    const struct mpi *mpi = user;
    return mpi->calls->send(to, data, n_bytes) == 0;
}

static bool receive_bytes(void *user, uint32_t from, void *data, size_t n_bytes)
{
    const struct mpi *mpi = user;
    const uint64_t from_ns = whit_now_ns();
    return end_call(mpi, from_ns, n_bytes, mpi->calls->receive(from, data, n_bytes) == 0);
}

static bool broadcast_bytes(void *user, void *data, size_t n_bytes)
{
    const struct mpi *mpi = user;
    const uint64_t from_ns = whit_now_ns();
    const bool ok = mpi->calls->broadcast(data, n_bytes) == 0;
    /* Rank 0 only sends, and does not wait for the receivers. */
    return mpi->rank ? end_call(mpi, from_ns, n_bytes, ok) : ok;
}

static bool gather_bytes(void *user, void *data, const size_t *offsets, bool to_first)
{
    const struct mpi *mpi = user;
    const uint64_t from_ns = whit_now_ns();
    const size_t n_mine = offsets[mpi->rank + 1] - offsets[mpi->rank];
    const size_t n_sent = n_mine * (to_first ? 1 : mpi->n_ranks - 1);
    const size_t n_received = offsets[mpi->n_ranks] - offsets[0] - n_mine;
    const bool ok = mpi->calls->gather(data, offsets, to_first) == 0;
    if (to_first && mpi->rank) return ok; /* a sender does not wait for the receiver */
    return end_call(mpi, from_ns, n_sent > n_received ? n_sent : n_received, ok);
}

/* Reads the simulated network from WHIT_RANKS_DELAY, see ranks.h. */
static whit_status read_delay(struct mpi *mpi, whit_error *error)
{
    const char *text = getenv("WHIT_RANKS_DELAY");
    char *end;
    if (!text || !*text) return WHIT_OK;
    const double us = strtod(text, &end), gbits = *end == ',' ? strtod(end + 1, &end) : 0;
    if (*end || !(us >= 0 && us <= 1e6) || !(gbits > 0 && gbits <= 1e6))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "WHIT_RANKS_DELAY is MICROSECONDS,GBITS, a latency and a bandwidth: 50,10");
    mpi->latency_ns = us * 1e3;
    mpi->ns_per_byte = 8 / gbits;
    return WHIT_OK;
}

/* Limits the time until all ranks have joined: a thread calls `waits` after WHIT_RANKS_PATIENCE_S unless is_over was
 * set. */
struct watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_over;
    void (*waits)(void);
};

static void *watch_start(void *context)
{
    struct watch *watch = context;
    struct timespec until;
    int cause = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WHIT_RANKS_PATIENCE_S;
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_over && cause == 0) cause = pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
    const bool is_late = !watch->is_over;
    pthread_mutex_unlock(&watch->lock);
    if (is_late) watch->waits();
    return NULL;
}

/* Joins the ranks. If the watching thread cannot be created, `waits` is never called. */
static int open_watched(struct mpi *mpi, void (*waits)(void))
{
    struct watch watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .waits = waits};
    pthread_t thread;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    /* Ranks 0 and 1 both watch, because one of them may be the missing rank. */
    const bool is_first = rank && (!strcmp(rank, "0") || !strcmp(rank, "1"));
    const bool is_watched = is_first && pthread_create(&thread, NULL, watch_start, &watch) == 0;
    const int failed = mpi->calls->open(&mpi->rank, &mpi->n_ranks);
    if (!is_watched) return failed;
    pthread_mutex_lock(&watch.lock);
    watch.is_over = true;
    pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(thread, NULL);
    return failed;
}

whit_status whit_ranks_open(whit_ranks *ranks, void (*waits)(void), whit_error *error)
{
    void *library = open_library();
    const whit_mpi_calls *(*get)(void) = NULL;
    *ranks = (whit_ranks){.n_ranks = 1};
    if (library) *(void **)&get = dlsym(library, "whit_mpi_get");
    if (!get)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         LIBRARY
                         ": neither beside the program nor in lib/whit; install libopenmpi-dev and build again");
    struct mpi *mpi = calloc(1, sizeof *mpi);
    if (!mpi) return whit_fail_memory(error, "the list of machines", sizeof *mpi);
    mpi->calls = get();
    whit_status status = read_delay(mpi, error);
    if (status == WHIT_OK && open_watched(mpi, waits) != 0)
        status = whit_fail(error, WHIT_ERROR_IO, "OpenMPI could not be started for at most %d ranks", WHIT_RANKS_MAX);
    if (status != WHIT_OK) {
        free(mpi);
        return status;
    }
    *ranks = (whit_ranks){.rank = mpi->rank,
                          .n_ranks = mpi->n_ranks,
                          .send = send_bytes,
                          .receive = receive_bytes,
                          .broadcast = broadcast_bytes,
                          .gather = gather_bytes,
                          .user = mpi};
    return WHIT_OK;
}

void whit_ranks_close(whit_ranks *ranks, bool failed)
{
    struct mpi *mpi = ranks->user;
    if (mpi) mpi->calls->close(failed);
    free(mpi);
    ranks->user = NULL;
}
