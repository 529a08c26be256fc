/* SPDX-License-Identifier: MIT
 * Declares the pushdown machine that runs a graph.
 *
 * A *frame* is one entry of a stack: the call or repetition that is being worked on, with what is left
 * to count, above another frame. A *thread* is a node that awaits a byte, and its stack. A
 * *configuration* is a set of threads. Frames and configurations are kept once each in a *pool*, so
 * that equal ones have equal numbers, copies cost nothing, and steps can be remembered. */
#ifndef WHIT_GRAMMAR_MACHINE_H
#define WHIT_GRAMMAR_MACHINE_H

#include "grammar/automaton.h"

#define WHIT_MACHINE_DEAD        0u /* the configuration without threads that is not complete */
#define WHIT_MACHINE_MAX_THREADS 4096u
#define WHIT_MACHINE_BOTTOM      0u /* the frame under all others */
#define WHIT_MACHINE_MANY        UINT32_MAX

typedef struct whit_stack_frame {
    uint32_t node, parent, need, room; /* need, room: turns that must and may follow this one; MANY: not counted */
    uint32_t depth, bounded;           /* bounded: the same frame in the pool of bounded counts, plus 1 */
} whit_stack_frame;

typedef struct whit_stack_thread {
    uint32_t node, frame;
} whit_stack_thread;

typedef struct whit_configuration {
    uint32_t first, n_threads;
    uint32_t row;       /* number of its row of remembered steps, plus 1 */
    uint32_t mask;      /* number of its token mask, plus 1 */
    uint32_t loop_room; /* see loop_of in grammar.c */
    uint64_t loop_kinds;
    bool complete, loop_known, loop_alone;
} whit_configuration;

typedef struct whit_state_pool {
    const whit_automaton *graph;
    const whit_allocator *allocator;
    whit_buf frames, threads, configurations, rows;
    uint32_t *frame_slots, *configuration_slots;
    uint32_t n_frame_slots, n_configuration_slots;
    whit_buf work, found; /* threads of the current closure: to visit, and found */
    uint64_t *seen;       /* (n_seen) of one closure: node and frame */
    uint32_t n_seen, n_in_seen;
    uint32_t *seen_at;  /* (n_seen / 2) slots in use */
    uint64_t work_left; /* nodes that may still be visited, which bounds the time */
    bool complete, failed;
    const char *limit; /* which bound failed; NULL: memory */
} whit_state_pool;

whit_status whit_state_pool_open(const whit_automaton *graph, const whit_allocator *allocator, whit_state_pool *pool,
                                 whit_error *error);
void whit_state_pool_close(whit_state_pool *pool);
void whit_state_pool_clear(whit_state_pool *pool); /* keeps the memory */

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

/* Every function returns WHIT_MACHINE_DEAD and sets `failed` if memory or a bound is exhausted. */
uint32_t whit_state_pool_begin(whit_state_pool *pool, uint32_t rule);
uint32_t whit_state_pool_step(whit_state_pool *pool, uint32_t configuration, uint8_t byte);
/* Advances like whit_state_pool_step, and caches the result by configuration and class of byte. */
uint32_t whit_state_pool_step_remembered(whit_state_pool *pool, uint32_t configuration, uint8_t byte);
uint32_t whit_state_pool_keep_frame(whit_state_pool *pool, whit_stack_frame frame);
/* Copies a configuration from another pool, frame by frame. Counts above `most` become MANY (0: all are kept), and
 * the other pool's frames remember their copies. */
uint32_t whit_state_pool_import(whit_state_pool *pool, whit_state_pool *from, uint32_t configuration, uint32_t most);

#endif
