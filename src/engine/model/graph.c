/* SPDX-License-Identifier: MIT */
#include "model/graph.h"

#include "kernels/kernels.h"
#include "model/hadamard.h"

#include <stdio.h>

#define MAX_NODES 65536 /* far above any model's number of operations; bounds the work for a hostile number of layers */

const char *whit_op_name(whit_op op)
{
    static const char *const names[WHIT_OP_COUNT] = {
        [WHIT_OP_EMBED] = "embed",
        [WHIT_OP_RMS_NORM] = "rms_norm",
        [WHIT_OP_LINEAR] = "linear",
        [WHIT_OP_ROPE] = "rope",
        [WHIT_OP_ATTENTION] = "attention",
        [WHIT_OP_GATE] = "gate",
        [WHIT_OP_ADD] = "add",
        [WHIT_OP_SCALE] = "scale",
        [WHIT_OP_SELECT] = "select",
        [WHIT_OP_TEMPERATURE] = "temperature",
        [WHIT_OP_CONV] = "conv",
        [WHIT_OP_DELTA] = "delta",
        [WHIT_OP_HADAMARD] = "hadamard",
        [WHIT_OP_SOFTCAP] = "softcap",
        [WHIT_OP_SLICE] = "slice",
        [WHIT_OP_SCALE_BY] = "scale_by",
        [WHIT_OP_ATTENTION_SHARED] = "attention_shared",
        [WHIT_OP_CLAMP] = "clamp",
        [WHIT_OP_SCALE_ROWS] = "scale_rows",
        [WHIT_OP_ROUTE] = "route",
        [WHIT_OP_DISPATCH] = "dispatch",
        [WHIT_OP_EXPERT_LINEAR] = "expert_linear",
        [WHIT_OP_COMBINE] = "combine",
        [WHIT_OP_LAYER_NORM] = "layer_norm",
        [WHIT_OP_ACTIVATE] = "activate",
        [WHIT_OP_JOIN] = "join",
        [WHIT_OP_GIVEN] = "given",
    };
    return op < WHIT_OP_COUNT ? names[op] : "?";
}

void whit_graph_begin(whit_graph *graph, const whit_allocator *allocator, whit_resolver resolver, whit_error *error)
{
    *graph = (whit_graph){.allocator = allocator, .resolver = resolver, .error = error};
}

void whit_graph_free(whit_graph *graph)
{
    whit_free(graph->allocator, graph->nodes, graph->capacity_nodes * sizeof *graph->nodes);
    whit_free(graph->allocator, graph->values, graph->capacity_values * sizeof *graph->values);
    *graph = (whit_graph){0};
}

whit_status whit_graph_finish(whit_graph *graph)
{
    if (!graph->vector) graph->vector = graph->hidden;
    if (graph->status == WHIT_OK && !graph->output && !graph->vector)
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_ARGUMENT, "the graph has no output: call output() or vector()");
    graph->error = NULL;
    return graph->status;
}

/* Grows an array if it is full; returns false and sets a sticky error if memory is exhausted or MAX_NODES is
 * exceeded. */
static bool grow_array(whit_graph *graph, void **array, uint32_t *capacity, uint32_t used, size_t elem_bytes)
{
    if (used < *capacity) return true;
    uint32_t wanted = *capacity ? *capacity * 2 : 256;
    if (wanted > MAX_NODES) {
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_LIMIT, "the graph has more than %u operations, the limit", used);
        return false;
    }
    void *larger = whit_zalloc_array(graph->allocator, wanted, elem_bytes);
    if (!larger) {
        graph->status = whit_fail_memory(graph->error, "the graph", wanted * elem_bytes);
        return false;
    }
    if (used) memcpy(larger, *array, used * elem_bytes);
    whit_free(graph->allocator, *array, *capacity * elem_bytes);
    *array = larger;
    *capacity = wanted;
    return true;
}

static void full_name(char out[WHIT_VALUE_NAME_BYTES], int layer, const char *name)
{
    if (layer >= 0)
        snprintf(out, WHIT_VALUE_NAME_BYTES, "layers.%d.%s", layer, name);
    else
        snprintf(out, WHIT_VALUE_NAME_BYTES, "%s", name);
}

