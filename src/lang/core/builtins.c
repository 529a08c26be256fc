/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "lang/core/builtins.h"

/* Lists the functions of the language, with their signatures. A signature consists of the argument types, ':' and the
 * type of the result: i is an integer, f a float, v a vector, q a quaternary vector; '*' means that the preceding type
 * occurs once or more. */
static const struct {
    const char *name, *signatures;
    bool is_op; /* the function is an operation on elements (lang_op) */
    uint8_t number;
} functions[] = {
    {"abs", "i:i f:f v:v q:q", true, OP_ABS},
    {"min", "ii:i ff:f vf:v fv:v vv:v qq:q", true, OP_MIN},
    {"max", "ii:i ff:f vf:v fv:v vv:v qq:q", true, OP_MAX},
    {"cut", "ff:f vf:v fv:v vv:v", true, OP_CUT},
    {"sqrt", "f:f v:v", true, OP_SQRT},
    {"exp", "f:f v:v", true, OP_EXP},
    {"log", "f:f v:v", true, OP_LOG},
    {"tanh", "f:f v:v", true, OP_TANH},
    {"sigmoid", "f:f v:v", true, OP_SIGMOID},
    {"silu", "f:f v:v q:q", true, OP_SILU},
    {"relu", "f:f v:v", true, OP_RELU},
    {"floor", "f:f v:v", true, OP_FLOOR},
    {"ceil", "f:f v:v", true, OP_CEIL},
    {"round", "f:f v:v", true, OP_ROUND},
    {"sin", "f:f v:v", true, OP_SIN},
    {"cos", "f:f v:v", true, OP_COS},
    {"float", "i:f f:f", true, OP_FLOAT},
    {"int", "f:i i:i", true, OP_INT},
    {"len", "v:i q:i", false, FN_LEN},
    {"vec", "if:v q:v", false, FN_VEC},
    {"range", "i:v", false, FN_RANGE},
    {"sum", "v:f q:f", false, FN_SUM},
    {"mean", "v:f q:f", false, FN_MEAN},
    {"largest", "v:f", false, FN_LARGEST},
    {"smallest", "v:f", false, FN_SMALLEST},
    {"dot", "vv:f qq:f", false, FN_DOT},
    {"argmax", "v:i", false, FN_ARGMAX},
    {"softmax", "v:v", false, FN_SOFTMAX},
    {"rmsnorm", "v:v vv:v q:q qq:q", false, FN_RMSNORM},
    {"quat", "v:q vi:q", false, FN_QUAT},
    {"scale", "q:i", false, FN_SCALE},
    {"swiglu", "vv:v qq:q", false, FN_SWIGLU},
    {"select", "vvv:v qqq:q", false, FN_SELECT},
    {"count", "q:i v:i", false, FN_COUNT},
    {"gemv", "vv:v qq:v", false, FN_GEMV},
    {"concat", "vv:v", false, FN_CONCAT},
    {"sort", "v:v", false, FN_SORT},
    {"permute", "qi:q", false, FN_PERMUTE},
    {"bundle", "q*:q", false, FN_BUNDLE},
    {"hamming", "qq:i", false, FN_HAMMING},
    {"cosine", "qq:f vv:f", false, FN_COSINE},
};
#define N_FUNCTIONS (sizeof functions / sizeof *functions)

static const char letters[] = "-ifthvq"; /* letter of each whit_lang_type */

bool lang_is_builtin(const char *name)
{
    for (size_t i = 0; i < N_FUNCTIONS; i++)
        if (*functions[i].name == *name && strcmp(functions[i].name, name) == 0) return true;
    return false;
}

const char *lang_builtin_name(lang_builtin builtin)
{
    for (size_t i = 0; i < N_FUNCTIONS; i++)
        if (!functions[i].is_op && functions[i].number == builtin) return functions[i].name;
    return "?";
}

/* Returns whether a signature accepts these arguments; with `widen`, integers are accepted as floats. */
static bool fits(const char *signature, const lang_node *argument, bool widen)
{
    for (; *signature != ':'; signature++) {
        bool any = signature[1] == '*';
        uint32_t n = 0;
        do {
            if (!argument) break;
            char wanted = *signature, is = letters[argument->type];
            if (is != wanted && !(widen && is == 'i' && wanted == 'f')) break;
            argument = argument->next;
            n++;
        } while (any);
        if (!n) return false;
        if (any) signature++;
    }
    return !argument;
}

bool lang_find_host(const whit_lang_host *host, const char *name, uint32_t *function)
{
    for (uint32_t i = 0; host && i < host->n_functions; i++)
        if (*host->functions[i].name == *name && strcmp(host->functions[i].name, name) == 0) {
            *function = i;
            return true;
        }
    return false;
}

