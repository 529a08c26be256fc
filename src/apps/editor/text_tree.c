/* SPDX-License-Identifier: MIT */
#include "editor/text_tree.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/system.h"
#include "base/pages.h"

/* minimum number of free nodes before a change; more than one change needs in a tree of realistic height */
#define RESERVE 32

/* ---- nodes --------------------------------------------------------------------------------- */

static size_t node_bytes(bool is_leaf)
{
    return is_leaf ? sizeof(struct leaf) : sizeof(struct inner);
}

static struct pool *pool_of(struct tree *tree, bool is_leaf)
{
    return is_leaf ? &tree->leaves : &tree->inners;
}

static void push_free(struct pool *pool, void *node)
{
    struct free_node *freed = node;
    freed->next = pool->freed;
    pool->freed = freed;
    pool->n_freed++;
}

static void *carve(struct pool *pool, bool is_leaf)
{
    void *node = pool->unused;
    pool->unused += node_bytes(is_leaf);
    pool->n_unused--;
    return node;
}

static bool add_slab(struct tree *tree, bool is_leaf)
{
    struct pool *pool = pool_of(tree, is_leaf);
    size_t size_bytes = TREE_SLAB_BYTES;
    while (size_bytes < TREE_SLAB_LAST_BYTES && 2 * size_bytes <= pool->slabs_bytes / 8) size_bytes *= 2;
    bool huge = size_bytes == TREE_SLAB_LAST_BYTES;
    uint8_t *memory = whit_system_alloc(size_bytes, huge ? size_bytes : WHIT_ALIGN_BYTES);
    if (!memory) return false;
    if (huge) whit_map_expect(memory, size_bytes, true);
    if (pool->slabs_bytes) whit_pages_populate(memory, size_bytes);
    struct slab *slab = (struct slab *)memory;
    *slab = (struct slab){tree->slabs, size_bytes};
    tree->slabs = slab;
    while (pool->n_unused) push_free(pool, carve(pool, is_leaf));
    pool->unused = memory + WHIT_ALIGN_BYTES;
    pool->n_unused = (size_bytes - WHIT_ALIGN_BYTES) / node_bytes(is_leaf);
    pool->slabs_bytes += size_bytes;
    return true;
}

/* Ensures that the pools have the nodes that one change may need, so that it cannot fail halfway. Returns false if
 * memory runs out. */
static bool reserve(struct tree *tree)
{
    for (int is_leaf = 0; is_leaf < 2; is_leaf++) {
        const struct pool *pool = pool_of(tree, is_leaf);
        if (pool->n_freed + pool->n_unused < RESERVE && !add_slab(tree, is_leaf)) return false;
    }
    return true;
}

static void *take_node(struct tree *tree, bool is_leaf)
{
    struct pool *pool = pool_of(tree, is_leaf);
    struct whit_text_node *node = (struct whit_text_node *)pool->freed;
    if (node) {
        pool->freed = pool->freed->next;
        pool->n_freed--;
    } else {
        node = carve(pool, is_leaf);
    }
    *node = (struct whit_text_node){.refs = 1, .is_leaf = is_leaf};
    return node;
}

/* Frees a node without releasing its children. */
static void give(struct tree *tree, struct whit_text_node *node)
{
    push_free(pool_of(tree, node->is_leaf), node);
}

void tree_release(struct tree *tree, struct whit_text_node *node)
{
    if (--node->refs) return;
    if (!node->is_leaf)
        for (unsigned i = 0; i < node->n; i++) tree_release(tree, ((struct inner *)node)->child[i]);
    give(tree, node);
}

/* Returns the node itself if it has only one reference, otherwise a copy. The copy takes over the caller's
 * reference. */
static struct whit_text_node *own(struct tree *tree, struct whit_text_node *node)
{
    if (node->refs == 1) return node;
    struct whit_text_node *copy = take_node(tree, node->is_leaf);
    if (node->is_leaf) {
        memcpy(copy, node, sizeof(struct leaf));
    } else {
        memcpy(copy, node, sizeof(struct inner));
        for (unsigned i = 0; i < node->n; i++) ((struct inner *)node)->child[i]->refs++;
    }
    copy->refs = 1;
    node->refs--;
    return copy;
}

