/* SPDX-License-Identifier: MIT
 * Chooses the kernels and the schedule for each number of rows. Adjacent numbers of rows with the same kernels share a
 * schedule. */
#include "model/exec_step.h"
#include "quant/requantise.h"

#include <string.h>

/* From this many rows on, RoPE on queries is fused into attention. Smaller batches may use split-KV, where one thread
 * prepares all queries and should not also rotate them. The number must be the smallest one of a bucket. */
#define ROTATING_ROWS 16
#define FEW_ROWS      8 /* buckets that begin at up to this many rows do not fuse products with sums */

static uint32_t bucket_of_rows(uint32_t n_rows)
{
    if (n_rows <= 8) return n_rows - 1;
    uint32_t bucket = 7 + (31 - (uint32_t)__builtin_clz(n_rows / 8));
    return bucket < WHIT_EXEC_BUCKETS ? bucket : WHIT_EXEC_BUCKETS - 1;
}

uint32_t whit_exec_bucket_rows(uint32_t bucket)
{
    return bucket < 8 ? bucket + 1 : 8u << (bucket - 7);
}

uint32_t whit_exec_bucket_most(uint32_t bucket, uint32_t n_rows)
{
    const uint32_t most = whit_exec_bucket_rows(bucket + 1) - 1;
    return most < n_rows ? most : n_rows;
}

const whit_matmul_kernel *whit_exec_bucket(const whit_matmul_kernel *const kernels[WHIT_EXEC_BUCKETS], uint32_t n_rows)
{
    return kernels[bucket_of_rows(n_rows)];
}

uint32_t whit_exec_schedule_of(const whit_exec_schedules *schedules, whit_row_set rows, int mode, uint32_t n_rows)
{
    return schedules->of[rows][mode][bucket_of_rows(n_rows)];
}

void whit_exec_schedules_free(const whit_plan *plan, whit_exec_schedules *schedules)
{
    for (uint32_t i = 0; i < schedules->n; i++) whit_schedule_free(plan, &schedules->list[i].schedule);
    whit_free(plan->allocator, schedules->choices, schedules->capacity * sizeof *schedules->choices);
    whit_free(plan->allocator, schedules->choice_of, plan->n_steps * sizeof *schedules->choice_of);
    *schedules = (whit_exec_schedules){0};
}

/* ---- kernels --------------------------------------------------------------------------------- */

static bool is_linear(const whit_plan_step *step)
{
    return step->op == WHIT_PLAN_LINEAR || step->op == WHIT_PLAN_EXPERT_LINEAR;
}

/* Records in `choice` which corrections a matrix has. The second plane reads f32 activations if the matrix does, else
 * int8. */
static void find_corrections(const whit_tensor *tensor, whit_exec_choice *choice)
{
    whit_plane plane;
    whit_low_rank_pair pair;
    if (whit_plane_of(tensor, &plane)) {
        choice->plane = plane.signs.type;
        choice->plane_acts =
            whit_acts_spec_for(&choice->plane, choice->acts.kind == WHIT_ACTS_F32 ? WHIT_ACT_F32 : WHIT_ACT_I8);
    }
    if (whit_low_rank_of(tensor, &pair)) choice->rank = pair.rank;
    choice->has_outliers = tensor->part_bytes[WHIT_PART_OUTLIERS] > 0;
}

/* Returns the index of a matrix's choice, which is added if it is new. Matrices share a choice if their types (apart
 * from the values of scales), activations and corrections are equal. */
