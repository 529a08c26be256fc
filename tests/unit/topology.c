/* SPDX-License-Identifier: MIT
 * Tests topologies of simulated machines, described by files as in sysfs and by texts for hwloc, and thread pools on
 * them: every item runs once, and threads and shares of rows are assigned by node. */
#include "test_folder.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/system.h"
#include "base/threads.h"
#include "base/topology.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* ---- sysfs ---------------------------------------------------------------------------------- */

/* Writes one line to a file below the test folder's `root`, and makes its folders. */
static void write_line(const char *root, const char *line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void write_line(const char *root, const char *line, const char *format, ...)
{
    char path[4096], name[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    snprintf(path, sizeof path, "%s/%s", in_folder(root), name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", line);
    fclose(file);
}

/* A simulated machine. As in Linux, processors are numbered so that the second processor of every core comes after the
 * first processors of all cores. */
struct machine {
    unsigned n_packages, n_nodes, n_clusters, n_cores; /* nodes per package, clusters per node, cores per cluster */
    unsigned n_siblings;
    bool has_l3;
};

static unsigned count_cores(const struct machine *m)
{
    return m->n_packages * m->n_nodes * m->n_clusters * m->n_cores;
}

/* Returns the processors of cores [first, first + n) as a list: "0-3,16-19". */
static const char *list_of(const struct machine *m, unsigned first, unsigned n)
{
    static char text[512];
    size_t at = 0;
    for (unsigned s = 0; s < m->n_siblings; s++) {
        const unsigned begin = s * count_cores(m) + first;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%u-%u", s ? "," : "", begin, begin + n - 1);
    }
    return text;
}

/* Makes the files of a machine; cpu becomes the processors that a process may use, one per core. */
static void make_machine(const char *root, const struct machine *m, whit_cpu *cpu)
{
    const unsigned n = count_cores(m), node_cores = m->n_clusters * m->n_cores;
    char text[64];
    memset(cpu, 0, sizeof *cpu);
    cpu->n_cores = n;
    cpu->n_logical = n * m->n_siblings;
    snprintf(text, sizeof text, "0-%u", m->n_packages * m->n_nodes - 1);
    write_line(root, text, "node/online");
    for (unsigned node = 0; node < m->n_packages * m->n_nodes; node++)
        write_line(root, list_of(m, node * node_cores, node_cores), "node/node%u/cpulist", node);
    for (unsigned core = 0; core < n; core++) {
        cpu->core_cpu[core] = (uint16_t)core;
        snprintf(text, sizeof text, "%u", core / (node_cores * m->n_nodes));
        write_line(root, text, "cpu/cpu%u/topology/physical_package_id", core);
        write_line(root, "1", "cpu/cpu%u/cache/index0/level", core);
        write_line(root, list_of(m, core, 1), "cpu/cpu%u/cache/index0/shared_cpu_list", core);
        if (!m->has_l3) continue;
        write_line(root, "3", "cpu/cpu%u/cache/index1/level", core);
        write_line(root, list_of(m, core / m->n_cores * m->n_cores, m->n_cores),
                   "cpu/cpu%u/cache/index1/shared_cpu_list", core);
    }
}

static const struct {
    const char *name, *synthetic; /* the same machine for hwloc */
    struct machine machine;
} machines[] = {
    {"small", "package:1 core:4 pu:1", {1, 1, 1, 4, 1, false}},
    {"ccx", "package:1 numanode:1 l3:4 core:4 pu:2", {1, 1, 4, 4, 2, true}},
    {"two", "package:2 numanode:2 core:8 pu:2", {2, 2, 1, 8, 2, false}},
    {"large", "package:2 numanode:4 l3:2 core:6 pu:2", {2, 4, 2, 6, 2, true}},
};
enum { N_MACHINES = sizeof machines / sizeof *machines };

static void check_machine(const struct machine *m, const whit_topology *t)
{
    assert_int_equal(t->n_cores, count_cores(m));
    assert_int_equal(t->n_packages, m->n_packages);
    assert_int_equal(t->n_nodes, m->n_packages * m->n_nodes);
    assert_int_equal(t->n_clusters, m->n_packages * m->n_nodes * m->n_clusters);
    for (uint32_t i = 0; i < t->n_cores; i++) {
        assert_int_equal(t->cores[i].cluster, i / m->n_cores);
        assert_int_equal(t->cores[i].node, i / (m->n_cores * m->n_clusters));
        assert_int_equal(t->cores[i].package, i / (m->n_cores * m->n_clusters * m->n_nodes));
    }
}

static void sysfs_gives_the_topology(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_MACHINES; i++) {
        whit_cpu cpu;
        whit_topology t;
        make_machine(machines[i].name, &machines[i].machine, &cpu);
        whit_topology_read_sysfs(in_folder(machines[i].name), &cpu, &t);
        check_machine(&machines[i].machine, &t);
        for (uint32_t k = 0; k < t.n_cores; k++) assert_int_equal(t.cores[k].processor, k);
    }
}

/* A cache's list of cores is read only for its first core, and applies to all of them. */
static void a_cache_is_read_once(void **state)
{
    (void)state;
    whit_cpu cpu;
    whit_topology t;
    const struct machine m = {1, 2, 2, 3, 2, true};
    make_machine("once", &m, &cpu);
    for (unsigned core = 0; core < count_cores(&m); core++)
        if (core % m.n_cores) write_line("once", "absent", "cpu/cpu%u/cache/index1/level", core);
    whit_topology_read_sysfs(in_folder("once"), &cpu, &t);
    check_machine(&m, &t);
}

/* If files are missing or damaged, all cores are one group. */
static void damaged_files_give_one_group(void **state)
{
    (void)state;
    whit_cpu cpu;
    whit_topology t;
    char text[120];
    const struct machine m = {1, 1, 1, 4, 1, false};
    make_machine("damaged", &m, &cpu);
    whit_topology_read_sysfs(in_folder("absent"), &cpu, &t);
    check_machine(&m, &t);
    static const char *const lines[] = {"", "-1", "x", "0-", "3-1", "99999999999999999999", "0-99999", ",,,", "0,1,,2"};
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        write_line("damaged", lines[i], "node/online");
        write_line("damaged", lines[i], "node/node0/cpulist");
        write_line("damaged", lines[i], "cpu/cpu1/topology/physical_package_id");
        whit_topology_read_sysfs(in_folder("damaged"), &cpu, &t);
        check_machine(&m, &t);
    }
    whit_topology_text(&t, text, sizeof text);
    assert_string_equal(text, "1 socket, 1 NUMA node, 1 cluster of cores that share a cache");
    cpu.n_cores = 0;
    whit_topology_read_sysfs(in_folder("damaged"), &cpu, &t);
    assert_int_equal(t.n_cores, 0);
    assert_int_equal(t.n_nodes, 1);
}

/* A process that may use only some cores, here the odd ones of the second node. */
static void a_part_of_a_machine_has_its_own_topology(void **state)
{
    (void)state;
    whit_cpu cpu;
    whit_topology t;
    make_machine("part", &machines[2].machine, &cpu);
    cpu.n_cores = 4;
    for (uint32_t i = 0; i < 4; i++) cpu.core_cpu[i] = (uint16_t)(9 + 2 * i);
    whit_topology_read_sysfs(in_folder("part"), &cpu, &t);
    assert_int_equal(t.n_cores, 4);
    assert_int_equal(t.n_nodes, 1);
    assert_int_equal(t.cores[3].processor, 15);
}

static void hwloc_gives_the_same(void **state)
{
    (void)state;
    whit_topology t;
    unsetenv("HWLOC_SYNTHETIC");
    if (!whit_topology_read_hwloc(NULL, &t)) {
        print_message("skipped: no hwloc\n");
        skip();
    }
    for (uint32_t i = 0; i < N_MACHINES; i++) {
        setenv("HWLOC_SYNTHETIC", machines[i].synthetic, 1);
        assert_true(whit_topology_read_hwloc(NULL, &t));
        check_machine(&machines[i].machine, &t);
        for (uint32_t k = 0; k < t.n_cores; k++) /* one processor per core: hwloc numbers siblings consecutively */
            assert_int_equal(t.cores[k].processor, k * machines[i].machine.n_siblings);
    }
    unsetenv("HWLOC_SYNTHETIC");
}

/* A topology can be turned so that any core comes first: the nearest cores come next, and each cluster, node and
 * package is contiguous. */
static void turned_topologies_begin_at_a_core(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_MACHINES; i++) {
        whit_cpu cpu;
        whit_topology whole;
        make_machine(machines[i].name, &machines[i].machine, &cpu);
        whit_topology_read_sysfs(in_folder(machines[i].name), &cpu, &whole);
        for (uint32_t k = 0; k < whole.n_cores; k++) {
            whit_topology t = whole;
            bool seen[WHIT_CPU_MAX_CORES] = {false};
            whit_topology_turn(&t, whole.cores[k].processor);
            assert_int_equal(t.cores[0].processor, whole.cores[k].processor);
            for (uint32_t c = 0; c < t.n_cores; c++) {
                const whit_topology_core here = whole.cores[t.cores[c].processor], from = whole.cores[k];
                assert_false(seen[here.processor]);
                seen[here.processor] = true;
                const uint32_t cluster = machines[i].machine.n_cores, node = cluster * machines[i].machine.n_clusters,
                               package = node * machines[i].machine.n_nodes;
                assert_int_equal(here.cluster == from.cluster, c < cluster);
                assert_int_equal(here.node == from.node, c < node);
                assert_int_equal(here.package == from.package, c < package);
                assert_int_equal(t.cores[c].cluster, c / cluster);
                assert_int_equal(t.cores[c].node, c / node);
            }
        }
        whit_topology t = whole;
        whit_topology_turn(&t, 999); /* there is no such core */
        assert_memory_equal(t.cores, whole.cores, whole.n_cores * sizeof *t.cores);
    }
}

