/* SPDX-License-Identifier: MIT
 * Declares a parsed template, which is a tree in one pool and read-only after parsing.
 *
 * There is one node type for all kinds; the table says which fields a kind uses. A `body` is a NODE_BODY. */
#ifndef WHIT_TEMPLATE_AST_H
#define WHIT_TEMPLATE_AST_H

#include "template/template.h"

typedef enum whit_node_kind {
    /* expressions */
    WHIT_NODE_CONSTANT,  /* constant */
    WHIT_NODE_NAME,      /* text */
    WHIT_NODE_LIST,      /* items */
    WHIT_NODE_TUPLE,     /* items; also as a target of assignment */
    WHIT_NODE_DICT,      /* items: key, value, key, value ... */
    WHIT_NODE_ATTRIBUTE, /* a . text */
    WHIT_NODE_ITEM,      /* a [ b ] */
    WHIT_NODE_SLICE,     /* a : b : c, each may be NULL; only as b of an ITEM or in its tuple */
    WHIT_NODE_CALL,      /* a ( arguments ) */
    WHIT_NODE_FILTER,    /* a | text ( arguments ), builtin NULL: no such filter */
    WHIT_NODE_TEST,      /* a is [flag: not] text ( arguments ), builtin NULL: no such test */
    WHIT_NODE_NOT,       /* not a */
    WHIT_NODE_NEGATE,    /* - a */
    WHIT_NODE_PLUS,      /* + a */
    WHIT_NODE_BINARY,    /* a operation b: whit_arithmetic */
    WHIT_NODE_AND,       /* a and b */
    WHIT_NODE_OR,        /* a or b */
    WHIT_NODE_COMPARE,   /* a, then items: NODE_OPERAND */
    WHIT_NODE_OPERAND,   /* operation: whit_comparison, a */
    WHIT_NODE_CONCAT,    /* items joined by ~ */
    WHIT_NODE_CHOICE,    /* a if b else c; c may be NULL */
    WHIT_NODE_MEMBER,    /* target of assignment: namespace b (a NAME), member text */
    /* statements */
    WHIT_NODE_BODY,         /* items */
    WHIT_NODE_DATA,         /* text */
    WHIT_NODE_PRINT,        /* items */
    WHIT_NODE_IF,           /* a: condition, b: body, c: else branch, a body or NULL */
    WHIT_NODE_FOR,          /* a: target, b: iterable, c: filter or NULL, d: body, e: else or NULL, flag:
                        recursive */
    WHIT_NODE_SET,          /* a: target, b: value */
    WHIT_NODE_SET_BLOCK,    /* a: target, b: filter chain or NULL, d: body */
    WHIT_NODE_FILTER_BLOCK, /* b: filter chain, d: body */
    WHIT_NODE_MACRO,        /* text: name, macro, d: body */
    WHIT_NODE_CALL_BLOCK,   /* a: the CALL, macro, d: body */
    WHIT_NODE_WITH,         /* items: target, value, ...; d: body */
    WHIT_NODE_BLOCK,        /* text: name, d: body, flag: scoped */
    WHIT_NODE_SCOPE,        /* d: body, in its own scope */
    WHIT_NODE_AUTOESCAPE,   /* a: on or off, d: body */
    WHIT_NODE_BREAK,
    WHIT_NODE_CONTINUE,
    WHIT_NODE_NO_LOADER, /* text: include, import, extends: fails when reached */
    /* This is the printed text of a filter block, which is the filter's input. */
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
    whit_node *rest, *named_rest; /* the operands of *rest and **named_rest; NULL: absent */
} whit_call_arguments;

/* Lists the parameters of a macro or call block. */
typedef struct whit_signature {
    const whit_text *name;
    const whit_text **parameters;
    whit_node **defaults; /* by parameter; NULL: no default */
    size_t n_parameters;
    bool uses_caller, uses_varargs, uses_kwargs; /* the body reads these names */
} whit_signature;

struct whit_node {
    uint8_t kind, operation;
    bool flag;
    uint32_t offset; /* into the source, for messages */
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
    char *source; /* with "\n" line ends */
    size_t n_bytes;
    whit_node *body;
    whit_block *blocks;
    size_t n_blocks;
};

/* Parses template->source into the other members, which have their memory from template->pool. */
whit_status whit_template_parse(whit_template *template, size_t *error_offset, whit_error *error);

#endif
