/* SPDX-License-Identifier: MIT
 * Declares the syntax tree of programs: the parser builds it, the checker annotates it, the tiers run it. */
#ifndef WHIT_LANG_CORE_AST_H
#define WHIT_LANG_CORE_AST_H

#include "lang/core/lang.h"

/* Lists the operations on elements, for scalars, vectors and quaternary vectors. Not every type supports all of
 * them. */
typedef enum lang_op {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MIN,
    OP_MAX,
    OP_CUT, /* minus infinity if a < b, else a; a also if a or b is NaN */
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_EQ,
    OP_NE, /* the operations up to this one support vectors */
    OP_MOD,
    OP_SHL,
    OP_SHR,
    OP_AND,
    OP_OR,
    OP_XOR,
    N_BINARY,
    /* the operations from here on have one operand */
    OP_NEG = N_BINARY,
    OP_ABS,
    OP_SQRT,
    OP_EXP,
    OP_LOG,
    OP_TANH,
    OP_SIGMOID,
    OP_SILU,
    OP_RELU,
    OP_FLOOR,
    OP_CEIL,
    OP_ROUND,
    OP_SIN,
    OP_COS, /* the operations from NEG to this one support vectors */
    OP_NOT,
    OP_FLIP,  /* ~ */
    OP_FLOAT, /* int to float; for a float operand, it is removed */
    OP_INT,   /* float to int: towards zero, saturating, NaN is 0; for an int operand, it is removed */
    N_OPS
} lang_op;

/* Numbers the functions of the language that are not operations on elements (builtins.c). */
typedef enum lang_builtin {
    FN_LEN,
    FN_VEC,
    FN_RANGE,
    FN_SUM,
    FN_MEAN,
    FN_LARGEST,
    FN_SMALLEST,
    FN_DOT,
    FN_ARGMAX,
    FN_SOFTMAX,
    FN_RMSNORM,
    FN_QUAT,
    FN_SCALE,
    FN_SWIGLU,
    FN_SELECT,
    FN_COUNT,
    FN_GEMV,
    FN_CONCAT,
    FN_SORT,
    FN_PERMUTE,
    FN_BUNDLE,
    FN_HAMMING,
    FN_COSINE,
    N_BUILTINS
} lang_builtin;

typedef enum lang_kind {
    /* expressions */
    NODE_INT,
    NODE_FLOAT,
    NODE_NAME, /* a variable's name; the checker turns the node into NODE_SLOT */
    NODE_SLOT,
    NODE_UNARY,
    NODE_BINARY,
    NODE_ALSO, /* a and b: b is evaluated only if a is true (not 0) */
    NODE_ELSE, /* a or b: b is evaluated only if a is false (0) */
    NODE_CALL, /* a call by name; after the check, a call of a function that the program defines */
    NODE_BUILTIN,
    NODE_INDEX,
    NODE_SLICE,
    NODE_LIST,
    NODE_TEXT,
    NODE_HOST, /* a call of function number `slot` of the host */
    NODE_KEEP, /* the value of a, which is also stored in `slot`, so that later NODE_SLOTs can read it */
    /* statements */
    NODE_LET,
    NODE_ASSIGN,
    NODE_STORE, /* name[b] = a; the value a is evaluated before the index b */
    NODE_IF,
    NODE_WHILE,
    NODE_FOR,
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_RETURN,
    NODE_BLOCK,
    NODE_EXPRESSION,
    NODE_PRINT,
    NODE_AFFINE, /* a loop that is computed in closed form (closed.c) */
} lang_kind;

typedef struct lang_node lang_node;
typedef struct lang_function lang_function;
typedef struct lang_affine lang_affine;

struct lang_node {
    uint8_t kind, type, op; /* op: a lang_op, or a lang_builtin for NODE_BUILTIN */
    bool global;            /* `slot` is a variable of the outermost level, not of the function */
    uint32_t line, column;
    /* number of a variable; NODE_FOR: slot of the counter, the next slot is the limit's; NODE_HOST: number of the
     * host's function; in the parser, the number of levels of an expression */
    uint32_t slot;
    union {
        int64_t i;
        double f;
        struct {
            const char *name; /* text in the arena, zero-terminated */
            lang_function *function;
        };
        lang_affine *affine;
    };
    lang_node *a, *b, *c, *d; /* operands; for calls, lists and blocks, a is the first node of a list */
    lang_node *next;          /* next node in a list of arguments or statements */
};

/* Describes a function as parsed, or an instance of a function for one list of argument types. */
struct lang_function {
    const char *name;
    lang_node *parameters, *body; /* the parsed tree, which the checker copies for each instance */
    uint32_t n_parameters;
    uint32_t levels;     /* two per nested block, one per level of the deepest expression, and four: the depth of
                          * recursion in functions that walk the tree */
    lang_function *next; /* for a function, the function defined before it; for an instance, the instance made before
                          * it */
    lang_function *instances;
    /* The members below belong to instances. */
    lang_node *code;
    uint8_t types[8];
    uint8_t result;
    bool result_known;
    uint32_t text; /* number of the text that first called the instance; if that text fails, the instance is removed */
    uint32_t n_slots;
    uint8_t *slot_types;
    void *compiled; /* form that a tier has compiled */
};