/* Returns whether an operation supports rows that are (token, expert) pairs. */
static bool takes_pairs(uint8_t op)
{
    switch (op) {
    case WHIT_OP_RMS_NORM:
    case WHIT_OP_GATE:
    case WHIT_OP_ADD:
    case WHIT_OP_SCALE:
    case WHIT_OP_HADAMARD:
    case WHIT_OP_SOFTCAP:
    case WHIT_OP_SLICE:
    case WHIT_OP_SCALE_BY:
    case WHIT_OP_CLAMP:
    case WHIT_OP_EXPERT_LINEAR:
    case WHIT_OP_COMBINE: return true;
    default: return false;
    }
}

/* Refuses inputs whose rows are (token, expert) pairs if the operation does not support them, or if they belong to an
 * earlier dispatch, whose pairs are no longer valid. */
static bool check_pairs(whit_graph *graph, const char *name, const whit_node *node)
{
    for (int j = 0; j < 3 && graph->status == WHIT_OK; j++) {
        const whit_ref input = node->input[j];
        if (!input || graph->values[input - 1].rows != WHIT_ROWS_EXPERT) continue;
        if (!takes_pairs(node->op))
            graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                      "graph: %s: '%s' does not take the rows that dispatch() returns", name,
                                      whit_op_name((whit_op)node->op));
        else if (input < graph->dispatched)
            graph->status = whit_fail(
                graph->error, WHIT_ERROR_FORMAT,
                "graph: %s: its input is from an earlier dispatch(), but only that of the last one can be used", name);
    }
    return graph->status == WHIT_OK;
}

static uint8_t rows_of(const whit_graph *graph, const whit_node *node)
{
    if (node->op == WHIT_OP_SELECT) return WHIT_ROWS_SELECTED;
    if (node->op == WHIT_OP_DISPATCH) return WHIT_ROWS_EXPERT;
    if (node->op == WHIT_OP_COMBINE) return WHIT_ROWS_BATCH;
    return node->input[0] ? graph->values[node->input[0] - 1].rows : WHIT_ROWS_BATCH;
}

/* Appends a node and the value that it computes; returns the value, or 0 after an error. */
static whit_ref push_node(whit_graph *graph, int layer, const char *name, uint32_t width, whit_node node)
{
    if (graph->status != WHIT_OK || !check_pairs(graph, name, &node)) return 0;
    if (!grow_array(graph, (void **)&graph->nodes, &graph->capacity_nodes, graph->n_nodes, sizeof *graph->nodes) ||
        !grow_array(graph, (void **)&graph->values, &graph->capacity_values, graph->n_values, sizeof *graph->values))
        return 0;
    whit_graph_value *value = &graph->values[graph->n_values++];
    full_name(value->name, layer, name);
    value->width = width;
    value->rows = rows_of(graph, &node);
    node.output = graph->n_values;
    node.layer = layer >= 0 ? (uint16_t)layer : 0;
    graph->nodes[graph->n_nodes++] = node;
    return graph->n_values;
}

/* Returns the width of an input; 0 and a sticky error if the input is missing. */
static uint32_t width_of(whit_graph *graph, whit_ref value, const char *user)
{
    if (graph->status != WHIT_OK) return 0;
    if (value == 0 || value > graph->n_values) {
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_ARGUMENT, "graph: %s: an input is not a value of this graph", user);
        return 0;
    }
    return graph->values[value - 1].width;
}

/* Returns the index of a weight and sets *type; checks its shape (0: any) and layout. Returns -1 and sets a sticky
 * error if the weight is missing or does not fit. */
static int32_t weight_of(whit_graph *graph, int layer, const char *name, uint32_t n_rows, uint32_t n_cols,
                         whit_layout layout, whit_tensor_type *type)
{
    if (graph->status != WHIT_OK) return -1;
    char full[WHIT_VALUE_NAME_BYTES];
    full_name(full, layer, name);
    const whit_resolver *resolver = &graph->resolver;
    int32_t index = resolver->find(resolver->context, full);
    if (index < 0 && resolver->add && n_rows && n_cols) {
        index = resolver->add(resolver->context, full, n_rows, n_cols, layout, graph->error);
        if (index < 0) graph->status = WHIT_ERROR_LIMIT;
        if (index < 0) return -1;
    }
    if (index < 0) {
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "tensor '%s' is missing: the file is incomplete", full);
        return -1;
    }
    *type = *graph->resolver.type(graph->resolver.context, index);
    if ((n_rows && type->n_rows != n_rows) || (n_cols && type->n_cols != n_cols)) {
        uint32_t wanted_rows = n_rows ? n_rows : type->n_rows;
        uint32_t wanted_cols = n_cols ? n_cols : type->n_cols;
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "tensor '%s' is %u x %u, but the configuration needs %u x %u",
                      full, type->n_rows, type->n_cols, wanted_rows, wanted_cols);
        return -1;
    }
    if (type->layout != layout) {
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "tensor '%s' is not stored as a %s: convert the original again",
                      full, layout == WHIT_LAYOUT_PLAIN ? "vector" : "matrix");
        return -1;
    }
    return index;
}

