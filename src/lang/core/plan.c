/* SPDX-License-Identifier: MIT
 * Prints programs as text after the compiler's optimisations. */
#include "lang/core/builtins.h"
#include "lang/core/code.h"

static const char *const op_names[N_OPS] = {"+",    "-",       "*",    "/",     "min",   "max",  "cut",   "<",
                                            "<=",   ">",       ">=",   "==",    "!=",    "%",    "<<",    ">>",
                                            "&",    "|",       "^",    "-",     "abs",   "sqrt", "exp",   "log",
                                            "tanh", "sigmoid", "silu", "relu",  "floor", "ceil", "round", "sin",
                                            "cos",  "not",     "~",    "float", "int"};

static void expression(whit_buf *out, const lang_node *e);

static void print_list(whit_buf *out, const lang_node *e)
{
    for (; e; e = e->next) {
        expression(out, e);
        if (e->next) whit_buf_append_str(out, ", ");
    }
}

static void slot(whit_buf *out, const lang_node *node)
{
    whit_buf_printf(out, "%c%u", node->global ? 'g' : 's', node->slot);
}

static void expression(whit_buf *out, const lang_node *e)
{
    switch (e->kind) {
    case NODE_INT: whit_buf_printf(out, "%lld", (long long)e->i); return;
    case NODE_FLOAT: whit_buf_printf(out, "%.17g", e->f); return;
    case NODE_SLOT: slot(out, e); return;
    case NODE_KEEP:
        whit_buf_append_str(out, "(");
        slot(out, e);
        whit_buf_append_str(out, " := ");
        break;
    case NODE_UNARY: whit_buf_printf(out, "%s(", op_names[e->op]); break;
    case NODE_BINARY:
    case NODE_ALSO:
    case NODE_ELSE:
        whit_buf_append_str(out, "(");
        expression(out, e->a);
        const char *sign;
        if (e->kind == NODE_ALSO)
            sign = "and";
        else if (e->kind == NODE_ELSE)
            sign = "or";
        else
            sign = op_names[e->op];
        whit_buf_printf(out, " %s ", sign);
        expression(out, e->b);
        whit_buf_append_str(out, ")");
        return;
    case NODE_CALL: whit_buf_printf(out, "%s(", e->function->name); break;
    case NODE_BUILTIN: whit_buf_printf(out, "%s(", lang_builtin_name(e->op)); break;
    case NODE_LIST: whit_buf_append_str(out, "list("); break;
    case NODE_INDEX:
    case NODE_SLICE:
        expression(out, e->a);
        whit_buf_append_str(out, "[");
        expression(out, e->b);
        if (e->c) {
            whit_buf_append_str(out, "..");
            expression(out, e->c);
        }
        whit_buf_append_str(out, "]");
        return;
    default: return;
    }
    print_list(out, e->a);
    whit_buf_append_str(out, ")");
}

static void print_statement(whit_buf *out, const lang_node *s, int depth)
{
    if (s->kind == NODE_BLOCK) {
        for (const lang_node *inner = s->a; inner; inner = inner->next) print_statement(out, inner, depth);
        return;
    }
    whit_buf_printf(out, "%*s", 4 * depth, "");
    switch (s->kind) {
    case NODE_ASSIGN:
    case NODE_STORE:
        slot(out, s);
        if (s->b) {
            whit_buf_append_str(out, "[");
            expression(out, s->b);
            whit_buf_append_str(out, "]");
        }
        whit_buf_append_str(out, " = ");
        expression(out, s->a);
        if (s->type == WHIT_LANG_VEC && s->kind == NODE_ASSIGN &&
            (s->a->kind == NODE_BINARY || s->a->kind == NODE_UNARY))
            whit_buf_append_str(out, "   # one loop over chunks");
        break;
    case NODE_IF:
    case NODE_WHILE:
        whit_buf_append_str(out, s->kind == NODE_IF ? "if " : "while ");
        expression(out, s->a);
        whit_buf_append_str(out, "\n");
        print_statement(out, s->b, depth + 1);
        if (!s->c) return;
        whit_buf_printf(out, "%*selse\n", 4 * depth, "");
        print_statement(out, s->c, depth + 1);
        return;
    case NODE_FOR:
    case NODE_AFFINE:
        whit_buf_append_str(out, "for ");
        slot(out, s);
        whit_buf_append_str(out, " in ");
        expression(out, s->a);
        whit_buf_append_str(out, "..");
        expression(out, s->b);
        if (s->kind == NODE_AFFINE) {
            whit_buf_printf(out, "   # closed form, a matrix of %u rows\n", s->affine->n);
            return;
        }
        whit_buf_append_str(out, "\n");
        print_statement(out, s->c, depth + 1);
        return;
    case NODE_BREAK: whit_buf_append_str(out, "break"); break;
    case NODE_CONTINUE: whit_buf_append_str(out, "continue"); break;
    case NODE_RETURN:
    case NODE_PRINT:
        whit_buf_append_str(out, s->kind == NODE_PRINT ? "print " : "return ");
        print_list(out, s->a);
        break;
    default: expression(out, s->a); break;
    }
    whit_buf_append_str(out, "\n");
}

bool whit_lang_asm(const whit_lang *vm, whit_buf *out)
{
    if (vm->n_jit_pages > vm->n_jit_before)
        vm->options.jit->list(vm, vm->n_jit_before, out);
    else
        whit_buf_append_str(out,
                            "no machine code: nothing that runs is a loop over integers or arithmetic of vectors, or "
                            "the tier is lower\n");
    return !out->failed;
}

bool whit_lang_plan(const whit_lang *vm, whit_buf *out)
{
    for (const lang_function *f = vm->scope.functions; f; f = f->next)
        for (const lang_function *instance = f->instances; instance; instance = instance->next) {
            whit_buf_printf(out, "fn %s(", f->name);
            for (uint32_t i = 0; i < instance->n_parameters; i++)
                whit_buf_printf(out, "%s%s", i ? ", " : "", whit_lang_type_name(instance->types[i]));
            whit_buf_append_str(out, ")\n");
            print_statement(out, instance->code, 1);
        }
    if (vm->program) print_statement(out, vm->program, 0);
    return !out->failed;
}
