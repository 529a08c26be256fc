/* SPDX-License-Identifier: MIT
 * Evaluates expressions by walking the tree. */
#include "template/builtin.h"

static whit_status evaluate_items(whit_machine *m, const whit_node *node, whit_datum *items)
{
    for (size_t i = 0; i < node->n_items; i++) WHIT_TRY(whit_machine_evaluate(m, node->items[i], &items[i]));
    return WHIT_OK;
}

static whit_status evaluate_dict(whit_machine *m, const whit_node *node, whit_datum *result)
{
    if (!whit_datum_dict(m->pool, result)) return whit_machine_raise_memory(m);
    for (size_t i = 0; i + 1 < node->n_items; i += 2) {
        whit_datum key, value;
        WHIT_TRY(whit_machine_evaluate(m, node->items[i], &key));
        WHIT_TRY(whit_machine_evaluate(m, node->items[i + 1], &value));
        WHIT_TRY(whit_machine_want_key(m, key));
        if (!whit_dict_set(m->pool, result->dict, key, value)) return whit_machine_raise_memory(m);
    }
    return WHIT_OK;
}

static whit_status evaluate_name(whit_machine *m, const whit_node *node, whit_datum *result)
{
    bool found;
    WHIT_TRY(whit_machine_lookup(m, node->text, &found, result));
    if (found) return WHIT_OK;
    if (whit_text_is(node->text, "self")) {
        *result = (whit_datum){.kind = WHIT_DATUM_BLOCKS};
        return WHIT_OK;
    }
    const whit_datum *variable = whit_dict_get(m->context.dict, whit_datum_text(node->text));
    const whit_builtin *function = variable ? NULL : whit_builtin_function(node->text);
    if (variable) {
        *result = *variable;
    } else if (function) {
        *result = (whit_datum){.kind = WHIT_DATUM_FUNCTION, .function = function};
    } else {
        whit_builder b = whit_machine_build(m);
        whit_datum message;
        whit_builder_format(&b, "'%.*s' is undefined", (int)(node->text->n_bytes < 80 ? node->text->n_bytes : 80),
                            node->text->bytes);
        WHIT_TRY(whit_machine_build_end(m, &b, &message));
        *result = whit_datum_undefined(message.text);
    }
    return WHIT_OK;
}

static whit_status evaluate_item(whit_machine *m, const whit_node *node, whit_datum *result)
{
    whit_datum object, key, bounds[3] = {whit_datum_none(), whit_datum_none(), whit_datum_none()};
    WHIT_TRY(whit_machine_evaluate(m, node->a, &object));
    if (node->b->kind != WHIT_NODE_SLICE) {
        WHIT_TRY(whit_machine_evaluate(m, node->b, &key));
        return whit_machine_item(m, object, key, result);
    }
    const whit_node *const ends[3] = {node->b->a, node->b->b, node->b->c};
    for (int i = 0; i < 3; i++)
        if (ends[i]) WHIT_TRY(whit_machine_evaluate(m, ends[i], &bounds[i]));
    return whit_machine_slice(m, object, bounds, result);
}

static whit_status evaluate_compare(whit_machine *m, const whit_node *node, whit_datum *result)
{
    whit_datum left, right;
    bool holds = true;
    WHIT_TRY(whit_machine_evaluate(m, node->a, &left));
    for (size_t i = 0; i < node->n_items && holds; i++) {
        WHIT_TRY(whit_machine_evaluate(m, node->items[i]->a, &right));
        WHIT_TRY(whit_machine_compare(m, (whit_comparison)node->items[i]->operation, left, right, &holds));
        left = right;
    }
    *result = whit_datum_bool(holds);
    return WHIT_OK;
}

static whit_status evaluate_concat(whit_machine *m, const whit_node *node, whit_datum *result)
{
    whit_builder b = whit_machine_build(m);
    for (size_t i = 0; i < node->n_items; i++) {
        whit_datum item;
        const whit_text *text;
        WHIT_TRY(whit_machine_evaluate(m, node->items[i], &item));
        WHIT_TRY(whit_machine_str(m, item, &text));
        whit_builder_text(&b, text);
    }
    return whit_machine_build_end(m, &b, result);
}

static whit_status evaluate_sign(whit_machine *m, const whit_node *node, whit_datum *result)
{
    whit_datum value;
    int64_t integer;
    WHIT_TRY(whit_machine_evaluate(m, node->a, &value));
    if (value.kind == WHIT_DATUM_UNDEFINED) return whit_machine_raise_undefined(m, value);
    bool negate = node->kind == WHIT_NODE_NEGATE;
    if (whit_datum_as_int(value, &integer)) {
        if (negate) return whit_machine_arithmetic(m, WHIT_SUBTRACT, whit_datum_int(0), value, result);
        *result = whit_datum_int(integer);
    } else if (value.kind == WHIT_DATUM_FLOAT) {
        *result = whit_datum_float(negate ? -value.real : value.real);
    } else {
        return whit_machine_raise_type(m, "bad operand type for unary %c: '%s'", negate ? '-' : '+',
                                       whit_datum_type(value));
    }
    return WHIT_OK;
}

