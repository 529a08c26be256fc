/* SPDX-License-Identifier: MIT
 * Adds the gradients of units in a binary tree. The order of its sums does not depend on the number of ranks. */
#include "train/tree.h"

enum {
    PIECE = 1 << 16,
    UNITS_MIN = 4,            /* minimum number of units in a step if a unit has several sequences: ranks share the
                               * units of a step */
    UNIT_TOKENS_ENOUGH = 1024 /* number of tokens in a unit from which adding gradients costs under 1 % of the time */
};

uint32_t whit_tree_unit(uint32_t n_sequences, uint32_t n_tokens)
{
    uint32_t n = 1, n_units = n_sequences;
    while ((uint64_t)n * n_tokens < UNIT_TOKENS_ENOUGH && n_units % 2 == 0 && n_units / 2 >= UNITS_MIN) {
        n *= 2;
        n_units /= 2;
    }
    return n;
}

void whit_tree_open(whit_tree *tree, const whit_loops *loops, whit_pool *pool, const whit_allocator *allocator,
                    size_t n_values)
{
    *tree = (whit_tree){.loops = loops, .pool = pool, .allocator = allocator, .n_values = n_values};
}

void whit_tree_close(whit_tree *tree)
{
    for (uint32_t i = 0; i < tree->n_buffers; i++)
        whit_free(tree->allocator, tree->nodes[i].values, tree->n_values * sizeof(float));
    tree->n_nodes = tree->n_buffers = 0;
}

whit_tree_node *whit_tree_next(whit_tree *tree)
{
    whit_tree_node *node = &tree->nodes[tree->n_nodes];
    if (tree->n_nodes == tree->n_buffers) {
        node->values = whit_alloc(tree->allocator, tree->n_values * sizeof(float));
        if (!node->values) return NULL;
        tree->n_buffers++;
    }
    return node;
}

struct sum_job {
    const whit_tree *tree;
    float *to;
    const float *from;
};

static void sum_pieces(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct sum_job *job = context;
    const size_t first = (size_t)begin * PIECE, last = (size_t)end * PIECE, n = job->tree->n_values;
    job->tree->loops->add(job->to + first, job->from + first, (last < n ? last : n) - first);
}

/* Adds the last node to the node before it, and removes the last node. */
static void join_last(whit_tree *tree)
{
    whit_tree_node *left = &tree->nodes[tree->n_nodes - 2], *right = left + 1;
    struct sum_job job = {tree, left->values, right->values};
    whit_pool_run(tree->pool, sum_pieces, &job, (uint32_t)((tree->n_values + PIECE - 1) / PIECE), 1);
    left->losses[0] += right->losses[0];
    left->losses[1] += right->losses[1];
    left->n += right->n;
    tree->n_nodes--;
}

void whit_tree_add(whit_tree *tree)
{
    tree->n_nodes++;
    while (tree->n_nodes > 1) {
        const whit_tree_node *left = &tree->nodes[tree->n_nodes - 2], *right = left + 1;
        if (left->n != right->n || left->first % (2 * left->n) || left->first + left->n != right->first) break;
        join_last(tree);
    }
}

/* The fields of a node that are sent before its values. */
struct header {
    uint32_t first, n;
    double losses[2];
};

static bool send_nodes(const whit_tree *tree, const whit_ranks *ranks)
{
    bool ok = ranks->send(ranks->user, 0, &tree->n_nodes, sizeof tree->n_nodes);
    for (uint32_t i = 0; ok && i < tree->n_nodes; i++) {
        const whit_tree_node *node = &tree->nodes[i];
        const struct header header = {node->first, node->n, {node->losses[0], node->losses[1]}};
        ok = ranks->send(ranks->user, 0, &header, sizeof header) &&
            ranks->send(ranks->user, 0, node->values, tree->n_values * sizeof *node->values);
    }
    return ok;
}

/* Receives the nodes of a rank and adds them to the tree. Returns false if the rank is lost or memory runs out. */
static bool receive_nodes(whit_tree *tree, const whit_ranks *ranks, uint32_t rank)
{
    uint32_t n = 0;
    bool ok = ranks->receive(ranks->user, rank, &n, sizeof n);
    for (uint32_t i = 0; ok && i < n; i++) {
        struct header header;
        whit_tree_node *node = whit_tree_next(tree);
        ok = node && ranks->receive(ranks->user, rank, &header, sizeof header) &&
            ranks->receive(ranks->user, rank, node->values, tree->n_values * sizeof *node->values);
        if (!ok) break;
        node->first = header.first;
        node->n = header.n;
        memcpy(node->losses, header.losses, sizeof node->losses);
        whit_tree_add(tree);
    }
    return ok;
}

whit_status whit_tree_reduce(whit_tree *tree, const whit_ranks *ranks, whit_error *error)
{
    bool ok = true;
    if (ranks->rank) {
        ok = send_nodes(tree, ranks);
        tree->n_nodes = 0;
    } else {
        for (uint32_t rank = 1; ok && rank < ranks->n_ranks; rank++) ok = receive_nodes(tree, ranks, rank);
        while (tree->n_nodes > 1) join_last(tree);
    }
    whit_tree_node *sum = ranks->rank ? whit_tree_next(tree) : &tree->nodes[0];
    ok = ok && sum && ranks->broadcast(ranks->user, sum->losses, sizeof sum->losses) &&
        ranks->broadcast(ranks->user, sum->values, tree->n_values * sizeof *sum->values);
    tree->n_nodes = 1;
    return ok ? WHIT_OK
              : whit_fail(error, WHIT_ERROR_IO,
                          "the process of another rank has ended, or lacks memory for its gradients: its machine's "
                          "output says why");
}
