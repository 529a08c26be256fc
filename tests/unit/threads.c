/* SPDX-License-Identifier: MIT
 * Tests the thread pool: every item runs once, many tiny jobs, sleeping workers, more threads than cores, a core
 * that another thread uses, and the floating-point environment. */
#include "test.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/system.h"
#include "base/threads.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { ITEMS_MAX = 5000 };

typedef struct job {
    uint32_t n_items, chunk, n_workers;
    uint64_t salt;
    uint64_t out[ITEMS_MAX]; /* not atomic, so that TSan sees a missing order */
    bool bad_range;
} job;

static void fill(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    job *self = context;
    if (worker >= self->n_workers || begin >= end || end > self->n_items) self->bad_range = true;
    for (uint32_t i = begin; i < end; i++) self->out[i] += self->salt + i;
}

static void check_job(whit_pool *pool, job *self, uint32_t n_items, uint32_t chunk, uint64_t salt)
{
    self->n_items = n_items;
    self->chunk = chunk;
    self->n_workers = whit_pool_size(pool);
    self->salt = salt;
    memset(self->out, 0, n_items * sizeof self->out[0]);
    whit_pool_run(pool, fill, self, n_items, chunk);
    assert_false(self->bad_range);
    for (uint32_t i = 0; i < n_items; i++)
        if (self->out[i] != salt + i) fail_msg("item %u of %u ran wrongly", i, n_items);
}

static void every_item_runs_once(void **state)
{
    (void)state;
    job *self = calloc(1, sizeof *self);
    whit_rng rng = {.state = 1};
    for (uint32_t n_threads = 1; n_threads <= 9; n_threads += 2) {
        whit_error error;
        whit_pool *pool = NULL;
        assert_ok(whit_pool_open(n_threads, NULL, &pool, &error), error);
        assert_int_equal(whit_pool_size(pool), n_threads);
        for (int i = 0; i < (tests_are_brief() ? 100 : 2000); i++) {
            uint32_t n_items = (uint32_t)whit_rng_below(&rng, i % 20 ? 40 : ITEMS_MAX);
            check_job(pool, self, n_items, (uint32_t)whit_rng_below(&rng, 9), whit_rng_next(&rng));
        }
        whit_pool_close(pool);
    }
    check_job(NULL, self, 100, 7, 3);
    whit_pool_close(NULL);
    free(self);
}

/* A job in which item `from` and every third one after it fail. */
typedef struct failing {
    atomic_uint n_done;
    uint32_t from;
} failing;

static whit_status fail_some(void *context, uint32_t worker, uint32_t item, whit_error *error)
{
    failing *self = context;
    (void)worker;
    atomic_fetch_add(&self->n_done, 1);
    if (item < self->from || (item - self->from) % 3) return WHIT_OK;
    return whit_fail(error, item % 2 ? WHIT_ERROR_IO : WHIT_ERROR_NUMERIC, "item %u", item);
}

static void the_first_failure_is_told(void **state)
{
    (void)state;
    whit_rng rng = {.state = 2};
    for (uint32_t n_threads = 1; n_threads <= 5; n_threads++) {
        whit_error error;
        whit_pool *pool = NULL;
        assert_ok(whit_pool_open(n_threads, NULL, &pool, &error), error);
        for (int i = 0; i < (tests_are_brief() ? 50 : 1000); i++) {
            const uint32_t n_items = (uint32_t)whit_rng_below(&rng, 200), chunk = (uint32_t)whit_rng_below(&rng, 9);
            failing self = {.from = (uint32_t)whit_rng_below(&rng, 200)};
            const bool fails = self.from < n_items;
            const whit_status expected = !fails ? WHIT_OK : self.from % 2 ? WHIT_ERROR_IO : WHIT_ERROR_NUMERIC;
            char message[32];
            snprintf(message, sizeof message, "item %u", self.from);
            assert_int_equal(whit_pool_try(pool, fail_some, &self, n_items, chunk, i % 4 ? &error : NULL), expected);
            if (fails && i % 4) assert_string_equal(error.message, message);
            if (!fails) assert_int_equal(atomic_load(&self.n_done), n_items);
            if (n_threads == 1 && fails) assert_int_equal(atomic_load(&self.n_done), self.from + 1);
        }
        whit_pool_close(pool);
    }
}

