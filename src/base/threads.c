/* SPDX-License-Identifier: MIT
 * Implements the worker pool. A job is cut into chunks, and every worker begins with a run of chunks of its own, so
 * that it reads memory from one end to the other. It claims a quarter of the rest of its run at a time, so that claims
 * are few and yet the last ones are small. A worker whose run is empty takes single chunks from the ends of other
 * workers' runs. A worker's run is one 64-bit word:
 *
 *     run = epoch of the job (32 bits) | first chunk (16 bits) | end (16 bits)
 *
 * Claiming a chunk is one compare-and-swap of that word, so a claim can succeed only while its job is running, and only
 * after it has succeeded does a worker read the job's other fields. These fields change only between jobs, that is when
 * no claimed chunk is unfinished: they need no atomics, and a worker that comes late finds empty runs and touches
 * nothing. (At a million jobs per second a 32-bit epoch has the same value again after an hour; no thread needs so long
 * from its load to its swap.)
 *
 * `pending` counts chunks not yet finished; with several clusters it counts unfinished clusters. A thread that finishes
 * chunks subtracts them at once; the word's top bit means that the caller sleeps on it. Workers sleep on `epoch`, which
 * changes with every job, and are counted in `n_asleep`, so that the caller knows when it must wake a worker.
 *
 * Where cores have several last-level caches, each group of workers that share one (a cluster) has a word of its own to
 * wait on and a count of its own chunks, so that only the cluster's last worker to finish writes to a cache line that
 * other clusters read. Runs are assigned in the order of cores, so a node's workers read the same rows of a matrix in
 * each pass. Workers take chunks of other workers first from their own cluster, then from their node.
 *
 * A worker whose core is shared with another busy process is stopped for milliseconds, as a rule inside a chunk, and
 * everyone waits for that chunk. A worker that finds that the caller slept long because of it therefore rests for some
 * time: the pool loses this worker's core, but the other threads no longer wait for it. */
#include "base/threads.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/fpenv.h"
#include "base/mem.h"
#include "base/system.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define CHUNKS_MAX    UINT32_C(0xFFFF)
#define CALLER_SLEEPS UINT32_C(0x80000000)
/* The spin time is longer than the serial work between two steps of a layer, and shorter than a scheduler's time
 * slice. */
#define SPIN_NS         50000
#define PAUSES_PER_LOOK 16
/* If the caller waits for longer than it worked itself, by more than this time, the scheduler has stopped a worker. */
#define PATIENCE_NS       500000
#define REST_PER_LATENESS 16
/* Longest rest of a worker. A process that was stopped (SIGSTOP) seems late by the whole time of the stop, but no
 * scheduler's time slice is longer than this limit. */
#define REST_MAX_NS 100000000
/* Kernels use up to 400 KB of stack; thread-local variables are on it too, 785 KB with ThreadSanitizer. */
#define WORKER_STACK_BYTES (2u << 20)

typedef struct worker {
    _Alignas(64) _Atomic uint64_t run;
    whit_pool *pool;
    pthread_t thread;
    uint32_t index; /* argument `worker` of whit_pool_fn; 0 for the calling thread, which the pool did not start */
    uint32_t cluster;
    uint16_t processor;
} worker;

typedef struct cluster {
    _Alignas(64) _Atomic uint32_t epoch;
    _Atomic uint32_t n_asleep;
    _Alignas(64) _Atomic uint32_t pending; /* unfinished chunks of the cluster's runs; unused in a pool of one
                                            * cluster */
    _Alignas(64) uint32_t begin, end;      /* indices [begin, end) of its workers in whit_pool.workers; fixed at
                                            * open */
    uint32_t node;
} cluster;

