/* SPDX-License-Identifier: MIT
 * Compiles statements and expressions to closures. Integer operations have special forms for variables and
 * constants. */
#include "lang/core/code.h"
#include "lang/core/scalar.h"

/* ---- integers --------------------------------------------------------------------------------- */

#define INT(name) static int64_t name(const lang_code *c, lang_value *frame)

INT(int_constant)
{
    (void)frame;
    return c->k;
}
INT(int_slot)
{
    return frame[c->slot].i;
}
INT(int_global)
{
    (void)frame;
    return c->vm->globals[c->slot].i;
}
INT(int_keep)
{
    return frame[c->slot].i = c->x->i(c->x, frame);
}

/* Defines four forms of an integer operation, by its operands: two expressions; an expression and a constant; two
 * variables of the frame; a variable of the frame and a constant. */
#define INT_FORMS(OP)                                                                                                  \
    INT(int_##OP##_any)                                                                                                \
    {                                                                                                                  \
        int64_t a = c->x->i(c->x, frame), b = c->y->i(c->y, frame);                                                    \
        return lang_i64_binary(OP_##OP, a, b);                                                                         \
    }                                                                                                                  \
    INT(int_##OP##_any_k)                                                                                              \
    {                                                                                                                  \
        return lang_i64_binary(OP_##OP, c->x->i(c->x, frame), c->k);                                                   \
    }                                                                                                                  \
    INT(int_##OP##_slots)                                                                                              \
    {                                                                                                                  \
        return lang_i64_binary(OP_##OP, frame[c->slot].i, frame[c->slot2].i);                                          \
    }                                                                                                                  \
    INT(int_##OP##_slot_k)                                                                                             \
    {                                                                                                                  \
        return lang_i64_binary(OP_##OP, frame[c->n].i, c->k);                                                          \
    }
#define INT_OPS(X)                                                                                                     \
    X(ADD) X(SUB) X(MUL) X(MIN) X(MAX) X(LT) X(LE) X(GT) X(GE) X(EQ) X(NE) X(SHL) X(SHR) X(AND) X(OR) X(XOR)
INT_OPS(INT_FORMS)

typedef int64_t int_fn(const lang_code *c, lang_value *frame);
#define INT_ROW(OP) [OP_##OP] = {int_##OP##_any, int_##OP##_any_k, int_##OP##_slots, int_##OP##_slot_k},
static int_fn *const int_forms[N_BINARY][4] = {INT_OPS(INT_ROW)};

INT(int_divide)
{
    int64_t a = c->x->i(c->x, frame), b = c->y->i(c->y, frame);
    if (b == 0) lang_raise(c->vm, c->node, WHIT_ERROR_ARGUMENT, "division of %lld by zero", (long long)a);
    return lang_i64_binary(c->node->op, a, b);
}
/* Divides by a constant that is neither 0 nor -1. */
INT(int_divide_k)
{
    return c->x->i(c->x, frame) / c->k;
}
INT(int_remainder_k)
{
    return c->x->i(c->x, frame) % c->k;
}
INT(int_unary)
{
    return lang_i64_unary(c->node->op, c->x->i(c->x, frame));
}
INT(int_of_float)
{
    return lang_to_int(c->x->f(c->x, frame));
}
INT(int_compare)
{
    double a = c->x->f(c->x, frame), b = c->y->f(c->y, frame);
    return lang_f64_compare(c->node->op, a, b);
}
INT(int_also)
{
    return c->x->i(c->x, frame) && c->y->i(c->y, frame);
}
INT(int_else)
{
    return c->x->i(c->x, frame) || c->y->i(c->y, frame);
}

/* ---- floats ----------------------------------------------------------------------------------- */

#define FLOAT(name) static double name(const lang_code *c, lang_value *frame)

FLOAT(float_constant)
{
    (void)frame;
    return c->d;
}
FLOAT(float_slot)
{
    return frame[c->slot].f;
}
FLOAT(float_global)
{
    (void)frame;
    return c->vm->globals[c->slot].f;
}
FLOAT(float_keep)
{
    return frame[c->slot].f = c->x->f(c->x, frame);
}
FLOAT(float_of_int)
{
    return (double)c->x->i(c->x, frame);
}
FLOAT(float_unary)
{
    return lang_f64_unary(c->node->op, c->x->f(c->x, frame));
}
#define FLOAT_FORM(OP)                                                                                                 \
    FLOAT(float_##OP)                                                                                                  \
    {                                                                                                                  \
        double a = c->x->f(c->x, frame), b = c->y->f(c->y, frame);                                                     \
        return lang_f64_binary(OP_##OP, a, b);                                                                         \
    }
#define FLOAT_OPS(X) X(ADD) X(SUB) X(MUL) X(DIV) X(MIN) X(MAX) X(CUT)
FLOAT_OPS(FLOAT_FORM)
typedef double float_fn(const lang_code *c, lang_value *frame);
#define FLOAT_ROW(OP) [OP_##OP] = float_##OP,
static float_fn *const float_forms[N_BINARY] = {FLOAT_OPS(FLOAT_ROW)};

/* Return an element of a vector. float_index_slot reads a variable's vector without counting a reference. */
FLOAT(float_index)
{
    lang_array *a = c->x->a(c->x, frame);
    double value = lang_element(c->vm, c->node, a, c->y->i(c->y, frame));
    lang_release(c->vm, a);
    return value;
}
FLOAT(float_index_slot)
{
    lang_array *a = lang_array_of(c->vm, c->node->a, frame[c->slot].a);
    return lang_element(c->vm, c->node, a, c->y->i(c->y, frame));
}

/* ---- arrays ----------------------------------------------------------------------------------- */

#define ARRAY(name) static lang_array *name(const lang_code *c, lang_value *frame)

ARRAY(array_slot)
{
    return lang_retain(lang_array_of(c->vm, c->node, frame[c->slot].a));
}
ARRAY(array_global)
{
    (void)frame;
    return lang_retain(lang_array_of(c->vm, c->node, c->vm->globals[c->slot].a));
}
ARRAY(array_quat_unary)
{
    lang_array *a = c->x->a(c->x, frame), *out = lang_quat_unary(c->vm, c->node, c->node->op, a);
    lang_release(c->vm, a);
    return out;
}
ARRAY(array_quat_binary)
{
    lang_array *a = c->x->a(c->x, frame), *b = c->y->a(c->y, frame);
    lang_array *out = lang_quat_binary(c->vm, c->node, c->node->op, a, b);
    lang_release(c->vm, a);
    lang_release(c->vm, b);
    return out;
}
ARRAY(array_slice)
{
    lang_array *a = c->x->a(c->x, frame);
    int64_t begin = c->y->i(c->y, frame), end = c->z->i(c->z, frame);
    lang_array *out = lang_slice(c->vm, c->node, a, begin, end);
    lang_release(c->vm, a);
    return out;
}
ARRAY(array_list)
{
    lang_array *out = lang_new_vec(c->vm, c->node, c->n);
    for (uint32_t i = 0; i < c->n; i++) out->x[i] = (float)c->list[i]->f(c->list[i], frame);
    return out;
}

/* ---- calls ------------------------------------------------------------------------------------ */

static LANG_APART lang_value call_function(const lang_code *c, lang_value *frame)
{
    const lang_function *function = c->node->function;
    lang_value values[8];
    for (uint32_t i = 0; i < c->n; i++) values[i] = lang_value_of(c->list[i], frame);
    lang_value *inner = lang_enter(c->vm, c->node, function);
    for (uint32_t i = 0; i < c->n; i++) inner[i] = values[i];
    const lang_code *body = ((const lang_body *)function->compiled)->code;
    if (body->s(body, inner) != LANG_RETURNED && function->result != WHIT_LANG_NONE)
        lang_raise(c->vm, c->node, WHIT_ERROR_ARGUMENT, "'%s' ended without returning a value", function->name);
    lang_leave(c->vm, inner, function);
    return c->vm->result;
}
INT(int_call)
{
    return call_function(c, frame).i;
}
FLOAT(float_call)
{
    return call_function(c, frame).f;
}
ARRAY(array_call)
{
    return call_function(c, frame).a;
}

static LANG_APART lang_value builtin(const lang_code *c, lang_value *frame)
{
    lang_value values[LANG_MAX_ARGUMENTS];
    for (uint32_t i = 0; i < c->n; i++) values[i] = lang_value_of(c->list[i], frame);
    lang_value result = lang_call_builtin(c->vm, c->node, values, c->n);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->list[i]->node->type >= WHIT_LANG_VEC) lang_release(c->vm, values[i].a);
    return result;
}
INT(int_builtin)
{
    return builtin(c, frame).i;
}
FLOAT(float_builtin)
{
    return builtin(c, frame).f;
}
ARRAY(array_builtin)
{
    return builtin(c, frame).a;
}

/* ---- statements ------------------------------------------------------------------------------- */

#define RUN(name) static int name(const lang_code *c, lang_value *frame)

RUN(run_block)
{
    for (uint32_t i = 0; i < c->n; i++) {
        int how = c->list[i]->s(c->list[i], frame);
        if (how != LANG_GO_ON) return how;
    }
    return LANG_GO_ON;
}
RUN(assign_int)
{
    frame[c->slot].i = c->x->i(c->x, frame);
    return LANG_GO_ON;
}
RUN(assign_float)
{
    frame[c->slot].f = c->x->f(c->x, frame);
    return LANG_GO_ON;
}
RUN(assign_array)
{
    lang_array *value = lang_settle(c->vm, c->node, frame[c->slot].a, c->x->a(c->x, frame));
    lang_release(c->vm, frame[c->slot].a);
    frame[c->slot].a = value;
    return LANG_GO_ON;
}
RUN(assign_elements)
{
    return lang_elements_in_place(c->x, frame) ? LANG_GO_ON : assign_array(c, frame);
}
/* Adds word i of `from` to `to`, with the same arithmetic as the kernel `add`. */
static inline void add_word(whit_quat_planes to, whit_quat_view from, uint32_t i)
{
    uint64_t t = to.extra[i] | from.extra[i], x = to.sign[i], y = from.sign[i], sign = (x & y) | (t & (x | y));
    to.extra[i] = sign ^ x ^ y;
    to.sign[i] = sign;
}

/* Adds b to a in place (q += b); returns false if a is shared, or lengths or scales differ. For up to FEW_WORDS words,
 * calling the kernel would cost more than adding here. */
static bool add_in_place(const lang_code *c, lang_array *a, const lang_array *b)
{
    enum { FEW_WORDS = 2 };
    if (a->refs != 1 || a->n != b->n || a->scale != b->scale) return false;
    uint32_t words = whit_quat_words(a->n);
    lang_step(c->vm, c->node, words + 1);
    if (words > FEW_WORDS) {
        c->vm->options.quat->add(lang_planes(a), lang_view(a), lang_view(b), words);
        return true;
    }
    if (words > 0) add_word(lang_planes(a), lang_view(b), 0);
    if (words > 1) add_word(lang_planes(a), lang_view(b), 1);
    return true;
}
/* Runs q = q + e for quaternary vectors; in place if possible, else with a new vector. */
RUN(assign_quat_sum)
{
    lang_array *a = lang_array_of(c->vm, c->x->node->a, frame[c->slot].a), *b = c->x->y->a(c->x->y, frame);
    if (!add_in_place(c, a, b)) {
        frame[c->slot].a = lang_quat_binary(c->vm, c->x->node, OP_ADD, a, b);
        lang_release(c->vm, a);
    }
    lang_release(c->vm, b);
    return LANG_GO_ON;
}
/* Runs q = q + e where e is a variable: in place without counting references if possible, else as assign_quat_sum. */
RUN(assign_quat_sum_slot)
{
    lang_array *a = frame[c->slot].a, *b = frame[c->slot2].a;
    if (a && b && a != b && add_in_place(c, a, b)) return LANG_GO_ON;
    return assign_quat_sum(c, frame);
}
RUN(store)
{
    double value = c->x->f(c->x, frame);
    int64_t index = c->y->i(c->y, frame);
    lang_array *a = lang_array_of(c->vm, c->node, frame[c->slot].a);
    lang_check_index(c->vm, c->node, a, index);
    if (a->refs > 1) frame[c->slot].a = a = lang_own(c->vm, c->node, a);
    a->x[index] = (float)value;
    return LANG_GO_ON;
}
RUN(run_if)
{
    if (c->x->i(c->x, frame)) return c->y->s(c->y, frame);
    return c->z ? c->z->s(c->z, frame) : LANG_GO_ON;
}
RUN(run_while)
{
    const lang_code *body = c->y;
    while (c->x->i(c->x, frame)) {
        lang_step(c->vm, c->node, 1);
        int how = body->s(body, frame);
        if (how == LANG_BROKEN) break;
        if (how == LANG_RETURNED) return how;
    }
    return LANG_GO_ON;
}
RUN(run_for)
{
    int64_t begin = c->x->i(c->x, frame), end = c->y->i(c->y, frame);
    const lang_code *body = c->z;
    for (int64_t i = begin; i < end; i++) {
        lang_step(c->vm, c->node, 1);
        frame[c->slot].i = i;
        int how = body->s(body, frame);
        if (how == LANG_BROKEN) break;
        if (how == LANG_RETURNED) return how;
    }
    return LANG_GO_ON;
}
RUN(run_affine)
{
    int64_t begin = c->x->i(c->x, frame), end = c->y->i(c->y, frame);
    const lang_affine *affine = c->node->affine;
    uint64_t state[LANG_AFFINE_MAX] = {0};
    if (begin >= end) return LANG_GO_ON;
    lang_step(c->vm, c->node, 1);
    for (uint32_t i = 0; i < affine->n_variables; i++) state[i] = (uint64_t)frame[affine->slots[i]].i;
    state[affine->n_variables] = (uint64_t)begin;
    state[affine->n_variables + 1] = 1;
    lang_affine_run(affine, (uint64_t)end - (uint64_t)begin, state);
    for (uint32_t i = 0; i < affine->n_variables; i++) frame[affine->slots[i]].i = (int64_t)state[i];
    frame[c->slot].i = end - 1;
    return LANG_GO_ON;
}
RUN(run_break)
{
    (void)c, (void)frame;
    return LANG_BROKEN;
}
RUN(run_continue)
{
    (void)c, (void)frame;
    return LANG_CONTINUED;
}
RUN(run_return)
{
    c->vm->result = lang_value_of(c->x, frame);
    return LANG_RETURNED;
}
RUN(run_print)
{
    lang_value values[LANG_MAX_ARGUMENTS];
    uint8_t types[LANG_MAX_ARGUMENTS];
    for (uint32_t i = 0; i < c->n; i++) {
        values[i] = lang_value_of(c->list[i], frame);
        types[i] = c->list[i]->node->type;
    }
    lang_print(c->vm, c->node, values, types, c->n);
    for (uint32_t i = 0; i < c->n; i++)
        if (types[i] >= WHIT_LANG_VEC) lang_release(c->vm, values[i].a);
    return LANG_GO_ON;
}
RUN(run_expression)
{
    if (c->x->node->type == WHIT_LANG_NONE) {
        call_function(c->x, frame);
        return LANG_GO_ON;
    }
    lang_value value = lang_value_of(c->x, frame);
    if (c->x->node->type >= WHIT_LANG_VEC) lang_release(c->vm, value.a);
    return LANG_GO_ON;
}

/* ---- compiling -------------------------------------------------------------------------------- */

lang_code *lang_code_new(lang_compiler *c, const lang_node *node)
{
    static const lang_code none;
    lang_code *code = lang_arena_take(&c->vm->arena, sizeof *code);
    if (!code) {
        c->failed = true;
        return (lang_code *)&none; /* this shared object is never written, because callers check `failed` first */
    }
    code->vm = c->vm;
    code->node = node;
    return code;
}

static void compile_list(lang_compiler *c, lang_code *code, lang_node *first,
                         const lang_code *compile(lang_compiler *, lang_node *))
{
    uint32_t n = 0;
    for (lang_node *e = first; e; e = e->next) n++;
    const lang_code **list = lang_arena_take(&c->vm->arena, (n + 1) * sizeof *list);
    if (!list) {
        c->failed = true;
        return;
    }
    for (lang_node *e = first; e; e = e->next) list[code->n++] = compile(c, e);
    code->list = list;
}

static const lang_code *compile_statement(lang_compiler *c, lang_node *s);
static void compile_functions(lang_compiler *c, const lang_node *e);

static LANG_APART void compile_function(lang_compiler *c, lang_function *function)
{
    lang_body *body = lang_arena_take(&c->vm->arena, sizeof *body);
    if (!body) {
        c->failed = true;
        return;
    }
    function->compiled = body;
    compile_functions(c, function->code);
    lang_compiler inner = {.vm = c->vm, .function = function};
    lang_optimise o = {&c->vm->arena, &c->vm->scope, function, c->vm->options.no_closed_forms, false};
    lang_optimise_tree(&o, function->code);
    body->code = compile_statement(&inner, function->code);
    c->failed |= inner.failed;
}

/* Compiles the functions that a tree calls, in the order in which the checker checks them, so that the nesting of new
 * functions stays within LANG_MAX_NEW_LEVELS here, too. */
static void compile_functions(lang_compiler *c, const lang_node *e)
{
    for (; e && !c->failed; e = e->next) {
        compile_functions(c, e->a);
        compile_functions(c, e->b);
        compile_functions(c, e->c);
        if (e->kind == NODE_CALL && !e->function->compiled) compile_function(c, e->function);
    }
}

static void compile_int_binary(lang_compiler *c, lang_code *code, lang_node *e)
{
    lang_node *a = e->a, *b = e->b;
    bool divides = e->op == OP_DIV || e->op == OP_MOD;
    bool a_slot = a->kind == NODE_SLOT && lang_in_frame(c, a), b_slot = b->kind == NODE_SLOT && lang_in_frame(c, b);
    if (a_slot && b->kind == NODE_INT && !divides) {
        code->i = int_forms[e->op][3];
        code->n = a->slot;
        code->k = b->i;
    } else if (a_slot && b_slot && !divides) {
        code->i = int_forms[e->op][2];
        code->slot = a->slot;
        code->slot2 = b->slot;
    } else {
        bool constant = b->kind == NODE_INT && (!divides || (b->i != 0 && b->i != -1));
        code->x = lang_compile_expression(c, a);
        if (constant)
            code->k = b->i;
        else
            code->y = lang_compile_expression(c, b);
        if (divides && !constant)
            code->i = int_divide;
        else if (divides)
            code->i = e->op == OP_DIV ? int_divide_k : int_remainder_k;
        else
            code->i = int_forms[e->op][constant];
    }
}

static void compile_operator(lang_compiler *c, lang_code *code, lang_node *e)
{
    uint8_t from = e->a->type;
    if (e->kind == NODE_BINARY && e->type == WHIT_LANG_INT && from == WHIT_LANG_INT) {
        compile_int_binary(c, code, e);
        return;
    }
    code->x = lang_compile_expression(c, e->a);
    if (e->b) code->y = lang_compile_expression(c, e->b);
    if (e->type == WHIT_LANG_QUAT)
        code->a = e->kind == NODE_UNARY ? array_quat_unary : array_quat_binary;
    else if (e->kind == NODE_BINARY) {
        if (e->type == WHIT_LANG_INT)
            code->i = int_compare;
        else
            code->f = float_forms[e->op];
    } else if (e->op == OP_FLOAT)
        code->f = float_of_int;
    else if (e->op == OP_INT)
        code->i = int_of_float;
    else if (e->type == WHIT_LANG_INT)
        code->i = int_unary;
    else
        code->f = float_unary;
}

/* Sets the function of a node that evaluates an expression of this type: i, f or a. */
static void by_type(lang_code *code, uint8_t type, int_fn *i, float_fn *f,
                    lang_array *a(const lang_code *, lang_value *))
{
    if (type == WHIT_LANG_FLOAT)
        code->f = f;
    else if (type >= WHIT_LANG_VEC)
        code->a = a;
    else
        code->i = i;
}

const lang_code *lang_compile_expression(lang_compiler *c, lang_node *e)
{
    if (e->type == WHIT_LANG_VEC && (e->kind == NODE_UNARY || e->kind == NODE_BINARY))
        return lang_compile_elements(c, e);
    const lang_code *reduction = e->kind == NODE_BUILTIN ? lang_compile_reduction(c, e) : NULL;
    if (reduction) return reduction;
    lang_code *code = lang_code_new(c, e);
    if (c->failed) return code;
    switch (e->kind) {
    case NODE_INT:
        code->i = int_constant;
        code->k = e->i;
        break;
    case NODE_FLOAT:
        code->f = float_constant;
        code->d = e->f;
        break;
    case NODE_SLOT:
        code->slot = e->slot;
        if (lang_in_frame(c, e))
            by_type(code, e->type, int_slot, float_slot, array_slot);
        else
            by_type(code, e->type, int_global, float_global, array_global);
        break;
    case NODE_KEEP:
        code->slot = e->slot;
        code->x = lang_compile_expression(c, e->a);
        by_type(code, e->type, int_keep, float_keep, NULL);
        break;
    case NODE_UNARY:
    case NODE_BINARY: compile_operator(c, code, e); break;
    case NODE_ALSO:
    case NODE_ELSE:
        code->x = lang_compile_expression(c, e->a);
        code->y = lang_compile_expression(c, e->b);
        code->i = e->kind == NODE_ALSO ? int_also : int_else;
        break;
    case NODE_CALL:
        compile_list(c, code, e->a, lang_compile_expression);
        by_type(code, e->type, int_call, float_call, array_call);
        break;
    case NODE_BUILTIN:
        compile_list(c, code, e->a, lang_compile_expression);
        by_type(code, e->type, int_builtin, float_builtin, array_builtin);
        break;
    case NODE_LIST:
        compile_list(c, code, e->a, lang_compile_expression);
        code->a = array_list;
        break;
    case NODE_INDEX:
        code->y = lang_compile_expression(c, e->b);
        code->f = float_index_slot;
        code->slot = e->a->slot;
        if (e->a->kind == NODE_SLOT && lang_in_frame(c, e->a)) break;
        code->x = lang_compile_expression(c, e->a);
        code->f = float_index;
        break;
    default: /* the kind that remains: NODE_SLICE */
        code->x = lang_compile_expression(c, e->a);
        code->y = lang_compile_expression(c, e->b);
        code->z = lang_compile_expression(c, e->c);
        code->a = array_slice;
        break;
    }
    return code;
}

static void compile_assign(lang_compiler *c, lang_code *code, lang_node *s)
{
    lang_node *e = s->a;
    code->slot = s->slot;
    code->x = lang_compile_expression(c, e);
    if (s->type == WHIT_LANG_INT)
        code->s = assign_int;
    else if (s->type == WHIT_LANG_FLOAT)
        code->s = assign_float;
    else
        code->s = assign_array;
    bool self = (e->kind == NODE_BINARY || e->kind == NODE_UNARY) && e->a->kind == NODE_SLOT && e->a->slot == s->slot &&
        e->a->global == s->global;
    if (s->type == WHIT_LANG_QUAT && self && e->kind == NODE_BINARY && e->op == OP_ADD) {
        code->s = assign_quat_sum;
        if (e->b->kind == NODE_SLOT && lang_in_frame(c, e->b)) {
            code->s = assign_quat_sum_slot;
            code->slot2 = e->b->slot;
        }
    }
    if (!c->failed && s->type == WHIT_LANG_VEC && (e->kind == NODE_BINARY || e->kind == NODE_UNARY)) {
        lang_code *elements = (lang_code *)code->x; /* lets the chain write its result into the variable */
        elements->n = 1;
        elements->target = s->slot;
        if (elements->elements->native && elements->elements->is_simple) code->s = assign_elements;
    }
}

/* Compiles a statement to closures (tier 1), whatever tier is requested. */
static LANG_APART const lang_code *compile_plainly(lang_compiler *c, lang_node *s)
{
    lang_code *code = lang_code_new(c, s);
    if (c->failed) return code;
    switch (s->kind) {
    case NODE_BLOCK:
        compile_list(c, code, s->a, compile_statement);
        code->s = run_block;
        if (code->n == 1) return code->list[0];
        break;
    case NODE_ASSIGN: compile_assign(c, code, s); break;
    case NODE_STORE:
        code->slot = s->slot;
        code->x = lang_compile_expression(c, s->a);
        code->y = lang_compile_expression(c, s->b);
        code->s = store;
        break;
    case NODE_IF:
        code->x = lang_compile_expression(c, s->a);
        code->y = compile_statement(c, s->b);
        if (s->c) code->z = compile_statement(c, s->c);
        code->s = run_if;
        break;
    case NODE_WHILE:
        code->x = lang_compile_expression(c, s->a);
        code->y = compile_statement(c, s->b);
        code->s = run_while;
        break;
    case NODE_FOR:
    case NODE_AFFINE:
        code->slot = s->slot;
        code->x = lang_compile_expression(c, s->a);
        code->y = lang_compile_expression(c, s->b);
        if (s->kind == NODE_FOR) code->z = compile_statement(c, s->c);
        code->s = s->kind == NODE_FOR ? run_for : run_affine;
        break;
    case NODE_BREAK: code->s = run_break; break;
    case NODE_CONTINUE: code->s = run_continue; break;
    case NODE_RETURN:
        code->x = lang_compile_expression(c, s->a);
        code->s = run_return;
        break;
    case NODE_PRINT:
        compile_list(c, code, s->a, lang_compile_expression);
        code->s = run_print;
        break;
    default: /* the kind that remains: NODE_EXPRESSION */
        code->x = lang_compile_expression(c, s->a);
        code->s = run_expression;
        break;
    }
    return code;
}

static const lang_code *compile_statement(lang_compiler *c, lang_node *s)
{
    bool loops = s->kind == NODE_FOR || s->kind == NODE_WHILE;
    const whit_lang_jit *jit = c->vm->options.tier >= WHIT_LANG_NATIVE ? c->vm->options.jit : NULL;
    lang_code *code = loops && jit ? lang_code_new(c, s) : NULL;
    if (!code || c->failed || !jit->compile_loop(c, s, code)) return compile_plainly(c, s);
    if (code->native_guard) code->x = compile_plainly(c, s);
    return code;
}

bool lang_compile(whit_lang *vm, lang_node *program)
{
    lang_compiler c = {.vm = vm};
    compile_functions(&c, program);
    if (c.failed) return false; /* functions that were compiled only in part are removed together with the text */
    lang_optimise o = {&vm->arena, &vm->scope, NULL, vm->options.no_closed_forms, false};
    lang_optimise_tree(&o, program);
    vm->compiled = (void *)compile_statement(&c, program);
    return !c.failed;
}

void lang_run_compiled(whit_lang *vm)
{
    const lang_code *code = vm->compiled;
    code->s(code, vm->globals);
}