struct sum tree_sum(const struct whit_text_node *node)
{
    struct sum sum = {0};
    if (node->is_leaf) {
        const struct leaf *leaf = (const struct leaf *)node;
        for (unsigned i = 0; i < node->n; i++) {
            bool unknown = leaf->lines[i] == TREE_UNCOUNTED;
            sum.bytes += leaf->size[i];
            sum.lines += unknown ? 0 : leaf->lines[i];
            sum.unknown += unknown;
        }
    } else {
        const struct inner *inner = (const struct inner *)node;
        for (unsigned i = 0; i < node->n; i++) {
            sum.bytes += inner->bytes[i];
            sum.lines += inner->lines[i];
            sum.unknown += inner->unknown[i];
        }
    }
    return sum;
}

struct child {
    struct whit_text_node *node;
    struct sum sum;
};

static struct child child_of(struct whit_text_node *node)
{
    return (struct child){node, tree_sum(node)};
}

static struct child get_child(const struct inner *inner, unsigned i)
{
    return (struct child){inner->child[i], {inner->bytes[i], inner->lines[i], inner->unknown[i]}};
}

static void set_child(struct inner *inner, unsigned i, struct child child)
{
    inner->child[i] = child.node;
    inner->bytes[i] = child.sum.bytes;
    inner->lines[i] = child.sum.lines;
    inner->unknown[i] = child.sum.unknown;
}

uint32_t tree_count(const uint8_t *data, uint32_t size)
{
    uint32_t lines = 0;
    for (uint32_t i = 0; i < size; i++) lines += data[i] == '\n';
    return lines;
}

/* ---- editing ------------------------------------------------------------------------------- */

/* The nodes that replace a node after an edit: none, one (maybe the node itself) or two. */
struct result {
    struct whit_text_node *node[2];
    unsigned n;
};

/* Returns the number of line feeds in the first `keep` bytes of a piece, but `lines` if that is 0 or unknown. Only the
 * smaller part of the piece is scanned. */
static uint32_t lines_before(const uint8_t *data, uint32_t size, uint32_t lines, uint32_t keep)
{
    if (lines == TREE_UNCOUNTED || !lines) return lines;
    if (keep <= size / 2) return tree_count(data, keep);
    /* A mapped file may have been overwritten since its lines were counted, so the result is limited to 0. */
    uint32_t behind = tree_count(data + keep, size - keep);
    return behind > lines ? 0 : lines - behind;
}

static void put_pieces(struct leaf *leaf, const struct piece *pieces, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        leaf->data[i] = pieces[i].data;
        leaf->size[i] = pieces[i].size;
        leaf->lines[i] = pieces[i].lines;
    }
    leaf->head.n = (uint16_t)n;
}

static void shift(struct leaf *leaf, unsigned from, unsigned by)
{
    unsigned n = leaf->head.n - from;
    memmove(leaf->data + from + by, leaf->data + from, n * sizeof *leaf->data);
    memmove(leaf->size + from + by, leaf->size + from, n * sizeof *leaf->size);
    memmove(leaf->lines + from + by, leaf->lines + from, n * sizeof *leaf->lines);
    leaf->head.n = (uint16_t)(leaf->head.n + by);
}

static struct piece piece_of(const struct leaf *leaf, unsigned i)
{
    return (struct piece){leaf->data[i], leaf->size[i], leaf->lines[i]};
}

static void set_piece(struct leaf *leaf, unsigned i, struct piece piece)
{
    leaf->data[i] = piece.data;
    leaf->size[i] = piece.size;
    leaf->lines[i] = piece.lines;
}

static void cut_piece(struct piece piece, uint32_t at, struct piece *left, struct piece *right)
{
    uint32_t lines = lines_before(piece.data, piece.size, piece.lines, at);
    bool known = piece.lines != TREE_UNCOUNTED;
    *left = (struct piece){piece.data, at, lines};
    *right = (struct piece){piece.data + at, piece.size - at,
                            known ? (piece.lines > lines ? piece.lines - lines : 0) : TREE_UNCOUNTED};
}

/* Inserts one piece without rebuilding the leaf, which is the usual case when typing. Returns false if the leaf has no
 * room. */
