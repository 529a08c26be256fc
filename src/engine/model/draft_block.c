/* SPDX-License-Identifier: MIT */
#include "model/draft_block.h"

#include <stdio.h>

#include "model/families.h"

bool whit_draft_block_config(const whit_config *config, const whit_resolver *resolver, whit_config *block)
{
    char name[WHIT_VALUE_NAME_BYTES];
    snprintf(name, sizeof name, "layers.%u.draft_in", config->n_layers);
    if (!config->n_draft_layers || config->program || resolver->find(resolver->context, name) < 0) return false;
    const whit_layer_kind kind = whit_config_kind(config, config->n_layers);
    *block = *config;
    for (uint32_t i = 0; i < config->n_kinds; i++)
        if (memcmp(&config->kinds[i], &kind, sizeof kind) == 0) block->kind_of_layer[config->n_layers] = (uint8_t)i;
    block->n_layers++;
    block->n_draft_layers = 0;
    block->draft_width = config->n_embd;
    return true;
}

whit_status whit_draft_block_visit(const whit_config *config, const whit_resolver *resolver,
                                   void (*visit)(void *user, int32_t tensor), void *user,
                                   const whit_allocator *allocator, whit_error *error)
{
    whit_config block;
    whit_graph graph;
    if (!whit_draft_block_config(config, resolver, &block)) return WHIT_OK;
    whit_graph_begin(&graph, allocator, *resolver, error);
    whit_status status = whit_family_build(&block, &graph);
    for (uint32_t i = 0; status == WHIT_OK && i < graph.n_nodes; i++) {
        visit(user, graph.nodes[i].weight);
        visit(user, graph.nodes[i].bias);
    }
    whit_graph_free(&graph);
    return status;
}
