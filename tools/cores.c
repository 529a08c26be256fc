/* SPDX-License-Identifier: MIT
 * Models a pool of threads on machines with several sockets, NUMA nodes and caches (docs/dev/perf/cores.md): the time
 * in which the threads read the weights of a token, and the time to begin and end a job.
 *
 *     cores measure                          measures bandwidth and empty jobs on 1 to all cores of this machine,
 *                                            and prints the model's predictions beside them
 *     cores simulate TOPOLOGY [NAME=NUMBER]  predicts the times of a machine, for example of
 *                                            "package:2 numanode:2 l3:2 core:8 pu:2"
 *
 * Units: bytes, ns, and GB/s, which are bytes per ns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"

/* Speeds of a machine, and the work for a token. */
struct costs {
    double core;          /* bandwidth of one core, GB/s */
    double node;          /* bandwidth of the memory of one node, GB/s */
    double link;          /* bandwidth at which a package reads from the others, GB/s */
    double near, far;     /* ns to move a cache line; near: from a core of the cluster; far: of another cluster in the
                           * package */
    double remote;        /* ns to move a cache line from a core in another package */
    double bytes, n_jobs; /* bytes: of weights that a token reads; n_jobs: jobs that it runs */
};

/* Defaults: a server of 2024 (DDR5, eight channels per socket), and BitNet 2B4T with weights of two bits, 690 MB and
 * 272 jobs per token. */
