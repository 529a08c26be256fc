/* SPDX-License-Identifier: MIT
 * Declares tier 1, a tree of closures. A closure (lang_code) contains the function that runs a node, and its operands;
 * variables are slots in the frame. */
#ifndef WHIT_LANG_CORE_CODE_H
#define WHIT_LANG_CORE_CODE_H

#include "lang/core/vm.h"

typedef struct lang_code lang_code;
struct lang_code {
    union { /* the function that runs the node: i, f or a for an expression of that type, s for a statement */
        int64_t (*i)(const lang_code *c, lang_value *frame);
        double (*f)(const lang_code *c, lang_value *frame);
        lang_array *(*a)(const lang_code *c, lang_value *frame); /* returns a reference that the caller owns */
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
    uint32_t target; /* elements: slot of the variable that is assigned, if `n` is 1 */
    whit_lang *vm;
    const lang_node *node;
    void *native;                 /* tier 2: machine code of a loop */
    const void *native_guard;     /* tier 2: tested before `native` runs; if the test fails, x runs the loop as
                                   * closures */
    const lang_code *const *list; /* (n) arguments or statements */
    uint32_t n;
};

enum { LANG_GO_ON, LANG_BROKEN, LANG_CONTINUED, LANG_RETURNED };

/* Holds the compiled body of a function; it is compiled with the first text that calls the function. */
typedef struct lang_body {
    const lang_code *code;
} lang_body;

typedef struct lang_compiler {
    whit_lang *vm;
    lang_function *function; /* function that is being compiled; NULL: the outermost level, whose frame is the
                              * globals */
    bool failed;
} lang_compiler;

/* A chain of operations on vectors, run as one loop (elements.c). In lang_element_op, an operand below LANG_LEAVES is
 * the number of a leaf (a vector that the chain reads). A larger operand is a value, numbered by its operation when the
 * chain is built, and by its register later. For operands that are scalars, it is the scalar's number. */
enum { LANG_LEAVES = 16, LANG_VALUES = 64, LANG_CONSTANTS = 40, LANG_NATIVE_LEAVES = 6 };
enum { LANG_BINARY, LANG_BINARY_SCALAR, LANG_SCALAR_BINARY, LANG_UNARY };
enum { LANG_AS_VECTOR, LANG_AS_SUM, LANG_AS_LARGEST };
typedef struct lang_element_op {
    uint8_t form, op, to, a, b;
} lang_element_op;

/* Kinds of steps that run before a chain, in the order of the tree: read a leaf, read a scalar, compare two lengths. */
enum { LANG_READ_LEAF, LANG_READ_SCALAR, LANG_SAME_LENGTH };
typedef struct lang_element_read {
    uint8_t what, a, b;
    const lang_node *at; /* the node at which unequal lengths are reported */
} lang_element_read;

/* The argument of a chain's machine code; n_bytes is a multiple of 64. */
typedef struct lang_elements_call {
    const float *x[LANG_NATIVE_LEAVES];
    float *out; /* result; may be one of x; unused for a sum or the largest */
    const float *constants;
    float *lanes; /* 16 lanes of a sum or of the largest; otherwise unused */
    size_t n_bytes;
} lang_elements_call;
typedef void lang_elements_fn(const lang_elements_call *call);

typedef struct lang_elements {
    uint32_t n_ops, n_leaves, n_scalars;
    uint8_t as;     /* kind of the result: LANG_AS_... */
    bool is_simple; /* all leaves are variables of the frame, and all scalars are constants */
    lang_element_op ops[LANG_VALUES];
    const lang_code *leaves[LANG_LEAVES], *scalars[LANG_LEAVES];
    int32_t slots[LANG_LEAVES]; /* frame slot of each leaf that is a variable of the frame; -1 for other leaves */
    lang_element_read reads[3 * LANG_LEAVES];
    uint32_t n_reads;
    float constants[LANG_CONSTANTS]; /* values of the scalars, then further constants of the machine code */
    lang_elements_fn *native;        /* machine code of tier 2; NULL: the chain runs as chunks */
} lang_elements;

/* Returns a new closure for a node; if memory is exhausted, sets `failed` and returns a dummy. */
lang_code *lang_code_new(lang_compiler *c, const lang_node *node);
const lang_code *lang_compile_expression(lang_compiler *c, lang_node *e);

/* Functions of tier 2. compile_loop compiles a loop to machine code, which `code` then runs; it returns false if tier 2
 * cannot compile the loop. */
struct whit_lang_jit {
    bool (*compile_loop)(lang_compiler *c, const lang_node *loop, lang_code *code);
    /* Sets elements->native if the chain can be compiled to machine code. In `ops`, operands that are values are still
     * numbered by operation. */
    void (*compile_elements)(lang_compiler *c, const lang_node *node, lang_elements *elements,
                             const lang_element_op *ops);
    void (*close)(whit_lang *vm);
    /* Appends the machine code, except the first n_before pieces, as bytes in hexadecimal. */
    void (*list)(const whit_lang *vm, uint32_t n_before, whit_buf *out);
};

/* Compiles an operation on vectors to a chain (elements.c). */
const lang_code *lang_compile_elements(lang_compiler *c, lang_node *e);
/* Runs the chain's machine code and writes the result into the vector of the assigned variable. Returns false, without
 * effect, if there is no such vector or it is shared or empty, its length is not a multiple of 16, or an operand has
 * another length or no value. */
bool lang_elements_in_place(const lang_code *c, lang_value *frame);
/* Compiles a sum, mean, dot or maximum of an operation on vectors, whose result is then never stored. NULL: `e` is
 * something else or, if memory is exhausted, must be compiled in another way. */
const lang_code *lang_compile_reduction(lang_compiler *c, lang_node *e);
/* Returns whether a node's slot is in the frame of the code that is being compiled. */
static inline bool lang_in_frame(const lang_compiler *c, const lang_node *node)
{
    return !c->function || !node->global;
}

/* Evaluates a node and returns its value, in the member for the node's type. */
static inline lang_value lang_value_of(const lang_code *c, lang_value *frame)
{
    return c->node->type == WHIT_LANG_INT  ? (lang_value){.i = c->i(c, frame)}
        : c->node->type == WHIT_LANG_FLOAT ? (lang_value){.f = c->f(c, frame)}
                                           : (lang_value){.a = c->a(c, frame)};
}

#endif
