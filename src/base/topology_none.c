/* SPDX-License-Identifier: MIT
 * Stands in for topology_hwloc.c in a build without hwloc. */
#include "base/topology.h"

bool whit_topology_read_hwloc(const whit_cpu *cpu, whit_topology *topology)
{
    (void)cpu, (void)topology;
    return false;
}