/* Returns the index of a vector (norm weight, bias), which is one plain f32 row. */
static int32_t vector_of(whit_graph *graph, int layer, const char *name, uint32_t width)
{
    whit_tensor_type type = {0};
    int32_t index = weight_of(graph, layer, name, 1, width, WHIT_LAYOUT_PLAIN, &type);
    if (index >= 0 && type.codec != WHIT_CODEC_F32) {
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "vector '%s' of layer %d is not f32: convert the original again", name, layer);
        return -1;
    }
    return index;
}

/* Adds the Hadamard transform of x, or its inverse, with the configuration's blocks and the signs for x's width. */
static whit_ref rotate_blocks(whit_graph *graph, int layer, const char *name, whit_ref x, bool is_inverse)
{
    const uint32_t width = width_of(graph, x, name), block = graph->hadamard_block;
    char signs[32];
    snprintf(signs, sizeof signs, "hadamard.%u", width);
    if (graph->status == WHIT_OK && (!block || width % block))
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: %s: %u inputs do not divide into rotated blocks of %u", name, width, block);
    const int32_t weight = graph->hadamard_signs ? vector_of(graph, -1, signs, width) : -1;
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_HADAMARD,
                                 .input = {x},
                                 .weight = weight,
                                 .bias = -1,
                                 .head_dim = block,
                                 .is_inverse = is_inverse});
}

static bool is_rotated(const whit_graph *graph, int layer, const char *weight)
{
    const bool has_rotation = layer < 0 || (uint32_t)layer < graph->hadamard_layers;
    return has_rotation && (graph->hadamard_matrices & whit_hadamard_bit(weight));
}

/* Returns the value that a matrix reads: x, or the rotation of x if the matrix is rotated. All rotated matrices that
 * read x share one rotation. `name` is the name of the matrix's product. */
static whit_ref input_of(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight)
{
    enum { NEAR = 64 }; /* number of nodes to search: matrices with the same input are close to each other */
    char rotated[WHIT_VALUE_NAME_BYTES];
    if (!is_rotated(graph, layer, weight)) return x;
    for (uint32_t i = graph->n_nodes; i-- > 0 && graph->n_nodes - i <= NEAR;) {
        const whit_node *node = &graph->nodes[i];
        if (node->op == WHIT_OP_HADAMARD && node->input[0] == x && !node->is_inverse) return node->output;
    }
    snprintf(rotated, sizeof rotated, "%.32s_rotated", name);
    return rotate_blocks(graph, layer, rotated, x, false);
}

whit_ref whit_graph_embed_by(whit_graph *graph, const char *name, const char *table, uint32_t n_rows,
                             whit_row_index index)
{
    whit_tensor_type type = {0};
    int32_t weight = weight_of(graph, -1, table, n_rows, 0, WHIT_LAYOUT_TILE16, &type);
    const whit_node node = {.op = WHIT_OP_EMBED, .gate = (uint8_t)index, .weight = weight, .bias = -1};
    if (!is_rotated(graph, -1, table)) return push_node(graph, -1, name, type.n_cols, node);
    char rotated[WHIT_VALUE_NAME_BYTES];
    snprintf(rotated, sizeof rotated, "%.32s_rotated", name);
    return rotate_blocks(graph, -1, name, push_node(graph, -1, rotated, type.n_cols, node), true);
}

whit_ref whit_graph_embed(whit_graph *graph, const char *name, const char *table, uint32_t n_vocab)
{
    return whit_graph_embed_by(graph, name, table, n_vocab, WHIT_INDEX_ID);
}

