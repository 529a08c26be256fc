/* SPDX-License-Identifier: MIT */
#include "template/builtin.h"

static const whit_builtin *find_builtin(const whit_builtin *table, const whit_text *name)
{
    for (; table->name; table++)
        if (whit_text_is(name, table->name)) return table;
    return NULL;
}

const whit_builtin *whit_builtin_filter(const whit_text *name)
{
    const whit_builtin *builtin = find_builtin(whit_text_filters, name);
    if (!builtin) builtin = find_builtin(whit_list_filters, name);
    return builtin ? builtin : find_builtin(whit_datum_filters, name);
}

const whit_builtin *whit_builtin_test(const whit_text *name)
{
    return find_builtin(whit_tests, name);
}

const whit_builtin *whit_builtin_function(const whit_text *name)
{
    return find_builtin(whit_functions, name);
}

const whit_builtin *whit_builtin_method(whit_datum self, const whit_text *name)
{
    switch (self.kind) {
    case WHIT_DATUM_TEXT: return find_builtin(self.text->is_bytes ? whit_bytes_methods : whit_str_methods, name);
    case WHIT_DATUM_DICT: return find_builtin(whit_dict_methods, name);
    case WHIT_DATUM_LIST: return find_builtin(whit_sequence_methods, name);
    case WHIT_DATUM_TUPLE:
    case WHIT_DATUM_RANGE: return whit_text_is(name, "copy") ? NULL : find_builtin(whit_sequence_methods, name);
    case WHIT_DATUM_FLOAT: return find_builtin(whit_float_methods, name);
    case WHIT_DATUM_LOOP: return find_builtin(whit_loop_methods, name);
    default: return NULL;
    }
}

/* Returns whether the first parameter in the list `parameters` has this name. */
static bool has_name(const char *parameters, const whit_text *name)
{
    size_t n = strcspn(parameters, " ?");
    return n == name->n_bytes && memcmp(parameters, name->bytes, n) == 0;
}

static whit_status bind_named(whit_machine *m, const whit_builtin *builtin, const struct whit_named_value *named,
                              whit_builtin_frame *call)
{
    const char *at = builtin->parameters;
    for (size_t i = 0; *at && *at != '/'; i++) {
        if (has_name(at, named->name)) {
            if (call->given[i])
                return whit_machine_raise_type(m, "%s() got multiple values for one argument", builtin->name);
            call->values[i] = named->value;
            call->given[i] = true;
            return WHIT_OK;
        }
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    return whit_machine_raise_type(m, "%s() got an unexpected keyword argument '%.*s'", builtin->name,
                                   (int)named->name->n_bytes, named->name->bytes);
}

static whit_status bind(whit_machine *m, const whit_builtin *builtin, const whit_arguments *arguments,
                        whit_builtin_frame *call)
{
    if (builtin->parameters[0] == '*') return WHIT_OK;
    size_t n = 0;
    const char *at = builtin->parameters + (builtin->parameters[0] == '/');
    for (const char *c = at; *c; n++) {
        c += strcspn(c, " ");
        c += *c == ' ';
    }
    if (arguments->n_positional > n)
        return whit_machine_raise_type(m, "%s() takes at most %zu arguments", builtin->name, n);
    for (size_t i = 0; i < arguments->n_positional; i++) {
        call->values[i] = arguments->positional[i];
        call->given[i] = true;
    }
    for (size_t i = 0; i < arguments->n_named; i++) WHIT_TRY(bind_named(m, builtin, &arguments->named[i], call));
    for (size_t i = 0; i < n; i++) {
        size_t length = strcspn(at, " ");
        if (!call->given[i] && at[length - 1] != '?')
            return whit_machine_raise_type(m, "%s() misses an argument", builtin->name);
        at += length + (at[length] == ' ');
    }
    return WHIT_OK;
}

whit_status whit_builtin_call(whit_machine *m, const whit_builtin *builtin, whit_datum self,
                              const whit_arguments *arguments, whit_datum *result)
{
    whit_builtin_frame call = {.builtin = builtin, .self = self, .arguments = arguments};
    WHIT_TRY(bind(m, builtin, arguments, &call));
    return builtin->run(m, &call, result);
}

whit_status whit_builtin_want_text(whit_machine *m, const whit_builtin_frame *call, size_t i, const whit_text **text)
{
    if (!whit_datum_is_str(call->values[i]))
        return whit_machine_raise_type(m, "%s() wants a str, not %s", call->builtin->name,
                                       whit_datum_type(call->values[i]));
    *text = call->values[i].text;
    return WHIT_OK;
}

whit_status whit_builtin_want_int(whit_machine *m, const whit_builtin_frame *call, size_t i, int64_t fallback,
                                  int64_t *integer)
{
    *integer = fallback;
    if (!call->given[i] || whit_datum_as_int(call->values[i], integer)) return WHIT_OK;
    return whit_machine_raise_type(m, "%s() wants an integer, not %s", call->builtin->name,
                                   whit_datum_type(call->values[i]));
}

static whit_status select_part(whit_machine *m, whit_datum *item, const whit_text *path, size_t begin, size_t end,
                               const whit_datum *fallback)
{
    const whit_text *name = whit_text_slice(m->pool, path, begin, end);
    if (!name) return whit_machine_raise_memory(m);
    whit_datum key = whit_datum_text(name);
    bool digits = end > begin;
    for (size_t i = begin; i < end; i++) digits = digits && path->bytes[i] >= '0' && path->bytes[i] <= '9';
    if (digits) whit_integer_parse(name, 10, &key);
    WHIT_TRY(whit_machine_item(m, *item, key, item));
    if (fallback && item->kind == WHIT_DATUM_UNDEFINED) *item = *fallback;
    return WHIT_OK;
}

whit_status whit_machine_select_attribute(whit_machine *m, whit_datum item, whit_datum attribute,
                                          const whit_datum *fallback, whit_datum *result)
{
    *result = item;
    WHIT_TRY(whit_machine_spend(m, 1));
    if (attribute.kind == WHIT_DATUM_NONE) return WHIT_OK;
    if (!whit_datum_is_str(attribute)) {
        WHIT_TRY(whit_machine_item(m, item, attribute, result));
        if (fallback && result->kind == WHIT_DATUM_UNDEFINED) *result = *fallback;
        return WHIT_OK;
    }
    for (size_t begin = 0, end; begin <= attribute.text->n_bytes; begin = end + 1) {
        const char *dot = attribute.text->n_bytes > begin
            ? memchr(attribute.text->bytes + begin, '.', attribute.text->n_bytes - begin)
            : NULL;
        end = dot ? (size_t)(dot - attribute.text->bytes) : attribute.text->n_bytes;
        WHIT_TRY(select_part(m, result, attribute.text, begin, end, fallback));
    }
    return WHIT_OK;
}