static whit_status add_rest(whit_machine *m, const whit_node *node, whit_datum *positional, size_t *n)
{
    whit_datum value;
    whit_list list;
    WHIT_TRY(whit_machine_evaluate(m, node, &value));
    WHIT_TRY(whit_machine_items(m, value, &list));
    whit_datum all;
    WHIT_TRY(whit_machine_new_list(m, NULL, *n + list.n, &all));
    for (size_t i = 0; i < *n; i++) all.list->items[i] = positional->list->items[i];
    for (size_t i = 0; i < list.n; i++) all.list->items[*n + i] = list.items[i];
    *positional = all;
    *n += list.n;
    return WHIT_OK;
}

/* Evaluates the arguments of a call. `caller`, if not NULL, is added as the argument named "caller". */
static whit_status evaluate_arguments(whit_machine *m, const whit_call_arguments *given, const whit_datum *caller,
                                      whit_arguments *result)
{
    static const whit_call_arguments nothing;
    static const whit_text caller_name = {.bytes = "caller", .n_bytes = 6, .n_points = 6};
    whit_datum positional, rest = whit_datum_none();
    size_t n = 0, n_named = 0;
    if (!given) given = &nothing;
    WHIT_TRY(whit_machine_new_list(m, NULL, given->n_positional, &positional));
    for (; n < given->n_positional; n++)
        WHIT_TRY(whit_machine_evaluate(m, given->positional[n], &positional.list->items[n]));
    if (given->rest) WHIT_TRY(add_rest(m, given->rest, &positional, &n));
    if (given->named_rest) {
        WHIT_TRY(whit_machine_evaluate(m, given->named_rest, &rest));
        if (rest.kind != WHIT_DATUM_DICT)
            return whit_machine_raise_type(m, "argument after ** must be a mapping, not %s", whit_datum_type(rest));
        n_named = rest.dict->n;
    }
    struct whit_named_value *named = whit_datum_pool_zalloc(m->pool, given->n_named + n_named + 1, sizeof *named);
    if (!named) return whit_machine_raise_memory(m);
    for (n_named = 0; n_named < given->n_named; n_named++) {
        named[n_named].name = given->named[n_named].name;
        WHIT_TRY(whit_machine_evaluate(m, given->named[n_named].value, &named[n_named].value));
    }
    for (size_t i = 0; rest.kind == WHIT_DATUM_DICT && i < rest.dict->n; i++) {
        if (!whit_datum_is_str(rest.dict->pairs[i].key)) return whit_machine_raise_type(m, "keywords must be strings");
        for (size_t k = 0; k < given->n_named; k++)
            if (whit_text_equal(named[k].name, rest.dict->pairs[i].key.text))
                return whit_machine_raise_type(m, "multiple values for a keyword argument");
        named[n_named++] = (struct whit_named_value){rest.dict->pairs[i].key.text, rest.dict->pairs[i].value};
    }
    if (caller) named[n_named++] = (struct whit_named_value){&caller_name, *caller};
    *result = (whit_arguments){positional.list->items, n, named, n_named};
    return WHIT_OK;
}

whit_status whit_machine_evaluate_call(whit_machine *m, const whit_node *node, const whit_datum *caller,
                                       whit_datum *result)
{
    whit_datum callee;
    whit_arguments arguments;
    WHIT_TRY(whit_machine_evaluate(m, node->a, &callee));
    WHIT_TRY(evaluate_arguments(m, node->arguments, caller, &arguments));
    return whit_machine_call_function(m, callee, &arguments, result);
}

static whit_status evaluate_builtin(whit_machine *m, const whit_node *node, whit_datum *result)
{
    whit_datum subject;
    whit_arguments arguments;
    bool is_test = node->kind == WHIT_NODE_TEST;
    if (!node->builtin)
        return whit_machine_raise(m, WHIT_ERROR_ARGUMENT, "no %s named '%.*s'", is_test ? "test" : "filter",
                                  (int)node->text->n_bytes, node->text->bytes);
    WHIT_TRY(whit_machine_evaluate(m, node->a, &subject));
    WHIT_TRY(evaluate_arguments(m, node->arguments, NULL, &arguments));
    WHIT_TRY(whit_builtin_call(m, node->builtin, subject, &arguments, result));
    if (is_test) *result = whit_datum_bool(whit_datum_is_true(*result) != node->flag);
    return WHIT_OK;
}

static whit_status evaluate_binary(whit_machine *m, const whit_node *node, whit_datum *result)
{
    whit_datum left, right;
    WHIT_TRY(whit_machine_evaluate(m, node->a, &left));
    WHIT_TRY(whit_machine_evaluate(m, node->b, &right));
    return whit_machine_arithmetic(m, (whit_arithmetic)node->operation, left, right, result);
}