whit_ref whit_graph_layer_norm(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                               const char *bias, double eps)
{
    uint32_t width = width_of(graph, x, name);
    int32_t index = vector_of(graph, layer, weight, width), bias_index = vector_of(graph, layer, bias, width);
    return push_node(
        graph, layer, name, width,
        (whit_node){
            .op = WHIT_OP_LAYER_NORM, .input = {x}, .weight = index, .bias = bias_index, .constant = (float)eps});
}

whit_ref whit_graph_activate(whit_graph *graph, int layer, const char *name, whit_ref x, uint32_t activation)
{
    uint32_t width = width_of(graph, x, name);
    if (graph->status == WHIT_OK && activation >= WHIT_ACTIVATIONS)
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_UNSUPPORTED, "graph: %s: activation %u is not known", name, activation);
    return push_node(
        graph, layer, name, width,
        (whit_node){.op = WHIT_OP_ACTIVATE, .gate = (uint8_t)activation, .input = {x}, .weight = -1, .bias = -1});
}

static whit_ref norm(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight, uint32_t group,
                     double eps)
{
    uint32_t width = width_of(graph, x, name);
    if (group == 0) group = width;
    if (graph->status == WHIT_OK && (group == 0 || width % group != 0))
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: %s: %u elements do not divide into heads of %u", name, width, group);
    int32_t index = weight ? vector_of(graph, layer, weight, group) : -1;
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_RMS_NORM,
                                 .input = {x},
                                 .weight = index,
                                 .bias = -1,
                                 .head_dim = group,
                                 .constant = (float)eps});
}

whit_ref whit_graph_rms_norm(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight, double eps)
{
    return norm(graph, layer, name, x, weight, 0, eps);
}

whit_ref whit_graph_head_norm(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                              uint32_t head_dim, double eps)
{
    return norm(graph, layer, name, x, weight, head_dim, eps);
}

whit_ref whit_graph_linear(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                           const char *bias, uint32_t width)
{
    x = input_of(graph, layer, name, x, weight);
    uint32_t k = width_of(graph, x, name);
    whit_tensor_type type = {0};
    int32_t index = weight_of(graph, layer, weight, width, k, WHIT_LAYOUT_TILE16, &type);
    int32_t bias_index = bias ? vector_of(graph, layer, bias, width) : -1;
    return push_node(graph, layer, name, type.n_rows,
                     (whit_node){.op = WHIT_OP_LINEAR, .input = {x}, .weight = index, .bias = bias_index});
}

whit_ref whit_graph_rope(whit_graph *graph, int layer, const char *name, whit_ref x, uint32_t head_dim, uint32_t rotary,
                         uint32_t rope)
{
    uint32_t width = width_of(graph, x, name);
    if (graph->status == WHIT_OK && (head_dim == 0 || width % head_dim || rotary > head_dim || rotary % 2))
        graph->status = whit_fail(
            graph->error, WHIT_ERROR_FORMAT,
            "graph: %s: RoPE cannot rotate %u of %u dimensions a head: an even number up to the latter is needed", name,
            rotary, head_dim);
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_ROPE,
                                 .input = {x},
                                 .weight = -1,
                                 .bias = -1,
                                 .head_dim = head_dim,
                                 .rotary = rotary,
                                 .rope = rope});
}

static whit_ref attend(whit_graph *graph, int layer, const char *name, const whit_ref qkv[3], whit_node node)
{
    const whit_ref q = qkv[0], k = qkv[1], v = qkv[2];
    const uint32_t head_dim = node.head_dim;
    uint32_t q_width = width_of(graph, q, name), k_width = width_of(graph, k, name), v_width = width_of(graph, v, name);
    if (graph->status == WHIT_OK &&
        (head_dim == 0 || k_width == 0 || k_width != v_width || q_width % k_width || k_width % head_dim))
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: %s: heads of %u elements do not divide q, k and v of %u, %u and %u elements",
                                  name, head_dim, q_width, k_width, v_width);
    node.op = WHIT_OP_ATTENTION;
    for (int i = 0; i < 3; i++) node.input[i] = qkv[i];
    node.weight = node.bias = -1;
    return push_node(graph, layer, name, q_width, node);
}

whit_ref whit_graph_attention(whit_graph *graph, int layer, const char *name, whit_ref q, whit_ref k, whit_ref v,
                              uint32_t head_dim, uint32_t window, double scale)
{
    return attend(graph, layer, name, (const whit_ref[]){q, k, v},
                  (whit_node){.head_dim = head_dim, .window = window, .constant = (float)scale});
}