static void sleeping_workers_wake(void **state)
{
    (void)state;
    job *self = calloc(1, sizeof *self);
    whit_error error;
    whit_pool *pool = NULL;
    assert_ok(whit_pool_open(2, NULL, &pool, &error), error);
    for (int i = 0; i < (tests_are_brief() ? 50 : 300); i++) {
        usleep((useconds_t)(i % 7) * 30); /* around the length of the spin */
        check_job(pool, self, 64, 1, (uint64_t)i);
    }
    whit_pool_close(pool);
    free(self);
}

/* A job whose items wait until two run at the same time: it hangs unless workers take part. */
typedef struct visits {
    _Atomic int n_here;
} visits;

static void visit(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker, (void)begin, (void)end;
    visits *self = context;
    atomic_fetch_add(&self->n_here, 1);
    while (atomic_load(&self->n_here) < 2) sched_yield();
}

static void workers_take_part(void **state)
{
    (void)state;
    whit_error error;
    whit_pool *pool = NULL;
    assert_ok(whit_pool_open(3, NULL, &pool, &error), error);
    for (int i = 0; i < (tests_are_brief() ? 10 : 50); i++) {
        visits self = {0};
        whit_pool_run(pool, visit, &self, 2, 1);
        if (i % 2) usleep(200);
    }
    whit_pool_close(pool);
}

typedef struct processors {
    visits visits;
    unsigned of[2];
} processors;

static void note_processor(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    processors *self = context;
    self->of[worker] = whit_thread_processor();
    visit(&self->visits, worker, begin, end);
}

static void a_caller_leaves_its_workers_core(void **state)
{
    (void)state;
    enum { TRIES = 50 };
    whit_error error;
    whit_pool *pool = NULL;
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    if (cpu.n_cores < 2) skip();
    assert_ok(whit_pool_open(2, NULL, &pool, &error), error);
    int n_moved = 0, n_apart = 0;
    for (int i = 0; i < TRIES; i++) {
        processors self = {0};
        whit_pool_run(pool, note_processor, &self, 2, 1);
        whit_thread_move(self.of[1]);
        n_moved += whit_thread_processor() == self.of[1];
        whit_pool_part_caller(pool);
        n_apart += whit_thread_processor() != self.of[1];
    }
    whit_pool_close(pool);
    if (n_moved < TRIES / 2) skip(); /* the system moves no threads */
    assert_in_range(n_apart, TRIES * 8 / 10, TRIES);
}

static void add_small(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    volatile float tiny = 1e-39f, one = 1.0f, third = 3.0f;
    bool *ok = context;
    for (uint32_t i = begin; i < end; i++) ok[i] = tiny + 0.0f != 0.0f && one / third == 0x1.555556p-2f;
}

static void workers_have_default_arithmetic(void **state)
{
    (void)state;
    whit_error error;
    whit_pool *pool = NULL;
    bool ok[64] = {0};
    fesetround(FE_DOWNWARD); /* new threads inherit the rounding mode */
    assert_ok(whit_pool_open(4, NULL, &pool, &error), error);
    fesetround(FE_TONEAREST);
    for (int i = 0; i < 20; i++) {
        whit_pool_run(pool, add_small, ok, 64, 1);
        for (int j = 0; j < 64; j++) assert_true(ok[j]);
    }
    whit_pool_close(pool);
}

static void *hog(void *argument)
{
    _Atomic bool *stop = argument;
    while (!atomic_load(stop)) {
    }
    return NULL;
}

