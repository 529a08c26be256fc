/* SPDX-License-Identifier: MIT
 * Training by several processes (ranks), which mpirun starts: each computes the gradients of some sequences of a step.
 *
 * The result of a sum of floats depends on the order of its terms, so this order must not depend on the number of
 * ranks. A step's sequences are divided into units. Each unit has a gradient of its own. These gradients are added in a
 * binary tree over the units' numbers: blocks of 2^k units that begin at a multiple of 2^k, and at last the incomplete
 * blocks from the right. A rank adds the blocks that are wholly in its share of the units. Rank 0 receives the sums of
 * the ranks in order, adds the rest of the tree, and sends the result to all ranks. */
#ifndef WHIT_TRAIN_TREE_H
#define WHIT_TRAIN_TREE_H

#include "base/ranks.h"
#include "train/params.h"

/* The sum of a block of n units, from unit `first` on. n is a power of two, and `first` is a multiple of n; only the
 * node that whit_tree_reduce makes has the units of the whole step. */
typedef struct whit_tree_node {
    uint32_t first, n;
    double losses[2]; /* sums of KL and CE */
    float *values;    /* (n_values) sums of the gradients */
} whit_tree_node;

/* Blocks in ascending order. No two of them are the halves of a larger block. */
typedef struct whit_tree {
    const whit_allocator *allocator;
    const whit_loops *loops;
    whit_pool *pool;
    size_t n_values;
    whit_tree_node nodes[2 * 32 + 1];
    uint32_t n_nodes, n_buffers; /* number of nodes in use; number of nodes at the beginning whose values are
                                  * allocated */
} whit_tree;

/* Returns the number of sequences in a unit, which runs in one pass, for a step of n_sequences sequences of n_tokens
 * tokens. It is the smallest power of two with at least 1,024 tokens that divides the step into at least four units. If
 * no power of two does so, it is the largest one that divides the step into at least four units, or else 1. */
uint32_t whit_tree_unit(uint32_t n_sequences, uint32_t n_tokens);

void whit_tree_open(whit_tree *tree, const whit_loops *loops, whit_pool *pool, const whit_allocator *allocator,
                    size_t n_values);
void whit_tree_close(whit_tree *tree);
/* Returns the node after the last one, for the caller to fill; its values are undefined. Returns NULL if memory runs
 * out. */
whit_tree_node *whit_tree_next(whit_tree *tree);
/* Adds the node that whit_tree_next returned and the caller filled. Joins blocks that are the halves of a larger
 * block. */
void whit_tree_add(whit_tree *tree);
/* Sums the trees of all ranks. Afterwards the tree of every rank is one node with the sum. */
whit_status whit_tree_reduce(whit_tree *tree, const whit_ranks *ranks, whit_error *error);

#endif
