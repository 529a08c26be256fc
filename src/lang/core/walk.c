/* SPDX-License-Identifier: MIT
 * The tree walker defines the meaning of programs in the simplest way; tests compare the other tiers (closures and
 * machine code) with it. */
#include "lang/core/scalar.h"
#include "lang/core/vm.h"

enum { GO_ON, BROKEN, CONTINUED, RETURNED };

static lang_value evaluate_node(whit_lang *vm, const lang_node *e, lang_value *frame);
static int run_statements(whit_lang *vm, const lang_node *s, lang_value *frame);

static lang_value *slot_of(whit_lang *vm, const lang_node *node, lang_value *frame)
{
    return node->global ? &vm->globals[node->slot] : &frame[node->slot];
}

static lang_value vec_unary(whit_lang *vm, const lang_node *e, lang_array *a)
{
    lang_array *out = lang_new_vec(vm, e, a->n);
    for (uint32_t i = 0; i < a->n; i++) {
        lang_look(vm, e, i);
        out->x[i] = lang_f32_unary(e->op, a->x[i]);
    }
    lang_release(vm, a);
    return (lang_value){.a = out};
}

static lang_value vec_binary(whit_lang *vm, const lang_node *e, lang_value a, lang_value b)
{
    bool a_is = e->a->type == WHIT_LANG_VEC, b_is = e->b->type == WHIT_LANG_VEC;
    uint32_t n;
    if (a_is && b_is)
        n = lang_same_length(vm, e, a.a, b.a);
    else if (a_is)
        n = a.a->n;
    else
        n = b.a->n;
    lang_array *out = lang_new_vec(vm, e, n);
    for (uint32_t i = 0; i < n; i++) {
        lang_look(vm, e, i);
        out->x[i] = lang_f32_binary(e->op, a_is ? a.a->x[i] : (float)a.f, b_is ? b.a->x[i] : (float)b.f);
    }
    if (a_is) lang_release(vm, a.a);
    if (b_is) lang_release(vm, b.a);
    return (lang_value){.a = out};
}

static lang_value unary(whit_lang *vm, const lang_node *e, lang_value *frame)
{
    lang_value a = evaluate_node(vm, e->a, frame);
    if (e->type == WHIT_LANG_QUAT) {
        lang_array *out = lang_quat_unary(vm, e, e->op, a.a);
        lang_release(vm, a.a);
        return (lang_value){.a = out};
    }
    if (e->type == WHIT_LANG_VEC) return vec_unary(vm, e, a.a);
    if (e->op == OP_FLOAT) return (lang_value){.f = (double)a.i};
    if (e->op == OP_INT) return (lang_value){.i = lang_to_int(a.f)};
    if (e->type == WHIT_LANG_INT) return (lang_value){.i = lang_i64_unary(e->op, a.i)};
    return (lang_value){.f = lang_f64_unary(e->op, a.f)};
}

static lang_value binary(whit_lang *vm, const lang_node *e, lang_value *frame)
{
    lang_value a = evaluate_node(vm, e->a, frame), b = evaluate_node(vm, e->b, frame);
    if (e->type == WHIT_LANG_QUAT) {
        lang_array *out = lang_quat_binary(vm, e, e->op, a.a, b.a);
        lang_release(vm, a.a);
        lang_release(vm, b.a);
        return (lang_value){.a = out};
    }
    if (e->type == WHIT_LANG_VEC) return vec_binary(vm, e, a, b);
    if (e->a->type == WHIT_LANG_INT) {
        if ((e->op == OP_DIV || e->op == OP_MOD) && b.i == 0)
            lang_raise(vm, e, WHIT_ERROR_ARGUMENT, "division of %lld by zero", (long long)a.i);
        return (lang_value){.i = lang_i64_binary(e->op, a.i, b.i)};
    }
    if (e->type == WHIT_LANG_INT) return (lang_value){.i = lang_f64_compare(e->op, a.f, b.f)};
    return (lang_value){.f = lang_f64_binary(e->op, a.f, b.f)};
}

