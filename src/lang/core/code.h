/* SPDX-License-Identifier: MIT
 * Declares tier 1, a tree of closures. A node contains the function that runs it and its operands; variables are slots
 * in the frame. */
#ifndef WHIT_LANG_CORE_CODE_H
#define WHIT_LANG_CORE_CODE_H

#include "lang/core/vm.h"

typedef struct lang_code lang_code;
struct lang_code {
    union { /* the function that runs the node, by the type of the expression; s for statements */
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
    uint32_t target; /* for elements with `n` 1: the slot that is assigned */
    whit_lang *vm;
    const lang_node *node;
    void *native;                 /* tier 2: the code of a loop */
    const void *native_guard;     /* condition for running `native`; if it fails, x runs the loop as closures */
    const lang_code *const *list; /* arguments, statements */
    uint32_t n;
};

enum { LANG_GO_ON, LANG_BROKEN, LANG_CONTINUED, LANG_RETURNED };

/* Holds the body of a function, which is compiled at its first call. */
typedef struct lang_body {
    const lang_code *code;
} lang_body;

typedef struct lang_compiler {
    whit_lang *vm;
    lang_function *function; /* NULL: the outermost level, whose frame is the globals */
    bool failed;
} lang_compiler;

/* Describes a chain of operations on vectors as one loop (elements.c). An operand below LANG_LEAVES is a leaf; from
 * there on it is a value, numbered by its operation and later by its register. Operands that are scalars have the
 * scalar's number. */
enum { LANG_LEAVES = 16, LANG_VALUES = 64, LANG_CONSTANTS = 40, LANG_NATIVE_LEAVES = 6 };
enum { LANG_BINARY, LANG_BINARY_SCALAR, LANG_SCALAR_BINARY, LANG_UNARY };
enum { LANG_AS_VECTOR, LANG_AS_SUM, LANG_AS_LARGEST };
typedef struct lang_element_op {
    uint8_t form, op, to, a, b;
} lang_element_op;

/* Lists the steps before a chain runs, in the order of the tree: leaves and scalars are read, lengths compared. */
enum { LANG_READ_LEAF, LANG_READ_SCALAR, LANG_SAME_LENGTH };
typedef struct lang_element_read {
    uint8_t what, a, b;
    const lang_node *at; /* the node for the error if two lengths differ */
} lang_element_read;

/* Holds the arguments of a chain's machine code; n_bytes is a multiple of 64. */
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
    bool is_simple; /* reads only variables of the frame and constants */
    lang_element_op ops[LANG_VALUES];
    const lang_code *leaves[LANG_LEAVES], *scalars[LANG_LEAVES];
    int32_t slots[LANG_LEAVES]; /* frame slots of leaves that are variables of the frame; -1: another leaf */
    lang_element_read reads[3 * LANG_LEAVES];
    uint32_t n_reads;
    float constants[LANG_CONSTANTS]; /* the scalars' values, then further constants of the machine code */
    lang_elements_fn *native;        /* machine code of tier 2; NULL: none was made */
} lang_elements;

/* Makes a new closure for a node; a dummy if memory is short, and then sets `failed`. */
lang_code *lang_code_new(lang_compiler *c, const lang_node *node);
const lang_code *lang_compile_expression(lang_compiler *c, lang_node *e);

/* Lists the functions of tier 2. compile_loop makes a closure of a loop run machine code; false if tier 2 cannot
 * compile the loop. */
struct whit_lang_jit {
    bool (*compile_loop)(lang_compiler *c, const lang_node *loop, lang_code *code);
    /* Sets `native` if the chain can be compiled to machine code; the operands of `ops` are value numbers. */
    void (*compile_elements)(lang_compiler *c, const lang_node *node, lang_elements *elements,
                             const lang_element_op *ops);
    void (*close)(whit_lang *vm);
    /* Appends the machine code that was made after the first n_before pieces, as bytes in hexadecimal. */
    void (*list)(const whit_lang *vm, uint32_t n_before, whit_buf *out);
};

/* Compiles an expression of vectors, element by element (elements.c). */
const lang_code *lang_compile_elements(lang_compiler *c, lang_node *e);
/* Runs machine code in place over the vector of the assigned variable; false if its operands need more than that. */
bool lang_elements_in_place(const lang_code *c, lang_value *frame);
/* Compiles a sum, mean, dot or maximum of an expression of vectors, which is then never stored; NULL if `e` is
 * something else. */
const lang_code *lang_compile_reduction(lang_compiler *c, lang_node *e);
/* Returns whether the slot is in the current frame. */
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
