/* SPDX-License-Identifier: MIT
 * Ranks by OpenMPI. The program does not link it: calls go through libwhit_mpi.so (mpi_shim.c), which is looked for
 * beside the program and in lib/whit, and opened where mpirun has set its environment. */
#include "train/ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/mpi_shim.h"

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
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE); /* OpenMPI's plug-ins need its symbols */
    }
    return library;
}

bool whit_ranks_are_wanted(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL;
}

static bool send_bytes(void *user, uint32_t to, const void *data, size_t n_bytes)
{
    return ((const whit_mpi_calls *)user)->send(to, data, n_bytes) == 0;
}

static bool receive_bytes(void *user, uint32_t from, void *data, size_t n_bytes)
{
    return ((const whit_mpi_calls *)user)->receive(from, data, n_bytes) == 0;
}

static bool broadcast_bytes(void *user, void *data, size_t n_bytes)
{
    return ((const whit_mpi_calls *)user)->broadcast(data, n_bytes) == 0;
}

whit_status whit_ranks_open(whit_ranks *ranks, whit_error *error)
{
    void *library = open_library();
    const whit_mpi_calls *(*get)(void) = NULL;
    *ranks = (whit_ranks){.n_ranks = 1};
    if (library) *(void **)&get = dlsym(library, "whit_mpi_get");
    if (!get)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         LIBRARY ": neither beside the program nor in lib/whit; without it training knows no ranks");
    const whit_mpi_calls *calls = get();
    if (calls->open(&ranks->rank, &ranks->n_ranks) != 0)
        return whit_fail(error, WHIT_ERROR_IO, "OpenMPI could not be started");
    ranks->send = send_bytes;
    ranks->receive = receive_bytes;
    ranks->broadcast = broadcast_bytes;
    ranks->user = (void *)(uintptr_t)calls;
    return WHIT_OK;
}

void whit_ranks_close(whit_ranks *ranks, bool failed)
{
    if (ranks->user) ((const whit_mpi_calls *)ranks->user)->close(failed);
    ranks->user = NULL;
}
