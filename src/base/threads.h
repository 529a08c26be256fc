/* SPDX-License-Identifier: MIT
 * Declares the worker pool of the token loop: it runs a parallel `for` over items in small chunks.
 *
 * A pool belongs to one calling thread at a time, which takes part as worker 0. Every worker begins with a run of
 * chunks of its own, in order and several at a time, and then takes from the others', so a core that another process
 * occupies costs only its own share: the caller waits only for chunks that a worker has begun, never for a worker that
 * has not woken. Waiting threads spin for some tens of microseconds and then sleep; while no thread sleeps,
 * whit_pool_run makes no system call. With several clusters of cores (topology.h) each cluster waits on cache lines of
 * its own. After whit_pool_open no memory is allocated. */
#ifndef WHIT_BASE_THREADS_H
#define WHIT_BASE_THREADS_H

#include "base/status.h"
#include "base/topology.h"

/* Processes items [begin, end). `worker` is below whit_pool_size and differs between concurrent calls, so it can select
 * a scratch buffer. */
typedef void whit_pool_fn(void *context, uint32_t worker, uint32_t begin, uint32_t end);

typedef struct whit_pool whit_pool;

enum { WHIT_POOL_THREADS_MAX = 1024 };

/* Opens a pool of n_threads threads: the caller and n_threads - 1 workers. 0 means one thread per physical core that
 * the process may use, at most its CPU quota; more threads than cores are allowed, up to WHIT_POOL_THREADS_MAX. If
 * there are enough cores, each worker is pinned to its own physical core, near the caller's present one, and SMT
 * siblings stay free. Workers run with the default floating-point environment and receive no asynchronous signals. If a
 * thread cannot be started, all are ended and the result is WHIT_ERROR_MEMORY. */
whit_status whit_pool_open(uint32_t n_threads, const whit_allocator *allocator, whit_pool **pool, whit_error *error);
/* Opens a pool of 1 to topology->n_cores threads as if the machine had this topology and the caller ran on the core of
 * logical processor `callers_core`. Pinning to a processor that does not exist has no effect. */
whit_status whit_pool_open_on(uint32_t n_threads, const whit_topology *topology, unsigned callers_core,
                              const whit_allocator *allocator, whit_pool **pool, whit_error *error);
/* Returns the number of threads, including the caller; 1 for NULL. */
uint32_t whit_pool_size(const whit_pool *pool);
/* If the pool is pinned and the calling thread runs on a worker's core, moves it to the core that is reserved for the
 * caller. The scheduler would leave both threads on one core while other threads keep the remaining cores busy, and
 * every job would take twice its time. */
void whit_pool_part_caller(const whit_pool *pool);
/* Runs fn over [0, n_items) in chunks of `chunk` items (0: about eight chunks per thread; more items if there would be
 * more than 65,535 chunks), one or several chunks per call, and returns when all items are done; everything that fn
 * wrote is then visible to the caller. fn must not call whit_pool_run with the same pool. With pool NULL the caller
 * processes all items. */
void whit_pool_run(whit_pool *pool, whit_pool_fn *fn, void *context, uint32_t n_items, uint32_t chunk);

/* Processes one item of a job that can fail. */
typedef whit_status whit_pool_item_fn(void *context, uint32_t worker, uint32_t item, whit_error *error);
/* Runs fn for items [0, n_items) like whit_pool_run. Returns WHIT_OK, or the status and error of the failed item with
 * the lowest number, so that the result does not depend on the threads; items after it may not have run. */
whit_status whit_pool_try(whit_pool *pool, whit_pool_item_fn *fn, void *context, uint32_t n_items, uint32_t chunk,
                          whit_error *error);
void whit_pool_close(whit_pool *pool);

#endif
