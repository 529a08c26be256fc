/* SPDX-License-Identifier: MIT
 * Programs as trees: made by the parser, annotated by the checker, run by the tiers. */
#ifndef WHIT_LANG_CORE_AST_H
#define WHIT_LANG_CORE_AST_H

#include "lang/core/lang.h"

/* Lists the operations on elements together for scalars, vectors and quaternary vectors. */
typedef enum lang_op {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MIN,
    OP_MAX,
    OP_CUT, /* minus infinity if a < b, else a (also if either is NaN) */
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_EQ,
    OP_NE, /* the last operation that vectors support */
    OP_MOD,
    OP_SHL,
    OP_SHR,
    OP_AND,
    OP_OR,
    OP_XOR,
    N_BINARY,
    /* operations with one operand */
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
    OP_COS, /* the last function that vectors support */
    OP_NOT,
    OP_FLIP,  /* ~ */
    OP_FLOAT, /* int to float */
    OP_INT,   /* float to int: towards zero, saturating, NaN is 0 */
    N_OPS
} lang_op;

/* Numbers the other functions of the language (builtins.c). */
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
    NODE_NAME, /* a name; the check turns it into NODE_SLOT */
    NODE_SLOT,
    NODE_UNARY,
    NODE_BINARY,
    NODE_ALSO, /* a and b: b is evaluated only if a holds */
    NODE_ELSE, /* a or b */
    NODE_CALL, /* a call by name; after the check a call of a function of the program */
    NODE_BUILTIN,
    NODE_INDEX,
    NODE_SLICE,
    NODE_LIST,
    NODE_TEXT,
    NODE_HOST, /* a call of the host's function `slot` */
    NODE_KEEP, /* the value of a, which is also kept in a slot for the NODE_SLOTs that follow */
    /* statements */
    NODE_LET,
    NODE_ASSIGN,
    NODE_STORE, /* a[b] = c */
    NODE_IF,
    NODE_WHILE,
    NODE_FOR,
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_RETURN,
    NODE_BLOCK,
    NODE_EXPRESSION,
    NODE_PRINT,
    NODE_AFFINE, /* a loop in closed form (closed.c) */
} lang_kind;

typedef struct lang_node lang_node;
typedef struct lang_function lang_function;
typedef struct lang_affine lang_affine;

struct lang_node {
    uint8_t kind, type, op; /* op: lang_op or lang_builtin */
    bool global;            /* the slot is a variable of the outermost level */
    uint32_t line, column;
    uint32_t slot; /* for NODE_FOR the slot of the counter; the limit's slot follows it */
    union {
        int64_t i;
        double f;
        struct {
            const char *name; /* text in the arena, zero-terminated */
            lang_function *function;
        };
        lang_affine *affine;
    };
    lang_node *a, *b, *c, *d; /* operands; a is the first node of a list */
    lang_node *next;          /* next node in a list of arguments or statements */
};

/* Describes a function as parsed, or an instance of it; there is one instance for each list of argument types. */
struct lang_function {
    const char *name;
    lang_node *parameters, *body; /* as parsed */
    uint32_t n_parameters;
    uint32_t levels;     /* deepest nesting of statements and expressions */
    lang_function *next; /* next function, or next instance of this function */
    lang_function *instances;
    /* The members from here on belong to an instance. */
    lang_node *code;
    uint8_t types[8];
    uint8_t result;
    bool result_known;
    uint32_t text; /* number of the text that first called it; if that text fails, the instance is removed */
    uint32_t n_slots;
    uint8_t *slot_types;
    void *compiled; /* the form that a tier has compiled */
};

/* Allocates memory that is freed all at once. */
typedef struct lang_block lang_block;
typedef struct lang_arena {
    lang_block *blocks;
    size_t n_bytes, limit_bytes;
    const whit_allocator *allocator;
    bool failed; /* the allocator ran out of memory; the limit was not reached */
} lang_arena;
void *lang_arena_take(lang_arena *arena, size_t n_bytes); /* zeroed; NULL if the limit is reached or memory ends */
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
    TOKEN_LINE, /* line feed or ';' */
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_TEXT, /* with its quotes */
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
    bool wants_minus; /* 9223372036854775808, which is an integer only after a minus sign */
} lang_token;

