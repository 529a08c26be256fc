/* SPDX-License-Identifier: MIT
 * Executes statements, macros and loops.
 *
 * Scopes: `set` writes to the innermost scope. Each pass of a loop, each macro call and each with, filter, call, set
 * and autoescape block has a scope of its own; `if` does not. Text that was rendered under autoescape is Markup,
 * because it is escaped already. */
#include "template/builtin.h"

static const whit_text loop_name = {.bytes = "loop", .n_bytes = 4, .n_points = 4};

static whit_status print_value(whit_machine *m, whit_datum value)
{
    const whit_text *text;
    if (m->autoescape) WHIT_TRY(whit_machine_escape_html(m, value, &value));
    WHIT_TRY(whit_machine_str(m, value, &text));
    if (!whit_builder_text(m->out, text)) {
        whit_datum ignored;
        return whit_machine_build_end(m, m->out, &ignored);
    }
    return whit_machine_spend(m, text->n_bytes / 64);
}

static whit_status assign(whit_machine *m, const whit_node *target, whit_datum value)
{
    if (target->kind == WHIT_NODE_NAME) return whit_machine_bind(m, m->scope, target->text, value);
    if (target->kind == WHIT_NODE_MEMBER) {
        whit_datum space;
        WHIT_TRY(whit_machine_evaluate(m, target->b, &space));
        if (space.kind != WHIT_DATUM_NAMESPACE)
            return whit_machine_raise_type(m, "cannot assign attribute on non-namespace object");
        return whit_dict_set(m->pool, space.dict, whit_datum_text(target->text), value) ? WHIT_OK
                                                                                        : whit_machine_raise_memory(m);
    }
    whit_list list;
    WHIT_TRY(whit_machine_items(m, value, &list));
    if (list.n != target->n_items)
        return whit_machine_raise_type(m, "cannot unpack %zu values into %zu targets", list.n, target->n_items);
    for (size_t i = 0; i < list.n; i++) WHIT_TRY(assign(m, target->items[i], list.items[i]));
    return WHIT_OK;
}

static whit_status in_new_scope(whit_machine *m, whit_scope *parent, const whit_node *body)
{
    whit_scope *outer = m->scope;
    m->scope = whit_machine_new_scope(m, parent);
    whit_status status = m->scope ? whit_machine_execute(m, body) : whit_machine_raise_memory(m);
    m->scope = outer;
    return status;
}

whit_status whit_machine_render_block(whit_machine *m, const whit_node *body, whit_scope *scope, whit_datum *result)
{
    whit_builder b = whit_machine_build(m), *outer = m->out;
    m->out = &b;
    whit_status status = in_new_scope(m, scope, body);
    m->out = outer;
    b.markup = m->autoescape;
    return status == WHIT_OK ? whit_machine_build_end(m, &b, result) : status;
}

