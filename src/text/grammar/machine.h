/* SPDX-License-Identifier: MIT
 * Declares the pushdown machine that runs a graph.
 *
 * A *frame* is one entry of a stack: an unfinished call, or an unfinished repetition with its remaining counts. Its
 * parent is the frame below. A *thread* is a node that waits for a byte, together with its stack. A *configuration* is
 * a set of threads. A *pool* stores each frame and each configuration once. Equal ones thus have equal numbers, copying
 * one means copying its number, and steps can be cached. */
#ifndef WHIT_GRAMMAR_MACHINE_H
#define WHIT_GRAMMAR_MACHINE_H

#include "grammar/automaton.h"

#define WHIT_MACHINE_DEAD        0u /* the configuration that accepts nothing: no threads, and not complete */
#define WHIT_MACHINE_MAX_THREADS 4096u
#define WHIT_MACHINE_BOTTOM      0u /* the lowest frame of every stack */
#define WHIT_MACHINE_MANY        UINT32_MAX

typedef struct whit_stack_frame {
    uint32_t node, parent, need, room; /* need, room: how many further repetitions are required and allowed after the
                                        * current one; MANY: not counted */
    uint32_t depth, bounded;           /* bounded: index of this frame's copy in another pool, plus 1; 0: not copied */
} whit_stack_frame;

typedef struct whit_stack_thread {
    uint32_t node, frame;
} whit_stack_thread;

typedef struct whit_configuration {
    uint32_t first, n_threads;
    uint32_t row;       /* index of its row of cached steps, plus 1; 0: it has no row */
    uint32_t mask;      /* index of its token mask, plus 1; 0: it has no mask */
    uint32_t loop_room; /* largest number of bytes that a repetition of the configuration certainly accepts, if all have
                         * a kind in loop_kinds; 0: no such repetition */
    uint64_t loop_kinds;
    bool complete, loop_known, loop_alone;
} whit_configuration;

typedef struct whit_state_pool {
    const whit_automaton *graph;
    const whit_allocator *allocator;
    whit_buf frames, threads, configurations, rows;
    uint32_t *frame_slots, *configuration_slots;
    uint32_t n_frame_slots, n_configuration_slots;
    whit_buf work, found; /* threads of the current closure: still to be visited; found to wait for a byte */
    uint64_t *seen;       /* (n_seen) hash table of one closure: node and frame of each visited thread */
    uint32_t n_seen, n_in_seen;
    uint32_t *seen_at;  /* used positions of `seen`, n_in_seen of them */
    uint64_t work_left; /* nodes that may still be visited, which limits the time */
    bool complete, failed;
    const char *limit; /* name of the limit that was exceeded; NULL: memory is exhausted */
} whit_state_pool;

whit_status whit_state_pool_open(const whit_automaton *graph, const whit_allocator *allocator, whit_state_pool *pool,
                                 whit_error *error);
void whit_state_pool_close(whit_state_pool *pool);
void whit_state_pool_clear(whit_state_pool *pool); /* removes all frames and configurations, but keeps the memory */

static inline whit_configuration *whit_state_pool_at(const whit_state_pool *pool, uint32_t configuration)
{
    return (whit_configuration *)pool->configurations.data + configuration;
}
static inline whit_stack_frame *whit_state_pool_frame(const whit_state_pool *pool, uint32_t frame)
{
    return (whit_stack_frame *)pool->frames.data + frame;
}
uint32_t whit_state_pool_n_frames(const whit_state_pool *pool);
uint32_t whit_state_pool_n_configurations(const whit_state_pool *pool);

/* All functions below set `failed` and return 0 (WHIT_MACHINE_DEAD or WHIT_MACHINE_BOTTOM) if memory or a bound is
 * exhausted. A step returns WHIT_MACHINE_DEAD without `failed` if the byte is not accepted. */
uint32_t whit_state_pool_begin(whit_state_pool *pool, uint32_t rule);
uint32_t whit_state_pool_step(whit_state_pool *pool, uint32_t configuration, uint8_t byte);
/* Like whit_state_pool_step, but caches the result by configuration and class of the byte. */
uint32_t whit_state_pool_step_remembered(whit_state_pool *pool, uint32_t configuration, uint8_t byte);
uint32_t whit_state_pool_keep_frame(whit_state_pool *pool, whit_stack_frame frame);
/* Copies a configuration from another pool, frame by frame. Counts above `most` become MANY (most 0: all counts are
 * kept). Each copied frame of `from` records its copy in `bounded`. */
uint32_t whit_state_pool_import(whit_state_pool *pool, whit_state_pool *from, uint32_t configuration, uint32_t most);

#endif
