/* SPDX-License-Identifier: MIT */
#include "base/phrase.h"
#include "compress/compress.h"

#include "base/clock.h"
#include "base/items.h"
#include "compress/experts.h"
#include "compress/finished.h"
#include "compress/hessian.h"
#include "compress/matrix.h"
#include "compress/rotate.h"
#include "compress/stages.h"
#include "compress/targets.h"
#include "compress/types.h"
#include "compress/weighted.h"
#include "compress/work.h"
#include "model/convert.h"
#include "quant/quantise.h"
#include "quant/requantise.h"

#include <limits.h>
#include <stdio.h>

#define LONGEST 512 /* longest default window, in tokens */
/* Maximum number of reports per layer; further reports are dropped. v and o may have two each: without the rotation
 * (rotate.h) and with it. */
#define REPORTS 16
/* Must be incremented with every change of the solver that changes its results, so that no run resumes with matrices of
 * another solver. */
#define SOLVER_VERSION 4

/* Share of the error that a rotation must save to be kept. Smaller savings are chance: most layers of prose-6M vary by
 * 0.4 % in both directions. */
#define LEAST_GAIN 0.02

struct compression {
    const whit_source *source;
    const whit_compress_options *options;
    whit_compress_types types;
    const whit_allocator *allocator;
    whit_error *error;
    whit_pool *pool;
    whit_blas blas;
    whit_stream stream;
    whit_work work;
    whit_budget_choice *choices; /* (n_tensors) the budget's choice for each tensor */
    whit_buf choice_text;        /* text about the budget's choice */
    whit_finished *finished;     /* (n_tensors) finished matrices; the name is empty if a tensor is not finished */
    bool has_form;               /* the codec is a type of GGUF files, or options->like is given */
    char folder[PATH_MAX];       /* folder of the finished file, for unnamed files (spool.h) */
    uint64_t began_ns;
    uint32_t layer;
    /* State of the current layer: the rotation that is tried, whether the stream has the rotated weights, and the
     * reports that are sent after the choice between the variants. */
    whit_rotation rotation;
    bool rotated;
    whit_compress_report reports[REPORTS];
    uint32_t n_reports;
    /* Approximate numbers of multiply-adds: of the current layer, of its finished pieces of work, and of the current
     * piece. */
    double layer_cost, done_cost, work_cost;
    double shown;      /* largest share that was reported; repeated work does not lower it */
    bool is_cancelled; /* the progress callback has returned false */
};

