/* SPDX-License-Identifier: MIT */
#include "compress/stages.h"

#include "compress/types.h"

/* Is the node a product with a matrix that may be compressed? */
static bool is_product(const whit_node *node)
{
    return node->op == WHIT_OP_LINEAR || node->op == WHIT_OP_EXPERT_LINEAR;
}

/* Has a node before node `at` the same matrix? A family's program may use one twice; the first use decides. */
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
