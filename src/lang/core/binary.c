/* SPDX-License-Identifier: MIT
 * Encodes programs as triples and decodes them. Decoding writes a text, which is then parsed like any other; trees that
 * no text produces are detected because their text encodes to another tree. */
#include "lang/core/binary.h"
#include "base/items.h"

#include <float.h>
#include <stdio.h>

#include "lang/core/ast.h"

enum { ID_BYTES = 16, HEAD_BYTES = 64, TRIPLE_BYTES = 40, VERSION = 1, MAX_TRIPLES = 1 << 22 };
#define ARENA_BYTES ((size_t)64 << 20)
#define TRY         WHIT_TRY

enum predicate { IS_KIND = 1, HAS_OP, HAS_INTEGER, HAS_FLOAT, HAS_NAME, HAS_A, HAS_B, HAS_C, HAS_D };

/* Maps the kinds of nodes to words, so that files do not depend on the numbers of lang_kind. */
static const struct {
    uint8_t kind;
    char word[ID_BYTES];
} kinds[] = {
    {NODE_INT, "int"},       {NODE_FLOAT, "float"},   {NODE_NAME, "name"},     {NODE_UNARY, "unary"},
    {NODE_BINARY, "binary"}, {NODE_ALSO, "and"},      {NODE_ELSE, "or"},       {NODE_CALL, "call"},
    {NODE_INDEX, "index"},   {NODE_SLICE, "slice"},   {NODE_LIST, "list"},     {NODE_TEXT, "text"},
    {NODE_LET, "let"},       {NODE_ASSIGN, "assign"}, {NODE_STORE, "store"},   {NODE_IF, "if"},
    {NODE_WHILE, "while"},   {NODE_FOR, "for"},       {NODE_BREAK, "break"},   {NODE_CONTINUE, "continue"},
    {NODE_RETURN, "return"}, {NODE_BLOCK, "block"},   {NODE_EXPRESSION, "do"}, {NODE_PRINT, "print"},
};
static const char function_word[ID_BYTES] = "function", program_word[ID_BYTES] = "program";