static const struct costs server = {12, 200, 120, 30, 90, 250, 690e6, 272};
static const struct {
    const char *name;
    size_t offset;
} names[] = {
    {"core", offsetof(struct costs, core)},   {"node", offsetof(struct costs, node)},
    {"link", offsetof(struct costs, link)},   {"near", offsetof(struct costs, near)},
    {"far", offsetof(struct costs, far)},     {"remote", offsetof(struct costs, remote)},
    {"bytes", offsetof(struct costs, bytes)}, {"jobs", offsetof(struct costs, n_jobs)},
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- time to read the weights --------------------------------------------------------------- */

enum placement { FIRST_TOUCH, INTERLEAVED, ONE_NODE };

/* Returns the ns in which all cores read c->bytes, an equal share each: the time of the slowest core, memory or link
 * between packages. FIRST_TOUCH: each share is in the memory of the node that reads it; INTERLEAVED: the bytes are
 * spread over all nodes; ONE_NODE: all bytes are in the first node. */
static double reading_ns(const whit_topology *t, const struct costs *c, enum placement placement)
{
    const double share = c->bytes / t->n_cores;
    double slowest = share / c->core;
    for (uint32_t node = 0; node < t->n_nodes; node++) {
        double own = 0;
        for (uint32_t i = 0; i < t->n_cores; i++) own += t->cores[i].node == node ? share : 0;
        const double asked = placement == FIRST_TOUCH ? own
            : placement == INTERLEAVED                ? c->bytes / t->n_nodes
            : node == 0                               ? c->bytes
                                                      : 0;
        slowest = larger(slowest, asked / c->node);
    }
    for (uint32_t package = 0; package < t->n_packages; package++) { /* bytes read from other packages */
        double own = 0, nodes = 0;
        uint32_t last = UINT32_MAX;
        for (uint32_t i = 0; i < t->n_cores; i++) {
            if (t->cores[i].package != package) continue;
            own += share;
            nodes += t->cores[i].node != last;
            last = t->cores[i].node;
        }
        const double local = placement == FIRST_TOUCH ? 1
            : placement == INTERLEAVED                ? nodes / t->n_nodes
                                                      : package == 0;
        slowest = larger(slowest, own * (1 - local) / c->link);
    }
    return slowest;
}

/* ---- time to begin and end a job ------------------------------------------------------------ */

static double line_ns(const struct costs *c, const whit_topology_core *a, const whit_topology_core *b)
{
    if (a->package != b->package) return c->remote;
    return a->cluster != b->cluster ? c->far : c->near;
}

/* Returns the ns to begin and end a job if all workers share one word and one count of unfinished chunks. Two lines
 * move to each worker: that of the word from the caller, and that of the count from the worker before. These transfers
 * follow each other. Two transfers are added: one for the lines with each worker's own chunks, which move in parallel,
 * and one at the end, when the caller reads the count. */
static double flat_ns(const whit_topology *t, const struct costs *c)
{
    double sum = 0;
    for (uint32_t i = 1; i < t->n_cores; i++)
        sum += line_ns(c, &t->cores[i], &t->cores[0]) + line_ns(c, &t->cores[i], &t->cores[i - 1]);
    return t->n_cores > 1 ? sum + 2 * line_ns(c, &t->cores[0], &t->cores[t->n_cores - 1]) : 0;
}

/* Returns the same time if each cluster has a word and a count. Transfers inside different clusters happen in parallel,
 * so only the slowest cluster counts; a cluster's count is first moved from the caller, which has written it. Transfers
 * between clusters follow each other. */
static double clustered_ns(const whit_topology *t, const struct costs *c)
{
    double between = 0, slowest = 0;
    if (t->n_clusters == 1) return flat_ns(t, c);
    for (uint32_t i = 0, begin = 0; i < t->n_cores; i++) {
        if (i + 1 < t->n_cores && t->cores[i + 1].cluster == t->cores[i].cluster) continue;
        whit_topology cluster = {.n_cores = i + 1 - begin, .n_clusters = 1};
        memcpy(cluster.cores, &t->cores[begin], cluster.n_cores * sizeof *cluster.cores);
        const double last = line_ns(c, &t->cores[0], &t->cores[i]); /* the caller is core 0, in the first cluster */
        const double inside =
            cluster.n_cores > 1 ? flat_ns(&cluster, c) - 2 * line_ns(c, &t->cores[begin], &t->cores[i]) : 0;
        slowest = larger(slowest, inside + (begin ? last : 0));
        if (begin) /* the word comes from the caller, the count of finished clusters from the cluster before */
            between += line_ns(c, &t->cores[begin], &t->cores[0]) + line_ns(c, &t->cores[begin], &t->cores[begin - 1]);
        begin = i + 1;
    }
    return slowest + between + 2 * line_ns(c, &t->cores[0], &t->cores[t->n_cores - 1]);
}

/* ---- predictions for a given topology ------------------------------------------------------- */

/* Reads a topology like "package:2 numanode:2 l3:2 core:8 pu:2". A level that is left out counts as 1. The processors
 * of a core ("pu") are checked but ignored: a core has one number. Returns false if the text is not a topology. */
static bool parse_topology(const char *text, whit_topology *t)
{
    static const char *const levels[] = {"package:", "numanode:", "l3:", "core:", "pu:"};
    uint32_t n[5] = {1, 1, 1, 1, 1};
    if (!*text) return false;
    for (uint32_t level = 0; *text; level++) {
        while (level < 5 && strncmp(text, levels[level], strlen(levels[level])) != 0) level++;
        if (level >= 5) return false;
        char *end;
        const unsigned long count = strtoul(text + strlen(levels[level]), &end, 10);
        if (end == text + strlen(levels[level]) || !count || count > WHIT_CPU_MAX_CORES || (*end && *end != ' '))
            return false;
        n[level] = (uint32_t)count;
        text = end + strspn(end, " ");
    }
    uint64_t n_cores = 1;
    for (uint32_t level = 0; level < 4; level++)
        if ((n_cores *= n[level]) > WHIT_CPU_MAX_CORES) return false;
    t->n_cores = (uint32_t)n_cores;
    for (uint32_t i = 0; i < t->n_cores; i++) {
        const uint32_t cluster = i / n[3], node = cluster / n[2];
        t->cores[i] = (whit_topology_core){.processor = (uint16_t)i,
                                           .cluster = (uint16_t)cluster,
                                           .node = (uint16_t)node,
                                           .package = (uint16_t)(node / n[1])};
    }
    whit_topology_sort(t);
    return true;
}

static int simulate(int argc, char **argv)
{
    struct costs costs = server;
    whit_topology t;
    if (!parse_topology(argv[0], &t)) {
        fprintf(stderr,
                "cores: '%s' is not a topology of at most %d cores like 'package:2 numanode:2 l3:2 core:8 pu:2'\n",
                argv[0], WHIT_CPU_MAX_CORES);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        char *end = NULL;
        size_t k = 0;
        while (k < sizeof names / sizeof *names &&
               !(equals && strlen(names[k].name) == (size_t)(equals - argv[i]) &&
                 !strncmp(argv[i], names[k].name, strlen(names[k].name))))
            k++;
        const double value = equals ? strtod(equals + 1, &end) : 0;
        if (k == sizeof names / sizeof *names || *end || !(value > 0)) {
            fprintf(stderr, "cores: '%s' is not NAME=NUMBER with core, node, link, near, far, remote, bytes or jobs\n",
                    argv[i]);
            return 2;
        }
        *(double *)((char *)&costs + names[k].offset) = value;
    }
    const double flat = flat_ns(&t, &costs), clustered = clustered_ns(&t, &costs);
    printf("cores\tnodes\tclusters\tone node ms\tinterleaved ms\tfirst touch ms\tflat us\tclustered us\ttoken ms\n");
    printf("%u\t%u\t%u\t%.3f\t%.3f\t%.3f\t%.2f\t%.2f\t%.3f\n", t.n_cores, t.n_nodes, t.n_clusters,
           reading_ns(&t, &costs, ONE_NODE) * 1e-6, reading_ns(&t, &costs, INTERLEAVED) * 1e-6,
           reading_ns(&t, &costs, FIRST_TOUCH) * 1e-6, flat * 1e-3, clustered * 1e-3,
           (reading_ns(&t, &costs, FIRST_TOUCH) + costs.n_jobs * clustered) * 1e-6);
    return 0;
}

/* ---- measurements on this machine ----------------------------------------------------------- */

enum { ROUNDS = 7, JOBS = 4000, CHUNK_BYTES = 1 << 18, N_CHUNKS = 512 };

struct reading {
    const uint64_t *words;
    uint64_t sums[WHIT_POOL_THREADS_MAX]; /* the sums are stored, so that the compiler does not remove the reads */
};

static void read_chunks(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    struct reading *r = context;
    const size_t n_words = CHUNK_BYTES / sizeof(uint64_t);
    uint64_t sum = 0;
    for (size_t i = begin * n_words; i < end * n_words; i++) sum += r->words[i];
    r->sums[worker] += sum;
}

static void do_nothing(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)context, (void)worker, (void)begin, (void)end;
}

