/* SPDX-License-Identifier: MIT
 * Checks a finished graph: no rule calls itself before it has consumed a byte, and the root can reach its end. A node's
 * height, the number of frames that reaching the end takes, is computed by Knuth's generalisation of Dijkstra's
 * algorithm (1977), which settles each node once, in the order of height. */
#include "grammar/automaton.h"
#include "base/items.h"

typedef struct checker {
    whit_automaton *graph;
    whit_automaton_node *nodes;
    const uint32_t *edges, *rules;
    whit_automaton_repetition *repetitions;
    uint32_t n_nodes, n_rules, n_repetitions;
    uint32_t *users_begin, *users; /* the nodes that refer to node i: users[users_begin[i]] to users[users_begin[i + 1]
                                    * - 1] */
    uint8_t *empty;                /* (n_nodes) 1 if a node can reach the end without a byte, or, later, by any text */
} checker;

/* Sets *to to the i-th node that `node` refers to. Returns false if there are fewer. For a call or a repetition, node 0
 * is the beginning of the rule or body, and node 1 the next node. */
static bool refers(const checker *c, uint32_t node, uint32_t i, uint32_t *to)
{
    const whit_automaton_node *n = &c->nodes[node];
    switch ((whit_automaton_kind)n->kind) {
    case WHIT_AUTOMATON_END: return false;
    case WHIT_AUTOMATON_BYTES: *to = n->b; return i < 1;
    case WHIT_AUTOMATON_SPLIT:
        if (i >= n->b) return false;
        *to = c->edges[n->a + i];
        return true;
    case WHIT_AUTOMATON_CALL: *to = i ? n->b : c->rules[n->a]; return i < 2;
    case WHIT_AUTOMATON_REPEAT: *to = i ? n->b : c->repetitions[n->a].body; return i < 2;
    }
    return false;
}

static whit_status index_users(checker *c, whit_error *error)
{
    const whit_allocator *allocator = c->graph->allocator;
    uint32_t to;
    c->users_begin = whit_zalloc_array(allocator, (size_t)c->n_nodes + 2, sizeof *c->users_begin);
    c->empty = whit_zalloc(allocator, c->n_nodes);
    if (!c->users_begin || !c->empty) return whit_fail_memory(error, "a grammar", c->n_nodes * sizeof *c->users_begin);
    for (uint32_t node = 0; node < c->n_nodes; node++)
        for (uint32_t i = 0; refers(c, node, i, &to); i++) c->users_begin[to + 2]++;
    for (uint32_t i = 2; i < c->n_nodes + 2; i++) c->users_begin[i] += c->users_begin[i - 1];
    uint32_t n = c->users_begin[c->n_nodes + 1];
    c->users = whit_zalloc_array(allocator, (size_t)n + 1, sizeof *c->users);
    if (!c->users) return whit_fail_memory(error, "a grammar", n * sizeof *c->users);
    for (uint32_t node = 0; node < c->n_nodes; node++)
        for (uint32_t i = 0; refers(c, node, i, &to); i++) c->users[c->users_begin[to + 1]++] = node;
    return WHIT_OK;
}

/* Returns whether a node can reach the end, according to what c->empty has about other nodes so far: without a byte or,
 * if `with_bytes`, by some text. */
static bool ends_now(const checker *c, uint32_t node, bool with_bytes)
{
    const whit_automaton_node *n = &c->nodes[node];
    switch ((whit_automaton_kind)n->kind) {
    case WHIT_AUTOMATON_END: return true;
    case WHIT_AUTOMATON_BYTES: return with_bytes && c->empty[n->b];
    case WHIT_AUTOMATON_SPLIT:
        for (uint32_t i = 0; i < n->b; i++)
            if (c->empty[c->edges[n->a + i]]) return true;
        return false;
    case WHIT_AUTOMATON_CALL: return c->empty[c->rules[n->a]] && c->empty[n->b];
    case WHIT_AUTOMATON_REPEAT:
        return (c->repetitions[n->a].min == 0 || c->empty[c->repetitions[n->a].body]) && c->empty[n->b];
    }
    return false;
}

/* Computes the height of a node from those of the settled nodes that it refers to; UINT32_MAX if these do not suffice
 * yet. */