whit_ref whit_graph_attention_both(whit_graph *graph, int layer, const char *name, whit_ref q, whit_ref k, whit_ref v,
                                   uint32_t head_dim, uint32_t window, double scale)
{
    return attend(
        graph, layer, name, (const whit_ref[]){q, k, v},
        (whit_node){.head_dim = head_dim, .window = window, .is_bidirectional = true, .constant = (float)scale});
}

whit_ref whit_graph_attention_sinks(whit_graph *graph, int layer, whit_ref attended, const char *weight)
{
    whit_node *node = graph->n_nodes ? &graph->nodes[graph->n_nodes - 1] : NULL;
    if (graph->status != WHIT_OK) return 0;
    if (!node || node->output != attended || node->op != WHIT_OP_ATTENTION) {
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: attention_sinks() must follow the attention whose result it takes");
        return 0;
    }
    node->weight = vector_of(graph, layer, weight, graph->values[attended - 1].width / node->head_dim);
    return attended;
}

whit_ref whit_graph_attention_shared(whit_graph *graph, int layer, const char *name, whit_ref q, uint32_t owner,
                                     uint32_t head_dim, double scale)
{
    uint32_t width = width_of(graph, q, name);
    const whit_node *attends = NULL;
    for (uint32_t i = 0; graph->status == WHIT_OK && i < graph->n_nodes; i++)
        if (graph->nodes[i].op == WHIT_OP_ATTENTION && graph->nodes[i].layer == owner) attends = &graph->nodes[i];
    if (graph->status == WHIT_OK && !attends)
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: layer %u has no attention() before it", name, owner);
    if (graph->status == WHIT_OK &&
        (attends->head_dim != head_dim || graph->values[attends->output - 1].width != width))
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: its heads differ from those of layer %u",
                                  name, owner);
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_ATTENTION_SHARED,
                                 .input = {q},
                                 .weight = -1,
                                 .bias = -1,
                                 .owner = owner,
                                 .head_dim = head_dim,
                                 .constant = (float)scale});
}

whit_ref whit_graph_attention_target(whit_graph *graph, int layer, const char *name, whit_ref q, uint32_t head_dim,
                                     double scale)
{
    const uint32_t width = width_of(graph, q, name);
    if (graph->status == WHIT_OK && (layer < 0 || !head_dim || width % head_dim))
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: %s: %u elements do not divide into heads of %u", name, width, head_dim);
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_ATTENTION_SHARED,
                                 .input = {q},
                                 .weight = -1,
                                 .bias = -1,
                                 .owner = (uint32_t)layer,
                                 .head_dim = head_dim,
                                 .constant = (float)scale});
}

whit_ref whit_graph_slice(whit_graph *graph, int layer, const char *name, whit_ref x, uint32_t first, uint32_t width)
{
    uint32_t whole = width_of(graph, x, name);
    if (graph->status == WHIT_OK && (!width || first > whole || width > whole - first))
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: a value of width %u has no elements %u to %u", name,
                      whole, first, first + width);
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_SLICE, .input = {x}, .weight = -1, .bias = -1, .first = first});
}

whit_ref whit_graph_join(whit_graph *graph, int layer, const char *name, whit_ref a, whit_ref b)
{
    const uint32_t width_a = width_of(graph, a, name), width_b = width_of(graph, b, name);
    if (graph->status == WHIT_OK && graph->values[a - 1].rows != graph->values[b - 1].rows)
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: %s: one input has all tokens, the other only the selected ones", name);
    return push_node(graph, layer, name, width_a + width_b,
                     (whit_node){.op = WHIT_OP_JOIN, .input = {a, b}, .weight = -1, .bias = -1});
}

whit_ref whit_graph_given(whit_graph *graph, const char *name, uint32_t width)
{
    return push_node(graph, -1, name, width, (whit_node){.op = WHIT_OP_GIVEN, .weight = -1, .bias = -1});
}

whit_ref whit_graph_softcap(whit_graph *graph, int layer, const char *name, whit_ref x, double cap)
{
    uint32_t width = width_of(graph, x, name);
    if (graph->status == WHIT_OK && !(cap > 0))
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: the cap is %g, but must be above 0", name, cap);
    return push_node(
        graph, layer, name, width,
        (whit_node){.op = WHIT_OP_SOFTCAP, .input = {x}, .weight = -1, .bias = -1, .constant = (float)cap});
}