/* The pool must make progress when other threads use its cores; how fast is measured by the benchmark. */
static void a_stolen_core_is_no_deadlock(void **state)
{
    (void)state;
    _Atomic bool stop = false;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, hog, &stop);
    job *self = calloc(1, sizeof *self);
    whit_error error;
    whit_pool *pool = NULL;
    assert_ok(whit_pool_open(2, NULL, &pool, &error), error);
    for (int i = 0; i < (tests_are_brief() ? 20 : 200); i++) check_job(pool, self, 200, 3, (uint64_t)i);
    whit_pool_close(pool);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    free(self);
}

typedef struct slow_job {
    _Atomic uint64_t late_ns; /* time that the worker's first item takes; 0: none */
    _Atomic bool by_worker;   /* the worker took an item */
} slow_job;

static void take_slowly(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    slow_job *self = context;
    (void)begin, (void)end;
    uint64_t late_ns = worker ? atomic_exchange(&self->late_ns, 0) : 0;
    if (worker) atomic_store(&self->by_worker, true);
    usleep(worker ? (useconds_t)(late_ns / 1000) : 200);
}

/* After a long stop of the process (Ctrl-Z), workers must not rest for long. */
static void rests_are_short(void **state)
{
    (void)state;
    if (!getenv("WHIT_TEST_TIMED")) skip(); /* a limit of time: make test-long */
    whit_error error;
    whit_pool *pool = NULL;
    slow_job self = {0};
    assert_ok(whit_pool_open(2, NULL, &pool, &error), error);
    while (!atomic_load(&self.by_worker)) whit_pool_run(pool, take_slowly, &self, 20, 1);
    const uint64_t late_ns = 700000000;
    uint64_t shortest_ns = UINT64_MAX;
    for (int i = 0; i < 5 && shortest_ns >= 6 * late_ns; i++) { /* repeats when other programs used the machine */
        atomic_store(&self.late_ns, late_ns);
        while (atomic_load(&self.late_ns)) whit_pool_run(pool, take_slowly, &self, 20, 1);
        atomic_store(&self.by_worker, false);
        uint64_t begin_ns = whit_now_ns();
        while (!atomic_load(&self.by_worker)) whit_pool_run(pool, take_slowly, &self, 20, 1);
        if (whit_now_ns() - begin_ns < shortest_ns) shortest_ns = whit_now_ns() - begin_ns;
    }
    /* Before rests had a limit, this took 16 times the length of the stop: over 11 s. */
    assert_true(shortest_ns < 6 * late_ns);
    whit_pool_close(pool);
}

/* Closing must end workers that are anywhere between two jobs, or only starting. */
static void pools_close_at_any_time(void **state)
{
    (void)state;
    whit_error error;
    job *self = calloc(1, sizeof *self);
    for (uint32_t i = 0; i < (tests_are_brief() ? 50 : 3000); i++) {
        whit_pool *pool = NULL;
        assert_ok(whit_pool_open(2 + i % 7, NULL, &pool, &error), error);
        for (uint32_t j = 0; j < i % 3; j++) check_job(pool, self, 20, 1, i + j);
        whit_pool_close(pool);
    }
    free(self);
}

static void *refuse(void *user, size_t size_bytes, size_t align_bytes)
{
    (void)user, (void)size_bytes, (void)align_bytes;
    return NULL;
}

static void failures_are_clean(void **state)
{
    (void)state;
    whit_error error;
    whit_pool *pool = NULL;
    assert_int_equal(whit_pool_open(1 << 20, NULL, &pool, &error), WHIT_ERROR_ARGUMENT);
    assert_null(pool);
    whit_allocator none = {.alloc = refuse};
    assert_int_equal(whit_pool_open(2, &none, &pool, &error), WHIT_ERROR_MEMORY);
    assert_null(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_runs_once),
        cmocka_unit_test(the_first_failure_is_told),
        cmocka_unit_test(sleeping_workers_wake),
        cmocka_unit_test(workers_take_part),
        cmocka_unit_test(a_caller_leaves_its_workers_core),
        cmocka_unit_test(workers_have_default_arithmetic),
        cmocka_unit_test(a_stolen_core_is_no_deadlock),
        cmocka_unit_test(rests_are_short),
        cmocka_unit_test(pools_close_at_any_time),
        cmocka_unit_test(failures_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
