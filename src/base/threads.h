/* SPDX-License-Identifier: MIT
 * Declares the worker pool of the token loop: it runs a parallel `for` over items in small chunks.
 *
 * A pool belongs to one calling thread at a time, which takes part as worker 0. Every worker begins
 * with a run of chunks of its own, in order and several at a time, and then takes from the others',
 * so a stolen core costs its share and no more: the caller waits only for chunks that a worker has
 * begun, never for a worker that has not woken. Waiting threads spin for some tens of microseconds
 * and then sleep; while nobody sleeps a run makes no system call.
 * On several clusters of cores (topology.h) each waits on lines of its own.
 * After whit_pool_open nothing is allocated. */
#ifndef WHIT_BASE_THREADS_H
#define WHIT_BASE_THREADS_H

#include "base/status.h"
#include "base/topology.h"

/* Processes items [begin, end). `worker` is below whit_pool_size and selects a scratch buffer per worker. */
typedef void whit_pool_fn(void *context, uint32_t worker, uint32_t begin, uint32_t end);

typedef struct whit_pool whit_pool;

enum { WHIT_POOL_THREADS_MAX = 1024 };

/* Starts n_threads - 1 workers (0 threads: one per physical core of the affinity mask); more
 * threads than cores is allowed. Workers are pinned to physical cores of their own where there are
 * enough, those nearest to the caller's present one; SMT siblings stay free. They run with the
 * default floating-point environment and take no asynchronous signals. A thread that cannot be
 * started is WHIT_ERROR_MEMORY, and then all are ended. */
whit_status whit_pool_open(uint32_t n_threads, const whit_allocator *allocator, whit_pool **pool, whit_error *error);
/* Opens a pool of 1 to topology->n_cores threads as if the machine had this topology, and the caller ran on the core of
 * logical processor `callers_core`; no thread is pinned to a processor that does not exist. */
whit_status whit_pool_open_on(uint32_t n_threads, const whit_topology *topology, unsigned callers_core,
                              const whit_allocator *allocator, whit_pool **pool, whit_error *error);
/* Returns the number of threads, the caller included; 1 for NULL. */
uint32_t whit_pool_size(const whit_pool *pool);
/* Moves the calling thread to the core that is kept for the caller if it runs on a worker's. The scheduler leaves both
 * there while other threads keep the remaining cores busy, and then every job takes twice its time. */
void whit_pool_part_caller(const whit_pool *pool);
/* Runs fn over [0, n_items) in chunks of `chunk` items (0: about eight chunks per thread), one or several of them a
 * call, and returns when all are done; everything fn wrote is then visible to the caller. It is not reentrant. A NULL
 * pool runs on the caller alone. */
void whit_pool_run(whit_pool *pool, whit_pool_fn *fn, void *context, uint32_t n_items, uint32_t chunk);

/* Processes one item of a job that can fail. */
typedef whit_status whit_pool_item_fn(void *context, uint32_t worker, uint32_t item, whit_error *error);
/* Runs such a job as whit_pool_run does, and returns the status and error of the first failed item by number, so that
 * the result does not depend on the threads; later items may not have run. */
whit_status whit_pool_try(whit_pool *pool, whit_pool_item_fn *fn, void *context, uint32_t n_items, uint32_t chunk,
                          whit_error *error);
void whit_pool_close(whit_pool *pool);

#endif