static LANG_APART lang_value call_function(whit_lang *vm, const lang_node *e, lang_value *frame)
{
    lang_value values[8];
    uint32_t n = 0;
    const lang_function *function = e->function;
    for (const lang_node *argument = e->a; argument; argument = argument->next)
        values[n++] = evaluate_node(vm, argument, frame);
    lang_value *inner = lang_enter(vm, e, function);
    memcpy(inner, values, n * sizeof *values);
    if (run_statements(vm, function->code, inner) != RETURNED && function->result != WHIT_LANG_NONE)
        lang_raise(vm, e, WHIT_ERROR_ARGUMENT, "'%s' ended without returning a value", function->name);
    lang_leave(vm, inner, function);
    return vm->result;
}

static LANG_APART lang_value builtin(whit_lang *vm, const lang_node *e, lang_value *frame)
{
    lang_value values[LANG_MAX_ARGUMENTS];
    uint32_t n = 0;
    for (const lang_node *argument = e->a; argument; argument = argument->next)
        values[n++] = evaluate_node(vm, argument, frame);
    lang_value result = lang_call_builtin(vm, e, values, n);
    n = 0;
    for (const lang_node *argument = e->a; argument; argument = argument->next, n++)
        if (argument->type >= WHIT_LANG_VEC) lang_release(vm, values[n].a);
    return result;
}

static LANG_APART lang_value host(whit_lang *vm, const lang_node *e, lang_value *frame)
{
    whit_lang_argument values[WHIT_LANG_MAX_HOST_ARGUMENTS] = {0}, result = {0};
    uint32_t n = 0;
    whit_error error = {0};
    lang_step(vm, e, 1);
    for (const lang_node *argument = e->a; argument; argument = argument->next)
        values[n++].i = evaluate_node(vm, argument, frame).i;
    whit_status status = vm->scope.host->call(vm->scope.host->user, e->slot, values, &result, &error);
    if (status != WHIT_OK) lang_raise(vm, e, status, "%s", error.message);
    return (lang_value){.i = result.i};
}

static LANG_APART lang_value evaluate_list(whit_lang *vm, const lang_node *e, lang_value *frame)
{
    uint32_t n = 0;
    for (const lang_node *element = e->a; element; element = element->next) n++;
    lang_array *out = lang_new_vec(vm, e, n);
    n = 0;
    for (const lang_node *element = e->a; element; element = element->next)
        out->x[n++] = (float)evaluate_node(vm, element, frame).f;
    return (lang_value){.a = out};
}

static lang_value evaluate_node(whit_lang *vm, const lang_node *e, lang_value *frame)
{
    lang_value a, b;
    switch (e->kind) {
    case NODE_INT: return (lang_value){.i = e->i};
    case NODE_FLOAT: return (lang_value){.f = e->f};
    case NODE_SLOT:
        a = *slot_of(vm, e, frame);
        if (e->type >= WHIT_LANG_VEC) lang_retain(lang_array_of(vm, e, a.a));
        return a;
    case NODE_UNARY: return unary(vm, e, frame);
    case NODE_BINARY: return binary(vm, e, frame);
    case NODE_ALSO: return (lang_value){.i = evaluate_node(vm, e->a, frame).i && evaluate_node(vm, e->b, frame).i};
    case NODE_ELSE: return (lang_value){.i = evaluate_node(vm, e->a, frame).i || evaluate_node(vm, e->b, frame).i};
    case NODE_CALL: return call_function(vm, e, frame);
    case NODE_BUILTIN: return builtin(vm, e, frame);
    case NODE_LIST: return evaluate_list(vm, e, frame);
    case NODE_TEXT: return (lang_value){.text = e->name};
    case NODE_HOST: return host(vm, e, frame);
    case NODE_INDEX:
        a = evaluate_node(vm, e->a, frame);
        b = evaluate_node(vm, e->b, frame);
        b.f = lang_element(vm, e, a.a, b.i);
        lang_release(vm, a.a);
        return b;
    case NODE_SLICE: {
        a = evaluate_node(vm, e->a, frame);
        int64_t begin = evaluate_node(vm, e->b, frame).i, end = evaluate_node(vm, e->c, frame).i;
        b.a = lang_slice(vm, e, a.a, begin, end);
        lang_release(vm, a.a);
        return b;
    }
    default: return (lang_value){0};
    }
}