/* Times n_jobs jobs in each of ROUNDS rounds; returns the ns per job of the fastest round. */
static double time_jobs(whit_pool *pool, whit_pool_fn *fn, void *context, uint32_t n_items, uint32_t n_jobs)
{
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t from_ns = whit_now_ns();
        for (uint32_t i = 0; i < n_jobs; i++) whit_pool_run(pool, fn, context, n_items, 1);
        const double ns = (double)(whit_now_ns() - from_ns) / n_jobs;
        if (ns < best) best = ns;
    }
    return best;
}

/* Measures pools of 1 to all cores, with this machine's clusters and with one cluster per core. The model's bandwidth
 * of a core is that measured with one thread, and its time to move a line follows from empty jobs of two threads; its
 * predictions of reading with more threads and of clusters do not depend on their measurements. */
static int measure(void)
{
    whit_cpu cpu;
    whit_topology here;
    whit_error error;
    const size_t size_bytes = (size_t)CHUNK_BYTES * N_CHUNKS;
    struct reading *r = calloc(1, sizeof *r);
    uint64_t *words = whit_alloc(NULL, size_bytes);
    whit_cpu_detect(&cpu);
    whit_topology_find(&cpu, &here);
    if (!r || !words) return 1;
    memset(words, 1, size_bytes);
    r->words = words;
    struct costs costs = {.node = 1e9, .link = 1e9, .bytes = (double)size_bytes, .n_jobs = 1};
    printf("threads\tGB/s\tpredicted\tempty job us\tpredicted\tby cluster us\tpredicted\n");
    for (uint32_t n = 1; n <= here.n_cores; n++) {
        double jobs_ns[2] = {0}, read_ns = 0;
        for (uint32_t k = 0; k < 2; k++) { /* 0: this machine's clusters; 1: one cluster per core */
            whit_topology t = here;
            whit_pool *pool;
            for (uint32_t i = 0; k && i < t.n_cores; i++) t.cores[i].cluster = (uint16_t)i;
            whit_topology_sort(&t);
            if (whit_pool_open_on(n, &t, t.cores[0].processor, NULL, &pool, &error) != WHIT_OK) {
                fprintf(stderr, "cores: %s\n", error.message);
                return 1;
            }
            jobs_ns[k] = time_jobs(pool, do_nothing, NULL, n, JOBS);
            if (!k) read_ns = time_jobs(pool, read_chunks, r, N_CHUNKS, 1);
            whit_pool_close(pool);
        }
        const double gbps = (double)size_bytes / read_ns;
        if (n == 1) costs.core = gbps;
        if (n == 2) costs.near = costs.far = jobs_ns[0] / 4; /* flat_ns counts four transfers */
        whit_topology model = here;
        model.n_cores = n;
        const double model_ns = reading_ns(&model, &costs, FIRST_TOUCH), flat = flat_ns(&model, &costs);
        for (uint32_t i = 0; i < n; i++) model.cores[i].cluster = (uint16_t)i;
        model.n_clusters = n;
        printf("%u\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\t%.3f\n", n, gbps, (double)size_bytes / model_ns, jobs_ns[0] * 1e-3,
               flat * 1e-3, jobs_ns[1] * 1e-3, clustered_ns(&model, &costs) * 1e-3);
    }
    whit_free(NULL, words, size_bytes);
    free(r);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "measure")) return measure();
    if (argc >= 3 && !strcmp(argv[1], "simulate")) return simulate(argc - 2, argv + 2);
    fprintf(stderr, "usage: cores measure | cores simulate TOPOLOGY [NAME=NUMBER ...]\n");
    return 2;
}