struct whit_pool {
    _Alignas(64) _Atomic uint32_t pending;
    _Alignas(64) _Atomic uint32_t stop; /* 1 from the beginning of whit_pool_close on; each worker reads it before each
                                         * job, and resting workers wait on it */
    _Atomic uint64_t late_after_ns;     /* when the caller sleeps: time from which on its wait counts as late */
    /* These members describe the job: the caller writes them before it stores the new runs. */
    _Alignas(64) whit_pool_fn *fn;
    void *context;
    uint32_t n_items, chunk;
    /* The members from here on are fixed at open. */
    uint32_t n_threads, n_started, n_clusters;
    uint32_t caller; /* index of the calling thread's entry in `workers` */
    bool is_pinned;  /* each worker has a core of its own */
    uint64_t spin_ns;
    const whit_allocator *allocator;
    size_t size_bytes;
    cluster *clusters;
    worker workers[]; /* in the order of their cores in the topology */
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* pauses about as long as x86's pause; yield is a nop */
#elif defined(__riscv)
    /* Encodes the instruction `pause`, which is a nop on processors that do not know it. */
    __asm__ volatile(".insn i 0x0f, 0, x0, x0, 0x010" ::: "memory");
#endif
}

static uint64_t run_of(uint32_t epoch, uint32_t first, uint32_t end)
{
    return (uint64_t)epoch << 32 | first << 16 | end;
}

/* Claims chunks [*chunk, *chunk + *n) of the run of `from`: if the run is the claiming worker's own, a quarter of the
 * rest at its beginning, else its last chunk. The result is false if the run is empty. */
static bool claim(worker *from, bool own, uint32_t *chunk, uint32_t *n)
{
    uint64_t run = atomic_load_explicit(&from->run, memory_order_relaxed);
    for (;;) {
        uint32_t first = run >> 16 & CHUNKS_MAX, end = run & CHUNKS_MAX;
        if (first >= end) return false;
        *n = own ? (end - first + 3) / 4 : 1;
        *chunk = own ? first : end - 1;
        uint64_t rest = own ? run + ((uint64_t)*n << 16) : run - 1;
        if (atomic_compare_exchange_weak_explicit(&from->run, &run, rest, memory_order_acquire, memory_order_relaxed))
            return true;
    }
}

/* Counts n chunks of a cluster as finished. If they are the job's last ones and the caller sleeps, wakes the caller and
 * returns by how many ns its wait is late; otherwise returns 0. */
static uint64_t finish_chunks(whit_pool *pool, cluster *of, uint32_t n)
{
    if (pool->n_clusters > 1) {
        if (atomic_fetch_sub_explicit(&of->pending, n, memory_order_acq_rel) != n) return 0;
        n = 1; /* this was the cluster's last chunk: one cluster is finished */
    }
    const uint32_t before = atomic_fetch_sub_explicit(&pool->pending, n, memory_order_acq_rel);
    if (before - n != CALLER_SLEEPS) return 0;
    whit_word_wake(&pool->pending, 1);
    const uint64_t late_after_ns = atomic_load_explicit(&pool->late_after_ns, memory_order_relaxed);
    const uint64_t now_ns = whit_now_ns();
    return now_ns > late_after_ns ? now_ns - late_after_ns : 0;
}

/* Processes chunks from the runs of a cluster's workers until none is left, beginning with the run of workers[place] if
 * it is in the cluster. Returns the number of chunks; *late_ns becomes the result of finish_chunks if there were
 * any. */
static uint32_t work_for(whit_pool *pool, uint32_t place, cluster *of, uint64_t *late_ns)
{
    uint32_t n_done = 0;
    uint32_t from = place >= of->begin && place < of->end ? place : of->begin;
    for (uint32_t i = of->begin, chunk, n; i < of->end; i++, from = from + 1 < of->end ? from + 1 : of->begin)
        while (claim(&pool->workers[from], from == place, &chunk, &n)) {
            uint32_t begin = chunk * pool->chunk, rest = pool->n_items - begin, most = n * pool->chunk;
            pool->fn(pool->context, pool->workers[place].index, begin, begin + (rest < most ? rest : most));
            n_done += n;
        }
    if (n_done) *late_ns = finish_chunks(pool, of, n_done);
    return n_done;
}