static bool insert_one(struct leaf *leaf, uint64_t from, struct piece piece)
{
    unsigned i = 0;
    while (i < leaf->head.n && from > leaf->size[i]) from -= leaf->size[i++];
    if (i < leaf->head.n && from == leaf->size[i]) {
        bool joins = leaf->data[i] + leaf->size[i] == piece.data && leaf->lines[i] != TREE_UNCOUNTED &&
            piece.lines != TREE_UNCOUNTED && leaf->size[i] + piece.size <= TREE_PIECE_BYTES;
        if (joins) {
            leaf->size[i] += piece.size;
            leaf->lines[i] += piece.lines;
            return true;
        }
        i++;
        from = 0;
    }
    if (leaf->head.n + (from ? 2u : 1u) > TREE_FAN) return false;
    if (from) {
        struct piece left, right;
        cut_piece(piece_of(leaf, i), (uint32_t)from, &left, &right);
        shift(leaf, i + 1, 2);
        set_piece(leaf, i, left);
        set_piece(leaf, i + 1, piece);
        set_piece(leaf, i + 2, right);
    } else {
        shift(leaf, i, 1);
        set_piece(leaf, i, piece);
    }
    return true;
}

static struct result replace_in_leaf(struct tree *tree, struct leaf *leaf, uint64_t from, uint64_t to,
                                     const struct piece *pieces, unsigned n)
{
    leaf = (struct leaf *)own(tree, &leaf->head);
    if (from == to && n == 1 && insert_one(leaf, from, pieces[0])) return (struct result){{&leaf->head}, 1};
    struct piece all[TREE_FAN + TREE_INSERT_MAX + 2];
    unsigned n_all = 0;
    uint64_t at = 0;
    bool done = false;
    for (unsigned i = 0; i < leaf->head.n; i++) {
        struct piece piece = piece_of(leaf, i), left, right;
        uint64_t end = at + piece.size;
        if (end <= from) {
            all[n_all++] = piece;
        } else {
            if (at < from) {
                cut_piece(piece, (uint32_t)(from - at), &left, &right);
                all[n_all++] = left;
                piece = right;
                at = from;
            }
            if (!done) {
                for (unsigned k = 0; k < n; k++) all[n_all++] = pieces[k];
                done = true;
            }
            if (end > to) {
                if (at < to) {
                    cut_piece(piece, (uint32_t)(to - at), &left, &right);
                    piece = right;
                }
                all[n_all++] = piece;
            }
        }
        at = end;
    }
    for (unsigned k = 0; !done && k < n; k++) all[n_all++] = pieces[k];
    if (!n_all) {
        tree_release(tree, &leaf->head);
        return (struct result){{NULL}, 0};
    }
    if (n_all <= TREE_FAN) {
        put_pieces(leaf, all, n_all);
        return (struct result){{&leaf->head}, 1};
    }
    struct leaf *second = take_node(tree, true);
    put_pieces(leaf, all, n_all / 2);
    put_pieces(second, all + n_all / 2, n_all - n_all / 2);
    return (struct result){{&leaf->head, &second->head}, 2};
}

/* Merges two neighbouring nodes whose content fits into one. Returns the merged node; `b` is released. */
static struct whit_text_node *join_nodes(struct tree *tree, struct whit_text_node *a, struct whit_text_node *b)
{
    a = own(tree, a);
    unsigned n = a->n, m = b->n;
    if (a->is_leaf) {
        struct leaf *to = (struct leaf *)a, *from = (struct leaf *)b;
        memcpy(to->data + n, from->data, m * sizeof *to->data);
        memcpy(to->size + n, from->size, m * sizeof *to->size);
        memcpy(to->lines + n, from->lines, m * sizeof *to->lines);
    } else {
        struct inner *to = (struct inner *)a, *from = (struct inner *)b;
        memcpy(to->child + n, from->child, m * sizeof *to->child);
        memcpy(to->bytes + n, from->bytes, m * sizeof *to->bytes);
        memcpy(to->lines + n, from->lines, m * sizeof *to->lines);
        memcpy(to->unknown + n, from->unknown, m * sizeof *to->unknown);
        for (unsigned i = 0; i < m; i++) from->child[i]->refs++;
    }
    a->n = (uint16_t)(n + m);
    tree_release(tree, b);
    return a;
}