static uint32_t height_now(const checker *c, const uint16_t *height, uint32_t node)
{
    const whit_automaton_node *n = &c->nodes[node];
    uint32_t part = UINT32_MAX, next = UINT32_MAX;
    switch ((whit_automaton_kind)n->kind) {
    case WHIT_AUTOMATON_END: return 0;
    case WHIT_AUTOMATON_BYTES: return height[n->b] == UINT16_MAX ? UINT32_MAX : height[n->b];
    case WHIT_AUTOMATON_SPLIT: /* The first alternative to be settled is the lowest, and then this node is computed. */
        for (uint32_t i = 0; i < n->b; i++)
            if (height[c->edges[n->a + i]] < next) next = height[c->edges[n->a + i]];
        return next == UINT16_MAX ? UINT32_MAX : next;
    case WHIT_AUTOMATON_CALL:
        part = c->rules[n->a];
        if (n->b == WHIT_AUTOMATON_RET) /* the machine pushes no frame for a call at the end of a rule */
            return height[part] == UINT16_MAX ? UINT32_MAX : height[part];
        break;
    case WHIT_AUTOMATON_REPEAT:
        part = c->repetitions[n->a].body;
        if (c->repetitions[n->a].min == 0) return height[n->b] == UINT16_MAX ? UINT32_MAX : height[n->b];
        break;
    }
    if (height[part] == UINT16_MAX || height[n->b] == UINT16_MAX) return UINT32_MAX;
    return height[part] + 1u > height[n->b] ? height[part] + 1u : height[n->b];
}

/* Settles nodes in the order of height. `now` and `later` are stacks for the current and the next height; each has room
 * for every node. */
static void settle(checker *c, uint16_t *height, uint32_t *now, uint32_t *later)
{
    uint32_t n_now = 1, n_later = 0;
    now[0] = WHIT_AUTOMATON_RET;
    for (uint32_t level = 0; n_now && level < WHIT_AUTOMATON_MAX_DEPTH; level++) {
        while (n_now) {
            uint32_t node = now[--n_now];
            if (height[node] != UINT16_MAX) continue;
            height[node] = (uint16_t)level;
            for (uint32_t i = c->users_begin[node]; i < c->users_begin[node + 1]; i++) {
                uint32_t user = c->users[i];
                if (height[user] != UINT16_MAX) continue;
                uint32_t h = height_now(c, height, user);
                if (h == level)
                    now[n_now++] = user;
                else if (h == level + 1)
                    later[n_later++] = user;
            }
        }
        uint32_t *swap = now;
        now = later;
        later = swap;
        n_now = n_later;
        n_later = 0;
    }
}

/* Sets c->empty for all nodes that reach the end without a byte or, if `with_bytes`, by any finite text. */
static void find_ends(checker *c, uint32_t *stack, bool with_bytes)
{
    uint32_t n = 1;
    c->empty[WHIT_AUTOMATON_RET] = 1;
    stack[0] = WHIT_AUTOMATON_RET;
    for (uint32_t node = 1; node < c->n_nodes; node++)
        if (!c->empty[node] && ends_now(c, node, with_bytes)) c->empty[node] = 1, stack[n++] = node;
    while (n) {
        uint32_t node = stack[--n];
        for (uint32_t i = c->users_begin[node]; i < c->users_begin[node + 1]; i++) {
            uint32_t user = c->users[i];
            if (c->empty[user] || !ends_now(c, user, with_bytes)) continue;
            c->empty[user] = 1;
            stack[n++] = user;
        }
    }
}

/* Sets *to to the i-th node that can be reached from `node` without consuming a byte. Returns false if there are
 * fewer. */
static bool follows(const checker *c, uint32_t node, uint32_t i, uint32_t *to)
{
    const whit_automaton_node *n = &c->nodes[node];
    if (n->kind == WHIT_AUTOMATON_BYTES || !refers(c, node, i, to)) return false;
    if (i == 0 || n->kind == WHIT_AUTOMATON_SPLIT) return true;
    if (n->kind == WHIT_AUTOMATON_REPEAT && c->repetitions[n->a].min == 0) return true;
    uint32_t part = WHIT_AUTOMATON_RET;
    return refers(c, node, 0, &part) && c->empty[part];
}