/* Describes the types of a signature up to ':' as text, such as "an integer, a text". */
static const char *describe_signature(const char *signature, char out[200])
{
    out[0] = 0;
    for (; *signature && *signature != ':'; signature++) {
        if (*signature == '*') {
            snprintf(out + strlen(out), 200 - strlen(out), ", and more");
            continue;
        }
        const char *letter = strchr(letters, *signature);
        whit_lang_type type = letter ? (whit_lang_type)(letter - letters) : WHIT_LANG_NONE;
        snprintf(out + strlen(out), 200 - strlen(out), "%s%s", *out ? ", " : "", whit_lang_type_name(type));
    }
    return *out ? out : "nothing";
}

LANG_APART whit_status lang_check_host(lang_source *source, lang_arena *arena, const whit_lang_host *host,
                                       lang_node *call)
{
    const whit_lang_host_function *function = &host->functions[call->slot];
    char wanted[200], given[64] = "", has[200];
    const char *s = function->signature;
    for (const lang_node *a = call->a; a && strlen(given) < 50; a = a->next) strncat(given, &letters[a->type], 1);
    if (!fits(s, call->a, true))
        return lang_fail(source, call->line, call->column, "'%s' takes %s, not %s", function->name,
                         describe_signature(s, wanted), describe_signature(given, has));
    for (lang_node **a = &call->a; *a; a = &(*a)->next, s++)
        if (*s == 'f' && (*a)->type == WHIT_LANG_INT && !lang_to_float(arena, a))
            return lang_fail(source, call->line, call->column, "the program is too large");
    call->type = (uint8_t)(strchr(letters, strchr(function->signature, ':')[1]) - letters);
    call->kind = NODE_HOST;
    return WHIT_OK;
}

bool lang_to_float(lang_arena *arena, lang_node **node)
{
    lang_node *convert = lang_arena_take(arena, sizeof *convert);
    if (!convert) return false;
    *convert = (lang_node){.kind = NODE_UNARY,
                           .op = OP_FLOAT,
                           .type = WHIT_LANG_FLOAT,
                           .line = (*node)->line,
                           .column = (*node)->column,
                           .a = *node,
                           .next = (*node)->next};
    (*node)->next = NULL;
    *node = convert;
    return true;
}

/* Reports a call whose arguments match none of the function's signatures. */
static LANG_APART whit_status misfit(lang_source *source, const lang_node *call, const char *signatures)
{
    char given[64] = "", has[200], wanted[300] = "", one[200];
    for (const lang_node *a = call->a; a && strlen(given) < 50; a = a->next) strncat(given, &letters[a->type], 1);
    for (const char *s = signatures; s; s = strchr(s, ' ') ? strchr(s, ' ') + 1 : NULL) {
        size_t n = strlen(wanted);
        snprintf(wanted + n, sizeof wanted - n, "%s(%s)", n ? " or " : "", describe_signature(s, one));
    }
    return lang_fail(source, call->line, call->column, "'%s' takes %s, not (%s)", call->name, wanted,
                     describe_signature(given, has));
}

whit_status lang_check_builtin(lang_source *source, lang_arena *arena, lang_node *call)
{
    size_t k = 0;
    while (strcmp(functions[k].name, call->name) != 0) k++;
    const char *found = NULL;
    uint32_t n_arguments = 0;
    for (const lang_node *a = call->a; a; a = a->next) n_arguments++;
    if (n_arguments > LANG_MAX_ARGUMENTS)
        return lang_fail(source, call->line, call->column, "a call has more than %d arguments", LANG_MAX_ARGUMENTS);
    for (int widen = 0; widen < 2 && !found; widen++)
        for (const char *s = functions[k].signatures; s && !found; s = strchr(s, ' ') ? strchr(s, ' ') + 1 : NULL)
            if (fits(s, call->a, widen)) found = s;
    if (!found) return misfit(source, call, functions[k].signatures);
    uint8_t result = (uint8_t)(strchr(letters, strchr(found, ':')[1]) - letters);
    for (lang_node **a = &call->a; *a && *found != ':'; a = &(*a)->next) {
        if (*found == 'f' && (*a)->type == WHIT_LANG_INT && !lang_to_float(arena, a))
            return lang_fail(source, call->line, call->column, "the program is too large");
        if (found[1] != '*') found++;
    }
    call->type = result;
    call->op = functions[k].number;
    if (!functions[k].is_op) {
        call->kind = NODE_BUILTIN;
        call->function = NULL;
        return WHIT_OK;
    }
    lang_node *a = call->a, *b = a->next;
    a->next = NULL;
    call->kind = b ? NODE_BINARY : NODE_UNARY;
    call->a = a;
    call->b = b;
    if ((call->op == OP_FLOAT || call->op == OP_INT) && a->type == result) {
        lang_node *next = call->next; /* float() and int() of an argument that already has that type: the call is
                                       * replaced by the argument */
        *call = *a;
        call->next = next;
    }
    return WHIT_OK;
}