static struct result replace_in(struct tree *tree, struct whit_text_node *node, uint64_t from, uint64_t to,
                                const struct piece *pieces, unsigned n)
{
    if (node->is_leaf) return replace_in_leaf(tree, (struct leaf *)node, from, to, pieces, n);
    struct inner *inner = (struct inner *)own(tree, node);
    unsigned first = 0;
    uint64_t begin = 0; /* offset at which child `first` begins */
    while (first + 1 < inner->head.n && from > begin + inner->bytes[first]) begin += inner->bytes[first++];
    unsigned last = first;
    uint64_t last_begin = begin;
    while (last + 1 < inner->head.n && to > last_begin + inner->bytes[last]) last_begin += inner->bytes[last++];

    uint64_t first_end = begin + inner->bytes[first];
    struct result left =
        replace_in(tree, inner->child[first], from - begin, (to < first_end ? to : first_end) - begin, pieces, n);
    struct result right = {{NULL}, 0};
    if (last > first) right = replace_in(tree, inner->child[last], 0, to - last_begin, NULL, 0);
    if (last == first && left.n == 1 && (from == to || left.node[0]->n >= TREE_FAN / 4)) {
        set_child(inner, first, child_of(left.node[0]));
        return (struct result){{&inner->head}, 1};
    }
    for (unsigned i = first + 1; i < last; i++) tree_release(tree, inner->child[i]);

    struct child all[TREE_FAN + 4];
    unsigned n_all = 0;
    for (unsigned i = 0; i < first; i++) all[n_all++] = get_child(inner, i);
    for (unsigned i = 0; i < left.n; i++) all[n_all++] = child_of(left.node[i]);
    for (unsigned i = 0; i < right.n; i++) all[n_all++] = child_of(right.node[i]);
    for (unsigned i = last + 1; i < inner->head.n; i++) all[n_all++] = get_child(inner, i);
    unsigned changed_begin = first ? first - 1 : 0;
    for (unsigned i = changed_begin; i + 1 < n_all && i < first + 4;) {
        bool small = all[i].node->n < TREE_FAN / 4 || all[i + 1].node->n < TREE_FAN / 4;
        if (!small || all[i].node->n + all[i + 1].node->n > TREE_FAN) {
            i++;
            continue;
        }
        all[i] = child_of(join_nodes(tree, all[i].node, all[i + 1].node));
        memmove(all + i + 1, all + i + 2, (n_all - i - 2) * sizeof *all);
        n_all--;
    }
    if (!n_all) {
        give(tree, &inner->head);
        return (struct result){{NULL}, 0};
    }
    if (n_all <= TREE_FAN) {
        for (unsigned i = 0; i < n_all; i++) set_child(inner, i, all[i]);
        inner->head.n = (uint16_t)n_all;
        return (struct result){{&inner->head}, 1};
    }
    struct inner *second = take_node(tree, false);
    unsigned half = n_all / 2;
    for (unsigned i = 0; i < half; i++) set_child(inner, i, all[i]);
    for (unsigned i = half; i < n_all; i++) set_child(second, i - half, all[i]);
    inner->head.n = (uint16_t)half;
    second->head.n = (uint16_t)(n_all - half);
    return (struct result){{&inner->head, &second->head}, 2};
}

bool tree_replace(struct tree *tree, uint64_t from, uint64_t to, const struct piece *pieces, unsigned n)
{
    if (from == to && !n) return true;
    if (!reserve(tree)) return false;
    struct result result = replace_in(tree, tree->root, from, to, pieces, n);
    if (!result.n) {
        tree->root = take_node(tree, true);
    } else if (result.n == 1) {
        tree->root = result.node[0];
    } else {
        struct inner *root = take_node(tree, false);
        set_child(root, 0, child_of(result.node[0]));
        set_child(root, 1, child_of(result.node[1]));
        root->head.n = 2;
        tree->root = &root->head;
    }
    while (!tree->root->is_leaf && tree->root->n == 1) {
        struct whit_text_node *child = ((struct inner *)tree->root)->child[0];
        child->refs++;
        tree_release(tree, tree->root);
        tree->root = child;
    }
    tree->sum = tree_sum(tree->root);
    return true;
}

bool tree_open(struct tree *tree)
{
    if (!reserve(tree)) return false;
    tree->root = take_node(tree, true);
    return true;
}

void tree_close(struct tree *tree)
{
    while (tree->slabs) {
        struct slab *next = tree->slabs->next;
        whit_system_free(tree->slabs);
        tree->slabs = next;
    }
    tree->root = NULL;
}