unsigned whit_compress_stage_named(const char *name)
{
    static const char *const names[] = {"qep",   "residual", "order",    "descent", "outliers",
                                        "plane", "lowrank",  "rotation", "anneal"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return 1u << i;
    return 0;
}

/* ---- types of tensors in the finished file -------------------------------------------------------------- */

/* If the file is for GGUF, changes the embedding and the head to q8_0. Returns false if the tensor keeps its type, for
 * example because its rows do not divide into blocks of 32. */
static bool change_table(const struct compression *c, const whit_source_tensor *tensor, whit_convert_change *to)
{
    if (strncmp(tensor->name, "layers.", 7) == 0 || !c->has_form || tensor->type.layout != WHIT_LAYOUT_TILE16 ||
        tensor->type.n_cols % 32)
        return false;
    *to = (whit_convert_change){.type = {.codec = WHIT_CODEC_I8,
                                         .layout = WHIT_LAYOUT_TILE16,
                                         .scale_kind = WHIT_SCALE_GROUP,
                                         .scale_type = WHIT_SCALE_F16,
                                         .group = 32,
                                         .n_rows = tensor->type.n_rows,
                                         .n_cols = tensor->type.n_cols}};
    return true;
}

static bool change(void *user, const whit_source_tensor *tensor, whit_convert_change *to)
{
    struct compression *c = user;
    if (!whit_compress_is_layer_matrix(tensor)) return change_table(c, tensor, to);
    const whit_finished *finished = &c->finished[tensor - c->source->tensors];
    *to = (whit_convert_change){0};
    /* Cannot fail, since all types were checked before. */
    if (whit_compress_type_of(&c->types, tensor, &to->type, c->error) != WHIT_OK) return false;
    if (finished->name[0]) {
        to->finished = &finished->tensor;
        to->digest = finished->digest;
    }
    return true;
}

/* ---- progress --------------------------------------------------------------------------------------- */

/* Returns whether this process writes files. Of several ranks, only rank 0 does. */
static bool is_first(const struct compression *c)
{
    return !c->options->ranks || !c->options->ranks->rank;
}

static whit_status progress(struct compression *c, double share)
{
    const whit_compress_options *o = c->options;
    if (share > c->shown) c->shown = share;
    c->is_cancelled = c->is_cancelled || (o->progress && !o->progress(o->user, "compressing", c->shown));
    if (!c->is_cancelled) return WHIT_OK;
    return whit_fail(c->error, WHIT_ERROR_CANCELLED, "%s: compression cancelled", c->source->path);
}

/* Returns the approximate cost of solving a matrix, in multiply-adds: products with the Hessian of its inputs. */
static double cost_of_matrix(const whit_tensor_type *type)
{
    const double products = 80;
    return products * type->n_rows * type->n_cols * type->n_cols;
}

/* Returns the approximate cost of running the text before a stage, in multiply-adds: computing the Hessians, and
 * running both sides of the stream. */
static double cost_of_text(const struct compression *c, const whit_layer_stage *stage)
{
    const whit_tensor_type *type = &c->stream.params[0].items[stage->params[0]].type;
    double tokens = (double)c->stream.n_batches * c->stream.n_rows;
    return tokens * 2 * ((double)type->n_cols * type->n_cols + (double)c->stream.weight_elems / 2);
}

/* Returns the approximate cost of computing the text's activations after the layer, in multiply-adds. */
static double cost_of_advance(const struct compression *c)
{
    return 2 * (double)c->stream.n_batches * c->stream.n_rows * (double)c->stream.weight_elems;
}

static double cost_of_layer(const struct compression *c)
{
    whit_layer_stage stage;
    double cost = cost_of_advance(c);
    for (uint32_t at = 0; whit_layer_next_stage(&c->stream, &at, &stage);) {
        cost += cost_of_text(c, &stage);
        for (uint32_t i = 0; i < stage.n; i++) cost += cost_of_matrix(&c->stream.params[0].items[stage.params[i]].type);
    }
    return cost;
}

static whit_status spend(struct compression *c, double cost)
{
    c->done_cost += cost;
    double share = c->done_cost < c->layer_cost ? c->done_cost / c->layer_cost : 1;
    return progress(c, ((double)c->layer + share) / c->source->config.n_layers);
}

/* Reports the progress within the current piece of work. Its cost is added to done_cost only when it is finished. */
static bool tell_work(void *user, double share)
{
    struct compression *c = user;
    const double done_cost = c->done_cost;
    whit_status status = spend(c, share * c->work_cost);
    c->done_cost = done_cost;
    return status == WHIT_OK;
}

/* ---- solving a matrix ----------------------------------------------------------------------------- */

static whit_finished *finished_of(const struct compression *c, int32_t param)
{
    return &c->finished[whit_source_find(c->source, c->stream.params[0].items[param].name) - c->source->tensors];
}

/* Returns which matrix of the tried rotation this is (WHIT_ROTATED_V or WHIT_ROTATED_O); -1 if neither. */
static int rotated_part(const struct compression *c, int32_t param)
{
    for (int i = 0; c->rotation.stream && i < WHIT_ROTATED_COUNT; i++)
        if (c->rotation.params[i] == param) return i;
    return -1;
}

/* Decodes a tensor's values with the same order of operations as a reader of the file. */
static void read_values(const whit_tensor *tensor, float *values)
{
    for (int32_t row = 0; row < (int32_t)tensor->type.n_rows; row++)
        whit_codec_get_rows(tensor, &row, 1, values + (size_t)row * tensor->type.n_cols, tensor->type.n_cols);
}

/* Rounds a matrix to i8 or floats as the conversion will do later. A float matrix reads unrounded inputs, even in a
 * W1.58A8 model. */
static whit_status round_plainly(struct compression *c, int32_t param, const whit_tensor_type *type)
{
    float *values = whit_stream_values(&c->stream, WHIT_STREAM_COMPRESSED, param), fields[1];
    size_t n = type->n_cols;
    void *elems = whit_zalloc_array(c->allocator, n, sizeof(float));
    if (!elems) return whit_fail_memory(c->error, "a row of a matrix", n * sizeof(float));
    whit_rows row = {.elems = elems, .fields = fields};
    c->stream.params[WHIT_STREAM_COMPRESSED].items[param].rounds_input = type->act == WHIT_TENSOR_ACT_TOKEN;
    for (size_t r = 0; r < type->n_rows; r++) {
        whit_requantise_row(type, values + r * n, &row);
        whit_requantise_values(type, &row, values + r * n);
    }
    whit_free(c->allocator, elems, n * sizeof(float));
    return WHIT_OK;
}

static void add_report(struct compression *c, whit_compress_report report)
{
    if (c->n_reports == REPORTS) return;
    report.layer = c->layer;
    report.n_layers = c->source->config.n_layers;
    report.elapsed_ns = whit_now_ns() - c->began_ns;
    c->reports[c->n_reports++] = report;
}

static whit_status solve_matrix(struct compression *c, const whit_layer_stage *stage, uint32_t i,
                                whit_hessian_pair *hessians, const whit_factor *factor, const whit_tensor_type *type)
{
    int32_t param = stage->params[i];
    const char *name = c->stream.params[0].items[param].name;
    whit_finished *finished = finished_of(c, param);
    whit_matrix_solve m = {.type = type,
                           .w = whit_stream_values(&c->stream, WHIT_STREAM_ORIGINAL, param),
                           .values = whit_stream_values(&c->stream, WHIT_STREAM_COMPRESSED, param),
                           .hessians = hessians,
                           .factor = factor,
                           .moved = c->types.stages & WHIT_STAGE_QEP,
                           .descends = c->types.stages & WHIT_STAGE_DESCENT,
                           .anneals = c->types.stages & WHIT_STAGE_ANNEAL,
                           .within = {tell_work, c},
                           .only = stage->n == 1 && rotated_part(c, param) != WHIT_ROTATED_V,
                           .sizes = whit_compress_correction_sizes(&c->types, whit_source_find(c->source, name), type)};
    whit_status status = whit_matrix_run(&m, &c->blas, c->pool, c->allocator, c->error);
    if (status == WHIT_OK)
        status = whit_finished_make(finished, name, type,
                                    &(whit_rows){.elems = m.codes, .fields = m.fields, .fields_u8 = m.fields_u8},
                                    m.corrected.parts, c->allocator, c->error);
    if (status == WHIT_OK && whit_is_corrected(&finished->tensor)) read_values(&finished->tensor, m.values);
    if (status == WHIT_OK)
        add_report(c,
                   (whit_compress_report){.name = name,
                                          .error_gptq = m.error_gptq,
                                          .error = m.error,
                                          .sweeps = m.sweeps,
                                          .n_outliers = m.corrected.n_outliers,
                                          .rotated = c->rotated,
                                          .bytes = whit_codec_tensor_bytes(&finished->tensor)});
    whit_matrix_free(&m, c->allocator);
    return status;
}

/* ---- the rotation of v and o (rotate.h) ------------------------------------------------------------- */

/* Prepares the rotation if both v and o of the layer will be solved (and not only rounded to i8 or floats). */
static whit_status begin_rotation(struct compression *c)
{
    if (!(c->types.stages & WHIT_STAGE_ROTATION) || !whit_rotation_find(&c->stream, &c->rotation)) return WHIT_OK;
    bool solved = true;
    for (int i = 0; i < WHIT_ROTATED_COUNT; i++) {
        whit_tensor_type type;
        const char *name = c->stream.params[0].items[c->rotation.params[i]].name;
        WHIT_TRY(whit_compress_type_of(&c->types, whit_source_find(c->source, name), &type, c->error));
        solved = solved && whit_compress_is_solved(&type);
    }
    if (solved) return whit_rotation_open(&c->rotation, c->error);
    whit_rotation_close(&c->rotation);
    return WHIT_OK;
}

static void swap_variant(struct compression *c, int part)
{
    whit_rotation_swap_rounded(&c->rotation, part, finished_of(c, c->rotation.params[part]));
}

/* Sends the reports on the matrices that the file gets. `rotated`: the rotated variants of v and o were kept. */
static void send_reports(struct compression *c, bool rotated)
{
    for (uint32_t i = 0; i < c->n_reports; i++) {
        whit_compress_report *report = &c->reports[i];
        const whit_source_tensor *tensor = whit_source_find(c->source, report->name);
        int32_t param = whit_params_find(&c->stream.params[0], report->name);
        if (rotated_part(c, param) >= 0 && report->rotated != rotated) continue;
        report->type = &c->finished[tensor - c->source->tensors].tensor.type;
        if (c->options->report) c->options->report(c->options->user, report);
    }
    c->n_reports = 0;
}

/* ---- solving a stage -------------------------------------------------------------------------------- */

/* Returns the number of adjacent columns that the solver treats as a unit: the largest group that a matrix of the stage
 * needs. The groups of its other matrices divide this number. */
static uint32_t stage_group(const struct compression *c, const whit_layer_stage *stage)
{
    uint32_t group = 0;
    for (uint32_t i = 0; i < stage->n; i++) {
        whit_tensor_type type;
        const char *name = c->stream.params[0].items[stage->params[i]].name;
        if (whit_compress_type_of(&c->types, whit_source_find(c->source, name), &type, c->error) != WHIT_OK) continue;
        uint32_t own = whit_compress_is_solved(&type) ? whit_compress_walk_group(&type) : 0;
        if (own > group) group = own;
    }
    return group;
}

static whit_status wanted_residual(const struct compression *c, const whit_layer_stage *stage, whit_ref *residual)
{
    if ((c->types.stages & WHIT_STAGE_RESIDUAL) && (c->types.stages & WHIT_STAGE_QEP))
        return whit_stage_residual(&c->stream, stage, residual, c->error);
    *residual = 0;
    return WHIT_OK;
}

/* Solves the matrices of the experts of a layer. */
static whit_status run_expert_stage(struct compression *c, const whit_layer_stage *stage)
{
    const whit_params *params = &c->stream.params[0];
    whit_expert_stage experts = {.stream = &c->stream,
                                 .blas = &c->blas,
                                 .stages = c->types.stages,
                                 .input = stage->input,
                                 .n_experts = stage->n_experts,
                                 .group = stage_group(c, stage),
                                 .within = {tell_work, c}};
    double cost = cost_of_text(c, stage);
    for (uint32_t i = 0; i < stage->n; i++) {
        whit_expert_matrix *m = &experts.matrices[experts.n];
        const char *name = params->items[stage->params[i]].name;
        WHIT_TRY(whit_compress_type_of(&c->types, whit_source_find(c->source, name), &m->type, c->error));
        if (!whit_compress_is_solved(&m->type)) {
            WHIT_TRY(round_plainly(c, stage->params[i], &m->type));
            WHIT_TRY(spend(c, cost_of_matrix(&m->type)));
            continue;
        }
        cost += cost_of_matrix(&m->type);
        m->param = stage->params[i];
        m->finished = finished_of(c, m->param);
        experts.n++;
    }
    WHIT_TRY(wanted_residual(c, stage, &experts.residual));
    c->work_cost = cost;
    if (experts.n) WHIT_TRY(whit_experts_solve(&experts, c->error));
    whit_stream_rest(&c->stream);
    for (uint32_t i = 0; i < experts.n; i++)
        add_report(c,
                   (whit_compress_report){.name = params->items[experts.matrices[i].param].name,
                                          .error_gptq = experts.matrices[i].error_gptq,
                                          .error = experts.matrices[i].error,
                                          .sweeps = experts.matrices[i].sweeps,
                                          .n_experts = stage->n_experts,
                                          .n_unseen = experts.n_unseen,
                                          .bytes = whit_codec_tensor_bytes(&experts.matrices[i].finished->tensor)});
    return spend(c, cost);
}

static whit_status run_stage(struct compression *c, const whit_layer_stage *stage)
{
    if (stage->n_experts) return run_expert_stage(c, stage);
    whit_hessian_pair hessians = {0};
    whit_factor factor = {0};
    const whit_params *params = &c->stream.params[0];
    whit_ref residual = 0;
    WHIT_TRY(wanted_residual(c, stage, &residual));
    c->work_cost = cost_of_text(c, stage);
    whit_status status =
        whit_hessian_gather(&hessians, &c->stream, &c->blas, stage->input, c->types.stages & WHIT_STAGE_QEP, residual,
                            params->items[stage->params[0]].type.n_rows, NULL, c->error);
    whit_stream_rest(&c->stream);
    if (status == WHIT_OK) status = spend(c, cost_of_text(c, stage));
    for (uint32_t i = 0; status == WHIT_OK && i < stage->n; i++) {
        const char *name = params->items[stage->params[i]].name;
        whit_tensor_type type;
        status = whit_compress_type_of(&c->types, whit_source_find(c->source, name), &type, c->error);
        if (status != WHIT_OK) break;
        if (!whit_compress_is_solved(&type)) {
            status = round_plainly(c, stage->params[i], &type);
            if (status == WHIT_OK) status = spend(c, cost_of_matrix(&type));
            continue;
        }
        if (!factor.upper)
            status = whit_factor_make(&hessians.text, stage_group(c, stage), c->types.stages & WHIT_STAGE_ORDER, name,
                                      &c->blas, c->pool, c->allocator, &(whit_within){tell_work, c}, &factor, c->error);
        c->work_cost = cost_of_matrix(&type);
        if (status == WHIT_OK) status = solve_matrix(c, stage, i, &hessians, &factor, &type);
        if (status == WHIT_OK) status = spend(c, cost_of_matrix(&type));
        if (status != WHIT_OK || rotated_part(c, stage->params[i]) != WHIT_ROTATED_V) continue;
        /* The rotated variant of v has the same inputs, and so the same Hessian. */
        whit_rotation_swap_originals(&c->rotation);
        swap_variant(c, WHIT_ROTATED_V);
        c->rotated = true;
        status = solve_matrix(c, stage, i, &hessians, &factor, &type);
        c->rotated = false;
        swap_variant(c, WHIT_ROTATED_V);
        whit_rotation_swap_originals(&c->rotation);
    }
    whit_factor_free(&factor);
    whit_hessian_free(&hessians);
    return status;
}

/* Solves o again with rotated weights, after stage `o`; v's rotated variant was solved with its stage. Keeps the
 * rotated variant only if its error is smaller by at least the share LEAST_GAIN. The original side of the stream gets
 * its weights back, so that a run that is resumed after this layer sees the same text. */
static whit_status try_rotation(struct compression *c, const whit_layer_stage *stage)
{
    WHIT_TRY(whit_stream_wake(&c->stream, c->error));
    double plain, rotated = 0;
    WHIT_TRY(whit_rotation_measure(&c->rotation, &plain, c->error));
    whit_rotation_swap_originals(&c->rotation);
    swap_variant(c, WHIT_ROTATED_V);
    swap_variant(c, WHIT_ROTATED_O);
    c->rotated = true;
    whit_status status = run_stage(c, stage);
    c->rotated = false;
    if (status == WHIT_OK) status = whit_stream_wake(&c->stream, c->error);
    if (status == WHIT_OK) status = whit_rotation_measure(&c->rotation, &rotated, c->error);
    bool better = status == WHIT_OK && rotated < (1 - LEAST_GAIN) * plain;
    whit_rotation_swap_originals(&c->rotation);
    if (!better) swap_variant(c, WHIT_ROTATED_V);
    if (!better) swap_variant(c, WHIT_ROTATED_O);
    if (status == WHIT_OK) send_reports(c, better);
    whit_rotation_close(&c->rotation);
    return status;
}

static whit_status solve_stage(struct compression *c, const whit_layer_stage *stage)
{
    WHIT_TRY(run_stage(c, stage));
    for (uint32_t i = 0; i < stage->n; i++)
        if (rotated_part(c, stage->params[i]) == WHIT_ROTATED_O) return try_rotation(c, stage);
    if (!c->rotation.stream) send_reports(c, false);
    return WHIT_OK;
}

/* Loads the matrices of a stage that an earlier run has finished into the stream, with the values that the file
 * stores. */
static whit_status restore_stage(struct compression *c, const whit_layer_stage *stage)
{
    whit_status status = WHIT_OK;
    for (uint32_t i = 0; status == WHIT_OK && i < stage->n; i++) {
        int32_t param = stage->params[i];
        const whit_finished *finished = finished_of(c, param);
        whit_tensor_type type;
        status = whit_compress_type_of(&c->types, whit_source_find(c->source, c->stream.params[0].items[param].name),
                                       &type, c->error);
        if (status == WHIT_OK && !whit_compress_is_solved(&type)) status = round_plainly(c, param, &type);
        float *values = whit_stream_values(&c->stream, WHIT_STREAM_COMPRESSED, param);
        for (int32_t row = 0; status == WHIT_OK && finished->name[0] && row < (int32_t)type.n_rows; row++)
            whit_codec_get_rows(&finished->tensor, &row, 1, values + (size_t)row * type.n_cols, type.n_cols);
    }
    return status;
}

/* Returns whether the interrupted run, which this one resumes, had finished the current layer. A record of the work
 * file contains a whole layer, so one finished matrix suffices. */
static bool is_finished(const struct compression *c)
{
    whit_layer_stage stage;
    for (uint32_t at = 0; whit_layer_next_stage(&c->stream, &at, &stage);)
        for (uint32_t i = 0; i < stage.n; i++)
            if (finished_of(c, stage.params[i])->name[0]) return true;
    return false;
}

static whit_status save_layer(struct compression *c)
{
    uint32_t n_params = c->stream.params[0].n, n = 0, at = 0;
    whit_finished **finished = whit_zalloc_array(c->allocator, n_params, sizeof(whit_finished *));
    whit_layer_stage stage;
    if (!finished) return whit_fail_memory(c->error, "a finished layer", n_params * sizeof(whit_finished *));
    while (whit_layer_next_stage(&c->stream, &at, &stage))
        for (uint32_t i = 0; i < stage.n; i++)
            if (finished_of(c, stage.params[i])->name[0]) finished[n++] = finished_of(c, stage.params[i]);
    whit_status status = n && is_first(c) ? whit_work_add(&c->work, finished, n, c->error) : WHIT_OK;
    for (uint32_t i = 0; status == WHIT_OK && i < n; i++) whit_finished_spool(finished[i], c->folder, c->allocator);
    whit_free(c->allocator, finished, n_params * sizeof(whit_finished *));
    return status;
}

static whit_status run_layers(struct compression *c)
{
    uint32_t n_layers = c->source->config.n_layers;
    whit_status status = WHIT_OK;
    for (c->layer = 0; status == WHIT_OK && c->layer < n_layers; c->layer++) {
        whit_layer_stage stage;
        uint32_t at = 0;
        status = whit_stream_load(&c->stream, c->layer, c->error);
        c->done_cost = 0;
        if (status == WHIT_OK) c->layer_cost = cost_of_layer(c);
        bool restored = status == WHIT_OK && is_finished(c);
        if (status == WHIT_OK && !restored) status = begin_rotation(c);
        while (status == WHIT_OK && whit_layer_next_stage(&c->stream, &at, &stage)) {
            status = (restored ? restore_stage : solve_stage)(c, &stage);
            if (status == WHIT_OK && restored) status = spend(c, c->layer_cost / 4);
        }
        if (status == WHIT_OK && !restored) status = save_layer(c);
        if (status == WHIT_OK && c->layer + 1 < n_layers) {
            status = whit_stream_wake(&c->stream, c->error);
            c->work_cost = cost_of_advance(c) / WHIT_STREAM_SIDES;
            for (int side = 0; status == WHIT_OK && side < WHIT_STREAM_SIDES; side++) {
                whit_stream_advance(&c->stream, (whit_stream_side)side);
                status = spend(c, c->work_cost);
            }
        }
        whit_rotation_close(&c->rotation);
    }
    return status;
}

struct digest_job {
    const struct compression *c;
    _Atomic uint32_t n_done;
    uint8_t (*digests)[WHIT_HASH_BYTES]; /* (n_tensors) hash of each tensor's weights */
};

static whit_status digest_tensor(void *context, uint32_t worker, uint32_t i, whit_error *error)
{
    struct digest_job *job = context;
    const struct compression *c = job->c;
    const whit_compress_options *o = c->options;
    const whit_source_tensor *tensor = &c->source->tensors[i];
    size_t n = tensor->type.n_cols;
    float *row = whit_zalloc_array(c->allocator, n, sizeof *row);
    whit_status status = row ? WHIT_OK : whit_fail_memory(error, "a row of a matrix", n * sizeof *row);
    whit_hash hash;
    whit_hash_begin(&hash, "whit.compress");
    whit_hash_add(&hash, tensor->name, sizeof tensor->name);
    whit_hash_add(&hash, &tensor->type, sizeof tensor->type);
    for (uint32_t r = 0; status == WHIT_OK && r < tensor->type.n_rows; r++) {
        status = whit_stream_read_row(tensor, r, row, c->allocator, error);
        whit_hash_add(&hash, row, n * sizeof *row);
    }
    whit_hash_end(&hash, job->digests[i]);
    if (tensor->drop) tensor->drop(tensor);
    whit_free(c->allocator, row, n * sizeof *row);
    const double share = (double)++job->n_done / c->source->n_tensors;
    if (status == WHIT_OK && !worker && o->progress && !o->progress(o->user, "reading the model", share))
        return whit_fail(error, WHIT_ERROR_CANCELLED, "%s: compression cancelled", c->source->path);
    return status;
}

static void add_config(whit_hash *hash, const whit_config *config)
{
    whit_config_number number;
    whit_hash_add(hash, config->family, strlen(config->family) + 1);
    if (config->program) whit_hash_add(hash, config->program, strlen(config->program));
    for (size_t i = 0; whit_config_number_at(config, i, &number); i++) {
        whit_hash_add_u64(hash, (uint64_t)number.i);
        whit_hash_add(hash, &number.f, sizeof number.f);
    }
    for (uint32_t i = 0; config->n_kinds && i < config->n_layers; i++) {
        const whit_layer_kind kind = whit_config_kind(config, i);
        whit_hash_add(hash, &kind, sizeof kind);
    }
    for (uint32_t i = 0; i < config->n_ropes; i++) {
        const whit_rope *r = &config->ropes[i];
        const double numbers[] = {r->theta,  r->dims,   r->scaling,   r->has_factors, r->rounds,
                                  r->factor, r->length, r->beta_fast, r->beta_slow,   r->magnitude};
        whit_hash_add(hash, numbers, sizeof numbers);
    }
}

/* Hashes everything that the finished matrices depend on: the versions of the solver and of whit, the options, the
 * text, the configuration, all weights, and the order of sums (BLAS library, vector loops, ranks). */
static whit_status find_settings(const struct compression *c, uint8_t settings[WHIT_HASH_BYTES])
{
    const whit_compress_options *o = c->options;
    const uint64_t counts[] = {SOLVER_VERSION,
                               o->method,
                               c->types.stages,
                               o->group,
                               o->n_ids,
                               o->n_tokens,
                               o->max_tokens,
                               (uint64_t)o->bos,
                               o->n_mixed,
                               c->blas.library != NULL,
                               o->u8_scales,
                               (uint64_t)(o->outlier_percent * 1e6f),
                               (uint64_t)(o->plane_percent * 1e6f),
                               o->rank,
                               (uint64_t)(o->bits * 1e6)};
    const char *loops = c->blas.loops == &whit_loops_generic ? "generic" : "vectors";
    struct digest_job job = {c, 0, whit_zalloc_array(c->allocator, c->source->n_tensors, sizeof *job.digests)};
    size_t digests_bytes = c->source->n_tensors * sizeof *job.digests;
    if (!job.digests) return whit_fail_memory(c->error, "the compression", digests_bytes);
    whit_status status = whit_pool_try(c->pool, digest_tensor, &job, c->source->n_tensors, 1, c->error);
    whit_hash hash;
    whit_hash_begin(&hash, "whit.compress");
    whit_hash_add(&hash, counts, sizeof counts);
    whit_hash_add(&hash, whit_version(), strlen(whit_version()) + 1);
    whit_hash_add(&hash, loops, strlen(loops));
    whit_hash_add(&hash, o->codec, strlen(o->codec) + 1);
    whit_hash_add(&hash, whit_or_empty(o->embedding), o->embedding ? strlen(o->embedding) + 1 : 1);
    for (size_t i = 0; i < o->n_mixed; i++) whit_hash_add(&hash, o->mixed[i], strlen(o->mixed[i]) + 1);
    whit_hash_add(&hash, o->ids, o->n_ids * sizeof *o->ids);
    add_config(&hash, &c->source->config);
    if (o->ranks) whit_hash_add(&hash, "ranks", 5); /* several ranks add the sums in another order */
    whit_hash_add(&hash, job.digests, digests_bytes);
    whit_hash_end(&hash, settings);
    whit_free(c->allocator, job.digests, digests_bytes);
    return status;
}

static whit_status take_finished(void *user, whit_finished *finished, whit_error *error)
{
    struct compression *c = user;
    const whit_source_tensor *tensor = whit_source_find(c->source, finished->name);
    whit_tensor_type type;
    whit_status status = WHIT_OK;
    if (!tensor || c->finished[tensor - c->source->tensors].name[0])
        status = whit_fail(
            error, WHIT_ERROR_FORMAT,
            "the work file (OUT.work) has a matrix '%s' that these settings do not compress: remove that file",
            finished->name);
    if (status == WHIT_OK) status = whit_compress_type_of(&c->types, tensor, &type, c->error);
    if (status == WHIT_OK && memcmp(&type, &finished->tensor.type, sizeof type) != 0)
        status = whit_fail(error, WHIT_ERROR_FORMAT,
                           "the work file (OUT.work) stores '%s' in another type than these settings: remove that file",
                           finished->name);
    if (status == WHIT_OK) {
        whit_finished_spool(finished, c->folder, c->allocator);
        c->finished[tensor - c->source->tensors] = *finished;
    } else {
        whit_finished_free(finished, c->allocator);
    }
    return status;
}

/* Waits until rank 0 has opened the work file. Fails if that failed, or if settings (options, text and weights) differ
 * from those of rank 0. */
static whit_status agree(struct compression *c, const uint8_t settings[WHIT_HASH_BYTES], whit_status status)
{
    const whit_ranks *ranks = c->options->ranks;
    uint8_t first[WHIT_HASH_BYTES + 1];
    memcpy(first, settings, WHIT_HASH_BYTES);
    first[WHIT_HASH_BYTES] = status != WHIT_OK;
    if (!ranks->broadcast(ranks->user, first, sizeof first))
        return whit_fail(c->error, WHIT_ERROR_IO,
                         "the process of another rank has ended, and its machine's output says why");
    if (status == WHIT_OK && first[WHIT_HASH_BYTES])
        return whit_fail(c->error, WHIT_ERROR_IO,
                         "rank 0 could not open its work file, and its machine's output says why");
    if (status == WHIT_OK && memcmp(first, settings, WHIT_HASH_BYTES) != 0)
        return whit_fail(c->error, WHIT_ERROR_ARGUMENT,
                         "%s: rank %u has another model, text or kind of CPU than rank 0: all machines need the same",
                         c->source->path, ranks->rank);
    return status;
}

static whit_status open_work(struct compression *c, const char *path)
{
    uint8_t settings[WHIT_HASH_BYTES];
    whit_buf name = {.allocator = c->allocator};
    WHIT_TRY(find_settings(c, settings));
    if (c->options->work)
        whit_buf_append_str(&name, c->options->work);
    else
        whit_buf_printf(&name, "%s.work", path);
    if (!whit_buf_append(&name, "", 1)) return whit_fail_memory(c->error, "a file name", strlen(path));
    whit_status status = WHIT_OK;
    if (is_first(c))
        status = whit_work_open(&c->work, whit_chars(&name), settings, c->options->resume, take_finished, c,
                                c->allocator, c->error);
    if (c->options->ranks) status = agree(c, settings, status);
    if (status == WHIT_OK && !is_first(c) && c->options->resume)
        status = whit_work_read(whit_chars(&name), settings, take_finished, c, c->allocator, c->error);
    whit_buf_free(&name);
    return status;
}

/* ---- the whole model -------------------------------------------------------------------------------- */

static bool all_finished(const struct compression *c)
{
    for (uint32_t i = 0; i < c->source->n_tensors; i++) {
        whit_tensor_type type;
        if (!whit_compress_is_layer_matrix(&c->source->tensors[i]) ||
            whit_compress_type_of(&c->types, &c->source->tensors[i], &type, c->error) != WHIT_OK)
            continue;
        if (whit_compress_is_solved(&type) && !c->finished[i].name[0]) return false;
    }
    return true;
}

/* Chooses the types of the matrices within the budget. A resumed run repeats this with the same result. */
static whit_status choose_codecs(struct compression *c, uint32_t n_tokens, const whit_tensor_type *embed_type)
{
    const whit_compress_options *o = c->options;
    whit_budget budget = {.source = c->source,
                          .bits = o->bits,
                          .ids = o->ids,
                          .n_ids = o->n_ids,
                          .n_tokens = n_tokens,
                          .bos = o->bos,
                          .embed = embed_type,
                          .folder = c->folder,
                          .blas = &c->blas,
                          .pool = c->pool,
                          .allocator = c->allocator,
                          .multiply_adds = o->multiply_adds,
                          .progress = o->progress,
                          .user = o->user,
                          .choices = c->choices,
                          .text = {.allocator = c->allocator}};
    whit_status status = whit_budget_choose(&budget, c->error);
    c->types.choices = c->choices;
    c->choice_text = budget.text;
    if (status == WHIT_OK && o->chosen) o->chosen(o->user, whit_chars(&c->choice_text));
    return status;
}

static whit_status solve_all(struct compression *c, const whit_convert_options *convert, const char *path)
{
    const whit_compress_options *o = c->options;
    const whit_source_tensor *embed = whit_source_find(c->source, "embed");
    uint8_t codec;
    whit_tensor_type embed_type;
    if (!embed || !whit_codec_parse(convert->embd, &codec))
        return whit_fail(c->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the model has no embedding, without which it cannot be compressed", c->source->path);
    embed_type = whit_requantise_type(codec, embed->type.n_rows, embed->type.n_cols);
    uint32_t n_ctx = c->source->config.n_ctx;
    uint32_t n_tokens = LONGEST;
    if (o->n_tokens)
        n_tokens = o->n_tokens;
    else if (n_ctx < LONGEST)
        n_tokens = n_ctx;
    if (n_tokens > n_ctx)
        return whit_fail(c->error, WHIT_ERROR_ARGUMENT,
                         "windows of %u tokens (-c) are longer than the model's context of %u: choose a smaller -c",
                         n_tokens, n_ctx);
    WHIT_TRY(whit_blas_open(&c->blas, WHIT_PRECISION_F32, whit_loops_find(), 0, 0, whit_pool_size(c->pool),
                            c->allocator, c->error));
    c->blas.multiply_adds = o->multiply_adds;
    whit_status status = WHIT_OK;
    const char *slash = strrchr(path, '/');
    int n_folder = slash ? (int)(slash - path) + 1 : 1;
    snprintf(c->folder, sizeof c->folder, "%.*s", n_folder, slash ? path : ".");
    if (o->bits > 0) status = choose_codecs(c, n_tokens, &embed_type);
    if (status == WHIT_OK) status = open_work(c, path);
    if (status == WHIT_OK && !all_finished(c)) {
        status = whit_stream_open(&c->stream, c->source, o->ids, o->n_ids, n_tokens, o->max_tokens, o->bos, &embed_type,
                                  c->folder, c->pool, c->allocator, c->error);
        c->stream.multiply_adds = o->multiply_adds;
        c->stream.within = (whit_within){tell_work, c};
        c->stream.ranks = o->ranks;
        if (status == WHIT_OK) status = run_layers(c);
    }
    whit_stream_close(&c->stream);
    whit_blas_close(&c->blas);
    return status;
}

/* The tensor that round_all is rounding; tell_rounded reports its progress. */
struct rounded_tensor {
    struct compression *c;
    uint32_t i;
};

static bool tell_rounded(void *user, double share)
{
    const struct rounded_tensor *at = user;
    return progress(at->c, (at->i + share) / at->c->source->n_tensors) == WHIT_OK;
}

/* Rounds every matrix that becomes neither i8 nor floats, each independently. If there is an importance matrix, its
 * diagonal weights the errors. */
static whit_status round_all(struct compression *c)
{
    const whit_compress_options *o = c->options;
    if (o->imatrix) WHIT_TRY(whit_weighted_check(o->imatrix, c->source, c->error));
    for (uint32_t i = 0; i < c->source->n_tensors; i++) {
        const whit_source_tensor *tensor = &c->source->tensors[i];
        whit_tensor_type type;
        double share = 0;
        unsigned layer = 0;
        if (!whit_compress_is_layer_matrix(tensor)) continue;
        WHIT_TRY(whit_compress_type_of(&c->types, tensor, &type, c->error));
        if (!whit_compress_is_solved(&type)) continue;
        float *means = whit_zalloc_array(c->allocator, type.n_cols, sizeof *means);
        whit_status status = means ? WHIT_OK : whit_fail_memory(c->error, tensor->name, type.n_cols * sizeof *means);
        if (status == WHIT_OK && o->imatrix) status = whit_weighted_means(o->imatrix, tensor, means, c->error);
        struct rounded_tensor at = {c, i};
        if (status == WHIT_OK)
            status = whit_weighted_round(&c->finished[i], c->source, tensor, &type, o->imatrix ? means : NULL,
                                         &(whit_within){tell_rounded, &at}, c->pool, &share, c->error);
        whit_free(c->allocator, means, type.n_cols * sizeof *means);
        WHIT_TRY(status);
        (void)sscanf(tensor->name, "layers.%9u.", &layer);
        if (o->report)
            o->report(o->user,
                      &(whit_compress_report){.name = tensor->name,
                                              .type = &type,
                                              .layer = layer,
                                              .n_layers = c->source->config.n_layers,
                                              .error_gptq = share,
                                              .error = share,
                                              .elapsed_ns = whit_now_ns() - c->began_ns});
    }
    return WHIT_OK;
}

static whit_status write_file(struct compression *c, const whit_convert_options *convert, const char *path)
{
    whit_ndf_writer *writer = NULL;
    whit_status status = whit_ndf_writer_open(path, NULL, c->allocator, &writer, c->error);
    if (status == WHIT_OK && c->choice_text.size_bytes)
        whit_table_set_string_n(whit_ndf_writer_meta(writer), "whit.bits", whit_chars(&c->choice_text),
                                c->choice_text.size_bytes);
    if (status == WHIT_OK && c->options->sketch) {
        uint8_t bytes[8 * WHIT_SKETCH_HASHES_MAX];
        whit_table_set_bytes(whit_ndf_writer_meta(writer), WHIT_SKETCH_KEY, bytes,
                             whit_sketch_write(c->options->sketch, bytes));
    }
    if (status == WHIT_OK) status = whit_convert(c->source, convert, writer, c->error);
    whit_ndf_writer_close(writer);
    return status;
}

/* Reports the progress of a conversion that solves no layers. */
static bool tell_rounding(void *user, const char *what, double share)
{
    const whit_compress_options *o = ((const struct compression *)user)->options;
    (void)what;
    return !o->progress || o->progress(o->user, "compressing", share);
}

whit_status whit_compress(const whit_source *source, const whit_compress_options *options, const char *path,
                          const whit_allocator *allocator, whit_error *error)
{
    struct compression c = {.source = source,
                            .options = options,
                            .types = {.source = source, .options = options},
                            .allocator = allocator,
                            .error = error,
                            .work.fd = -1,
                            .began_ns = whit_now_ns()};
    c.has_form = options->like || whit_compress_knows_form(options->codec);
    const char *embedding = "i8";
    if (c.has_form)
        embedding = "f16";
    else if (options->embedding)
        embedding = options->embedding;
    whit_convert_options convert = {.embd = embedding,
                                    .head = embedding,
                                    .command = options->command,
                                    .n_threads = options->n_threads,
                                    .change = change,
                                    .user = &c};
    if (options->method == WHIT_COMPRESS_FULL) c.types.stages = ~options->without;
    if (c.has_form) c.types.stages &= ~(unsigned)(WHIT_STAGE_OUTLIERS | WHIT_STAGE_PLANE | WHIT_STAGE_LOW_RANK);
    WHIT_TRY(whit_convert_options_check(&convert, error));
    WHIT_TRY(whit_compress_types_check(&c.types, error));
    whit_compress_find_corrections(&c.types);
    c.finished = whit_zalloc_array(allocator, source->n_tensors, sizeof *c.finished);
    c.choices = whit_zalloc_array(allocator, source->n_tensors, sizeof *c.choices);
    if (!c.finished || !c.choices)
        return whit_fail_memory(error, "the compression", source->n_tensors * sizeof *c.finished);
    whit_status status = WHIT_OK;
    bool alone = options->method == WHIT_COMPRESS_RTN || options->imatrix; /* each matrix is rounded independently */
    if (!alone || options->imatrix || options->u8_scales || c.has_form) {
        status = whit_pool_open(options->n_threads, allocator, &c.pool, error);
        if (status == WHIT_OK) status = alone ? round_all(&c) : solve_all(&c, &convert, path);
        whit_pool_close(c.pool);
    } else { /* the conversion rounds row by row and has no whole matrix in memory */
        convert.progress = tell_rounding;
    }
    if (status == WHIT_OK && is_first(&c)) status = write_file(&c, &convert, path);
    whit_work_close(&c.work, status == WHIT_OK && !options->keep_work);
    for (uint32_t i = 0; i < source->n_tensors; i++) whit_finished_free(&c.finished[i], allocator);
    whit_free(allocator, c.finished, source->n_tensors * sizeof *c.finished);
    whit_free(allocator, c.choices, source->n_tensors * sizeof *c.choices);
    whit_buf_free(&c.choice_text);
    return status;
}
