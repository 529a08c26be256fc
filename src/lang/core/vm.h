/* SPDX-License-Identifier: MIT
 * Declares the data shared by all tiers that run programs: values, reference-counted arrays, limits. */
#ifndef WHIT_LANG_CORE_VM_H
#define WHIT_LANG_CORE_VM_H

#include <setjmp.h>

#include "lang/core/ast.h"

/* An array is shared by reference, and copied before a write if anything else refers to it. */
typedef struct lang_array lang_array;
struct lang_array {
    uint32_t refs, n;
    uint8_t type; /* WHIT_LANG_VEC or WHIT_LANG_QUAT */
    int8_t scale; /* log2 of a quaternary vector's scale */
    size_t size_bytes;
    lang_array *previous, *next; /* list of all arrays of the session */
    float *x; /* elements, or sign plane then extra plane (lang_plane_words each); in `own` or in the host's memory */
    _Alignas(64) float own[];
};

typedef union lang_value {
    int64_t i;
    double f;
    const char *text;
    lang_array *a;
} lang_value;

#define LANG_STACK_VALUES 65536
#define LANG_CHUNK        512 /* elements of a vector that are processed at a time */
#define LANG_REGISTERS    16

struct whit_lang {
    whit_lang_options options;
    lang_arena arena;
    lang_scope scope, before;           /* before: the scope before the text loaded last */
    lang_arena_mark begin;              /* start of the current text's tree in the arena */
    char name[256];                     /* name of the text loaded last */
    uint32_t first_line;                /* line number at which the next text begins; 0: 1 */
    lang_node *program;                 /* tree of the text loaded last; NULL: no text */
    void *compiled;                     /* form of `program` that a tier has compiled */
    lang_value *globals;                /* LANG_MAX_GLOBALS */
    lang_value *stack;                  /* LANG_STACK_VALUES */
    uint32_t stack_used, depth, levels; /* levels: sum over the functions that run */
    lang_value result;                  /* result of the function that returned */
    lang_array *arrays;
    lang_array *spare; /* a freed array, kept for the next of its size */
    size_t n_bytes;
    lang_array *lent; /* the host's vector, slot of the variable that contains the vector */
    uint32_t lent_slot;
    int64_t fuel; /* steps until the limits are checked */
    uint64_t steps_left, started_ns;
    float *chunks; /* LANG_REGISTERS * LANG_CHUNK */
    const struct lang_chunk_kernels *kernels;
    int64_t quat_steps;                 /* steps charged per addition in a loop of machine code */
    struct jit_page *jit_pages;         /* machine code of tier 2 */
    uint32_t n_jit_pages, n_jit_before; /* number of pages; number before the text that was loaded last */
    /* The members below are the state of a failure: */
    jmp_buf *on_failure;
    whit_status status;
    whit_error error;
    whit_lang_place place;
};

/* Ends the run with a line that begins with the node's place. */
_Noreturn void lang_raise(whit_lang *vm, const lang_node *at, whit_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Checks the time and the other limits. */
void lang_refuel(whit_lang *vm, const lang_node *at);
static inline void lang_step(whit_lang *vm, const lang_node *at, int64_t n)
{
    if (__builtin_expect((vm->fuel -= n) < 0, 0)) lang_refuel(vm, at);
}

/* The limits are checked in the middle of a long operation, every LANG_LOOK elements. */
enum { LANG_LOOK = 65536 };
static inline void lang_look(whit_lang *vm, const lang_node *at, uint32_t i)
{
    if (__builtin_expect(i % LANG_LOOK == 0 && i, 0)) lang_refuel(vm, at);
}

/* Make arrays, uninitialised and owned by the caller. */
lang_array *lang_new_head(whit_lang *vm, const lang_node *at, float *x, uint32_t n); /* a vector over the host's
                                                                                      * elements */
lang_array *lang_new_vec(whit_lang *vm, const lang_node *at, int64_t n);
lang_array *lang_new_quat(whit_lang *vm, const lang_node *at, int64_t n, int8_t scale);
void lang_destroy(whit_lang *vm, lang_array *array);
static inline void lang_release(whit_lang *vm, lang_array *array)
{
    if (array && --array->refs == 0) lang_destroy(vm, array);
}
static inline lang_array *lang_retain(lang_array *array)
{
    array->refs++;
    return array;
}
/* Returns the words of a plane: planes begin at cache lines. */
static inline uint32_t lang_plane_words(uint32_t n)
{
    return (whit_quat_words(n) + 7) / 8 * 8;
}
static inline whit_quat_planes lang_planes(lang_array *q)
{
    uint64_t *words = (uint64_t *)q->x;
    return (whit_quat_planes){words, words + lang_plane_words(q->n)};
}
static inline whit_quat_view lang_view(const lang_array *q)
{
    const uint64_t *words = (const uint64_t *)q->x;
    return (whit_quat_view){words, words + lang_plane_words(q->n)};
}
/* Returns the array of a slot; raises a failure if the slot has no array. */
lang_array *lang_array_of(whit_lang *vm, const lang_node *at, lang_array *array);
/* Returns the array itself if nothing else refers to it, else a copy; takes ownership of the reference. */
lang_array *lang_own(whit_lang *vm, const lang_node *at, lang_array *array);

/* Returns an array that a variable may contain: the host's vector only if `held` is that vector, else a copy of it;
 * takes ownership of the reference. */
lang_array *lang_settle(whit_lang *vm, const lang_node *at, const lang_array *held, lang_array *value);

/* Check an index or bounds before reading elements. */
static inline void lang_check_index(whit_lang *vm, const lang_node *at, const lang_array *array, int64_t i)
{
    if (__builtin_expect((uint64_t)i >= array->n, 0))
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "index %lld is outside a vector of %u elements", (long long)i,
                   array->n);
}
double lang_element(whit_lang *vm, const lang_node *at, const lang_array *array, int64_t i);
lang_array *lang_slice(whit_lang *vm, const lang_node *at, const lang_array *array, int64_t begin, int64_t end);
/* Returns the length that two vectors share. */
uint32_t lang_same_length(whit_lang *vm, const lang_node *at, const lang_array *a, const lang_array *b);

/* These are operations on quaternary vectors; arguments stay the caller's. */
lang_array *lang_quat_unary(whit_lang *vm, const lang_node *at, lang_op op, const lang_array *a);
lang_array *lang_quat_binary(whit_lang *vm, const lang_node *at, lang_op op, const lang_array *a, const lang_array *b);

/* Calls a builtin with its arguments, which stay the caller's; an array that comes back is owned. */
lang_value lang_call_builtin(whit_lang *vm, const lang_node *node, const lang_value *arguments, uint32_t n);

/* Prints one line of `print`. */
void lang_print(whit_lang *vm, const lang_node *at, const lang_value *values, const uint8_t *types, uint32_t n);

/* Pushes a frame on the stack, zeroed; the depth of calls is bounded. */
lang_value *lang_enter(whit_lang *vm, const lang_node *at, const lang_function *function);
/* Frees the frame and the arrays in it. */
void lang_leave(whit_lang *vm, lang_value *frame, const lang_function *function);

/* The tiers run the statements with the outermost level as the frame. */
void lang_walk(whit_lang *vm, lang_node *program);
/* Compiles into the arena; false if memory is short. */
bool lang_compile(whit_lang *vm, lang_node *program);
void lang_run_compiled(whit_lang *vm);

#endif