/* Searches for a cycle of nodes that consumes no byte, depth-first: a node that is reached again on the current path is
 * left-recursive. *node_of is then the first node of a rule on the cycle. `seen`: 0 not visited, 1 on the path, 2
 * finished. */
static bool find_left_recursion(checker *c, uint32_t *stack, uint32_t *next_way, uint8_t *seen, uint32_t *node_of)
{
    for (uint32_t root = 0; root < c->n_nodes; root++) {
        uint32_t n = 0;
        if (!seen[root]) stack[n] = root, next_way[n] = 0, seen[root] = 1, n++;
        while (n) {
            uint32_t to;
            if (!follows(c, stack[n - 1], next_way[n - 1], &to)) {
                seen[stack[--n]] = 2;
                continue;
            }
            next_way[n - 1]++;
            if (seen[to] == 1) {
                *node_of = to;
                for (uint32_t i = n; i-- > 0;) {
                    const whit_automaton_node *call = &c->nodes[stack[i]];
                    if (call->kind == WHIT_AUTOMATON_CALL && next_way[i] == 1) {
                        *node_of = c->rules[call->a];
                        break;
                    }
                    if (stack[i] == to) break;
                }
                return true;
            }
            if (!seen[to]) stack[n] = to, next_way[n] = 0, seen[to] = 1, n++;
        }
    }
    return false;
}

/* Finds the bytes that are complete bodies of the repetition: the body begins with one of them and then ends. */
static void find_loop(const checker *c, whit_automaton_repetition *repetition, uint32_t *stack)
{
    enum { MOST = 64 };
    uint32_t n = 1, n_seen = 0;
    stack[0] = repetition->body;
    while (n && n_seen++ < MOST) {
        const whit_automaton_node *node = &c->nodes[stack[--n]];
        if (node->kind == WHIT_AUTOMATON_BYTES && node->b == WHIT_AUTOMATON_RET) {
            const whit_byte_set *set = WHIT_ITEMS(const whit_byte_set, &c->graph->sets) + node->a;
            for (int i = 0; i < 4; i++) repetition->loop[i] |= set->bits[i];
            repetition->takes_all |= node->beside_all;
        } else if (node->kind == WHIT_AUTOMATON_SPLIT) {
            for (uint32_t i = 0; i < node->b && n < MOST; i++) stack[n++] = c->edges[node->a + i];
        } else if (node->kind == WHIT_AUTOMATON_CALL && node->b == WHIT_AUTOMATON_RET) {
            stack[n++] = c->rules[node->a];
        }
    }
}

static void find_classes(whit_automaton *graph)
{
    uint32_t n_sets = (uint32_t)(graph->sets.size_bytes / sizeof(whit_byte_set));
    const whit_byte_set *sets = WHIT_ITEMS(const whit_byte_set, &graph->sets);
    memset(graph->class_of, 0, sizeof graph->class_of);
    graph->n_classes = 1;
    for (uint32_t i = 0; i < n_sets && graph->n_classes < 256; i++) {
        int split[256];
        bool outside[256] = {false};
        for (int k = 0; k < 256; k++) split[k] = -1;
        for (int byte = 0; byte < 256; byte++)
            if (!whit_byte_in(&sets[i], (uint8_t)byte)) outside[graph->class_of[byte]] = true;
        for (int byte = 0; byte < 256; byte++) {
            uint8_t class = graph->class_of[byte];
            if (!whit_byte_in(&sets[i], (uint8_t)byte) || !outside[class]) continue;
            if (split[class] < 0) split[class] = (int)graph->n_classes++;
            graph->class_of[byte] = (uint8_t)split[class];
        }
    }
}

/* Fails if a rule calls itself before it consumes a byte, or if the root cannot end; sets the heights of all nodes.
 * `stack` has room for two stacks of `capacity` nodes; `height` and `seen` are (n_nodes). */