static const struct {
    uint8_t op, level;
    char word[ID_BYTES];
} ops[] = {
    {OP_EQ, 3, "=="},  {OP_NE, 3, "!="},    {OP_LT, 3, "<"},     {OP_LE, 3, "<="},      {OP_GT, 3, ">"},
    {OP_GE, 3, ">="},  {OP_OR, 4, "|"},     {OP_XOR, 5, "^"},    {OP_AND, 6, "&"},      {OP_SHL, 7, "<<"},
    {OP_SHR, 7, ">>"}, {OP_ADD, 8, "+"},    {OP_SUB, 8, "-"},    {OP_MUL, 9, "*"},      {OP_DIV, 9, "/"},
    {OP_MOD, 9, "%"},  {OP_NEG, 10, "neg"}, {OP_NOT, 10, "not"}, {OP_FLIP, 10, "flip"},
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- nodes by their names ----------------------------------------------------------------------- */

struct node {
    uint32_t first, n; /* index of the first triple, number of triples */
};

/* A hash table with open addressing that finds stored nodes by name. The number of places is a power of two, and at
 * most half of them are used. */
struct index {
    struct node *places; /* an unused place has n = 0 */
    uint32_t n_places, n_nodes;
};

struct binary {
    const char *name;
    whit_error *error;
    whit_buf *out;  /* output: the header and triples when encoding, the text when decoding */
    whit_buf stack; /* predicates and objects of nodes whose children are being encoded */
    const uint8_t *triples;
    uint32_t n_triples;
    struct index index;
    uint32_t depth;
};

static whit_status no_memory(const struct binary *b)
{
    return whit_fail_memory(b->error, b->name, b->stack.size_bytes);
}

static uint64_t key_of(const uint8_t id[ID_BYTES])
{
    uint64_t key;
    memcpy(&key, id, sizeof key);
    return key;
}

static struct node *find_node(const struct index *index, const uint8_t *triples, const uint8_t id[ID_BYTES])
{
    for (uint64_t at = key_of(id);; at++) {
        struct node *place = &index->places[at & (index->n_places - 1)];
        if (!place->n || memcmp(triples + (size_t)place->first * TRIPLE_BYTES, id, ID_BYTES) == 0) return place;
    }
}

/* Makes room for one more node in the index. */
static bool grow_index(struct index *index, const uint8_t *triples)
{
    if (index->n_nodes < index->n_places / 2) return true;
    struct index larger = {.n_places = index->n_places ? 2 * index->n_places : 256, .n_nodes = index->n_nodes};
    larger.places = whit_zalloc_array(NULL, larger.n_places, sizeof *larger.places);
    if (!larger.places) return false;
    for (uint32_t i = 0; i < index->n_places; i++)
        if (index->places[i].n)
            *find_node(&larger, triples, triples + (size_t)index->places[i].first * TRIPLE_BYTES) = index->places[i];
    whit_free(NULL, index->places, index->n_places * sizeof *index->places);
    *index = larger;
    return true;
}

static void free_parts(struct binary *b)
{
    whit_free(NULL, b->index.places, b->index.n_places * sizeof *b->index.places);
    whit_buf_free(&b->stack);
}

/* ---- a tree to triples -------------------------------------------------------------------------- */

static bool push_triple(struct binary *b, uint32_t predicate, const void *object, size_t n)
{
    uint8_t triple[4 + ID_BYTES] = {0};
    memcpy(triple, &predicate, 4);
    memcpy(triple + 4, object, n);
    return whit_buf_append(&b->stack, triple, sizeof triple);
}

static bool push_name(struct binary *b, const char *name)
{
    size_t n = strlen(name), at = 0;
    do {
        size_t part = n - at < ID_BYTES ? n - at : ID_BYTES;
        if (!push_triple(b, HAS_NAME, name + at, part)) return false;
        at += part;
    } while (at < n);
    return true;
}

/* Stores the triples pushed since `begin` as a node, unless an equal node is stored already; sets `id` to the node's
 * name. */
static whit_status pop(struct binary *b, size_t begin, uint8_t id[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, "whit.ndl");
    whit_hash_add(&hash, b->stack.data + begin, b->stack.size_bytes - begin);
    whit_hash_end(&hash, id);
    uint32_t n = (uint32_t)((b->stack.size_bytes - begin) / (4 + ID_BYTES));
    if (!grow_index(&b->index, b->out->data + HEAD_BYTES)) return no_memory(b);
    struct node *place = find_node(&b->index, b->out->data + HEAD_BYTES, id);
    if (!place->n) {
        uint32_t first = (uint32_t)((b->out->size_bytes - HEAD_BYTES) / TRIPLE_BYTES);
        if (first + n > MAX_TRIPLES)
            return whit_fail(b->error, WHIT_ERROR_LIMIT,
                             "%s: the program is too large: its binary form has more than %d triples, the limit",
                             b->name, MAX_TRIPLES);
        for (uint32_t i = 0; i < n; i++) {
            uint8_t triple[TRIPLE_BYTES] = {0};
            const uint8_t *from = b->stack.data + begin + (size_t)i * (4 + ID_BYTES);
            memcpy(triple, id, ID_BYTES);
            memcpy(triple + ID_BYTES, from, 4);
            memcpy(triple + ID_BYTES + 8, from + 4, ID_BYTES);
            if (!whit_buf_append(b->out, triple, sizeof triple)) return no_memory(b);
        }
        *place = (struct node){first, n};
        b->index.n_nodes++;
    }
    b->stack.size_bytes = begin;
    return WHIT_OK;
}

static whit_status encode_node(struct binary *b, const lang_node *node, uint8_t id[WHIT_HASH_BYTES]);

static whit_status encode_list(struct binary *b, uint32_t predicate, const lang_node *node)
{
    uint8_t id[WHIT_HASH_BYTES];
    for (; node; node = node->next) {
        TRY(encode_node(b, node, id));
        if (!push_triple(b, predicate, id, ID_BYTES)) return no_memory(b);
    }
    return WHIT_OK;
}

static bool has_name(uint8_t kind)
{
    return kind == NODE_NAME || kind == NODE_CALL || kind == NODE_TEXT || kind == NODE_LET || kind == NODE_ASSIGN ||
        kind == NODE_STORE || kind == NODE_FOR;
}

static whit_status encode_node(struct binary *b, const lang_node *node, uint8_t id[WHIT_HASH_BYTES])
{
    size_t begin = b->stack.size_bytes, k = 0;
    while (k < COUNT(kinds) && kinds[k].kind != node->kind) k++;
    if (k == COUNT(kinds))
        return whit_fail(b->error, WHIT_ERROR_ARGUMENT,
                         "%s: the program has a statement that the binary form cannot store", b->name);
    bool ok = push_triple(b, IS_KIND, kinds[k].word, ID_BYTES);
    for (size_t i = 0; i < COUNT(ops) && (node->kind == NODE_UNARY || node->kind == NODE_BINARY); i++)
        if (ops[i].op == node->op) ok = ok && push_triple(b, HAS_OP, ops[i].word, ID_BYTES);
    if (node->kind == NODE_INT) ok = ok && push_triple(b, HAS_INTEGER, &node->i, sizeof node->i);
    if (node->kind == NODE_FLOAT) ok = ok && push_triple(b, HAS_FLOAT, &node->f, sizeof node->f);
    if (has_name(node->kind)) ok = ok && push_name(b, node->name);
    if (!ok) return no_memory(b);
    TRY(encode_list(b, HAS_A, node->a));
    TRY(encode_list(b, HAS_B, node->b));
    TRY(encode_list(b, HAS_C, node->c));
    TRY(encode_list(b, HAS_D, node->d));
    return pop(b, begin, id);
}

/* Encodes the functions in the order of the text; `function` is the newest one, and `next` leads to older ones. */
static whit_status encode_functions(struct binary *b, const lang_function *function)
{
    enum { MOST = 4096 };
    const lang_function *all[MOST];
    uint32_t n = 0;
    for (; function; function = function->next) {
        if (n == MOST)
            return whit_fail(b->error, WHIT_ERROR_LIMIT, "%s: the program has more than %d functions, the limit",
                             b->name, MOST);
        all[n++] = function;
    }
    while (n--) {
        uint8_t id[WHIT_HASH_BYTES];
        size_t begin = b->stack.size_bytes;
        if (!push_triple(b, IS_KIND, function_word, ID_BYTES) || !push_name(b, all[n]->name)) return no_memory(b);
        TRY(encode_list(b, HAS_A, all[n]->parameters));
        TRY(encode_list(b, HAS_B, all[n]->body));
        TRY(pop(b, begin, id));
        if (!push_triple(b, HAS_A, id, ID_BYTES)) return no_memory(b);
    }
    return WHIT_OK;
}

static whit_status encode_program(struct binary *b, const char *text, size_t n_bytes, uint8_t root[WHIT_HASH_BYTES])
{
    whit_lang_place place;
    lang_source source = {.name = b->name, .text = text, .n = n_bytes, .line = 1, .error = b->error, .place = &place};
    lang_arena arena = {.limit_bytes = ARENA_BYTES};
    lang_node *body;
    lang_function *functions = NULL;
    uint8_t head[HEAD_BYTES] = WHIT_LANG_BINARY_MAGIC;
    whit_status status = lang_parse(&source, &arena, &body, &functions);
    if (status == WHIT_OK &&
        (!whit_buf_append(b->out, head, sizeof head) || !push_triple(b, IS_KIND, program_word, ID_BYTES)))
        status = no_memory(b);
    if (status == WHIT_OK) status = encode_functions(b, functions);
    if (status == WHIT_OK) status = encode_list(b, HAS_B, body);
    if (status == WHIT_OK) status = pop(b, 0, root);
    lang_arena_free(&arena);
    WHIT_TRY(status);
    uint32_t fields[2] = {VERSION, (uint32_t)((b->out->size_bytes - HEAD_BYTES) / TRIPLE_BYTES)};
    memcpy(b->out->data + 4, fields, sizeof fields);
    memcpy(b->out->data + 16, root, WHIT_HASH_BYTES);
    return WHIT_OK;
}

whit_status whit_lang_encode(const char *name, const char *text, size_t n_bytes, whit_buf *out,
                             uint8_t root[WHIT_HASH_BYTES], whit_error *error)
{
    struct binary b = {.name = name, .error = error, .out = out};
    if (n_bytes > WHIT_LANG_MAX_TEXT_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the program is larger than %zu bytes, the limit", name,
                         WHIT_LANG_MAX_TEXT_BYTES);
    whit_status status = encode_program(&b, text, n_bytes, root);
    free_parts(&b);
    return status;
}

/* ---- triples to a text -------------------------------------------------------------------------- */

static const uint8_t *triple_at(const struct binary *b, uint32_t i)
{
    return b->triples + (size_t)i * TRIPLE_BYTES;
}
static uint32_t predicate_at(const struct binary *b, uint32_t i)
{
    uint32_t predicate;
    memcpy(&predicate, triple_at(b, i) + ID_BYTES, 4);
    return predicate;
}
static const uint8_t *object_at(const struct binary *b, uint32_t i)
{
    return triple_at(b, i) + ID_BYTES + 8;
}

static const char *hex(const uint8_t id[ID_BYTES], char text[2 * ID_BYTES + 1])
{
    for (int i = 0; i < ID_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", id[i]);
    return text;
}

static whit_status bad(const struct binary *b, struct node node, const char *why)
{
    char text[2 * ID_BYTES + 1];
    return whit_fail(b->error, WHIT_ERROR_FORMAT, "%s: node %s (triple %u): %s", b->name,
                     hex(triple_at(b, node.first), text), node.first, why);
}

static bool append_text(struct binary *b, const char *text)
{
    return b->out->size_bytes + strlen(text) <= WHIT_LANG_MAX_TEXT_BYTES && whit_buf_append_str(b->out, text);
}
#define SAY(text)                                                                                                      \
    do {                                                                                                               \
        if (!append_text(b, text))                                                                                     \
            return whit_fail(b->error, WHIT_ERROR_LIMIT, "%s: the program's text is larger than %zu bytes, the limit", \
                             b->name, WHIT_LANG_MAX_TEXT_BYTES);                                                       \
    } while (0)

/* Finds the first triple of a node that has the given predicate; returns false if no triple has it. */
static bool triple_of(const struct binary *b, struct node node, uint32_t predicate, uint32_t *triple)
{
    for (*triple = node.first; *triple < node.first + node.n; ++*triple)
        if (predicate_at(b, *triple) == predicate) return true;
    return false;
}

/* Finds the next child with the given predicate, from triple *at on, and sets *at to the triple after it; returns false
 * if there is no such child. */
static bool next_child(const struct binary *b, struct node node, uint32_t predicate, uint32_t *at, struct node *child)
{
    for (; *at < node.first + node.n; ++*at)
        if (predicate_at(b, *at) == predicate) {
            *child = *find_node(&b->index, b->triples, object_at(b, (*at)++));
            return true;
        }
    return false;
}
static bool child_of(const struct binary *b, struct node node, uint32_t predicate, struct node *child)
{
    uint32_t at = node.first;
    return next_child(b, node, predicate, &at, child);
}

static bool is_word(const struct binary *b, struct node node, const char word[ID_BYTES])
{
    return predicate_at(b, node.first) == IS_KIND && memcmp(object_at(b, node.first), word, ID_BYTES) == 0;
}
/* Returns the kind of a node, a lang_kind; 255 for functions, programs and unknown words. */
static uint8_t kind_of(const struct binary *b, struct node node)
{
    for (size_t k = 0; k < COUNT(kinds); k++)
        if (is_word(b, node, kinds[k].word)) return kinds[k].kind;
    return 255;
}
static size_t op_of(const struct binary *b, struct node node)
{
    uint32_t at;
    size_t k = 0;
    if (!triple_of(b, node, HAS_OP, &at)) return COUNT(ops);
    while (k < COUNT(ops) && memcmp(object_at(b, at), ops[k].word, ID_BYTES) != 0) k++;
    return k;
}

static whit_status say_name(struct binary *b, struct node node)
{
    uint32_t at;
    if (!triple_of(b, node, HAS_NAME, &at)) return bad(b, node, "has no name");
    for (; at < node.first + node.n && predicate_at(b, at) == HAS_NAME; at++) {
        char part[ID_BYTES + 1] = "";
        memcpy(part, object_at(b, at), ID_BYTES);
        for (const char *c = part; *c; c++)
            if ((unsigned char)*c < 32 || (unsigned char)*c > 126 || *c == '"') return bad(b, node, "has no name");
        SAY(part);
    }
    return WHIT_OK;
}

static whit_status say_number(struct binary *b, struct node node, uint8_t kind)
{
    char text[64];
    uint32_t at;
    uint64_t i;
    double f;
    if (!triple_of(b, node, kind == NODE_INT ? HAS_INTEGER : HAS_FLOAT, &at)) return bad(b, node, "has no number");
    memcpy(&i, object_at(b, at), sizeof i);
    memcpy(&f, object_at(b, at), sizeof f);
    if (kind == NODE_INT)
        snprintf(text, sizeof text, i > (uint64_t)INT64_MAX ? "0x%llx" : "%llu", (unsigned long long)i);
    else if (f > DBL_MAX)
        snprintf(text, sizeof text, "1e999");
    else
        snprintf(text, sizeof text, "%.17e", f); /* with an exponent, so that the number is read as a float even if it
                                                  * is whole */
    SAY(text);
    return WHIT_OK;
}

static whit_status say(struct binary *b, struct node node, unsigned level);

/* Write the text of a node's child with the given predicate, or of all such children, separated by commas. */
static whit_status say_one(struct binary *b, struct node node, uint32_t predicate, unsigned level)
{
    struct node child;
    return child_of(b, node, predicate, &child) ? say(b, child, level) : bad(b, node, "lacks a part");
}
static whit_status say_list(struct binary *b, struct node node, uint32_t predicate)
{
    struct node child;
    for (uint32_t at = node.first, n = 0; next_child(b, node, predicate, &at, &child); n++) {
        if (n) SAY(", ");
        TRY(say(b, child, 0));
    }
    return WHIT_OK;
}

static whit_status say_binary(struct binary *b, struct node node, const char *mark, unsigned own, unsigned level)
{
    if (own < level) SAY("(");
    TRY(say_one(b, node, HAS_A, own));
    SAY(" ");
    SAY(mark);
    SAY(" ");
    TRY(say_one(b, node, HAS_B, own + 1));
    if (own < level) SAY(")");
    return WHIT_OK;
}

/* Writes the text of an expression, in parentheses if its operator binds weaker than `level`. */
static whit_status say_expression(struct binary *b, struct node node, uint8_t kind, unsigned level)
{
    size_t op = op_of(b, node);
    switch (kind) {
    case NODE_INT:
    case NODE_FLOAT: return say_number(b, node, kind);
    case NODE_NAME: return say_name(b, node);
    case NODE_TEXT:
        SAY("\"");
        TRY(say_name(b, node));
        SAY("\"");
        return WHIT_OK;
    case NODE_ALSO: return say_binary(b, node, "and", 2, level);
    case NODE_ELSE: return say_binary(b, node, "or", 1, level);
    case NODE_BINARY:
        if (op == COUNT(ops) || ops[op].level == 10) return bad(b, node, "has an unknown operation");
        return say_binary(b, node, ops[op].word, ops[op].level, level);
    case NODE_UNARY:
        if (op == COUNT(ops) || ops[op].level != 10) return bad(b, node, "has an unknown operation");
        if (level > 10) SAY("(");
        const char *sign = "~";
        if (ops[op].op == OP_NEG)
            sign = "-";
        else if (ops[op].op == OP_NOT)
            sign = "not ";
        SAY(sign);
        TRY(say_one(b, node, HAS_A, 10));
        if (level > 10) SAY(")");
        return WHIT_OK;
    case NODE_CALL:
        TRY(say_name(b, node));
        SAY("(");
        TRY(say_list(b, node, HAS_A));
        SAY(")");
        return WHIT_OK;
    case NODE_LIST:
        SAY("[");
        TRY(say_list(b, node, HAS_A));
        SAY("]");
        return WHIT_OK;
    default: /* the kinds that remain: NODE_INDEX and NODE_SLICE */
        TRY(say_one(b, node, HAS_A, 11));
        SAY("[");
        TRY(say_one(b, node, HAS_B, 0));
        if (kind == NODE_SLICE) {
            SAY(" .. ");
            TRY(say_one(b, node, HAS_C, 0));
        }
        SAY("]");
        return WHIT_OK;
    }
}

static whit_status say_statements(struct binary *b, struct node block)
{
    struct node child;
    for (uint32_t at = block.first; next_child(b, block, HAS_A, &at, &child);) {
        TRY(say(b, child, 0));
        SAY("\n");
    }
    return WHIT_OK;
}

static whit_status say_if(struct binary *b, struct node node)
{
    struct node other;
    SAY("if ");
    TRY(say_one(b, node, HAS_A, 0));
    SAY(" ");
    TRY(say_one(b, node, HAS_B, 0));
    if (!child_of(b, node, HAS_C, &other)) return WHIT_OK;
    SAY(" else ");
    return say(b, other, 0);
}

static whit_status say_named(struct binary *b, struct node node, uint8_t kind)
{
    if (kind == NODE_LET) SAY("let ");
    if (kind == NODE_FOR) SAY("for ");
    TRY(say_name(b, node));
    if (kind == NODE_STORE) {
        SAY("[");
        TRY(say_one(b, node, HAS_B, 0));
        SAY("]");
    }
    if (kind != NODE_FOR) {
        SAY(" = ");
        return say_one(b, node, HAS_A, 0);
    }
    SAY(" in ");
    TRY(say_one(b, node, HAS_A, 0));
    SAY(" .. ");
    TRY(say_one(b, node, HAS_B, 0));
    SAY(" ");
    return say_one(b, node, HAS_C, 0);
}

static whit_status say_kind(struct binary *b, struct node node, uint8_t kind, unsigned level)
{
    switch (kind) {
    case NODE_LET:
    case NODE_ASSIGN:
    case NODE_STORE:
    case NODE_FOR: return say_named(b, node, kind);
    case NODE_IF: return say_if(b, node);
    case NODE_WHILE:
        SAY("while ");
        TRY(say_one(b, node, HAS_A, 0));
        SAY(" ");
        return say_one(b, node, HAS_B, 0);
    case NODE_BREAK: SAY("break"); return WHIT_OK;
    case NODE_CONTINUE: SAY("continue"); return WHIT_OK;
    case NODE_RETURN: SAY("return "); return say_one(b, node, HAS_A, 0);
    case NODE_PRINT: SAY("print "); return say_list(b, node, HAS_A);
    case NODE_EXPRESSION: return say_one(b, node, HAS_A, 0);
    case NODE_BLOCK:
        SAY("{\n");
        TRY(say_statements(b, node));
        SAY("}");
        return WHIT_OK;
    case 255: return bad(b, node, "has an unknown kind");
    default: return say_expression(b, node, kind, level);
    }
}

static whit_status say(struct binary *b, struct node node, unsigned level)
{
    enum { MOST = LANG_MAX_LEVELS + 2 * LANG_MAX_NESTING };
    if (b->depth++ == MOST) return bad(b, node, "is nested too deep");
    whit_status status = say_kind(b, node, kind_of(b, node), level);
    b->depth--;
    return status;
}

static whit_status say_program(struct binary *b, struct node root)
{
    struct node function, body;
    if (!is_word(b, root, program_word) || !child_of(b, root, HAS_B, &body)) return bad(b, root, "is not a program");
    for (uint32_t at = root.first; next_child(b, root, HAS_A, &at, &function);) {
        if (!is_word(b, function, function_word)) return bad(b, function, "is not a function");
        SAY("fn ");
        TRY(say_name(b, function));
        SAY("(");
        TRY(say_list(b, function, HAS_A));
        SAY(") ");
        TRY(say_one(b, function, HAS_B, 0));
        SAY("\n");
    }
    return say_statements(b, body);
}

/* Returns whether the triples of a node are as encoding writes them: ordered by predicate, which only lists and the
 * pieces of a name repeat. */
static bool is_ordered(const struct binary *b, struct node node)
{
    static const char lists[][ID_BYTES] = {"block", "print", "call", "list", "function", "program"};
    bool may_list = false;
    for (size_t i = 0; i < COUNT(lists); i++) may_list |= is_word(b, node, lists[i]);
    for (uint32_t i = node.first, before = 0; i < node.first + node.n; before = predicate_at(b, i++)) {
        uint32_t predicate = predicate_at(b, i);
        bool again = predicate == HAS_NAME || (predicate == HAS_A && may_list);
        if (predicate < before || (predicate == before && !again) || predicate > HAS_D) return false;
        if (predicate == HAS_NAME && before == HAS_NAME && !*object_at(b, i)) return false;
    }
    return predicate_at(b, node.first) == IS_KIND;
}

/* Checks the node that begins at triple `first`, and adds it to the index. Its children must precede it. */
static whit_status take_node(struct binary *b, uint32_t first, struct node *node, uint8_t id[WHIT_HASH_BYTES])
{
    whit_hash hash;
    char text[2 * ID_BYTES + 1];
    *node = (struct node){first, 0};
    whit_hash_begin(&hash, "whit.ndl");
    while (first + node->n < b->n_triples &&
           memcmp(triple_at(b, first), triple_at(b, first + node->n), ID_BYTES) == 0) {
        uint32_t i = first + node->n++, predicate = predicate_at(b, i);
        whit_hash_add(&hash, triple_at(b, i) + ID_BYTES, 4);
        whit_hash_add(&hash, object_at(b, i), ID_BYTES);
        if (predicate >= HAS_A && predicate <= HAS_D &&
            (!b->index.n_places || !find_node(&b->index, b->triples, object_at(b, i))->n))
            return whit_fail(b->error, WHIT_ERROR_FORMAT,
                             "%s: node %s, which triple %u names, is missing: the file is damaged", b->name,
                             hex(object_at(b, i), text), i);
    }
    whit_hash_end(&hash, id);
    if (memcmp(id, triple_at(b, first), ID_BYTES) != 0) return bad(b, *node, "is false: its triples have another hash");
    if (!is_ordered(b, *node)) return bad(b, *node, "has triples out of order");
    if (!grow_index(&b->index, b->triples)) return no_memory(b);
    struct node *place = find_node(&b->index, b->triples, id);
    if (place->n) return bad(b, *node, "is stored twice");
    *place = *node;
    b->index.n_nodes++;
    return WHIT_OK;
}

static whit_status decode(struct binary *b, const uint8_t *bytes, size_t n_bytes, uint8_t root[WHIT_HASH_BYTES])
{
    uint32_t fields[3];
    struct node node = {0};
    if (n_bytes < HEAD_BYTES || memcmp(bytes, WHIT_LANG_BINARY_MAGIC, 4) != 0)
        return whit_fail(b->error, WHIT_ERROR_FORMAT, "%s: the file is not a program in binary form", b->name);
    memcpy(fields, bytes + 4, sizeof fields);
    if (fields[0] != VERSION)
        return whit_fail(b->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the program has version %u, which this whit does not know: store it again", b->name,
                         fields[0]);
    if (!fields[1] || fields[1] > MAX_TRIPLES || n_bytes != HEAD_BYTES + (size_t)fields[1] * TRIPLE_BYTES)
        return whit_fail(b->error, WHIT_ERROR_FORMAT, "%s: the file's length is not that of %u triples: it is damaged",
                         b->name, fields[1]);
    b->triples = bytes + HEAD_BYTES;
    b->n_triples = fields[1];
    for (uint32_t i = 0; i < b->n_triples; i += node.n) TRY(take_node(b, i, &node, root));
    if (memcmp(root, bytes + 16, WHIT_HASH_BYTES) != 0)
        return bad(b, node, "is last and not the root that the head names");
    return say_program(b, node);
}

whit_status whit_lang_decode(const char *name, const void *data, size_t n_bytes, whit_buf *text,
                             uint8_t root[WHIT_HASH_BYTES], whit_error *error)
{
    struct binary b = {.name = name, .error = error, .out = text};
    whit_buf again = {0};
    whit_error inner = {0};
    uint8_t other[WHIT_HASH_BYTES];
    text->size_bytes = 0;
    whit_status status = decode(&b, data, n_bytes, root);
    free_parts(&b);
    WHIT_TRY(status);
    status = whit_lang_encode(name, whit_chars(text), text->size_bytes, &again, other, &inner);
    if (status != WHIT_OK)
        status =
            whit_fail(error, WHIT_ERROR_FORMAT, "%s: the file does not store a valid program: %s", name, inner.message);
    else if (again.size_bytes != n_bytes || memcmp(again.data, data, n_bytes) != 0)
        status = whit_fail(error, WHIT_ERROR_FORMAT,
                           "%s: the file's program differs from its own text: the file is damaged", name);
    whit_buf_free(&again);
    return status;
}
