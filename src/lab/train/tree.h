/* SPDX-License-Identifier: MIT
 * Supports training by several processes (ranks), which mpirun starts: each computes the gradients of some sequences of
 * a step.
 *
 * Sums of floats depend on their order, so it must not depend on the number of ranks. A step's sequences are divided
 * into units. Each unit has a gradient of its own, and these are added in a binary tree over their numbers: blocks of
 * 2^k units that begin at a multiple of 2^k, and at last the incomplete ones from the right. A rank adds the blocks
 * that lie in its share; rank 0 receives their sums in order, adds the rest of the tree, and sends the result to all.
 */
#ifndef WHIT_TRAIN_TREE_H
#define WHIT_TRAIN_TREE_H

#include "base/ranks.h"
#include "train/params.h"

/* Holds the sum of a block of n units from unit `first` on; n is a power of two and `first` a multiple of n. */
typedef struct whit_tree_node {
    uint32_t first, n;
    double losses[2]; /* sums of KL and CE */
    float *values;    /* (n_values) */
} whit_tree_node;

/* Holds blocks in order, of which no two are the halves of a larger block. */
typedef struct whit_tree {
    const whit_allocator *allocator;
    const whit_loops *loops;
    whit_pool *pool;
    size_t n_values;
    whit_tree_node nodes[2 * 32 + 1];
    uint32_t n_nodes, n_buffers; /* nodes in use; nodes whose values are allocated, which lie at the beginning */
} whit_tree;

/* Returns the number of sequences of a unit, which run in one pass, for a step of n_sequences of n_tokens. It is the
 * least power of two with 1,024 tokens or more that divides the step into four units or more, else the largest that
 * does; 1 where none does. */
uint32_t whit_tree_unit(uint32_t n_sequences, uint32_t n_tokens);

void whit_tree_open(whit_tree *tree, const whit_loops *loops, whit_pool *pool, const whit_allocator *allocator,
                    size_t n_values);
void whit_tree_close(whit_tree *tree);
/* Returns an empty node after the last one; its values are undefined. The result is NULL if memory runs out. */
whit_tree_node *whit_tree_next(whit_tree *tree);
/* Adds the node of whit_tree_next, filled in, and joins the halves of larger blocks. */
void whit_tree_add(whit_tree *tree);
/* Sums the trees of all ranks; afterwards every rank's tree is one node. */
whit_status whit_tree_reduce(whit_tree *tree, const whit_ranks *ranks, whit_error *error);

#endif
