/* SPDX-License-Identifier: MIT */
#include "model/residency.h"

#include "base/pages.h"
#include "kernels/codec.h"

#define MATRICES_MAX 4 /* maximum number of matrices of one expert: gate, up, down, and one in reserve */

struct layer_experts {
    const whit_tensor *matrices[MATRICES_MAX]; /* the layer's stacked matrices, each of all experts */
    uint32_t n_matrices;
    uint64_t bytes; /* number of bytes of one expert */
};

/* Limits the memory of units; a unit is one expert of one layer, with number layer * n_experts + expert. The units in
 * memory form a ring, from the least to the most recently used one; number n_units is the head of the ring. */
struct whit_residency {
    const whit_allocator *allocator;
    uint32_t n_layers, n_experts, n_units;
    /* The unit evicted last. Its pages that stayed in memory are released when the next unit is evicted; n_units: no
     * such unit. */
    uint32_t last_given;
    struct layer_experts *layers; /* (n_layers) experts of each layer */
    uint32_t *newer, *older;      /* (n_units + 1) neighbours of each unit in the ring */
    bool *is_in;                  /* (n_units) the unit is in memory */
    whit_expert_counts counts;
};

/* ---- matrices of experts --------------------------------------------------------------------- */

/* Calls `hint` for the memory of each part of an expert's matrices. */
static void hint_unit(const whit_residency *r, uint32_t unit, void (*hint)(const void *begin, size_t size_bytes))
{
    const struct layer_experts *layer = &r->layers[unit / r->n_experts];
    const uint32_t expert = unit % r->n_experts;
    for (uint32_t m = 0; m < layer->n_matrices; m++)
        for (int p = 0; p < WHIT_PART_COUNT; p++) {
            const uint64_t bytes = layer->matrices[m]->part_bytes[p] / r->n_experts;
            if (layer->matrices[m]->part[p]) hint(layer->matrices[m]->part[p] + expert * bytes, bytes);
        }
}

static void add_matrix(whit_residency *r, uint32_t layer, const whit_tensor *matrix)
{
    struct layer_experts *to = &r->layers[layer];
    if (to->n_matrices == MATRICES_MAX) return; /* further matrices are not limited */
    to->matrices[to->n_matrices++] = matrix;
    for (int p = 0; p < WHIT_PART_COUNT; p++) {
        to->bytes += matrix->part_bytes[p] / r->n_experts;
        r->counts.all_bytes += matrix->part_bytes[p];
        if (matrix->part[p]) whit_pages_scatter(matrix->part[p], matrix->part_bytes[p]);
    }
}

whit_status whit_residency_open(const whit_plan *plan, const whit_tensor *tensors, uint64_t bytes_max,
                                const whit_allocator *a, whit_residency **out, whit_error *error)
{
    *out = NULL;
    uint32_t n_layers = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].op == WHIT_PLAN_EXPERT_LINEAR && plan->steps[i].layer >= n_layers)
            n_layers = plan->steps[i].layer + 1u;
    if (!n_layers)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "the model has no experts, so their memory cannot be limited");
    whit_residency *r = whit_zalloc(a, sizeof *r);
    if (!r) return whit_fail_memory(error, "the list of experts", sizeof *r);
    *r = (whit_residency){.allocator = a,
                          .n_layers = n_layers,
                          .n_experts = plan->n_experts,
                          .n_units = n_layers * plan->n_experts,
                          .last_given = n_layers * plan->n_experts,
                          .counts = {.bytes_max = bytes_max}};
    r->layers = whit_zalloc_array(a, n_layers, sizeof *r->layers);
    r->newer = whit_zalloc_array(a, (size_t)r->n_units + 1, sizeof *r->newer);
    r->older = whit_zalloc_array(a, (size_t)r->n_units + 1, sizeof *r->older);
    r->is_in = whit_zalloc_array(a, r->n_units, sizeof *r->is_in);
    if (!r->layers || !r->newer || !r->older || !r->is_in) {
        whit_residency_close(r);
        return whit_fail_memory(error, "the list of experts", r->n_units * sizeof *r->newer);
    }
    r->newer[r->n_units] = r->older[r->n_units] = r->n_units;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].op == WHIT_PLAN_EXPERT_LINEAR)
            add_matrix(r, plan->steps[i].layer, &tensors[plan->steps[i].weight]);
    *out = r;
    return WHIT_OK;
}

void whit_residency_close(whit_residency *r)
{
    if (!r) return;
    const whit_allocator *a = r->allocator;
    whit_free(a, r->layers, r->n_layers * sizeof *r->layers);
    whit_free(a, r->newer, ((size_t)r->n_units + 1) * sizeof *r->newer);
    whit_free(a, r->older, ((size_t)r->n_units + 1) * sizeof *r->older);
    whit_free(a, r->is_in, r->n_units * sizeof *r->is_in);
    whit_free(a, r, sizeof *r);
}

/* ---- the ring of units ----------------------------------------------------------------------- */

static void take_out(whit_residency *r, uint32_t unit)
{
    r->newer[r->older[unit]] = r->newer[unit];
    r->older[r->newer[unit]] = r->older[unit];
}

static void put_newest(whit_residency *r, uint32_t unit)
{
    const uint32_t head = r->n_units, last = r->older[head];
    r->older[unit] = last;
    r->newer[unit] = head;
    r->newer[last] = r->older[head] = unit;
}

static void give_back(whit_residency *r, uint32_t unit)
{
    take_out(r, unit);
    r->is_in[unit] = false;
    if (r->last_given < r->n_units && !r->is_in[r->last_given]) hint_unit(r, r->last_given, whit_pages_release);
    hint_unit(r, unit, whit_pages_evict);
    r->last_given = unit;
    r->counts.bytes -= r->layers[unit / r->n_experts].bytes;
    r->counts.n_given++;
}

void whit_residency_want(whit_residency *r, uint32_t layer, const uint32_t *experts, uint32_t n)
{
    if (layer >= r->n_layers) return;
    const uint64_t bytes = r->layers[layer].bytes;
    uint64_t wanted = 0, kept = 0;
    /* Chosen experts that are already in memory first become the most recently used units, so that they are not evicted
     * in favour of the other chosen experts. */
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t unit = layer * r->n_experts + experts[i];
        *(r->is_in[unit] ? &kept : &wanted) += bytes;
        if (!r->is_in[unit]) continue;
        take_out(r, unit);
        put_newest(r, unit);
    }
    while (r->counts.bytes + wanted > r->counts.bytes_max && r->counts.bytes > kept) give_back(r, r->newer[r->n_units]);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t unit = layer * r->n_experts + experts[i];
        if (r->is_in[unit]) continue;
        r->is_in[unit] = true;
        put_newest(r, unit);
        hint_unit(r, unit, whit_pages_prefetch);
        r->counts.bytes += bytes;
        r->counts.n_read++;
        r->counts.read_bytes += bytes;
    }
}

const whit_expert_counts *whit_residency_counts(const whit_residency *r)
{
    return &r->counts;
}
