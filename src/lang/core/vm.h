/* SPDX-License-Identifier: MIT
 * Declares the data shared by all tiers that run programs: values, reference-counted arrays, limits. */
#ifndef WHIT_LANG_CORE_VM_H
#define WHIT_LANG_CORE_VM_H

#include <setjmp.h>

#include "lang/core/ast.h"

/* An array, shared by counting references. It is copied before it is written if its reference count is above 1. */
typedef struct lang_array lang_array;
struct lang_array {
    uint32_t refs, n;
    uint8_t type; /* WHIT_LANG_VEC or WHIT_LANG_QUAT */
    int8_t scale; /* quaternary vector: its elements are multiplied by 2^scale */
    size_t size_bytes;
    lang_array *previous, *next; /* neighbours in the list of all arrays of the session */
    float *x; /* elements; or sign plane, then extra plane (lang_plane_words words each); in `own`, or in the host's
               * memory */
    _Alignas(64) float own[];
};

typedef union lang_value {
    int64_t i;
    double f;
    const char *text;
    lang_array *a;
} lang_value;

#define LANG_STACK_VALUES 65536
#define LANG_CHUNK        512 /* number of elements of a vector that are processed at a time */
#define LANG_REGISTERS    16

struct whit_lang {
    whit_lang_options options;
    lang_arena arena;
    lang_scope scope, before;           /* before: `scope` as it was before the text loaded last */
    lang_arena_mark begin;              /* position in the arena where the current text's tree begins */
    char name[256];                     /* name of the text loaded last */
    uint32_t first_line;                /* line number of the next text's first line; 0: 1 */
    lang_node *program;                 /* tree of the text loaded last; NULL: no text is loaded */
    void *compiled;                     /* form of `program` that a tier has compiled */
    lang_value *globals;                /* (LANG_MAX_GLOBALS) values of the variables of the outermost level */
    lang_value *stack;                  /* (LANG_STACK_VALUES) frames of the functions that are running */
    uint32_t stack_used, depth, levels; /* levels: sum of the levels of all functions that are running */
    lang_value result;                  /* result of the function that returned last */
    lang_array *arrays;
    lang_array *spare; /* the array freed last, kept for the next array of the same size */
    size_t n_bytes;
    lang_array *lent; /* the host's vector that is lent to the variable in lent_slot; NULL: no vector is lent */
    uint32_t lent_slot;
    int64_t fuel; /* number of steps until the limits are checked again */
    uint64_t steps_left, started_ns;
    float *chunks; /* (LANG_REGISTERS, LANG_CHUNK) registers of chains of vector operations */
    const struct lang_chunk_kernels *kernels;
    int64_t quat_steps;                 /* number of steps that a loop of machine code charges for each addition of
                                         * quaternary vectors */
    struct jit_page *jit_pages;         /* list of pages of machine code (tier 2) */
    uint32_t n_jit_pages, n_jit_before; /* number of pages; number of pages before the text loaded last */
    /* on_failure: where lang_raise jumps to. The other members below describe the failure that ended the last run. */
    jmp_buf *on_failure;
    whit_status status;
    whit_error error;
    whit_lang_place place;
};

/* Ends the run with an error message that begins with the line and column of the node. */
_Noreturn void lang_raise(whit_lang *vm, const lang_node *at, whit_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Called when `fuel` is used up: checks the limits of steps and time and the cancel flag, and ends the run if a limit
 * is exceeded or the flag is set. */
void lang_refuel(whit_lang *vm, const lang_node *at);
static inline void lang_step(whit_lang *vm, const lang_node *at, int64_t n)
{
    if (__builtin_expect((vm->fuel -= n) < 0, 0)) lang_refuel(vm, at);
}

/* Long operations check the limits every LANG_LOOK elements. */
enum { LANG_LOOK = 65536 };
static inline void lang_look(whit_lang *vm, const lang_node *at, uint32_t i)
{
    if (__builtin_expect(i % LANG_LOOK == 0 && i, 0)) lang_refuel(vm, at);
}

/* Create arrays with one reference, which the caller owns. The elements of a head are the host's memory x; those of the
 * other arrays are undefined. */
lang_array *lang_new_head(whit_lang *vm, const lang_node *at, float *x, uint32_t n);
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
/* Returns the number of 64-bit words of a plane of n elements; planes begin at cache lines. */
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
/* Returns `array`; ends the run with an error if it is NULL, because the variable has no value yet. */
lang_array *lang_array_of(whit_lang *vm, const lang_node *at, lang_array *array);
/* Returns the array itself if its reference count is 1, else a copy. Takes over the caller's reference. */
lang_array *lang_own(whit_lang *vm, const lang_node *at, lang_array *array);

/* Returns the array that is stored in a variable when `value` is assigned: a copy if `value` is the host's vector and
 * the variable does not contain it already (`held` is its present array); otherwise `value`. Takes over the caller's
 * reference. */
lang_array *lang_settle(whit_lang *vm, const lang_node *at, const lang_array *held, lang_array *value);

/* Checks an index before an element is read. */
static inline void lang_check_index(whit_lang *vm, const lang_node *at, const lang_array *array, int64_t i)
{
    if (__builtin_expect((uint64_t)i >= array->n, 0))
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "index %lld is outside a vector of %u elements", (long long)i,
                   array->n);
}
double lang_element(whit_lang *vm, const lang_node *at, const lang_array *array, int64_t i);
lang_array *lang_slice(whit_lang *vm, const lang_node *at, const lang_array *array, int64_t begin, int64_t end);
/* Returns the length of two vectors; ends the run with an error if their lengths differ. */
uint32_t lang_same_length(whit_lang *vm, const lang_node *at, const lang_array *a, const lang_array *b);

/* Operations on quaternary vectors. They return a new array; the caller keeps its references to the operands. */
lang_array *lang_quat_unary(whit_lang *vm, const lang_node *at, lang_op op, const lang_array *a);
lang_array *lang_quat_binary(whit_lang *vm, const lang_node *at, lang_op op, const lang_array *a, const lang_array *b);

/* Calls a builtin function. The caller keeps its references to the arguments, but must not read an array to which it
 * has the only reference afterwards: softmax overwrites it and returns it. If the result is an array, the caller owns
 * a reference to it. */
lang_value lang_call_builtin(whit_lang *vm, const lang_node *node, const lang_value *arguments, uint32_t n);

/* Prints the values of a print statement as one line. */
void lang_print(whit_lang *vm, const lang_node *at, const lang_value *values, const uint8_t *types, uint32_t n);

/* Pushes a zeroed frame for a call; ends the run with an error if calls are nested too deep. */
lang_value *lang_enter(whit_lang *vm, const lang_node *at, const lang_function *function);
/* Pops the frame and releases the arrays in it. */
void lang_leave(whit_lang *vm, lang_value *frame, const lang_function *function);

/* Run the statements of the outermost level; its frame is the globals. */
void lang_walk(whit_lang *vm, lang_node *program);
/* Compiles a program into the arena; returns false if memory is exhausted or the arena's limit is reached. */
bool lang_compile(whit_lang *vm, lang_node *program);
void lang_run_compiled(whit_lang *vm);

#endif
