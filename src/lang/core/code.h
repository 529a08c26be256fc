/* SPDX-License-Identifier: MIT
 * Tier 1: a tree of closures. A node contains the function that runs it and its operands; variables are slots in the
 * frame. */
#ifndef WHIT_LANG_CORE_CODE_H
#define WHIT_LANG_CORE_CODE_H

#include "lang/core/vm.h"

typedef struct lang_code lang_code;
struct lang_code {
    union { /* by the type of the expression; s for statements */
        int64_t (*i)(const lang_code *c, lang_value *frame);
        double (*f)(const lang_code *c, lang_value *frame);
        lang_array *(*a)(const lang_code *c, lang_value *frame); /* an owned reference */
        int (*s)(const lang_code *c, lang_value *frame);
    };
    const lang_code *x, *y, *z;
    union {
        int64_t k;
        double d;
        struct {
            uint32_t slot, slot2;
        };
        struct lang_elements *elements;
    };
    uint32_t target; /* elements: the slot that is assigned, where `n` is 1 */
    whit_lang *vm;
    const lang_node *node;
    void *native;                 /* tier 2: the code of a loop */
    const void *native_guard;     /* condition for running `native`; if it fails, x runs the loop as closures */
    const lang_code *const *list; /* arguments, statements */
    uint32_t n;
};

enum { LANG_GO_ON, LANG_BROKEN, LANG_CONTINUED, LANG_RETURNED };

/* The body of a function, compiled when it is first met. */
typedef struct lang_body {
    const lang_code *code;
} lang_body;

typedef struct lang_compiler {
    whit_lang *vm;
    lang_function *function; /* NULL: the outermost level, whose frame is the globals */
    bool failed;
} lang_compiler;

/* A chain of operations on vectors as one loop (elements.c). Operands: below LANG_LEAVES a leaf, from there
 * on a value, by the number of its operation and then by register; for scalars their number. */
enum { LANG_LEAVES = 16, LANG_VALUES = 64, LANG_CONSTANTS = 40, LANG_NATIVE_LEAVES = 6 };
enum { LANG_BINARY, LANG_BINARY_SCALAR, LANG_SCALAR_BINARY, LANG_UNARY };
enum { LANG_AS_VECTOR, LANG_AS_SUM, LANG_AS_LARGEST };
typedef struct lang_element_op {
    uint8_t form, op, to, a, b;
} lang_element_op;

/* What is done before a chain runs, in the order of the tree: leaves and scalars are read, lengths compared. */
enum { LANG_READ_LEAF, LANG_READ_SCALAR, LANG_SAME_LENGTH };
typedef struct lang_element_read {
    uint8_t what, a, b;
    const lang_node *at; /* where two lengths differ */
} lang_element_read;

/* Arguments of a chain's machine code; n_bytes is a multiple of 64. */
typedef struct lang_elements_call {
    const float *x[LANG_NATIVE_LEAVES];
    float *out; /* may be one of x; not for a sum or the largest */
    const float *constants;
    float *lanes; /* 16 lanes of a sum or of the largest */
    size_t n_bytes;
} lang_elements_call;
typedef void lang_elements_fn(const lang_elements_call *call);

typedef struct lang_elements {
    uint32_t n_ops, n_leaves, n_scalars;
    uint8_t as;     /* LANG_AS_ */
    bool is_simple; /* reads variables of the frame and constants alone */
    lang_element_op ops[LANG_VALUES];
    const lang_code *leaves[LANG_LEAVES], *scalars[LANG_LEAVES];
    int32_t slots[LANG_LEAVES]; /* frame slots of leaves that are variables of the frame; -1: another leaf */
    lang_element_read reads[3 * LANG_LEAVES];
    uint32_t n_reads;
    float constants[LANG_CONSTANTS]; /* the scalars' values, then what machine code wants besides */
    lang_elements_fn *native;        /* tier 2; NULL: none */
} lang_elements;

/* A new closure for a node; a dummy where memory is short, and `failed` then. */
lang_code *lang_code_new(lang_compiler *c, const lang_node *node);
const lang_code *lang_compile_expression(lang_compiler *c, lang_node *e);

/* Tier 2: makes a closure of a loop run machine code; false where the loop is not one for it. */
struct whit_lang_jit {
    bool (*compile_loop)(lang_compiler *c, const lang_node *loop, lang_code *code);
    /* Sets `native` if the chain can be compiled to machine code; the operands of `ops` are value numbers. */
    void (*compile_elements)(lang_compiler *c, const lang_node *node, lang_elements *elements,
                             const lang_element_op *ops);
    void (*close)(whit_lang *vm);
    /* The machine code that was made after the first n_before pieces, as bytes in hexadecimal. */
    void (*list)(const whit_lang *vm, uint32_t n_before, whit_buf *out);
};

/* Expressions of vectors, element by element (elements.c). */
const lang_code *lang_compile_elements(lang_compiler *c, lang_node *e);
/* Runs machine code in place over the vector of the assigned variable; false if its operands need more than that. */
bool lang_elements_in_place(const lang_code *c, lang_value *frame);
/* Compiles a sum, mean, dot or maximum of such an expression, which is never stored; NULL if `e` is something else. */
const lang_code *lang_compile_reduction(lang_compiler *c, lang_node *e);
/* Is the slot in the current frame? */
static inline bool lang_in_frame(const lang_compiler *c, const lang_node *node)
{
    return !c->function || !node->global;
}

/* Returns a node's value by the type of the node. */
static inline lang_value lang_value_of(const lang_code *c, lang_value *frame)
{
    return c->node->type == WHIT_LANG_INT  ? (lang_value){.i = c->i(c, frame)}
        : c->node->type == WHIT_LANG_FLOAT ? (lang_value){.f = c->f(c, frame)}
                                           : (lang_value){.a = c->a(c, frame)};
}

#endif