typedef struct lang_source {
    const char *name, *text;
    size_t n, at;
    uint32_t line;
    size_t line_begin;
    uint32_t depth; /* nesting of parentheses and brackets, in which a line feed does not end a statement */
    whit_error *error;
    whit_lang_place *place;
} lang_source;

/* Reads the next token; an error is reported at its place. */
whit_status lang_next(lang_source *source, lang_token *token);
whit_status lang_fail(lang_source *source, uint32_t line, uint32_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Parses a text into statements and functions, in the arena. */
whit_status lang_parse(lang_source *source, lang_arena *arena, lang_node **body, lang_function **functions);

/* Describes a variable of the outermost level. */
typedef struct lang_global {
    char name[64];
    uint8_t type;
    bool inner; /* variable of a block, which functions do not see */
} lang_global;
#define LANG_MAX_GLOBALS   1024
#define LANG_MAX_NESTING   200
#define LANG_MAX_LEVELS    2000 /* nesting of an expression: chains of operators go deeper than LANG_MAX_NESTING */
#define LANG_MAX_INSTANCES 1000
#define LANG_MAX_LOCALS    4000
#define LANG_MAX_CALLS     200 /* depth of calls */
/* Maximum sum of the expression levels of all functions that have called each other, while they run, and while they are
 * checked and compiled (new functions). It limits the C stack, which has one megabyte if a server checks a program. */
#define LANG_MAX_DEPTH      20000
#define LANG_MAX_NEW_LEVELS 2500

/* Keeps functions with large or rare locals out of the frames that every level of an expression has. */
#define LANG_APART         __attribute__((noinline))
#define LANG_MAX_ARGUMENTS 32 /* arguments of a function of the language, and of print */

typedef struct lang_scope {
    lang_global *globals; /* LANG_MAX_GLOBALS; the name is "" for a variable of a block that has ended */
    uint32_t n_globals;
    lang_function *functions;
    uint32_t text;              /* number of the loaded text */
    const whit_lang_host *host; /* NULL: no host */
} lang_scope;

/* Checks a text: names become slots, and every node gets a type. On failure the scope is as before. */
whit_status lang_check(lang_source *source, lang_arena *arena, lang_scope *scope, lang_node *body);

/* Returns whether there is a builtin of this name. */
bool lang_is_builtin(const char *name);

/* Holds the state of the optimiser. It folds constants, removes branches that are never taken, computes equal values of
 * a statement once, and replaces affine loops by their closed form; the tree is changed in place. */
typedef struct lang_optimise {
    lang_arena *arena;
    lang_scope *scope;
    lang_function *function; /* function that gets slots for kept values; NULL: the outermost level */
    bool no_closed_forms, failed;
} lang_optimise;
void lang_optimise_tree(lang_optimise *o, lang_node *node);

/* Describes a loop `for` over straight-line assignments of integers, each of which is affine in integers, so that one
 * matrix describes a round. */
enum { LANG_AFFINE_MAX = 8 };
struct lang_affine {
    uint32_t n; /* number of rows: variables, then the counter and the constant 1 */
    uint32_t n_variables;
    bool unipotent; /* the matrix less the identity is nilpotent */
    uint32_t slots[LANG_AFFINE_MAX];
    uint64_t matrix[LANG_AFFINE_MAX][LANG_AFFINE_MAX]; /* the matrix of one round, which also adds the counter's step */
};
/* Finds the matrix of a loop; NULL if the loop is not affine, or memory is short. */
lang_affine *lang_affine_find(lang_arena *arena, const lang_node *loop);
/* Computes state = matrix^rounds state, modulo 2^64. */
void lang_affine_run(const lang_affine *affine, uint64_t rounds, uint64_t state[LANG_AFFINE_MAX]);

#endif