/* Processes chunks until none is left: first chunks of the worker's cluster, then of its node, then all others. Returns
 * the number of chunks, all counted as finished; *late_ns becomes the last result of finish_chunks, 0 without
 * chunks. */
static uint32_t work(whit_pool *pool, uint32_t place, uint64_t *late_ns)
{
    const uint32_t own = pool->workers[place].cluster, n_clusters = pool->n_clusters;
    *late_ns = 0;
    uint32_t n_done = work_for(pool, place, &pool->clusters[own], late_ns);
    for (uint32_t is_far = 0; is_far < 2; is_far++)
        for (uint32_t i = 1; i < n_clusters; i++) {
            cluster *of = &pool->clusters[(own + i) % n_clusters];
            if ((of->node != pool->clusters[own].node) == is_far) n_done += work_for(pool, place, of, late_ns);
        }
    return n_done;
}

/* Waits until the cluster's epoch differs from `epoch`, because of a new job or the end of the pool; spins first, then
 * sleeps. */
static void worker_wait(whit_pool *pool, cluster *of, uint32_t epoch)
{
    uint64_t until_ns = whit_now_ns() + pool->spin_ns;
    do {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(&of->epoch, memory_order_acquire) != epoch) return;
            relax();
        }
    } while (whit_now_ns() < until_ns);
    /* The worker announces its sleep and then looks again; the caller publishes and then looks for the announcement. So
     * no wake-up is missed. */
    atomic_fetch_add(&of->n_asleep, 1);
    if (atomic_load(&of->epoch) == epoch) whit_word_wait(&of->epoch, epoch, WHIT_NO_TIMEOUT);
    atomic_fetch_sub(&of->n_asleep, 1);
}

static void worker_rest(whit_pool *pool, uint64_t late_ns)
{
    uint64_t rest_ns = late_ns < REST_MAX_NS / REST_PER_LATENESS ? REST_PER_LATENESS * late_ns : REST_MAX_NS;
    whit_word_wait(&pool->stop, 0, rest_ns);
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    whit_pool *pool = self->pool;
    char name[16];
    snprintf(name, sizeof name, "whit-%u", self->index);
    whit_thread_name(name);
    cluster *of = &pool->clusters[self->cluster];
    const uint32_t place = (uint32_t)(self - pool->workers);
    whit_fpenv_enter(); /* a new thread inherits the rounding and flushing modes of its creator */
    for (;;) {
        /* The epoch is read first: the last epoch is published after `stop`, and nobody would wake a thread that
         * waits for a later one. */
        uint32_t epoch = atomic_load_explicit(&of->epoch, memory_order_acquire);
        if (atomic_load_explicit(&pool->stop, memory_order_acquire)) break;
        uint64_t late_ns;
        work(pool, place, &late_ns);
        if (late_ns > 0)
            worker_rest(pool, late_ns);
        else
            worker_wait(pool, of, epoch);
    }
    return NULL;
}

/* Returns the first chunk of the run of workers[place]; the run ends before the first chunk of the next worker. */
static uint32_t first_chunk(const whit_pool *pool, uint32_t n_chunks, uint32_t place)
{
    return (uint32_t)((uint64_t)n_chunks * place / pool->n_threads);
}

/* Divides a job's chunks into one run per worker. */
static void share_chunks(whit_pool *pool, uint32_t epoch, uint32_t n_chunks)
{
    uint32_t pending = n_chunks;
    if (pool->n_clusters > 1) { /* all counts are set before any run, because workers may take chunks as soon as a
                                 * run is set */
        pending = 0;
        for (uint32_t i = 0; i < pool->n_clusters; i++) {
            cluster *of = &pool->clusters[i];
            const uint32_t n = first_chunk(pool, n_chunks, of->end) - first_chunk(pool, n_chunks, of->begin);
            atomic_store_explicit(&of->pending, n, memory_order_relaxed);
            pending += n > 0;
        }
    }
    atomic_store_explicit(&pool->pending, pending, memory_order_relaxed);
    for (uint32_t i = 0, first = 0, end; i < pool->n_threads; i++, first = end) {
        end = first_chunk(pool, n_chunks, i + 1);
        atomic_store_explicit(&pool->workers[i].run, run_of(epoch, first, end), memory_order_release);
    }
}