static uint32_t choice_of(whit_exec_schedules *s, const whit_plan *plan, const whit_plan_step *step,
                          const whit_tensor *tensors, const whit_kernels *kernels)
{
    whit_exec_choice wanted = {.type = tensors[step->weight].type, .acts = plan->values[step->input[0] - 1].acts};
    wanted.type.scale = wanted.type.scale_b = wanted.type.offset = wanted.acts.scale = 0;
    find_corrections(&tensors[step->weight], &wanted);
    for (uint32_t i = s->n_choices; i-- > 0;)
        if (!memcmp(&s->choices[i].type, &wanted.type, sizeof wanted.type) &&
            !memcmp(&s->choices[i].acts, &wanted.acts, sizeof wanted.acts) &&
            !memcmp(&s->choices[i].plane, &wanted.plane, sizeof wanted.plane) && s->choices[i].rank == wanted.rank &&
            s->choices[i].has_outliers == wanted.has_outliers)
            return i;
    whit_tensor_type low = whit_requantise_type(WHIT_CODEC_I8, WHIT_ADAPTER_MAX_RANK, wanted.type.n_cols);
    for (uint32_t b = 0; b < WHIT_EXEC_BUCKETS; b++) {
        wanted.kernels[b] =
            whit_matmul_find(kernels, &tensors[step->weight].type, &wanted.acts, whit_exec_bucket_rows(b));
        wanted.low_kernels[b] = whit_matmul_find(kernels, &low, &wanted.acts, whit_exec_bucket_rows(b));
        if (wanted.plane.n_cols)
            wanted.plane_kernels[b] =
                whit_matmul_find(kernels, &wanted.plane, &wanted.plane_acts, whit_exec_bucket_rows(b));
    }
    s->choices[s->n_choices] = wanted;
    return s->n_choices++;
}

whit_status whit_exec_choose(const whit_plan *plan, const whit_tensor *tensors, const whit_kernels *kernels,
                             whit_exec_schedules *s, whit_error *error)
{
    *s = (whit_exec_schedules){.screen_rows = kernels->screen_rows};
    for (uint32_t i = 0; i < plan->n_steps; i++) s->capacity += is_linear(&plan->steps[i]);
    s->choice_of = whit_zalloc_array(plan->allocator, plan->n_steps, sizeof *s->choice_of);
    s->choices = whit_zalloc_array(plan->allocator, s->capacity, sizeof *s->choices);
    if (!s->choice_of || (s->capacity && !s->choices))
        return whit_fail_memory(error, "the plan", s->capacity * sizeof *s->choices);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (is_linear(&plan->steps[i])) s->choice_of[i] = choice_of(s, plan, &plan->steps[i], tensors, kernels);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].op == WHIT_PLAN_EXPERT_LINEAR && whit_is_corrected(&tensors[plan->steps[i].weight]))
            return whit_fail(
                error, WHIT_ERROR_UNSUPPORTED,
                "layer %u: corrections of experts' matrices are not supported: compress the model without them",
                plan->steps[i].layer);
    return WHIT_OK;
}

/* ---- schedules ------------------------------------------------------------------------------- */

struct offer {
    const whit_exec_schedules *schedules;
    const whit_tensor *tensors;
    uint32_t bucket;
};

static const whit_matmul_kernel *kernel_of(const struct offer *offer, const whit_plan_step *step)
{
    return offer->schedules->choices[offer->schedules->choice_of[step->number]].kernels[offer->bucket];
}

static bool offers_gated(void *context, const whit_plan_step *gate, const whit_plan_step *gated)
{
    const struct offer *offer = context;
    const whit_tensor_type *a = &offer->tensors[gate->weight].type, *b = &offer->tensors[gated->weight].type;
    const whit_matmul_kernel *kernel = kernel_of(offer, gate);
    if (whit_is_corrected(&offer->tensors[gate->weight]) || whit_is_corrected(&offer->tensors[gated->weight]))
        return false; /* corrections must be added before the gate */
    /* outputs must be rounded before the gate */
    if (whit_fixed_output_scale(a) != 0 || whit_fixed_output_scale(b) != 0) return false;
    return a->codec == b->codec && a->has_offset == b->has_offset && a->n_rows == b->n_rows && a->n_cols == b->n_cols &&
        gate->input[0] == gated->input[0] && kernel->run_gated && kernel == kernel_of(offer, gated);
}