/* An arena: allocates memory that is freed all at once, or back to a mark. */
typedef struct lang_block lang_block;
typedef struct lang_arena {
    lang_block *blocks;
    size_t n_bytes, limit_bytes;
    const whit_allocator *allocator;
    bool failed; /* the allocator ran out of memory, as opposed to the arena's limit */
} lang_arena;
void *lang_arena_take(lang_arena *arena, size_t n_bytes); /* zeroed memory; NULL if the limit is reached or memory is
                                                           * exhausted */
void lang_arena_free(lang_arena *arena);
/* Holds a position in the arena; rewinding to it frees later allocations. */
typedef struct lang_arena_mark {
    lang_block *block; /* NULL: the beginning of the arena */
    size_t used;
} lang_arena_mark;
lang_arena_mark lang_arena_now(const lang_arena *arena);
void lang_arena_rewind(lang_arena *arena, lang_arena_mark mark);

/* Describes the tokens of a text. */
typedef enum lang_token_kind {
    TOKEN_END,
    TOKEN_LINE, /* end of a statement: a line feed or ';' */
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_TEXT, /* a text with its quotes */
    TOKEN_NAME,
    TOKEN_WORD, /* a keyword */
    TOKEN_MARK, /* punctuation */
} lang_token_kind;
typedef struct lang_token {
    lang_token_kind kind;
    uint32_t line, column;
    const char *text;
    uint32_t n;
    int64_t i;
    double f;
    bool wants_minus; /* the token is 9223372036854775808, which is an integer only after a minus sign */
} lang_token;

typedef struct lang_source {
    const char *name, *text;
    size_t n, at;
    uint32_t line;
    size_t line_begin;
    uint32_t depth; /* number of open parentheses and brackets; a line feed ends a statement only at 0 */
    whit_error *error;
    whit_lang_place *place;
} lang_source;

/* Reads the next token; an error is reported at the token's line and column. */
whit_status lang_next(lang_source *source, lang_token *token);
whit_status lang_fail(lang_source *source, uint32_t line, uint32_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Parses a text into statements and functions, in the arena. */
whit_status lang_parse(lang_source *source, lang_arena *arena, lang_node **body, lang_function **functions);

/* Describes a variable of the outermost level. */
typedef struct lang_global {
    char name[64];
    uint8_t type;
    bool inner; /* the variable belongs to a block, so functions cannot use it */
} lang_global;
#define LANG_MAX_GLOBALS 1024
#define LANG_MAX_NESTING 200
/* maximum levels of an expression: a chain of operators has more levels than LANG_MAX_NESTING */
#define LANG_MAX_LEVELS    2000
#define LANG_MAX_INSTANCES 1000
#define LANG_MAX_LOCALS    4000
#define LANG_MAX_CALLS     200 /* maximum depth of calls */
/* Limits of the C stack, which has one megabyte in a server that checks programs. LANG_MAX_DEPTH: maximum sum of
 * `levels` over all functions that are running. LANG_MAX_NEW_LEVELS: the same for the functions that are being checked
 * or compiled for the first time. */
#define LANG_MAX_DEPTH      20000
#define LANG_MAX_NEW_LEVELS 2500

/* Marks functions with large or rarely used locals: inlined, they would enlarge every stack frame of a nested
 * expression. */
#define LANG_APART         __attribute__((noinline))
#define LANG_MAX_ARGUMENTS 32 /* maximum number of arguments of a builtin function and of print */

typedef struct lang_scope {
    lang_global *globals; /* (LANG_MAX_GLOBALS) variables of the outermost level; the name is "" if the variable's block
                           * has ended */
    uint32_t n_globals;
    lang_function *functions;
    uint32_t text;              /* number of the loaded text, counted from 1 */
    const whit_lang_host *host; /* NULL: no host */
} lang_scope;

/* Checks a text: replaces names by slots and gives every node a type. On failure the scope may contain definitions of
 * the text, which the caller removes. */
whit_status lang_check(lang_source *source, lang_arena *arena, lang_scope *scope, lang_node *body);

/* Returns whether the language has a builtin function of this name. */
bool lang_is_builtin(const char *name);

/* Holds the state of the optimiser, which changes a tree in place. It folds constants, removes branches that are never
 * taken, computes equal values of a statement once, unrolls short loops, and replaces affine loops by their closed
 * form. */
typedef struct lang_optimise {
    lang_arena *arena;
    lang_scope *scope;
    lang_function *function; /* function whose slots store values that are computed once; NULL: the outermost level */
    bool no_closed_forms, failed;
} lang_optimise;
void lang_optimise_tree(lang_optimise *o, lang_node *node);

/* Describes a NODE_FOR loop whose body consists only of assignments of integers that are affine in integer variables:
 * one matrix describes a round. */
enum { LANG_AFFINE_MAX = 8 };
struct lang_affine {
    uint32_t n; /* number of rows: the variables, then the counter and the constant 1 */
    uint32_t n_variables;
    bool unipotent; /* some power of (matrix - identity) is zero */
    uint32_t slots[LANG_AFFINE_MAX];
    uint64_t matrix[LANG_AFFINE_MAX][LANG_AFFINE_MAX]; /* matrix of one round, which also increments the counter */
};
/* Returns the matrix of a loop; NULL if the loop is not affine, has too many variables, or memory is exhausted. */
lang_affine *lang_affine_find(lang_arena *arena, const lang_node *loop);
/* Computes state = matrix^rounds state, modulo 2^64. */
void lang_affine_run(const lang_affine *affine, uint64_t rounds, uint64_t state[LANG_AFFINE_MAX]);

#endif