whit_ref whit_graph_scale_by(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight)
{
    uint32_t width = width_of(graph, x, name);
    int32_t index = vector_of(graph, layer, weight, 1);
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_SCALE_BY, .input = {x}, .weight = index, .bias = -1});
}

/* Adds an operation on two values, which must have the same width and row set. */
static whit_ref join_values(whit_graph *graph, int layer, const char *name, whit_ref a, whit_ref b, whit_node node)
{
    uint32_t width = width_of(graph, a, name), other = width_of(graph, b, name);
    if (graph->status == WHIT_OK && width != other)
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT,
                      "graph: %s: its inputs have %u and %u elements, but need equal numbers", name, width, other);
    if (graph->status == WHIT_OK && graph->values[a - 1].rows != graph->values[b - 1].rows)
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: %s: one input has all tokens, the other only the selected ones", name);
    node.input[0] = a;
    node.input[1] = b;
    node.weight = node.bias = -1;
    return push_node(graph, layer, name, width, node);
}

whit_ref whit_graph_gate(whit_graph *graph, int layer, const char *name, whit_gate gate, whit_ref a, whit_ref b)
{
    if (graph->status == WHIT_OK && (unsigned)gate >= WHIT_GATE_COUNT)
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_UNSUPPORTED, "graph: %s: gate %u is not known", name, (unsigned)gate);
    return join_values(graph, layer, name, a, b, (whit_node){.op = WHIT_OP_GATE, .gate = (uint8_t)gate});
}

whit_ref whit_graph_add(whit_graph *graph, int layer, const char *name, whit_ref a, whit_ref b)
{
    return join_values(graph, layer, name, a, b, (whit_node){.op = WHIT_OP_ADD});
}

whit_ref whit_graph_scale(whit_graph *graph, int layer, const char *name, whit_ref x, double factor)
{
    uint32_t width = width_of(graph, x, name);
    return push_node(
        graph, layer, name, width,
        (whit_node){.op = WHIT_OP_SCALE, .input = {x}, .weight = -1, .bias = -1, .constant = (float)factor});
}

whit_ref whit_graph_temperature(whit_graph *graph, int layer, const char *name, whit_ref x, double factor,
                                uint32_t length)
{
    uint32_t width = width_of(graph, x, name);
    if (graph->status == WHIT_OK && !length)
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: %s: the length is 0, but must be at least 1 token", name);
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_TEMPERATURE,
                                 .input = {x},
                                 .weight = -1,
                                 .bias = -1,
                                 .window = length,
                                 .constant = (float)factor});
}

whit_ref whit_graph_select(whit_graph *graph, const char *name, whit_ref x)
{
    uint32_t width = width_of(graph, x, name);
    return push_node(graph, -1, name, width, (whit_node){.op = WHIT_OP_SELECT, .input = {x}, .weight = -1, .bias = -1});
}

whit_ref whit_graph_conv(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                         uint32_t n_taps, bool is_silu)
{
    uint32_t width = width_of(graph, x, name);
    if (graph->status == WHIT_OK && (n_taps < 1 || n_taps > WHIT_CONV_TAPS_MAX || width > UINT32_MAX / n_taps))
        graph->status = whit_fail(graph->error, WHIT_ERROR_UNSUPPORTED,
                                  "graph: %s: the convolution has %u taps, but 1 to %d are supported", name, n_taps,
                                  WHIT_CONV_TAPS_MAX);
    int32_t index = vector_of(graph, layer, weight, n_taps * width);
    return push_node(
        graph, layer, name, width,
        (whit_node){
            .op = WHIT_OP_CONV, .input = {x}, .weight = index, .bias = -1, .n_taps = n_taps, .is_silu = is_silu});
}

/* Checks the shape of a delta rule and the widths and rows of its inputs, which programs of model files may get
 * wrong. */