/* Announces a new job to every cluster, and wakes up to as many sleeping workers of a cluster as it has chunks, one
 * fewer in the caller's cluster. */
static void publish(whit_pool *pool, uint32_t epoch, uint32_t n_chunks)
{
    for (uint32_t i = 0; i < pool->n_clusters; i++) {
        cluster *of = &pool->clusters[i];
        atomic_store(&of->epoch, epoch);
        if (!atomic_load(&of->n_asleep)) continue;
        const uint32_t n = first_chunk(pool, n_chunks, of->end) - first_chunk(pool, n_chunks, of->begin);
        const bool has_caller = pool->workers[pool->caller].cluster == i;
        if (n > has_caller) whit_word_wake(&of->epoch, n - has_caller);
    }
}

/* Waits for the chunks that workers have begun, when the caller has no chunk left. `own_from_ns` is the time when the
 * caller began its own chunks, 0 if it came too late to take any. */
static void caller_wait(whit_pool *pool, uint64_t own_from_ns)
{
    uint64_t from_ns = 0;
    for (;;) {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(&pool->pending, memory_order_acquire) == 0) return;
            relax();
        }
        uint64_t now_ns = whit_now_ns();
        if (from_ns == 0) from_ns = now_ns;
        if (now_ns >= from_ns + pool->spin_ns) break;
    }
    uint64_t late_after_ns = own_from_ns ? from_ns + (from_ns - own_from_ns) + PATIENCE_NS : UINT64_MAX;
    atomic_store_explicit(&pool->late_after_ns, late_after_ns, memory_order_relaxed);
    uint32_t pending = atomic_fetch_or(&pool->pending, CALLER_SLEEPS) | CALLER_SLEEPS;
    while (pending != CALLER_SLEEPS) {
        whit_word_wait(&pool->pending, pending, WHIT_NO_TIMEOUT);
        pending = atomic_load_explicit(&pool->pending, memory_order_acquire);
    }
}

void whit_pool_part_caller(const whit_pool *pool)
{
    if (!pool || !pool->is_pinned) return;
    const unsigned here = whit_thread_processor(), place = pool->workers[pool->caller].processor;
    for (uint32_t i = 0; i < pool->n_threads && here != place; i++)
        if (i != pool->caller && pool->workers[i].processor == here) {
            whit_thread_move(place);
            break;
        }
}

void whit_pool_run(whit_pool *pool, whit_pool_fn *fn, void *context, uint32_t n_items, uint32_t chunk)
{
    if (n_items == 0) return;
    uint32_t n_threads = whit_pool_size(pool);
    if (chunk == 0) chunk = n_items / (8 * n_threads) + 1;
    if (n_threads == 1 || n_items <= chunk) {
        fn(context, 0, 0, n_items);
        return;
    }
    while ((n_items - 1) / chunk >= CHUNKS_MAX) chunk *= 2; /* the number of chunks must fit a run's 16-bit fields */
    uint32_t n_chunks = (n_items - 1) / chunk + 1;
    uint32_t epoch = atomic_load_explicit(&pool->clusters[0].epoch, memory_order_relaxed) + 1;
    pool->fn = fn;
    pool->context = context;
    pool->n_items = n_items;
    pool->chunk = chunk;
    share_chunks(pool, epoch, n_chunks);
    publish(pool, epoch, n_chunks);
    uint64_t from_ns = whit_now_ns(), unused;
    uint32_t n_own = work(pool, pool->caller, &unused);
    caller_wait(pool, n_own ? from_ns : 0);
}

