/* SPDX-License-Identifier: MIT */
#include "base/topology.h"
#include "base/phrase.h"
#include "base/system.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- order of the cores --------------------------------------------------------------------- */

static int compare_cores(const void *a, const void *b)
{
    const whit_topology_core *x = a, *y = b;
    if (x->package != y->package) return x->package < y->package ? -1 : 1;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    if (x->cluster != y->cluster) return x->cluster < y->cluster ? -1 : 1;
    return (x->processor > y->processor) - (x->processor < y->processor);
}

void whit_topology_sort(whit_topology *t)
{
    qsort(t->cores, t->n_cores, sizeof *t->cores, compare_cores);
    t->n_packages = t->n_nodes = t->n_clusters = t->n_cores ? 0 : 1;
    whit_topology_core before = {0};
    for (uint32_t i = 0; i < t->n_cores; i++) {
        const whit_topology_core core = t->cores[i];
        const bool other_package = !i || core.package != before.package;
        const bool other_node = other_package || core.node != before.node;
        t->n_packages += other_package;
        t->n_nodes += other_node;
        t->n_clusters += other_node || core.cluster != before.cluster;
        t->cores[i].package = (uint16_t)(t->n_packages - 1);
        t->cores[i].node = (uint16_t)(t->n_nodes - 1);
        t->cores[i].cluster = (uint16_t)(t->n_clusters - 1);
        before = core;
    }
}

void whit_topology_turn(whit_topology *t, unsigned core_processor)
{
    uint32_t first = 0;
    while (first < t->n_cores && t->cores[first].processor != core_processor) first++;
    if (first == t->n_cores) return;
    /* Each number is replaced by its distance, modulo the count, from the number of the given core: sorting then gives
     * the required order. */
    const whit_topology_core from = t->cores[first];
    const uint32_t n_package = t->n_packages, n_node = t->n_nodes, n_cluster = t->n_clusters;
    for (uint32_t i = 0; i < t->n_cores; i++) {
        whit_topology_core *core = &t->cores[i];
        core->package = (uint16_t)((core->package + n_package - from.package) % n_package);
        core->node = (uint16_t)((core->node + n_node - from.node) % n_node);
        core->cluster = (uint16_t)((core->cluster + n_cluster - from.cluster) % n_cluster);
    }
    whit_topology_sort(t);
    /* Rotates the first cluster's cores so that the cluster begins with the given core. */
    uint32_t n = 0;
    while (n < t->n_cores && t->cores[n].cluster == 0) n++;
    first = 0;
    while (t->cores[first].processor != core_processor) first++;
    whit_topology_core cluster[WHIT_CPU_MAX_CORES];
    memcpy(cluster, t->cores, n * sizeof *cluster);
    for (uint32_t i = 0; i < n; i++) t->cores[i] = cluster[(first + i) % n];
}

uint32_t whit_topology_choose(const whit_topology *t, unsigned callers_core, uint32_t n_cores,
                              whit_topology_core *chosen)
{
    whit_topology nearest = *t;
    whit_topology_turn(&nearest, callers_core);
    uint32_t n = 0, caller = 0;
    for (uint32_t i = 0; i < t->n_cores; i++) {
        bool is_chosen = false;
        for (uint32_t k = 0; k < n_cores && !is_chosen; k++)
            is_chosen = nearest.cores[k].processor == t->cores[i].processor;
        if (!is_chosen) continue;
        if (t->cores[i].processor == nearest.cores[0].processor) caller = n;
        chosen[n++] = t->cores[i];
    }
    return caller;
}

void whit_topology_text(const whit_topology *t, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%u socket%s, %u NUMA node%s, %u cluster%s of cores that share a cache", t->n_packages,
             whit_plural(t->n_packages), t->n_nodes, whit_plural(t->n_nodes), t->n_clusters,
             whit_plural(t->n_clusters));
}

/* ---- sysfs ---------------------------------------------------------------------------------- */

enum { PATH_BYTES = 512, LIST_BYTES = 8192, CACHES_MAX = 16, NODES_MAX = 1024, UNKNOWN = UINT16_MAX };

/* Reads the first line of a file; false if the file is absent or empty. */
static bool read_line(const char *path, char *line, size_t line_bytes)
{
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool is_read = fgets(line, (int)line_bytes, file) != NULL;
    fclose(file);
    return is_read;
}