/* ---- reading ------------------------------------------------------------------------------- */

whit_span tree_piece(const struct whit_text_node *root, uint64_t offset, uint64_t *skipped)
{
    while (!root->is_leaf) {
        const struct inner *inner = (const struct inner *)root;
        unsigned i = 0;
        while (i + 1 < root->n && offset >= inner->bytes[i]) offset -= inner->bytes[i++];
        root = inner->child[i];
    }
    const struct leaf *leaf = (const struct leaf *)root;
    unsigned i = 0;
    while (i + 1 < root->n && offset >= leaf->size[i]) offset -= leaf->size[i++];
    *skipped = offset;
    return (whit_span){leaf->data[i], leaf->size[i]};
}

whit_span tree_at(const struct whit_text_node *root, uint64_t size_bytes, uint64_t offset)
{
    if (offset >= size_bytes) return (whit_span){0};
    uint64_t skipped;
    whit_span span = tree_piece(root, offset, &skipped);
    return (whit_span){span.data + skipped, span.size_bytes - skipped};
}

uint64_t tree_line_at(const struct whit_text_node *root, uint64_t offset)
{
    uint64_t lines = 0;
    while (!root->is_leaf) {
        const struct inner *inner = (const struct inner *)root;
        unsigned i = 0;
        for (; i + 1 < root->n && offset > inner->bytes[i]; i++) {
            if (inner->unknown[i]) return UINT64_MAX;
            offset -= inner->bytes[i];
            lines += inner->lines[i];
        }
        root = inner->child[i];
    }
    const struct leaf *leaf = (const struct leaf *)root;
    for (unsigned i = 0; i < root->n; i++) {
        if (offset < leaf->size[i]) return lines + tree_count(leaf->data[i], (uint32_t)offset);
        if (leaf->lines[i] == TREE_UNCOUNTED) return UINT64_MAX;
        offset -= leaf->size[i];
        lines += leaf->lines[i];
    }
    return lines;
}

uint64_t tree_line_start(const struct whit_text_node *root, uint64_t line)
{
    uint64_t offset = 0;
    while (!root->is_leaf) {
        const struct inner *inner = (const struct inner *)root;
        unsigned i = 0;
        for (; i + 1 < root->n && line > inner->lines[i] && !inner->unknown[i]; i++) {
            line -= inner->lines[i];
            offset += inner->bytes[i];
        }
        root = inner->child[i];
    }
    const struct leaf *leaf = (const struct leaf *)root;
    for (unsigned i = 0; i < root->n; i++) {
        if (leaf->lines[i] == TREE_UNCOUNTED) return UINT64_MAX;
        if (line > leaf->lines[i]) {
            line -= leaf->lines[i];
            offset += leaf->size[i];
            continue;
        }
        const uint8_t *at = leaf->data[i], *end = at + leaf->size[i];
        while (line && at < end) {
            const uint8_t *found = memchr(at, '\n', (size_t)(end - at));
            at = found ? found + 1 : end;
            line -= found != NULL;
        }
        return offset + (uint64_t)(at - leaf->data[i]);
    }
    return offset;
}

/* Counts the lines of the first uncounted piece below a node that nothing else references, and updates the sums of the
 * nodes above the piece. Returns the piece. */
static whit_span count_below(struct tree *tree, struct whit_text_node *node)
{
    if (node->is_leaf) {
        struct leaf *leaf = (struct leaf *)node;
        unsigned i = 0;
        while (leaf->lines[i] != TREE_UNCOUNTED) i++;
        leaf->lines[i] = tree_count(leaf->data[i], leaf->size[i]);
        return (whit_span){leaf->data[i], leaf->size[i]};
    }
    struct inner *inner = (struct inner *)node;
    unsigned i = 0;
    while (!inner->unknown[i]) i++;
    struct whit_text_node *child = own(tree, inner->child[i]);
    whit_span span = count_below(tree, child);
    set_child(inner, i, child_of(child));
    return span;
}

whit_span tree_count_next(struct tree *tree)
{
    if (!tree->sum.unknown || !reserve(tree)) return (whit_span){0};
    tree->root = own(tree, tree->root);
    whit_span span = count_below(tree, tree->root);
    tree->sum = tree_sum(tree->root);
    return span;
}