/* ---- jobs that can fail ----------------------------------------------------------------------- */

typedef struct trial {
    whit_pool_item_fn *fn;
    void *context;
    _Atomic uint32_t failed; /* the lowest item known to fail; UINT32_MAX: no item */
    pthread_mutex_t lock;    /* protects the members after it, and changes of `failed` */
    whit_status status;
    whit_error *error;
} trial;

static void try_items(void *context, uint32_t worker_index, uint32_t begin, uint32_t end)
{
    trial *self = context;
    for (uint32_t i = begin; i < end && i < atomic_load_explicit(&self->failed, memory_order_relaxed); i++) {
        whit_error error;
        whit_status status = self->fn(self->context, worker_index, i, &error);
        if (status == WHIT_OK) continue;
        pthread_mutex_lock(&self->lock);
        if (i < atomic_load_explicit(&self->failed, memory_order_relaxed)) {
            atomic_store_explicit(&self->failed, i, memory_order_relaxed);
            self->status = status;
            if (self->error) *self->error = error;
        }
        pthread_mutex_unlock(&self->lock);
    }
}

whit_status whit_pool_try(whit_pool *pool, whit_pool_item_fn *fn, void *context, uint32_t n_items, uint32_t chunk,
                          whit_error *error)
{
    trial self = {
        .fn = fn, .context = context, .failed = UINT32_MAX, .lock = PTHREAD_MUTEX_INITIALIZER, .error = error};
    whit_pool_run(pool, try_items, &self, n_items, chunk);
    return self.status;
}

/* ---- opening and closing ------------------------------------------------------------------------ */

/* Assigns each thread a core and the core's cluster. */
static void place_workers(whit_pool *pool, const whit_topology *topology, unsigned callers_core)
{
    whit_topology_core cores[WHIT_CPU_MAX_CORES];
    pool->caller = whit_topology_choose(topology, callers_core, pool->n_threads, cores);
    pool->clusters[0].node = cores[0].node;
    for (uint32_t i = 0; i < pool->n_threads; i++) {
        if (i && cores[i].cluster != cores[i - 1].cluster) {
            pool->clusters[pool->n_clusters - 1].end = i;
            pool->clusters[pool->n_clusters++] = (cluster){.begin = i, .node = cores[i].node};
        }
        pool->workers[i].processor = cores[i].processor;
        pool->workers[i].cluster = pool->n_clusters - 1;
    }
}

static void pin_workers(whit_pool *pool)
{
    for (uint32_t i = 0; i < pool->n_threads; i++)
        if (i != pool->caller) whit_thread_pin(pool->workers[i].thread, pool->workers[i].processor);
}

/* Blocks all signals in workers, so that other threads of the program receive them; signals for faults stay unblocked,
 * because they are sent to the thread that causes them. */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

