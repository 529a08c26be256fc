/* SPDX-License-Identifier: MIT
 * Declares a parsed template: a tree of nodes, all allocated from one pool, and read-only after parsing.
 *
 * All kinds of nodes have the same type. The comment at each kind lists the fields that it uses: a . text means the
 * fields `a` and `text`, with the template's syntax between them. A body is a node of kind BODY. */
#ifndef WHIT_TEMPLATE_AST_H
#define WHIT_TEMPLATE_AST_H

#include "template/template.h"

typedef enum whit_node_kind {
    /* expressions */
    WHIT_NODE_CONSTANT,  /* constant */
    WHIT_NODE_NAME,      /* text */
    WHIT_NODE_LIST,      /* items */
    WHIT_NODE_TUPLE,     /* items; also the target of an assignment */
    WHIT_NODE_DICT,      /* items: key, value, key, value, ... */
    WHIT_NODE_ATTRIBUTE, /* a . text */
    WHIT_NODE_ITEM,      /* a [ b ] */
    WHIT_NODE_SLICE,     /* a : b : c, each may be NULL; occurs only as b of an ITEM, or in a TUPLE that is b of an
                          * ITEM */
    WHIT_NODE_CALL,      /* a ( arguments ) */
    WHIT_NODE_FILTER,    /* a | text ( arguments ); builtin NULL: unknown filter */
    WHIT_NODE_TEST,      /* a is text ( arguments ), flag: is not; builtin NULL: unknown test */
    WHIT_NODE_NOT,       /* not a */
    WHIT_NODE_NEGATE,    /* - a */
    WHIT_NODE_PLUS,      /* + a */
    WHIT_NODE_BINARY,    /* operation: whit_arithmetic, with the operands a and b */
    WHIT_NODE_AND,       /* a and b */
    WHIT_NODE_OR,        /* a or b */
    WHIT_NODE_COMPARE,   /* first operand a; items: the comparisons, each an OPERAND */
    WHIT_NODE_OPERAND,   /* operation: whit_comparison, with the right operand a */
    WHIT_NODE_CONCAT,    /* items joined by ~ */
    WHIT_NODE_CHOICE,    /* a if b else c; c may be NULL */
    WHIT_NODE_MEMBER,    /* target of an assignment, b . text; b: the namespace's NAME */
    /* statements */
    WHIT_NODE_BODY,         /* items */
    WHIT_NODE_DATA,         /* text */
    WHIT_NODE_PRINT,        /* items */
    WHIT_NODE_IF,           /* a: condition, b: body, c: else branch (a BODY or an IF) or NULL */
    WHIT_NODE_FOR,          /* a: target, b: iterable, c: filter condition or NULL, d: body, e: else body or NULL, flag:
                             * recursive */
    WHIT_NODE_SET,          /* a: target, b: value */
    WHIT_NODE_SET_BLOCK,    /* a: target, b: chain of filters or NULL, d: body */
    WHIT_NODE_FILTER_BLOCK, /* b: chain of filters, d: body */
    WHIT_NODE_MACRO,        /* text: name, macro, d: body */
    WHIT_NODE_CALL_BLOCK,   /* a: the CALL, macro: signature of the caller, d: body */
    WHIT_NODE_WITH,         /* items: target, value, target, value, ...; d: body */
    WHIT_NODE_BLOCK,        /* text: name, d: body, flag: scoped */
    WHIT_NODE_SCOPE,        /* d: body, which gets a scope of its own */
    WHIT_NODE_AUTOESCAPE,   /* a: whether to escape, d: body */
    WHIT_NODE_BREAK,
    WHIT_NODE_CONTINUE,
    WHIT_NODE_NO_LOADER, /* include, import, from or extends, which fail when they are executed */
    /* The innermost operand of a block's chain of filters: the block's rendered text. */
    WHIT_NODE_CAPTURED,
} whit_node_kind;

typedef enum whit_comparison {
    WHIT_EQUAL,
    WHIT_NOT_EQUAL,
    WHIT_LESS,
    WHIT_LESS_EQUAL,
    WHIT_GREATER,
    WHIT_GREATER_EQUAL,
    WHIT_IN,
    WHIT_NOT_IN
} whit_comparison;

typedef struct whit_node whit_node;

typedef struct whit_call_arguments {
    whit_node **positional;
    size_t n_positional;
    struct whit_named {
        const whit_text *name;
        whit_node *value;
    } * named;
    size_t n_named;
    whit_node *rest, *named_rest; /* operands of `*` and `**` in the call; NULL: absent */
} whit_call_arguments;

/* Parameters of a macro or of a call block's caller. */
typedef struct whit_signature {
    const whit_text *name;
    const whit_text **parameters;
    whit_node **defaults; /* default of each parameter; NULL: no default */
    size_t n_parameters;
    bool uses_caller, uses_varargs, uses_kwargs; /* whether the body reads these names */
} whit_signature;

struct whit_node {
    uint8_t kind, operation;
    bool flag;
    uint32_t offset; /* position in the source, for messages */
    const whit_text *text;
    whit_node *a, *b, *c, *d, *e;
    whit_node **items;
    size_t n_items;
    union {
        whit_datum constant;
        const struct whit_builtin *builtin;
        whit_signature *macro;
    };
    whit_call_arguments *arguments;
};

typedef struct whit_block {
    const whit_text *name;
    const whit_node *body;
} whit_block;

struct whit_template {
    whit_datum_pool pool;
    char *source; /* line ends are "\n" */
    size_t n_bytes;
    whit_node *body;
    whit_block *blocks;
    size_t n_blocks;
};

/* Parses template->source and fills the other members. Their memory is from template->pool. On failure *error_offset is
 * the position in the source. */
whit_status whit_template_parse(whit_template *template, size_t *error_offset, whit_error *error);

#endif
