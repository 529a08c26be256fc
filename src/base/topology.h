/* SPDX-License-Identifier: MIT
 * Finds the cores of this machine that share a cache, a memory or a socket, and the order in which a thread pool uses
 * them. Results do not depend on it. */
#ifndef WHIT_BASE_TOPOLOGY_H
#define WHIT_BASE_TOPOLOGY_H

#include "base/cpu.h"

/* Packages, nodes and clusters are numbered from 0 without gaps, in the order of `cores`. A node belongs to one
 * package, a cluster to one node: where the firmware reports otherwise, the smaller unit is split. */
typedef struct whit_topology_core {
    uint16_t processor; /* logical processor for a thread on this core: the lowest one that may be used */
    uint16_t package;   /* socket */
    uint16_t node;      /* NUMA node: cores with the same nearest memory */
    uint16_t cluster;   /* group of cores that share an L3 cache (AMD's CCX); the whole node if no cache is known */
} whit_topology_core;

typedef struct whit_topology {
    uint32_t n_cores, n_packages, n_nodes, n_clusters; /* at least 1 each */
    /* sorted by package, node, cluster and processor, until whit_topology_turn changes the order */
    whit_topology_core cores[WHIT_CPU_MAX_CORES];
} whit_topology;

/* Finds the topology of cpu's cores with sysfs, and with hwloc (loaded only here) if sysfs shows several nodes or
 * clusters. Without sysfs all cores are in one cluster. */
void whit_topology_find(const whit_cpu *cpu, whit_topology *topology);
/* Reads the topology from files below `root`, which have the layout of /sys/devices/system. */
void whit_topology_read_sysfs(const char *root, const whit_cpu *cpu, whit_topology *topology);
/* Reads the topology with hwloc. With cpu NULL it uses every core of hwloc's machine, which the environment variable
 * HWLOC_SYNTHETIC may describe. The result is false if hwloc cannot be loaded or knows no core. */
bool whit_topology_read_hwloc(const whit_cpu *cpu, whit_topology *topology);
/* Sorts the cores by package, node, cluster and processor, numbers packages, nodes and clusters from 0 without gaps,
 * and counts them. */
void whit_topology_sort(whit_topology *topology);
/* Rotates the order so that the core with logical processor `core_processor` comes first: its package is the first
 * package, its node the first of the package, its cluster the first of the node. Packages, nodes and clusters stay
 * contiguous. Without such a core nothing changes. */
void whit_topology_turn(whit_topology *topology, unsigned core_processor);

/* Chooses n_cores cores (at most topology->n_cores) for threads: the caller's core, then the nearest ones, so that
 * pools opened on different cores prefer different cores. `chosen` receives the cores in the order of the topology,
 * wherever the caller runs, so that a pool on all cores always gives a node the same rows of a matrix. Returns the
 * index of the caller's core in `chosen`. */
uint32_t whit_topology_choose(const whit_topology *topology, unsigned callers_core, uint32_t n_cores,
                              whit_topology_core *chosen);

/* Writes a line such as "1 socket, 2 NUMA nodes, 4 clusters of cores that share a cache". */
void whit_topology_text(const whit_topology *topology, char *text, size_t text_bytes);

#endif