static int loop(whit_lang *vm, const lang_node *s, lang_value *frame)
{
    int64_t begin = evaluate_node(vm, s->a, frame).i, end = evaluate_node(vm, s->b, frame).i;
    for (int64_t i = begin; i < end; i++) {
        lang_step(vm, s, 1);
        slot_of(vm, s, frame)->i = i;
        int how = run_statements(vm, s->c, frame);
        if (how == BROKEN) break;
        if (how == RETURNED) return how;
    }
    return GO_ON;
}

static void assign(whit_lang *vm, const lang_node *s, lang_value *frame)
{
    lang_value value = evaluate_node(vm, s->a, frame), *slot = slot_of(vm, s, frame);
    if (s->type >= WHIT_LANG_VEC) {
        value.a = lang_settle(vm, s, slot->a, value.a);
        lang_release(vm, slot->a);
    }
    *slot = value;
}

static void store(whit_lang *vm, const lang_node *s, lang_value *frame)
{
    lang_value value = evaluate_node(vm, s->a, frame), index = evaluate_node(vm, s->b, frame),
               *slot = slot_of(vm, s, frame);
    lang_check_index(vm, s, lang_array_of(vm, s, slot->a), index.i);
    slot->a = lang_own(vm, s, slot->a);
    slot->a->x[index.i] = (float)value.f;
}

static LANG_APART void print(whit_lang *vm, const lang_node *s, lang_value *frame)
{
    lang_value values[LANG_MAX_ARGUMENTS] = {0};
    uint8_t types[LANG_MAX_ARGUMENTS] = {0};
    uint32_t n = 0;
    for (const lang_node *e = s->a; e && n < LANG_MAX_ARGUMENTS; e = e->next) {
        types[n] = e->type;
        values[n++] = evaluate_node(vm, e, frame);
    }
    lang_print(vm, s, values, types, n);
    for (uint32_t i = 0; i < n; i++)
        if (types[i] >= WHIT_LANG_VEC) lang_release(vm, values[i].a);
}

static int run_statements(whit_lang *vm, const lang_node *s, lang_value *frame)
{
    int how;
    lang_value value;
    switch (s->kind) {
    case NODE_BLOCK:
        for (const lang_node *inner = s->a; inner; inner = inner->next)
            if ((how = run_statements(vm, inner, frame)) != GO_ON) return how;
        return GO_ON;
    case NODE_ASSIGN: assign(vm, s, frame); return GO_ON;
    case NODE_STORE: store(vm, s, frame); return GO_ON;
    case NODE_IF:
        if (evaluate_node(vm, s->a, frame).i) return run_statements(vm, s->b, frame);
        return s->c ? run_statements(vm, s->c, frame) : GO_ON;
    case NODE_WHILE:
        while (evaluate_node(vm, s->a, frame).i) {
            lang_step(vm, s, 1);
            how = run_statements(vm, s->b, frame);
            if (how == BROKEN) break;
            if (how == RETURNED) return how;
        }
        return GO_ON;
    case NODE_FOR: return loop(vm, s, frame);
    case NODE_BREAK: return BROKEN;
    case NODE_CONTINUE: return CONTINUED;
    case NODE_RETURN: vm->result = evaluate_node(vm, s->a, frame); return RETURNED;
    case NODE_PRINT: print(vm, s, frame); return GO_ON;
    case NODE_EXPRESSION:
        value = evaluate_node(vm, s->a, frame);
        if (s->a->type >= WHIT_LANG_VEC) lang_release(vm, value.a);
        return GO_ON;
    default: return GO_ON;
    }
}

void lang_walk(whit_lang *vm, lang_node *program)
{
    run_statements(vm, program, vm->globals);
}
