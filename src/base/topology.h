/* SPDX-License-Identifier: MIT
 * Finds the cores of this machine that share a cache, a memory or a socket, and the order in which a thread pool uses
 * them. Results do not depend on it. */
#ifndef WHIT_BASE_TOPOLOGY_H
#define WHIT_BASE_TOPOLOGY_H

#include "base/cpu.h"

/* Numbers are dense, in the order of first appearance: 0 to n - 1. A node belongs to one package, a cluster to one
 * node: if firmware reports otherwise, the smaller unit is split at the border. */
typedef struct whit_topology_core {
    uint16_t processor; /* the processor for a thread on this core: the lowest one that may be used */
    uint16_t package;   /* socket */
    uint16_t node;      /* NUMA node: cores with the same nearest memory */
    uint16_t cluster;   /* cores that share a last-level (L3) cache, as a CCX; the node if no cache is known */
} whit_topology_core;

typedef struct whit_topology {
    uint32_t n_cores, n_packages, n_nodes, n_clusters; /* at least 1 each */
    whit_topology_core cores[WHIT_CPU_MAX_CORES];      /* by package, node, cluster and processor */
} whit_topology;

/* Finds the topology of cpu's cores: by sysfs, and by hwloc (opened only here) if sysfs shows several nodes or
 * clusters. Without either all cores share one cluster. */
void whit_topology_find(const whit_cpu *cpu, whit_topology *topology);
/* Reads the topology from files below `root`, which have the layout of /sys/devices/system. */
void whit_topology_read_sysfs(const char *root, const whit_cpu *cpu, whit_topology *topology);
/* Reads the topology by hwloc. Without `cpu` it uses every core of hwloc's machine, which the environment variable
 * HWLOC_SYNTHETIC may describe. The result is false if hwloc cannot be loaded or knows no core. */
bool whit_topology_read_hwloc(const whit_cpu *cpu, whit_topology *topology);
/* Sorts the cores by the system's numbers, renumbers them densely, and counts them. */
void whit_topology_sort(whit_topology *topology);
/* Turns the order so that the core of logical processor `core_processor` is the first one, its cluster the first of its
 * node, its node of its package, and that the first of all; each stays in one piece. Without such a core nothing
 * changes. */
void whit_topology_turn(whit_topology *topology, unsigned core_processor);

/* Chooses cores for n_cores threads, at most t->n_cores: the caller's, then the nearest ones, so that pools that are
 * opened on different cores begin at different ones. `chosen` receives them in the machine's order, whichever the
 * caller's is, so that threads on all cores give a node the same rows of a matrix. Returns the index of the caller's
 * core. */
uint32_t whit_topology_choose(const whit_topology *topology, unsigned callers_core, uint32_t n_cores,
                              whit_topology_core *chosen);

/* Writes a line such as "1 socket, 2 NUMA nodes, 4 clusters that share a cache". */
void whit_topology_text(const whit_topology *topology, char *text, size_t text_bytes);

#endif