static bool delta_fits(whit_graph *graph, whit_ref mixed, whit_ref beta, whit_ref decay, const char *name,
                       const whit_delta_shape *s)
{
    uint32_t width = width_of(graph, mixed, name), b = width_of(graph, beta, name), a = width_of(graph, decay, name);
    if (graph->status != WHIT_OK) return false;
    const uint64_t keys = (uint64_t)s->n_key_heads * s->key_dim, values = (uint64_t)s->n_heads * s->value_dim;
    if (!s->n_key_heads || !s->key_dim || !s->n_heads || !s->value_dim || s->n_heads % s->n_key_heads ||
        s->key_dim > WHIT_DELTA_DIM_MAX || s->value_dim > WHIT_DELTA_DIM_MAX || 2 * keys + values != width ||
        b != s->n_heads || a != s->n_heads) {
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: %s: %u key heads of %u and %u value heads of %u do not fit the widths of the "
                                  "projection (%u), beta (%u) and decay (%u)",
                                  name, s->n_key_heads, s->key_dim, s->n_heads, s->value_dim, width, b, a);
        return false;
    }
    uint8_t rows = graph->values[mixed - 1].rows;
    if (rows != WHIT_ROWS_BATCH || graph->values[beta - 1].rows != rows || graph->values[decay - 1].rows != rows) {
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: recurrent layers must come before selected()", name);
        return false;
    }
    return true;
}

whit_ref whit_graph_delta(whit_graph *graph, int layer, const char *name, whit_ref mixed, whit_ref beta, whit_ref decay,
                          const char *a, const char *dt, whit_delta_shape shape)
{
    if (!delta_fits(graph, mixed, beta, decay, name, &shape)) return 0;
    int32_t a_index = vector_of(graph, layer, a, shape.n_heads), dt_index = vector_of(graph, layer, dt, shape.n_heads);
    return push_node(graph, layer, name, shape.n_heads * shape.value_dim,
                     (whit_node){.op = WHIT_OP_DELTA,
                                 .input = {mixed, beta, decay},
                                 .weight = a_index,
                                 .bias = dt_index,
                                 .head_dim = shape.key_dim,
                                 .n_heads = shape.n_heads,
                                 .n_key_heads = shape.n_key_heads,
                                 .value_dim = shape.value_dim,
                                 .is_grouped = shape.is_grouped});
}

whit_ref whit_graph_clamp(whit_graph *graph, int layer, const char *name, whit_ref x, double limit, bool only_above)
{
    uint32_t width = width_of(graph, x, name);
    if (graph->status == WHIT_OK && !(limit > 0))
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: the limit is %g, but must be above 0", name, limit);
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_CLAMP,
                                 .input = {x},
                                 .weight = -1,
                                 .bias = -1,
                                 .only_above = only_above,
                                 .constant = (float)limit});
}

whit_ref whit_graph_scale_rows(whit_graph *graph, int layer, const char *name, whit_ref x, whit_ref gate)
{
    uint32_t width = width_of(graph, x, name), one = width_of(graph, gate, name);
    if (graph->status == WHIT_OK && (one != 1 || graph->values[x - 1].rows != graph->values[gate - 1].rows))
        graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                  "graph: %s: the gate must have one element for each row of the other input", name);
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_SCALE_ROWS, .input = {x, gate}, .weight = -1, .bias = -1});
}

/* ---- experts -------------------------------------------------------------------------------- */

whit_ref whit_graph_route(whit_graph *graph, int layer, const char *name, whit_ref logits, whit_route_shape shape)
{
    const uint32_t n = width_of(graph, logits, name);
    if (graph->status == WHIT_OK && (!n || n > WHIT_EXPERTS_MAX || !shape.n_used || shape.n_used > n))
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT,
                      "graph: %s: a token cannot take %u of %u experts: at least one and at most all are possible",
                      name, shape.n_used, n);
    if (graph->status == WHIT_OK && graph->n_experts && (graph->n_experts != n || graph->n_used != shape.n_used))
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_UNSUPPORTED,
                      "graph: %s: it takes %u of %u experts, but an earlier layer %u of %u, and all must be alike",
                      name, shape.n_used, n, graph->n_used, graph->n_experts);
    const int32_t choice = shape.choice ? vector_of(graph, layer, shape.choice, n) : -1;
    const int32_t scales = shape.scales ? vector_of(graph, layer, shape.scales, n) : -1;
    const whit_ref route = push_node(graph, layer, name, 2 * shape.n_used,
                                     (whit_node){.op = WHIT_OP_ROUTE,
                                                 .input = {logits},
                                                 .weight = choice,
                                                 .bias = scales,
                                                 .route = shape.flags,
                                                 .n_experts = n,
                                                 .n_used = shape.n_used,
                                                 .added = (float)shape.added,
                                                 .constant = (float)shape.factor});
    if (!route) return 0;
    graph->n_experts = n;
    graph->n_used = shape.n_used;
    if (graph->values[route - 1].rows == WHIT_ROWS_BATCH) return route;
    graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: experts must come before selected()", name);
    return 0;
}