static whit_status evaluate_node(whit_machine *m, const whit_node *node, whit_datum *result)
{
    whit_datum value;
    switch ((whit_node_kind)node->kind) {
    case WHIT_NODE_CONSTANT: *result = node->constant; return WHIT_OK;
    case WHIT_NODE_CAPTURED: *result = m->captured; return WHIT_OK;
    case WHIT_NODE_NAME: return evaluate_name(m, node, result);
    case WHIT_NODE_LIST:
    case WHIT_NODE_TUPLE:
        WHIT_TRY(whit_machine_new_list(m, NULL, node->n_items, result));
        if (node->kind == WHIT_NODE_TUPLE) result->kind = WHIT_DATUM_TUPLE;
        return evaluate_items(m, node, result->list->items);
    case WHIT_NODE_DICT: return evaluate_dict(m, node, result);
    case WHIT_NODE_ATTRIBUTE:
        WHIT_TRY(whit_machine_evaluate(m, node->a, &value));
        return whit_machine_attribute(m, value, node->text, result);
    case WHIT_NODE_ITEM: return evaluate_item(m, node, result);
    case WHIT_NODE_SLICE: *result = whit_datum_none(); return WHIT_OK; /* a slice inside a tuple is not a valid key */
    case WHIT_NODE_CALL: return whit_machine_evaluate_call(m, node, NULL, result);
    case WHIT_NODE_FILTER:
    case WHIT_NODE_TEST: return evaluate_builtin(m, node, result);
    case WHIT_NODE_NOT:
        WHIT_TRY(whit_machine_evaluate(m, node->a, &value));
        *result = whit_datum_bool(!whit_datum_is_true(value));
        return WHIT_OK;
    case WHIT_NODE_NEGATE:
    case WHIT_NODE_PLUS: return evaluate_sign(m, node, result);
    case WHIT_NODE_BINARY: return evaluate_binary(m, node, result);
    case WHIT_NODE_AND:
    case WHIT_NODE_OR:
        WHIT_TRY(whit_machine_evaluate(m, node->a, result));
        return whit_datum_is_true(*result) == (node->kind == WHIT_NODE_AND) ? whit_machine_evaluate(m, node->b, result)
                                                                            : WHIT_OK;
    case WHIT_NODE_COMPARE: return evaluate_compare(m, node, result);
    case WHIT_NODE_CONCAT: return evaluate_concat(m, node, result);
    case WHIT_NODE_CHOICE:
        WHIT_TRY(whit_machine_evaluate(m, node->b, &value));
        if (whit_datum_is_true(value)) return whit_machine_evaluate(m, node->a, result);
        if (node->c) return whit_machine_evaluate(m, node->c, result);
        *result = whit_datum_undefined(NULL);
        return WHIT_OK;
    default: return whit_machine_raise_type(m, "not an expression");
    }
}

whit_status whit_machine_evaluate(whit_machine *m, const whit_node *node, whit_datum *result)
{
    whit_status status = whit_machine_enter(m);
    if (status == WHIT_OK) status = whit_machine_spend(m, 1);
    if (status == WHIT_OK) status = evaluate_node(m, node, result);
    if (status == WHIT_OK) {
        m->depth--;
    } else if (!m->has_place) {
        m->has_place = true;
        m->offset = node->offset;
    }
    return status;
}

whit_status whit_machine_call_function(whit_machine *m, whit_datum callee, const whit_arguments *arguments,
                                       whit_datum *result)
{
    switch (callee.kind) {
    case WHIT_DATUM_UNDEFINED: return whit_machine_raise_undefined(m, callee);
    case WHIT_DATUM_FUNCTION: return whit_builtin_call(m, callee.function, whit_datum_none(), arguments, result);
    case WHIT_DATUM_METHOD: return whit_builtin_call(m, callee.method->builtin, callee.method->self, arguments, result);
    case WHIT_DATUM_MACRO: return whit_machine_call_macro(m, callee.macro, arguments, result);
    case WHIT_DATUM_LOOP: return whit_machine_call_loop(m, callee.loop, arguments, result);
    case WHIT_DATUM_BLOCK:
        if (arguments->n_positional || arguments->n_named)
            return whit_machine_raise_type(m, "a block takes no arguments");
        return whit_machine_render_block(m, callee.block->body, m->root, result);
    case WHIT_DATUM_JOINER:
        if (arguments->n_positional || arguments->n_named)
            return whit_machine_raise_type(m, "a joiner takes no arguments");
        *result = whit_datum_text(callee.joiner->separator);
        if (!callee.joiner->is_used) WHIT_TRY(whit_machine_slice_text(m, callee.joiner->separator, 0, 0, result));
        callee.joiner->is_used = true;
        return WHIT_OK;
    default: return whit_machine_raise_type(m, "'%s' object is not callable", whit_datum_type(callee));
    }
}
