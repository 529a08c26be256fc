/* SPDX-License-Identifier: MIT */
#include "compress/stages.h"

#include "compress/types.h"

/* Returns whether a node multiplies by a matrix that may be compressed. */
static bool is_product(const whit_node *node)
{
    return node->op == WHIT_OP_LINEAR || node->op == WHIT_OP_EXPERT_LINEAR;
}

/* Returns whether a node before `at` uses the same matrix. A family's program may use a matrix twice; the first use
 * decides its stage. */
static bool is_used_before(const whit_graph *block, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (is_product(&block->nodes[i]) && block->nodes[i].weight == block->nodes[at].weight) return true;
    return false;
}

bool whit_layer_next_stage(const whit_stream *stream, uint32_t *at, whit_layer_stage *stage)
{
    const whit_graph *block = &stream->block;
    *stage = (whit_layer_stage){0};
    for (; *at < block->n_nodes; ++*at) {
        const whit_node *node = &block->nodes[*at];
        if (!is_product(node) || is_used_before(block, *at)) continue;
        const whit_source_tensor *tensor = whit_source_find(stream->source, stream->params[0].items[node->weight].name);
        if (!whit_compress_is_layer_matrix(tensor)) continue;
        if (stage->n && (node->input[0] != stage->input || stage->n == WHIT_STAGE_MATRICES_MAX)) break;
        stage->input = node->input[0];
        stage->n_experts = node->n_experts;
        stage->params[stage->n] = node->weight;
        stage->outputs[stage->n++] = node->output;
    }
    return stage->n > 0;
}

/* Finds the value that `value` is added to. *residual is 0 if `value` is not added to anything, or if the other summand
 * is computed from `value`, which then cannot compensate its loss. */
static whit_status find_residual(const whit_stream *stream, whit_ref value, whit_ref *residual, whit_error *error)
{
    const whit_graph *block = &stream->block;
    size_t n_values = (size_t)block->n_values + 1;
    bool *behind = whit_zalloc_array(stream->allocator, n_values, sizeof *behind);
    if (!behind) return whit_fail_memory(error, "the values of a layer", n_values * sizeof *behind);
    whit_ref found = 0;
    behind[value] = true;
    for (uint32_t i = 0; i < block->n_nodes; i++) {
        const whit_node *node = &block->nodes[i];
        for (int j = 0; j < 3; j++)
            if (behind[node->input[j]]) behind[node->output] = true;
        if (node->op != WHIT_OP_ADD || found) continue;
        if (node->input[0] == value)
            found = node->input[1];
        else if (node->input[1] == value)
            found = node->input[0];
    }
    *residual = behind[found] ? 0 : found;
    whit_free(stream->allocator, behind, n_values * sizeof *behind);
    return WHIT_OK;
}

/* Returns the value that is the sum over a token's experts of `output`, including values that are added to the sum
 * later, such as a shared expert's output; 0 if the outputs are not summed. */
static whit_ref find_expert_sum(const whit_graph *block, whit_ref output)
{
    whit_ref sum = 0;
    uint32_t own = 0;
    while (own < block->n_nodes && block->nodes[own].output != output) own++;
    for (uint32_t i = own; i < block->n_nodes; i++) {
        const whit_node *node = &block->nodes[i];
        if (node->op == WHIT_OP_COMBINE && node->input[0] == output) sum = node->output;
        if (node->op != WHIT_OP_ADD || !sum || (node->input[0] != sum && node->input[1] != sum)) continue;
        const whit_ref other = node->input[node->input[0] == sum];
        bool is_later = false;
        for (uint32_t k = own; k < i; k++) is_later = is_later || block->nodes[k].output == other;
        if (!is_later) break;
        sum = node->output;
    }
    return sum;
}

whit_status whit_stage_residual(const whit_stream *stream, const whit_layer_stage *stage, whit_ref *residual,
                                whit_error *error)
{
    whit_ref value = stage->n == 1 ? stage->outputs[0] : 0;
    if (value && stage->n_experts) value = find_expert_sum(&stream->block, value);
    *residual = 0;
    return value ? find_residual(stream, value, residual, error) : WHIT_OK;
}