/* ---- pools ---------------------------------------------------------------------------------- */

enum { ITEMS_MAX = 700 };

typedef struct job {
    uint32_t n_items, n_workers;
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

/* Every item must run once, for any number of threads, clusters and items. */
static void clusters_share_every_job(void **state)
{
    (void)state;
    job *self = calloc(1, sizeof *self);
    whit_rng rng = {.state = 5};
    for (uint32_t i = 0; i < N_MACHINES; i++) {
        whit_cpu cpu;
        whit_topology t;
        make_machine(machines[i].name, &machines[i].machine, &cpu);
        whit_topology_read_sysfs(in_folder(machines[i].name), &cpu, &t);
        for (uint32_t n_threads = 1; n_threads <= t.n_cores && n_threads <= 33; n_threads += 1 + n_threads / 3) {
            whit_error error;
            whit_pool *pool = NULL;
            const unsigned core = t.cores[whit_rng_below(&rng, t.n_cores)].processor;
            assert_ok(whit_pool_open_on(n_threads, &t, core, NULL, &pool, &error), error);
            self->n_workers = whit_pool_size(pool);
            assert_int_equal(self->n_workers, n_threads);
            for (int k = 0; k < (tests_are_brief() ? 10 : 40); k++) {
                self->n_items = (uint32_t)whit_rng_below(&rng, k % 9 ? 40 : ITEMS_MAX);
                self->salt = whit_rng_next(&rng);
                memset(self->out, 0, sizeof self->out);
                if (k % 16 == 7) usleep(100); /* lets the workers fall asleep */
                whit_pool_run(pool, fill, self, self->n_items, (uint32_t)whit_rng_below(&rng, 5));
                assert_false(self->bad_range);
                for (uint32_t item = 0; item < self->n_items; item++)
                    if (self->out[item] != self->salt + item)
                        fail_msg("item %u of %u ran wrongly", item, self->n_items);
            }
            whit_pool_close(pool);
        }
    }
    free(self);
}

/* Threads get the caller's core and the nearest ones, each a different one, in the machine's order. */
static void threads_take_the_nearest_cores(void **state)
{
    (void)state;
    whit_cpu cpu;
    whit_topology t;
    make_machine("large", &machines[3].machine, &cpu);
    whit_topology_read_sysfs(in_folder("large"), &cpu, &t);
    /* 1, 2, 3, 10, 17, 24 of 96 cores */
    for (uint32_t n_threads = 1; n_threads <= 24; n_threads += n_threads < 3 ? 1 : 7)
        for (unsigned core = 5; core < t.n_cores; core += 29) {
            whit_topology_core chosen[WHIT_CPU_MAX_CORES];
            const uint32_t caller = whit_topology_choose(&t, core, n_threads, chosen);
            assert_true(caller < n_threads);
            assert_int_equal(chosen[caller].processor, core);
            for (uint32_t i = 0; i < n_threads; i++) {
                if (i) assert_true(chosen[i].processor > chosen[i - 1].processor);
                assert_int_equal(chosen[i].package, chosen[caller].package);
                if (n_threads <= 12) assert_int_equal(chosen[i].node, chosen[caller].node);
                if (n_threads <= 6) assert_int_equal(chosen[i].cluster, chosen[caller].cluster);
            }
        }
    whit_error error;
    whit_pool *pool = NULL;
    assert_int_equal(whit_pool_open_on(97, &t, 0, NULL, &pool, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_pool_open_on(0, &t, 0, NULL, &pool, &error), WHIT_ERROR_ARGUMENT);
    assert_null(pool);
}

/* A job that records which worker ran each item. Its items wait for each other, so that every worker must take one. */
typedef struct shares {
    _Atomic uint32_t n_begun;
    uint32_t n_threads;
    uint16_t worker[64];
} shares;

static void note_worker(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    shares *self = context;
    for (uint32_t i = begin; i < end; i++) self->worker[i] = (uint16_t)worker;
    atomic_fetch_add(&self->n_begun, 1);
    while (atomic_load(&self->n_begun) < self->n_threads) usleep(50);
}

/* Runs one item per thread; each item waits for the others, so no thread can take two. A thread that still looks for
 * other threads' work when the job starts may take another's item; in that case the job is run again. Returns whether
 * each thread took its own item. */
static bool take_own_items(whit_pool *pool, const uint16_t *expected, uint32_t n)
{
    shares self = {.n_threads = n};
    for (int attempt = 0; attempt < 100; attempt++) {
        atomic_store(&self.n_begun, 0);
        whit_pool_run(pool, note_worker, &self, n, 1);
        if (!memcmp(self.worker, expected, n * sizeof *expected)) return true;
    }
    return false;
}

/* With threads on all cores, a node must get the same rows whichever core the caller runs on. */
static void a_node_has_the_same_rows(void **state)
{
    (void)state;
    whit_cpu cpu;
    whit_topology t;
    make_machine("two", &machines[2].machine, &cpu);
    whit_topology_read_sysfs(in_folder("two"), &cpu, &t);
    for (unsigned core = 0; core < t.n_cores; core += 11) {
        whit_error error;
        whit_pool *pool = NULL;
        uint16_t expected[64];
        assert_ok(whit_pool_open_on(t.n_cores, &t, core, NULL, &pool, &error), error);
        /* Workers are numbered in the order of their creation: the caller, then the cores from the first. */
        for (uint32_t i = 0; i < t.n_cores; i++) expected[i] = (uint16_t)(i == core ? 0 : i + (i < core ? 1 : 0));
        assert_true(take_own_items(pool, expected, t.n_cores));
        whit_pool_close(pool);
    }
}

/* Memory must hold its bytes after interleaving, on machines with one node or several. */
static void interleaved_memory_is_memory(void **state)
{
    (void)state;
    const size_t n = 3 << 20;
    uint8_t *memory = whit_zalloc(NULL, n);
    memory[5] = 7;
    const bool is_spread = whit_system_interleave(memory, n);
    print_message("interleaved: %s\n", is_spread ? "yes" : "no, one node");
    for (size_t i = 0; i < n; i += 4096) assert_int_equal(memory[i], 0);
    assert_int_equal(memory[5], 7);
    memset(memory, 3, n);
    whit_free(NULL, memory, n);
    assert_false(whit_system_interleave(NULL, 0));
    uint8_t byte;
    assert_false(whit_system_interleave(&byte, 1)); /* the byte is no whole page */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sysfs_gives_the_topology),     cmocka_unit_test(a_cache_is_read_once),
        cmocka_unit_test(damaged_files_give_one_group), cmocka_unit_test(a_part_of_a_machine_has_its_own_topology),
        cmocka_unit_test(hwloc_gives_the_same),         cmocka_unit_test(turned_topologies_begin_at_a_core),
        cmocka_unit_test(clusters_share_every_job),     cmocka_unit_test(threads_take_the_nearest_cores),
        cmocka_unit_test(a_node_has_the_same_rows),     cmocka_unit_test(interleaved_memory_is_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