/* Returns whether a value is the result of a route; sets a sticky error otherwise. */
static bool is_route(whit_graph *graph, const char *name, whit_ref route)
{
    if (graph->status != WHIT_OK) return false;
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].output == route && graph->nodes[i].op == WHIT_OP_ROUTE) return true;
    graph->status =
        whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: its route must be the result of route()", name);
    return false;
}

whit_ref whit_graph_dispatch(whit_graph *graph, int layer, const char *name, whit_ref x, whit_ref route)
{
    const uint32_t width = width_of(graph, x, name);
    if (!is_route(graph, name, route)) return 0;
    if (graph->values[x - 1].rows != WHIT_ROWS_BATCH) {
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: experts must come before selected()", name);
        return 0;
    }
    const whit_ref made = push_node(graph, layer, name, width,
                                    (whit_node){.op = WHIT_OP_DISPATCH,
                                                .input = {x, route},
                                                .weight = -1,
                                                .bias = -1,
                                                .n_experts = graph->n_experts,
                                                .n_used = graph->n_used});
    if (made) graph->dispatched = made;
    return made;
}

whit_ref whit_graph_expert_linear(whit_graph *graph, int layer, const char *name, whit_ref x, const char *weight,
                                  const char *bias, uint32_t width)
{
    x = input_of(graph, layer, name, x, weight);
    const uint32_t k = width_of(graph, x, name);
    whit_tensor_type type = {0};
    if (graph->status == WHIT_OK && graph->values[x - 1].rows != WHIT_ROWS_EXPERT)
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: its input must come from dispatch()", name);
    if (graph->status == WHIT_OK && (!width || width % WHIT_TILE_ROWS || width > WHIT_MAX_COLS))
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_UNSUPPORTED,
                      "graph: %s: the experts have %u rows, but only multiples of %d up to %d are supported", name,
                      width, WHIT_TILE_ROWS, WHIT_MAX_COLS);
    const int32_t index = weight_of(graph, layer, weight, graph->n_experts * width, k, WHIT_LAYOUT_TILE16, &type),
                  bias_index =
                      bias ? weight_of(graph, layer, bias, graph->n_experts, width, WHIT_LAYOUT_TILE16, &type) : -1;
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_EXPERT_LINEAR,
                                 .input = {x},
                                 .weight = index,
                                 .bias = bias_index,
                                 .n_experts = graph->n_experts,
                                 .n_used = graph->n_used});
}

whit_ref whit_graph_combine(whit_graph *graph, int layer, const char *name, whit_ref x, whit_ref route)
{
    const uint32_t width = width_of(graph, x, name);
    if (!is_route(graph, name, route)) return 0;
    if (graph->values[x - 1].rows != WHIT_ROWS_EXPERT) {
        graph->status =
            whit_fail(graph->error, WHIT_ERROR_FORMAT, "graph: %s: its input must come from dispatch()", name);
        return 0;
    }
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].output == graph->dispatched && graph->nodes[i].input[1] != route)
            graph->status = whit_fail(graph->error, WHIT_ERROR_FORMAT,
                                      "graph: %s: its route must be that of the dispatch() before it", name);
    return push_node(graph, layer, name, width,
                     (whit_node){.op = WHIT_OP_COMBINE,
                                 .input = {x, route},
                                 .weight = -1,
                                 .bias = -1,
                                 .n_experts = graph->n_experts,
                                 .n_used = graph->n_used});
}

void whit_graph_output(whit_graph *graph, whit_ref hidden, whit_ref logits)
{
    if (graph->status != WHIT_OK) return;
    graph->hidden = hidden;
    graph->output = logits;
}

void whit_graph_vector(whit_graph *graph, whit_ref vector)
{
    if (graph->status == WHIT_OK) graph->vector = vector;
}

whit_ref whit_graph_find(const whit_graph *graph, const char *name)
{
    for (uint32_t i = graph->n_values; i > 0; i--)
        if (strcmp(graph->values[i - 1].name, name) == 0) return i;
    return 0;
}
