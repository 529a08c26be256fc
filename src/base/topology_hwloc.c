/* SPDX-License-Identifier: MIT
 * Finds the topology by hwloc, which is loaded at run time and not linked. */
#include "base/topology.h"

#include <dlfcn.h>
#include <hwloc.h>

struct hwloc {
    int (*init)(hwloc_topology_t *);
    int (*load)(hwloc_topology_t);
    void (*destroy)(hwloc_topology_t);
    unsigned (*version)(void);
    int (*depth)(hwloc_topology_t, hwloc_obj_type_t);
    unsigned (*count)(hwloc_topology_t, int);
    hwloc_obj_t (*object)(hwloc_topology_t, int, unsigned);
    int (*first)(hwloc_const_bitmap_t);
};

static bool open_library(struct hwloc *hwloc)
{
    void *library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return false;
    *(void **)&hwloc->init = dlsym(library, "hwloc_topology_init");
    *(void **)&hwloc->load = dlsym(library, "hwloc_topology_load");
    *(void **)&hwloc->destroy = dlsym(library, "hwloc_topology_destroy");
    *(void **)&hwloc->version = dlsym(library, "hwloc_get_api_version");
    *(void **)&hwloc->depth = dlsym(library, "hwloc_get_type_depth");
    *(void **)&hwloc->count = dlsym(library, "hwloc_get_nbobjs_by_depth");
    *(void **)&hwloc->object = dlsym(library, "hwloc_get_obj_by_depth");
    *(void **)&hwloc->first = dlsym(library, "hwloc_bitmap_first");
    dlclose(library);
    return hwloc->init && hwloc->load && hwloc->destroy && hwloc->version && hwloc->depth && hwloc->count &&
        hwloc->object && hwloc->first && hwloc->version() >> 16 == HWLOC_API_VERSION >> 16;
}

/* Returns the logical index of the object of type `type` that contains `object`, or `otherwise` without such an
 * object. */
static uint16_t number_above(const struct hwloc_obj *object, hwloc_obj_type_t type, uint16_t otherwise)
{
    while (object && object->type != type) object = object->parent;
    return object ? (uint16_t)object->logical_index : otherwise;
}

/* Returns whether `processor` represents its core: with `cpu`, whether it is one of cpu->core_cpu; without, whether it
 * is the core's lowest logical processor. */
static bool find_core(const struct hwloc *hwloc, const whit_cpu *cpu, const struct hwloc_obj *processor)
{
    if (cpu) {
        for (uint32_t i = 0; i < cpu->n_cores; i++)
            if (cpu->core_cpu[i] == processor->os_index) return true;
        return false;
    }
    const struct hwloc_obj *core = processor->parent;
    while (core && core->type != HWLOC_OBJ_CORE) core = core->parent;
    return !core || hwloc->first(core->cpuset) == (int)processor->os_index;
}

static void add_cores(const struct hwloc *hwloc, hwloc_topology_t loaded, const whit_cpu *cpu, whit_topology *t)
{
    const int depth = hwloc->depth(loaded, HWLOC_OBJ_PU);
    const unsigned n = hwloc->count(loaded, depth);
    for (unsigned i = 0; i < n && t->n_cores < WHIT_CPU_MAX_CORES; i++) {
        const struct hwloc_obj *processor = hwloc->object(loaded, depth, i);
        if (!processor || processor->os_index > UINT16_MAX || !find_core(hwloc, cpu, processor)) continue;
        const int node = processor->nodeset ? hwloc->first(processor->nodeset) : 0;
        t->cores[t->n_cores++] = (whit_topology_core){
            .processor = (uint16_t)processor->os_index,
            .package = number_above(processor, HWLOC_OBJ_PACKAGE, 0),
            .node = (uint16_t)(node < 0 ? 0 : node),
            .cluster = number_above(processor, HWLOC_OBJ_L3CACHE, UINT16_MAX),
        };
    }
}

bool whit_topology_read_hwloc(const whit_cpu *cpu, whit_topology *t)
{
    struct hwloc hwloc;
    hwloc_topology_t loaded;
    t->n_cores = 0;
    if (!open_library(&hwloc) || hwloc.init(&loaded) != 0) return false;
    if (hwloc.load(loaded) == 0) add_cores(&hwloc, loaded, cpu, t);
    hwloc.destroy(loaded);
    whit_topology_sort(t);
    return t->n_cores > 0;
}