static int start_workers(whit_pool *pool)
{
    pthread_attr_t attributes;
    int code = pthread_attr_init(&attributes);
    if (code != 0) return code;
    pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
    sigset_t before;
    block_signals(&before);
    for (uint32_t i = 0; i < pool->n_threads && code == 0; i++) {
        worker *next = &pool->workers[i];
        if (i == pool->caller) continue;
        next->pool = pool;
        next->index = pool->n_started + 1;
        code = pthread_create(&next->thread, &attributes, worker_main, next);
        if (code == 0) pool->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return code;
}

/* Opens a pool on the cores of `topology`; with NULL, a pool of one cluster whose threads are not pinned. */
static whit_status open_pool(uint32_t n_threads, uint32_t n_cores, const whit_topology *topology, unsigned callers_core,
                             const whit_allocator *allocator, whit_pool **pool, whit_error *error)
{
    const uint32_t n_clusters = topology ? topology->n_clusters : 1;
    const size_t workers_bytes = sizeof(whit_pool) + n_threads * sizeof(worker);
    const size_t size_bytes = workers_bytes + n_clusters * sizeof(cluster);
    whit_pool *self = whit_zalloc(allocator, size_bytes);
    if (!self) return whit_fail_memory(error, "the thread pool", size_bytes);
    self->allocator = allocator;
    self->size_bytes = size_bytes;
    self->n_threads = n_threads;
    self->clusters = (cluster *)((char *)self + workers_bytes);
    self->n_clusters = 1;
    if (topology) place_workers(self, topology, callers_core);
    self->clusters[self->n_clusters - 1].end = n_threads;
    /* With more threads than cores no thread spins, because it would take the core from a working thread. */
    self->spin_ns = n_threads <= n_cores ? SPIN_NS : 0;
    int code = start_workers(self);
    if (code != 0) {
        uint32_t n_started = self->n_started;
        whit_pool_close(self);
        return whit_fail(error, WHIT_ERROR_MEMORY, "cannot start thread %u of %u: %s; use fewer threads", n_started + 2,
                         n_threads, strerror(code));
    }
    if (topology) pin_workers(self);
    self->is_pinned = topology != NULL;
    *pool = self;
    return WHIT_OK;
}

static whit_status check_threads(uint32_t n_threads, whit_error *error)
{
    if (n_threads <= WHIT_POOL_THREADS_MAX) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT, "%u threads: at most %d are possible", n_threads,
                     WHIT_POOL_THREADS_MAX);
}

whit_status whit_pool_open(uint32_t n_threads, const whit_allocator *allocator, whit_pool **pool, whit_error *error)
{
    *pool = NULL;
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    if (n_threads == 0) n_threads = cpu.n_threads < WHIT_POOL_THREADS_MAX ? cpu.n_threads : WHIT_POOL_THREADS_MAX;
    WHIT_TRY(check_threads(n_threads, error));
    if (n_threads == 1 || n_threads > cpu.n_cores)
        return open_pool(n_threads, cpu.n_cores, NULL, 0, allocator, pool, error);
    whit_topology topology;
    whit_topology_find(&cpu, &topology);
    /* The topology identifies a core by a processor that this process may use, which need not be the core's lowest
     * one. */
    unsigned core = whit_processor_core(whit_thread_processor());
    for (uint32_t i = 0; i < topology.n_cores; i++)
        if (whit_processor_core(topology.cores[i].processor) == core) {
            core = topology.cores[i].processor;
            break;
        }
    return open_pool(n_threads, cpu.n_cores, &topology, core, allocator, pool, error);
}

whit_status whit_pool_open_on(uint32_t n_threads, const whit_topology *topology, unsigned callers_core,
                              const whit_allocator *allocator, whit_pool **pool, whit_error *error)
{
    *pool = NULL;
    WHIT_TRY(check_threads(n_threads, error));
    if (!n_threads || n_threads > topology->n_cores)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%u threads cannot run on %u cores: give at least one thread, and at most one for each core",
                         n_threads, topology->n_cores);
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    return open_pool(n_threads, cpu.n_cores, topology, callers_core, allocator, pool, error);
}

uint32_t whit_pool_size(const whit_pool *pool)
{
    return pool ? pool->n_threads : 1;
}

void whit_pool_close(whit_pool *pool)
{
    if (!pool) return;
    atomic_store(&pool->stop, 1);
    whit_word_wake(&pool->stop, WHIT_POOL_THREADS_MAX);
    publish(pool, atomic_load(&pool->clusters[0].epoch) + 1, CHUNKS_MAX); /* wakes all workers */
    for (uint32_t i = 0, n = 0; n < pool->n_started; i++) {
        if (i == pool->caller) continue;
        pthread_join(pool->workers[i].thread, NULL);
        n++;
    }
    whit_free(pool->allocator, pool, pool->size_bytes);
}