/* Renders a block's body and applies its chain of filters, if it has one. */
static whit_status filter_block(whit_machine *m, const whit_node *node, whit_datum *result)
{
    WHIT_TRY(whit_machine_render_block(m, node->d, m->scope, result));
    if (!node->b) return WHIT_OK;
    whit_datum outer = m->captured;
    m->captured = *result;
    WHIT_TRY(whit_machine_evaluate(m, node->b, result));
    m->captured = outer;
    return WHIT_OK;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static whit_status passes_filter(whit_machine *m, whit_loop *loop, whit_datum item, bool *passes)
{
    *passes = true;
    if (!loop->node->c || loop->is_filtered) return WHIT_OK;
    whit_scope *outer = m->scope;
    whit_datum condition;
    m->scope = whit_machine_new_scope(m, loop->scope);
    if (!m->scope) return whit_machine_raise_memory(m);
    WHIT_TRY(assign(m, loop->node->a, item));
    WHIT_TRY(whit_machine_evaluate(m, loop->node->c, &condition));
    *passes = whit_datum_is_true(condition);
    m->scope = outer;
    return WHIT_OK;
}

/* Sets loop->following to the next item that passes the loop's filter; has_following stays false if no item is left. */
static whit_status peek(whit_machine *m, whit_loop *loop)
{
    while (!loop->has_following && loop->next < loop->n_items) {
        whit_datum item = loop->items[loop->next++];
        WHIT_TRY(passes_filter(m, loop, item, &loop->has_following));
        if (loop->has_following) loop->following = item;
    }
    return WHIT_OK;
}

/* Computes the number of items of the whole loop. This applies the loop's filter to all remaining items. */
static whit_status loop_length(whit_machine *m, whit_loop *loop, size_t *n)
{
    if (loop->node->c && !loop->is_filtered) {
        whit_datum rest;
        size_t n_rest = 0;
        WHIT_TRY(whit_machine_new_list(m, NULL, loop->n_items - loop->next, &rest));
        for (size_t i = loop->next; i < loop->n_items; i++) {
            bool passes;
            WHIT_TRY(passes_filter(m, loop, loop->items[i], &passes));
            if (passes) rest.list->items[n_rest++] = loop->items[i];
        }
        loop->items = rest.list->items;
        loop->n_items = n_rest;
        loop->next = 0;
        loop->is_filtered = true;
    }
    *n = loop->index + 1 + loop->has_following + (loop->n_items - loop->next);
    return WHIT_OK;
}

whit_status whit_machine_loop_attribute(whit_machine *m, whit_loop *loop, const whit_text *name, bool *found,
                                        whit_datum *result)
{
    size_t n;
    *found = true;
    if (whit_text_is(name, "index")) {
        *result = whit_datum_int((int64_t)loop->index + 1);
    } else if (whit_text_is(name, "index0")) {
        *result = whit_datum_int((int64_t)loop->index);
    } else if (whit_text_is(name, "first")) {
        *result = whit_datum_bool(loop->index == 0);
    } else if (whit_text_is(name, "last")) {
        WHIT_TRY(peek(m, loop));
        *result = whit_datum_bool(!loop->has_following);
    } else if (whit_text_is(name, "length") || whit_text_is(name, "revindex") || whit_text_is(name, "revindex0")) {
        WHIT_TRY(loop_length(m, loop, &n));
        size_t done = whit_text_is(name, "length") ? 0 : loop->index + whit_text_is(name, "revindex0");
        *result = whit_datum_int((int64_t)(n - done));
    } else if (whit_text_is(name, "previtem")) {
        *result = loop->has_previous ? loop->previous : whit_datum_undefined(NULL);
    } else if (whit_text_is(name, "nextitem")) {
        WHIT_TRY(peek(m, loop));
        *result = loop->has_following ? loop->following : whit_datum_undefined(NULL);
    } else if (whit_text_is(name, "depth") || whit_text_is(name, "depth0")) {
        *result = whit_datum_int(loop->depth + whit_text_is(name, "depth"));
    } else {
        *found = false;
    }
    return WHIT_OK;
}

static whit_status run_pass(whit_machine *m, whit_loop *loop)
{
    m->scope = whit_machine_new_scope(m, loop->scope);
    if (!m->scope) return whit_machine_raise_memory(m);
    WHIT_TRY(whit_machine_spend(m, 1));
    WHIT_TRY(assign(m, loop->node->a, loop->current));
    WHIT_TRY(whit_machine_bind(m, m->scope, &loop_name, (whit_datum){.kind = WHIT_DATUM_LOOP, .loop = loop}));
    return whit_machine_execute(m, loop->node->d);
}

static whit_status run_loop(whit_machine *m, const whit_node *node, whit_scope *scope, whit_datum iterable,
                            uint32_t depth)
{
    whit_list list;
    whit_scope *outer = m->scope;
    WHIT_TRY(whit_machine_items(m, iterable, &list));
    whit_loop *loop = whit_datum_pool_zalloc(m->pool, 1, sizeof *loop);
    if (!loop) return whit_machine_raise_memory(m);
    *loop = (whit_loop){.node = node, .scope = scope, .items = list.items, .n_items = list.n, .depth = depth};
    bool completed = false;
    for (;; loop->index++) {
        WHIT_TRY(peek(m, loop));
        if (!loop->has_following) break;
        loop->previous = loop->current;
        loop->has_previous = loop->index > 0;
        loop->current = loop->following;
        loop->has_following = false;
        WHIT_TRY(run_pass(m, loop));
        bool stop = m->flow == WHIT_FLOW_BREAK;
        /* As in Jinja, the else branch runs unless at least one pass has ended without break or continue. */
        completed |= m->flow == WHIT_FLOW_ON;
        m->flow = WHIT_FLOW_ON;
        if (stop) break;
    }
    m->scope = outer;
    return completed || !node->e ? WHIT_OK : in_new_scope(m, scope, node->e);
}

whit_status whit_machine_call_loop(whit_machine *m, const whit_loop *loop, const whit_arguments *arguments,
                                   whit_datum *result)
{
    if (!loop->node->flag)
        return whit_machine_raise_type(m, "the loop must have the 'recursive' marker to be called recursively");
    if (arguments->n_positional != 1 || arguments->n_named)
        return whit_machine_raise_type(m, "loop() takes one iterable");
    whit_builder b = whit_machine_build(m), *outer = m->out;
    m->out = &b;
    WHIT_TRY(whit_machine_enter(m));
    WHIT_TRY(run_loop(m, loop->node, loop->scope, arguments->positional[0], loop->depth + 1));
    m->depth--;
    m->out = outer;
    b.markup = m->autoescape;
    return whit_machine_build_end(m, &b, result);
}

/* ---- macros ---------------------------------------------------------------------------------- */

static whit_status new_macro(whit_machine *m, const whit_node *node, whit_datum *value)
{
    whit_macro *macro = whit_datum_pool_zalloc(m->pool, 1, sizeof *macro);
    if (!macro) return whit_machine_raise_memory(m);
    *macro = (whit_macro){node->macro, node->d, m->scope};
    *value = (whit_datum){.kind = WHIT_DATUM_MACRO, .macro = macro};
    return WHIT_OK;
}

static const struct whit_named_value *find_named(const whit_arguments *arguments, const whit_text *name)
{
    for (size_t i = 0; i < arguments->n_named; i++)
        if (whit_text_equal(arguments->named[i].name, name)) return &arguments->named[i];
    return NULL;
}

static bool is_parameter(const whit_signature *s, const whit_text *name)
{
    for (size_t i = 0; i < s->n_parameters; i++)
        if (whit_text_equal(s->parameters[i], name)) return true;
    return false;
}

static whit_status missing_parameter(whit_machine *m, const whit_text *name, whit_datum *value)
{
    whit_builder b = whit_machine_build(m);
    whit_datum text;
    whit_builder_format(&b, "parameter '%.*s' was not provided", (int)(name->n_bytes < 80 ? name->n_bytes : 80),
                        name->bytes);
    WHIT_TRY(whit_machine_build_end(m, &b, &text));
    *value = whit_datum_undefined(text.text);
    return WHIT_OK;
}

/* Binds the declared parameters in the current scope. A default value may use the parameters before it. */
static whit_status bind_parameters(whit_machine *m, const whit_signature *s, const whit_arguments *arguments)
{
    for (size_t i = 0; i < s->n_parameters; i++) {
        const struct whit_named_value *named = find_named(arguments, s->parameters[i]);
        whit_datum value;
        if (i < arguments->n_positional) {
            if (named) return whit_machine_raise_type(m, "a macro got multiple values for one argument");
            value = arguments->positional[i];
        } else if (named)
            value = named->value;
        else if (s->defaults[i])
            WHIT_TRY(whit_machine_evaluate(m, s->defaults[i], &value));
        else
            WHIT_TRY(missing_parameter(m, s->parameters[i], &value));
        WHIT_TRY(whit_machine_bind(m, m->scope, s->parameters[i], value));
    }
    return WHIT_OK;
}

/* Binds `caller`, `varargs` and `kwargs` if the body uses them. A surplus positional argument is an error unless the
 * body uses `varargs`, a surplus named one unless it uses `kwargs`. */
static whit_status bind_extras(whit_machine *m, const whit_signature *s, const whit_arguments *arguments)
{
    static const whit_text caller_name = {.bytes = "caller", .n_bytes = 6, .n_points = 6};
    static const whit_text varargs_name = {.bytes = "varargs", .n_bytes = 7, .n_points = 7};
    static const whit_text kwargs_name = {.bytes = "kwargs", .n_bytes = 6, .n_points = 6};
    whit_datum rest, named;
    if (!whit_datum_dict(m->pool, &named)) return whit_machine_raise_memory(m);
    bool binds_caller = s->uses_caller && !is_parameter(s, &caller_name);
    if (binds_caller) {
        const struct whit_named_value *caller = find_named(arguments, &caller_name);
        WHIT_TRY(whit_machine_bind(m, m->scope, &caller_name, caller ? caller->value : whit_datum_undefined(NULL)));
    }
    for (size_t i = 0; i < arguments->n_named; i++) {
        const struct whit_named_value *argument = &arguments->named[i];
        if (is_parameter(s, argument->name) || (binds_caller && whit_text_equal(argument->name, &caller_name)))
            continue;
        if (!s->uses_kwargs)
            return whit_machine_raise_type(m, "a macro takes no keyword argument '%.*s'", (int)argument->name->n_bytes,
                                           argument->name->bytes);
        if (!whit_dict_set(m->pool, named.dict, whit_datum_text(argument->name), argument->value))
            return whit_machine_raise_memory(m);
    }
    if (s->uses_kwargs) WHIT_TRY(whit_machine_bind(m, m->scope, &kwargs_name, named));
    size_t n = s->n_parameters < arguments->n_positional ? s->n_parameters : arguments->n_positional;
    if (!s->uses_varargs)
        return arguments->n_positional > n ? whit_machine_raise_type(m, "a macro takes not more than %zu arguments", n)
                                           : WHIT_OK;
    WHIT_TRY(whit_machine_new_tuple(m, arguments->positional + n, arguments->n_positional - n, &rest));
    return whit_machine_bind(m, m->scope, &varargs_name, rest);
}

whit_status whit_machine_call_macro(whit_machine *m, const whit_macro *macro, const whit_arguments *arguments,
                                    whit_datum *result)
{
    whit_scope *outer_scope = m->scope;
    whit_builder b = whit_machine_build(m), *outer = m->out;
    WHIT_TRY(whit_machine_enter(m));
    m->out = &b;
    m->scope = whit_machine_new_scope(m, macro->scope);
    if (!m->scope) return whit_machine_raise_memory(m);
    WHIT_TRY(bind_parameters(m, macro->signature, arguments));
    WHIT_TRY(bind_extras(m, macro->signature, arguments));
    WHIT_TRY(whit_machine_execute(m, macro->body));
    m->scope = outer_scope;
    m->out = outer;
    m->depth--;
    b.markup = m->autoescape;
    return whit_machine_build_end(m, &b, result);
}

/* ---- statements ------------------------------------------------------------------------------ */

static whit_status execute_with(whit_machine *m, const whit_node *node)
{
    whit_scope *outer = m->scope, *inner = whit_machine_new_scope(m, outer);
    if (!inner) return whit_machine_raise_memory(m);
    for (size_t i = 0; i + 1 < node->n_items; i += 2) {
        whit_datum value;
        /* The values are evaluated in the outer scope. */
        WHIT_TRY(whit_machine_evaluate(m, node->items[i + 1], &value));
        m->scope = inner;
        WHIT_TRY(assign(m, node->items[i], value));
        m->scope = outer;
    }
    m->scope = inner;
    WHIT_TRY(whit_machine_execute(m, node->d));
    m->scope = outer;
    return WHIT_OK;
}

static whit_status execute_if(whit_machine *m, const whit_node *node)
{
    while (node && node->kind == WHIT_NODE_IF) {
        whit_datum condition;
        WHIT_TRY(whit_machine_evaluate(m, node->a, &condition));
        if (whit_datum_is_true(condition)) return whit_machine_execute(m, node->b);
        node = node->c;
    }
    return node ? whit_machine_execute(m, node) : WHIT_OK;
}

static whit_status execute(whit_machine *m, const whit_node *node)
{
    whit_datum value;
    switch ((whit_node_kind)node->kind) {
    case WHIT_NODE_BODY:
        for (size_t i = 0; i < node->n_items && m->flow == WHIT_FLOW_ON; i++)
            WHIT_TRY(whit_machine_execute(m, node->items[i]));
        return WHIT_OK;
    case WHIT_NODE_DATA: {
        bool escape = m->autoescape; /* the template's own text is not escaped */
        m->autoescape = false;
        WHIT_TRY(print_value(m, whit_datum_text(node->text)));
        m->autoescape = escape;
        return WHIT_OK;
    }
    case WHIT_NODE_PRINT:
        for (size_t i = 0; i < node->n_items; i++) {
            WHIT_TRY(whit_machine_evaluate(m, node->items[i], &value));
            WHIT_TRY(print_value(m, value));
        }
        return WHIT_OK;
    case WHIT_NODE_IF: return execute_if(m, node);
    case WHIT_NODE_FOR:
        WHIT_TRY(whit_machine_evaluate(m, node->b, &value));
        return run_loop(m, node, m->scope, value, 0);
    case WHIT_NODE_SET: WHIT_TRY(whit_machine_evaluate(m, node->b, &value)); return assign(m, node->a, value);
    case WHIT_NODE_SET_BLOCK: WHIT_TRY(filter_block(m, node, &value)); return assign(m, node->a, value);
    case WHIT_NODE_FILTER_BLOCK: WHIT_TRY(filter_block(m, node, &value)); return print_value(m, value);
    case WHIT_NODE_MACRO:
        WHIT_TRY(new_macro(m, node, &value));
        return whit_machine_bind(m, m->scope, node->text, value);
    case WHIT_NODE_CALL_BLOCK: {
        whit_datum caller;
        WHIT_TRY(new_macro(m, node, &caller));
        WHIT_TRY(whit_machine_evaluate_call(m, node->a, &caller, &value));
        return print_value(m, value);
    }
    case WHIT_NODE_WITH: return execute_with(m, node);
    case WHIT_NODE_BLOCK: return in_new_scope(m, node->flag ? m->scope : m->root, node->d);
    case WHIT_NODE_SCOPE: return in_new_scope(m, m->scope, node->d);
    case WHIT_NODE_AUTOESCAPE: {
        bool outer = m->autoescape;
        WHIT_TRY(whit_machine_evaluate(m, node->a, &value));
        m->autoescape = whit_datum_is_true(value);
        WHIT_TRY(in_new_scope(m, m->scope, node->d));
        m->autoescape = outer;
        return WHIT_OK;
    }
    case WHIT_NODE_BREAK: m->flow = WHIT_FLOW_BREAK; return WHIT_OK;
    case WHIT_NODE_CONTINUE: m->flow = WHIT_FLOW_CONTINUE; return WHIT_OK;
    case WHIT_NODE_NO_LOADER: return whit_machine_raise(m, WHIT_ERROR_UNSUPPORTED, "other templates cannot be loaded");
    default: return whit_machine_raise_type(m, "not a statement");
    }
}

whit_status whit_machine_execute(whit_machine *m, const whit_node *node)
{
    whit_status status = whit_machine_enter(m);
    if (status == WHIT_OK) status = whit_machine_spend(m, 1);
    if (status == WHIT_OK) status = execute(m, node);
    if (status == WHIT_OK) {
        m->depth--;
    } else if (!m->has_place) {
        m->has_place = true;
        m->offset = node->offset;
    }
    return status;
}