static uint16_t read_number(const char *root, unsigned processor, const char *name, unsigned otherwise)
{
    char path[PATH_BYTES], line[64], *end;
    snprintf(path, sizeof path, "%s/cpu/cpu%u/%s", root, processor, name);
    if (!read_line(path, line, sizeof line)) return (uint16_t)otherwise;
    const unsigned long number = strtoul(line, &end, 10);
    const bool is_number = end != line && (*end == '\n' || !*end) && number <= UINT16_MAX;
    return (uint16_t)(is_number ? number : otherwise);
}

/* Reads the next range of a list like "0-3,8,10-11"; false at the list's end or at text of another form. */
static bool next_range(const char **list, unsigned *first, unsigned *last)
{
    char *end;
    const char *text = *list + (**list == ',');
    const unsigned long begin = strtoul(text, &end, 10);
    if (end == text || *text == '-' || begin > UINT16_MAX) return false;
    *first = *last = (unsigned)begin;
    if (*end == '-') {
        text = end + 1;
        const unsigned long stop = strtoul(text, &end, 10);
        if (end == text || stop < begin || stop > UINT16_MAX) return false;
        *last = (unsigned)stop;
    }
    *list = end;
    return true;
}

/* Sets the uint16_t at byte offset `member` to `number` in every core whose processor is in `list`. */
static void mark_cores(whit_topology *t, const char *list, size_t member, uint16_t number)
{
    unsigned first, last;
    while (next_range(&list, &first, &last))
        for (uint32_t i = 0; i < t->n_cores; i++)
            if (t->cores[i].processor >= first && t->cores[i].processor <= last)
                memcpy((char *)&t->cores[i] + member, &number, sizeof number);
}

/* Reads which cores share the L3 cache of cores[core], and sets `cluster` of all of them to the processor number of
 * that core. */
static void read_cluster(const char *root, whit_topology *t, uint32_t core)
{
    char path[PATH_BYTES], name[40], line[LIST_BYTES];
    const uint16_t processor = t->cores[core].processor;
    for (unsigned i = 0; i < CACHES_MAX; i++) {
        snprintf(name, sizeof name, "cache/index%u/level", i);
        const uint16_t level = read_number(root, processor, name, 0);
        if (!level) break;
        if (level != 3) continue;
        snprintf(path, sizeof path, "%s/cpu/cpu%u/cache/index%u/shared_cpu_list", root, processor, i);
        if (read_line(path, line, sizeof line)) mark_cores(t, line, offsetof(whit_topology_core, cluster), processor);
        break;
    }
}

void whit_topology_read_sysfs(const char *root, const whit_cpu *cpu, whit_topology *t)
{
    char path[PATH_BYTES], line[LIST_BYTES];
    unsigned first, last;
    t->n_cores = cpu->n_cores < WHIT_CPU_MAX_CORES ? cpu->n_cores : WHIT_CPU_MAX_CORES;
    for (uint32_t i = 0; i < t->n_cores; i++)
        t->cores[i] =
            (whit_topology_core){.processor = cpu->core_cpu[i],
                                 .package = read_number(root, cpu->core_cpu[i], "topology/physical_package_id", 0)};
    snprintf(path, sizeof path, "%s/node/online", root);
    const char *nodes = line;
    char online[LIST_BYTES];
    if (read_line(path, online, sizeof online)) {
        nodes = online;
        while (next_range(&nodes, &first, &last))
            for (unsigned node = first; node <= last && node < NODES_MAX; node++) {
                snprintf(path, sizeof path, "%s/node/node%u/cpulist", root, node);
                if (read_line(path, line, sizeof line))
                    mark_cores(t, line, offsetof(whit_topology_core, node), (uint16_t)node);
            }
    }
    for (uint32_t i = 0; i < t->n_cores; i++) t->cores[i].cluster = UNKNOWN;
    for (uint32_t i = 0; i < t->n_cores; i++)
        if (t->cores[i].cluster == UNKNOWN) read_cluster(root, t, i);
    whit_topology_sort(t);
}

void whit_topology_find(const whit_cpu *cpu, whit_topology *t)
{
    whit_topology by_hwloc;
    whit_topology_read_sysfs("/sys/devices/system", cpu, t);
    if (t->n_nodes == 1 && t->n_clusters == 1) return; /* the usual machine: saves some milliseconds in hwloc */
    if (whit_topology_read_hwloc(cpu, &by_hwloc) && by_hwloc.n_cores == t->n_cores) *t = by_hwloc;
}