/* Returns whether a product may be fused with the sum that follows it: its kernel must offer that, and its outputs must
 * have no corrections and no fixed scale. With few rows the sum is fused with the norm that follows it instead. */
static bool offers_added(void *context, const whit_plan_step *linear)
{
    const struct offer *offer = context;
    return whit_exec_bucket_rows(offer->bucket) > FEW_ROWS && kernel_of(offer, linear)->run_added != NULL &&
        !whit_is_corrected(&offer->tensors[linear->weight]) &&
        !(whit_fixed_output_scale(&offer->tensors[linear->weight].type) != 0);
}

/* Returns whether bucket b has the same schedule as the previous bucket. */
static bool is_as_before(const whit_exec_schedules *s, const whit_plan *plan, whit_row_set rows, int mode, uint32_t b)
{
    if (rows == WHIT_ROWS_BATCH && whit_exec_bucket_rows(b) == ROTATING_ROWS) return false;
    if (rows == WHIT_ROWS_SELECTED && mode == WHIT_EXEC_SCREENED && whit_exec_bucket_rows(b - 1) == s->screen_rows)
        return false;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (!is_linear(&plan->steps[i]) || plan->steps[i].rows != rows) continue;
        const whit_exec_choice *choice = &s->choices[s->choice_of[i]];
        if (choice->kernels[b] != choice->kernels[b - 1]) return false;
    }
    return true;
}

static whit_status make_schedule(whit_exec_schedules *s, const whit_plan *plan, const whit_tensor *tensors,
                                 whit_row_set rows, int mode, uint32_t bucket, whit_error *error)
{
    struct offer offer = {.schedules = s, .tensors = tensors, .bucket = bucket};
    uint32_t n_rows = whit_exec_bucket_rows(bucket);
    whit_fuse_options options = {.rows = rows,
                                 .is_adapted = rows == WHIT_ROWS_BATCH && mode == WHIT_EXEC_ADAPTED,
                                 .is_screened = rows == WHIT_ROWS_SELECTED && mode == WHIT_EXEC_SCREENED &&
                                     n_rows <= s->screen_rows,
                                 .rotates_in_attend = n_rows >= ROTATING_ROWS,
                                 .context = &offer,
                                 .offers_gated = offers_gated,
                                 .offers_added = offers_added};
    struct whit_exec_scheduled *made = &s->list[s->n];
    *made = (struct whit_exec_scheduled){.bucket = bucket, .rows = (uint8_t)rows, .mode = (uint8_t)mode};
    WHIT_TRY(whit_plan_fuse(plan, &options, &made->schedule, error));
    s->n++;
    return WHIT_OK;
}

whit_status whit_exec_schedules_make(const whit_plan *plan, const whit_tensor *tensors, uint32_t n_batch_rows,
                                     uint32_t n_selected_rows, whit_exec_schedules *s, whit_error *error)
{
    if (n_selected_rows > n_batch_rows) n_selected_rows = n_batch_rows; /* a pass selects at most all of its rows */
    s->n_buckets[WHIT_ROWS_BATCH] = bucket_of_rows(n_batch_rows) + 1;
    s->n_buckets[WHIT_ROWS_SELECTED] = n_selected_rows ? bucket_of_rows(n_selected_rows) + 1 : 0;
    for (int rows = 0; rows < WHIT_ROWS_COUNT; rows++)
        for (int mode = 0; mode < WHIT_EXEC_MODES; mode++)
            for (uint32_t b = 0; b < s->n_buckets[rows]; b++) {
                if (b == 0 || !is_as_before(s, plan, (whit_row_set)rows, mode, b))
                    WHIT_TRY(make_schedule(s, plan, tensors, (whit_row_set)rows, mode, b, error));
                s->of[rows][mode][b] = (uint8_t)(s->n - 1);
            }
    return WHIT_OK;
}