static whit_status check_nodes(checker *c, const char *name, uint32_t *stack, size_t capacity, uint16_t *height,
                               uint8_t *seen, uint32_t *bad_rule, whit_error *error)
{
    find_ends(c, stack, false);
    uint32_t node;
    if (find_left_recursion(c, stack, stack + capacity, seen, &node)) {
        for (uint32_t rule = 0; rule < c->n_rules; rule++)
            if (c->rules[rule] == node || *bad_rule == WHIT_AUTOMATON_NONE) *bad_rule = rule;
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: a rule calls itself before it has matched a byte (left recursion): let a literal come first", name);
    }
    for (uint32_t i = 0; i < c->n_repetitions; i++) {
        whit_automaton_repetition *r = &c->repetitions[i];
        if (c->empty[r->body]) {
            r->min = 0;
            if (r->max != WHIT_AUTOMATON_UNBOUNDED && r->max > 64)
                return whit_fail(error, WHIT_ERROR_LIMIT,
                                 "%s: a part that may be empty is repeated up to %u times (64 at most): let it not be "
                                 "empty, or repeat it without a bound",
                                 name, r->max);
        }
        find_loop(c, r, stack);
    }
    for (uint32_t i = 0; i < c->n_nodes; i++) height[i] = UINT16_MAX;
    settle(c, height, stack, stack + capacity);
    for (uint32_t i = 0; i < c->n_nodes; i++) c->nodes[i].height = height[i];
    whit_status status = WHIT_OK;
    if (height[c->rules[0]] == UINT16_MAX) {
        find_ends(c, stack, true);
        status = c->empty[c->rules[0]]
            ? whit_fail(error, WHIT_ERROR_LIMIT, "%s: even the shortest text nests rules more than %u deep, the limit",
                        name, WHIT_AUTOMATON_MAX_DEPTH)
            : whit_fail(
                  error, WHIT_ERROR_FORMAT,
                  "%s: no finite text satisfies this grammar: every text would need the same rule again without end",
                  name);
    }
    find_classes(c->graph);
    return status;
}

whit_status whit_automaton_finish(whit_automaton *graph, const char *name, uint32_t *bad_rule, whit_error *error)
{
    *bad_rule = WHIT_AUTOMATON_NONE;
    if (graph->failed)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: the grammar needs more than %u nodes, the limit, or memory ran out: simplify it", name,
                         WHIT_AUTOMATON_MAX_NODES);
    checker c = {.graph = graph,
                 .nodes = WHIT_ITEMS(whit_automaton_node, &graph->nodes),
                 .edges = WHIT_ITEMS(const uint32_t, &graph->edges),
                 .rules = WHIT_ITEMS(const uint32_t, &graph->rules),
                 .repetitions = WHIT_ITEMS(whit_automaton_repetition, &graph->repetitions),
                 .n_nodes = whit_automaton_n_nodes(graph),
                 .n_rules = (uint32_t)(graph->rules.size_bytes / sizeof(uint32_t)),
                 .n_repetitions = (uint32_t)(graph->repetitions.size_bytes / sizeof(whit_automaton_repetition))};
    for (uint32_t rule = 0; rule < c.n_rules; rule++)
        if (c.rules[rule] >= c.n_nodes) {
            *bad_rule = rule;
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: a rule is used but not defined", name);
        }
    size_t room = (size_t)c.n_nodes + c.graph->edges.size_bytes / sizeof(uint32_t) + c.n_nodes + 64;
    /* The stacks are not zeroed: a large graph uses only a small part of them. */
    uint32_t *stack = whit_alloc(graph->allocator, 2 * room * sizeof *stack);
    uint16_t *height = whit_zalloc_array(graph->allocator, c.n_nodes, sizeof *height);
    uint8_t *seen = whit_zalloc(graph->allocator, c.n_nodes);
    whit_status status = WHIT_OK;
    if (!stack || !height || !seen)
        status = whit_fail_memory(error, "a grammar", 2 * room * sizeof *stack);
    else
        status = index_users(&c, error);
    if (status == WHIT_OK) status = check_nodes(&c, name, stack, room, height, seen, bad_rule, error);
    whit_free(graph->allocator, stack, 2 * room * sizeof *stack);
    whit_free(graph->allocator, height, c.n_nodes * sizeof *height);
    whit_free(graph->allocator, seen, c.n_nodes);
    size_t n_users = c.users && c.users_begin ? c.users_begin[c.n_nodes] : 0;
    whit_free(graph->allocator, c.users, (n_users + 1) * sizeof *c.users);
    whit_free(graph->allocator, c.users_begin, ((size_t)c.n_nodes + 2) * sizeof *c.users_begin);
    whit_free(graph->allocator, c.empty, c.n_nodes);
    return status;
}
