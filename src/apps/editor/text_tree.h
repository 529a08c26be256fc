/* SPDX-License-Identifier: MIT
 * Holds the B+ tree of a text: leaves with pieces, and inner nodes with the bytes and lines of their children. Each
 * node counts its references, and a shared node is copied before it is changed. The names lack the usual prefix,
 * because this header is for text.c alone. */
#ifndef WHIT_EDITOR_TEXT_TREE_H
#define WHIT_EDITOR_TEXT_TREE_H

#include "editor/text.h"

#define TREE_FAN 32
/* maximum size of a piece in bytes, since cutting a piece scans up to half of it for line feeds; only the pieces of a
 * huge file are larger (whit_text_adopt) */
#define TREE_PIECE_BYTES 8192u
#define TREE_INSERT_MAX  8u
#define TREE_UNCOUNTED   UINT32_MAX
/* Nodes are allocated in slabs. The first slab of each kind has TREE_SLAB_BYTES. The size of each further slab is the
 * largest power of two that is at most an eighth of all slabs before it, but at least TREE_SLAB_BYTES and at most
 * TREE_SLAB_LAST_BYTES (a huge page). */
#define TREE_SLAB_BYTES      (64u << 10)
#define TREE_SLAB_LAST_BYTES (2u << 20)

struct piece {
    const uint8_t *data;
    uint32_t size, lines;
};

struct whit_text_node {
    uint32_t refs;
    uint16_t n;
    bool is_leaf;
};
struct leaf {
    struct whit_text_node head;
    uint32_t size[TREE_FAN], lines[TREE_FAN];
    const uint8_t *data[TREE_FAN];
};
struct inner {
    struct whit_text_node head;
    /* for each child, the number of pieces below it whose lines are not counted; `lines` includes 0 for these */
    uint32_t unknown[TREE_FAN];
    uint64_t bytes[TREE_FAN], lines[TREE_FAN];
    struct whit_text_node *child[TREE_FAN];
};
struct sum {
    uint64_t bytes, lines;
    uint32_t unknown;
};

struct free_node {
    struct free_node *next;
};
struct slab {
    struct slab *next;
    size_t size_bytes;
};
/* Allocator for nodes of one kind: a list of freed nodes, and the unused rest of the newest slab. */
struct pool {
    struct free_node *freed;
    uint8_t *unused;
    size_t n_freed, n_unused, slabs_bytes;
};
struct tree {
    struct whit_text_node *root;
    struct sum sum;
    struct pool leaves, inners;
    struct slab *slabs;
};

bool tree_open(struct tree *tree);
void tree_close(struct tree *tree);
/* Replaces the bytes [from, to) by at most TREE_INSERT_MAX non-empty pieces. If memory runs out, returns false, and the
 * tree is unchanged. */
bool tree_replace(struct tree *tree, uint64_t from, uint64_t to, const struct piece *pieces, unsigned n);
void tree_release(struct tree *tree, struct whit_text_node *node);
struct sum tree_sum(const struct whit_text_node *node);
whit_span tree_at(const struct whit_text_node *root, uint64_t size_bytes, uint64_t offset);
/* Returns the piece that contains `offset`; *skipped gets the number of its bytes before `offset`. */
whit_span tree_piece(const struct whit_text_node *root, uint64_t offset, uint64_t *skipped);
uint32_t tree_count(const uint8_t *data, uint32_t size);
/* Counts the lines of the first uncounted piece and returns the piece. The result is empty if all are counted, or if
 * memory runs out. */
whit_span tree_count_next(struct tree *tree);
uint64_t tree_line_at(const struct whit_text_node *root, uint64_t offset);
uint64_t tree_line_start(const struct whit_text_node *root, uint64_t line);
#endif
