/* SPDX-License-Identifier: MIT
 * Translates a family's program to C when whit is built: compile NAME PROGRAM.ndl OUT.c. Every function becomes a C
 * function, and every call of a host function becomes a statement, in the program's order. Features that families do
 * not need (vectors, printing) are refused; the error states the line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/items.h"
#include "kernels/quat/quat.h"
#include "lang/core/vm.h"
#include "model/config.h"
#include "model/families_compiled.h"

/* This program links the library's objects, which refer to these functions; they are generated only by this program. */
#define NOT_YET(family)                                                                                                \
    whit_status family(const whit_family_run *run)                                                                     \
    {                                                                                                                  \
        return whit_fail(run->error, WHIT_ERROR_UNSUPPORTED, "families are not compiled yet");                         \
    }
NOT_YET(whit_family_decoder)
NOT_YET(whit_family_gemma)
NOT_YET(whit_family_hybrid)
NOT_YET(whit_family_olmo)
NOT_YET(whit_family_bert)

struct writer {
    whit_buf *out;
    const char *file;
    const whit_lang *vm;
    const lang_function *function; /* the function being written; NULL: the program's outermost level */
    uint32_t n_values;             /* number of result variables in the current function so far */
};

_Noreturn static void refuse(const struct writer *w, const lang_node *at, const char *what)
{
    fprintf(stderr, "%s:%u:%u: %s is not compiled in a family's program\n", w->file, at->line, at->column, what);
    exit(1);
}

static char letter_of(const struct writer *w, const lang_node *at, uint8_t type)
{
    if (type == WHIT_LANG_INT || type == WHIT_LANG_HOST) return 'i';
    if (type == WHIT_LANG_FLOAT) return 'f';
    if (type != WHIT_LANG_TEXT) refuse(w, at, "such a value");
    return 't';
}

static const char *member_of(char letter)
{
    if (letter == 'i') return "i";
    if (letter == 'f') return "f";
    return "text";
}

/* Returns the index of a function instance among all instances; it is part of the function's C name. */
static uint32_t number_of(const struct writer *w, const lang_function *wanted)
{
    uint32_t n = 0;
    for (const lang_function *f = w->vm->scope.functions; f; f = f->next)
        for (const lang_function *instance = f->instances; instance; instance = instance->next, n++)
            if (instance == wanted) return n;
    return n;
}

/* Results of calls are C variables, declared before the statement that uses them. `statements` writes these
 * declarations, `expression` writes the expression with the variables in place of the calls. Both walk the tree in the
 * same order. */
static void statements(struct writer *w, const lang_node *e);
static void expression(struct writer *w, const lang_node *e);

static bool calls(const lang_node *e)
{
    if (e->kind == NODE_HOST || e->kind == NODE_CALL) return true;
    return (e->a && calls(e->a)) || (e->b && calls(e->b));
}

/* Writes a call and the declaration of its result variable; the variable's number is stored in the node. */
static void value_of_call(struct writer *w, lang_node *e)
{
    uint32_t n = 0, number = w->n_values++;
    for (const lang_node *a = e->a; a; a = a->next, n++) statements(w, a);
    whit_buf_printf(w->out, "    whit_lang_argument v%u = {0}, a%u[] = {", number, number);
    for (const lang_node *a = e->a; a; a = a->next) {
        whit_buf_printf(w->out, "{.%s = ", member_of(letter_of(w, a, a->type)));
        expression(w, a);
        whit_buf_append_str(w->out, a->next ? "}, " : "}");
    }
    if (!n) whit_buf_append_str(w->out, "{0}");
    if (e->kind == NODE_HOST)
        whit_buf_printf(w->out, "};\n    WHIT_TRY(host(run, %u, a%u, &v%u, %u, %u));\n", e->slot, number, number,
                        e->line, e->column);
    else
        whit_buf_printf(w->out, "};\n    WHIT_TRY(function%u(run, g, a%u, %u, &v%u));\n", number_of(w, e->function),
                        number, n, number);
    e->i = number; /* the number of the variable replaces the node's own fields, which are not needed any more */
}

static void statements(struct writer *w, const lang_node *e)
{
    if (e->kind == NODE_HOST || e->kind == NODE_CALL) {
        value_of_call(w, (lang_node *)e);
        return;
    }
    if ((e->kind == NODE_ALSO || e->kind == NODE_ELSE) && calls(e->b)) refuse(w, e, "a call after 'and' or 'or'");
    if (e->a) statements(w, e->a);
    if (e->b) statements(w, e->b);
    if (e->kind == NODE_BINARY && (e->op == OP_DIV || e->op == OP_MOD) && e->a->type == WHIT_LANG_INT) {
        whit_buf_append_str(w->out, "    if (!(");
        expression(w, e->b);
        whit_buf_printf(w->out, ")) return divided(run, %u, %u);\n", e->line, e->column);
    }
}

static void text(struct writer *w, const char *s)
{
    whit_buf_append_str(w->out, "\"");
    for (; *s; s++) whit_buf_printf(w->out, "\\%03o", (unsigned char)*s);
    whit_buf_append_str(w->out, "\"");
}

static void write_place(struct writer *w, const lang_node *e)
{
    whit_buf_printf(w->out, "%c[%u].%s", e->global || !w->function ? 'g' : 's', e->slot,
                    member_of(letter_of(w, e, e->type)));
}

static void expression(struct writer *w, const lang_node *e)
{
    bool integer = e->a && e->a->type == WHIT_LANG_INT;
    switch (e->kind) {
    case NODE_INT: whit_buf_printf(w->out, "(int64_t)UINT64_C(%" PRIu64 ")", (uint64_t)e->i); return;
    case NODE_FLOAT: whit_buf_printf(w->out, "%a", e->f); return;
    case NODE_TEXT: text(w, e->name); return;
    case NODE_SLOT: write_place(w, e); return;
    case NODE_HOST:
    case NODE_CALL: whit_buf_printf(w->out, "v%" PRId64 ".%s", e->i, member_of(letter_of(w, e, e->type))); return;
    case NODE_UNARY:
        if (e->op == OP_FLOAT || e->op == OP_INT)
            whit_buf_append_str(w->out, e->op == OP_FLOAT ? "(double)(" : "lang_to_int(");
        else
            whit_buf_printf(w->out, "lang_%s_unary(%d, ", integer ? "i64" : "f64", e->op);
        break;
    case NODE_BINARY: {
        bool compares = !integer && e->type == WHIT_LANG_INT;
        const char *form = "f64_binary";
        if (integer)
            form = "i64_binary";
        else if (compares)
            form = "f64_compare";
        whit_buf_printf(w->out, "lang_%s(%d, ", form, e->op);
        break;
    }
    case NODE_ALSO:
    case NODE_ELSE: whit_buf_append_str(w->out, "("); break;
    default: refuse(w, e, "this");
    }
    expression(w, e->a);
    if (e->b) {
        const char *sign = ", ";
        if (e->kind == NODE_ALSO)
            sign = " && ";
        else if (e->kind == NODE_ELSE)
            sign = " || ";
        whit_buf_append_str(w->out, sign);
        expression(w, e->b);
    }
    whit_buf_append_str(w->out, ")");
}

static void write_statement(struct writer *w, const lang_node *s)
{
    if (s->kind == NODE_BLOCK) {
        for (const lang_node *inner = s->a; inner; inner = inner->next) write_statement(w, inner);
        return;
    }
    whit_buf_append_str(w->out, "    {\n");
    if (s->a && s->kind != NODE_WHILE) statements(w, s->a);
    switch (s->kind) {
    case NODE_ASSIGN:
        whit_buf_append_str(w->out, "    ");
        write_place(w, s);
        whit_buf_append_str(w->out, " = ");
        expression(w, s->a);
        whit_buf_append_str(w->out, ";\n");
        break;
    case NODE_EXPRESSION: break; /* `statements` has already written the calls */
    case NODE_IF:
        whit_buf_append_str(w->out, "    if (");
        expression(w, s->a);
        whit_buf_append_str(w->out, ") {\n");
        write_statement(w, s->b);
        whit_buf_append_str(w->out, "    }\n");
        if (!s->c) break;
        whit_buf_append_str(w->out, "    else {\n");
        write_statement(w, s->c);
        whit_buf_append_str(w->out, "    }\n");
        break;
    case NODE_FOR:
        statements(w, s->b);
        whit_buf_append_str(w->out, "    int64_t begin = ");
        expression(w, s->a);
        whit_buf_append_str(w->out, ", end = ");
        expression(w, s->b);
        whit_buf_append_str(w->out, ";\n    for (int64_t i = begin; i < end; i++) {\n");
        whit_buf_printf(w->out, "    %c[%u].i = i;\n", w->function ? 's' : 'g', s->slot);
        write_statement(w, s->c);
        whit_buf_append_str(w->out, "    }\n");
        break;
    case NODE_RETURN:
        whit_buf_printf(w->out, "    result->%s = ", member_of(letter_of(w, s->a, s->a->type)));
        expression(w, s->a);
        whit_buf_append_str(w->out, ";\n    return WHIT_OK;\n");
        break;
    case NODE_BREAK: whit_buf_append_str(w->out, "    break;\n"); break;
    case NODE_CONTINUE: whit_buf_append_str(w->out, "    continue;\n"); break;
    default: refuse(w, s, "this statement");
    }
    whit_buf_append_str(w->out, "    }\n");
}

/* Writes the head of a C function, for the function and for its prototype; prototypes are needed because functions may
 * call each other in any order. */
static void head_of_function(struct writer *w, const lang_function *f)
{
    whit_buf_printf(w->out,
                    "\nstatic whit_status function%u(const whit_family_run *run, whit_lang_argument *g, "
                    "const whit_lang_argument *a, uint32_t n, whit_lang_argument *result)",
                    number_of(w, f));
}

static void function(struct writer *w, const lang_function *f)
{
    w->function = f;
    w->n_values = 0;
    head_of_function(w, f);
    whit_buf_printf(w->out,
                    "\n{\n"
                    "    whit_lang_argument s[%u] = {0};\n    memcpy(s, a, n * sizeof *s);\n    (void)g;\n"
                    "    (void)run;\n    (void)result;\n",
                    f->n_slots ? f->n_slots : 1);
    write_statement(w, f->code);
    if (f->result == WHIT_LANG_NONE)
        whit_buf_append_str(w->out, "    return WHIT_OK;\n}\n");
    else
        whit_buf_append_str(w->out,
                            "    return whit_fail(run->error, WHIT_ERROR_ARGUMENT, \"a function ended without "
                            "returning a value\");\n}\n");
}

static void write_family(struct writer *w, const char *name, const char *file, uint32_t n_config)
{
    whit_buf_printf(w->out,
                    "/* Made of %s by families/compile.c. */\n#include \"lang/core/scalar.h\"\n"
                    "#include \"model/families_compiled.h\"\n\n"
                    "static inline whit_status host(const whit_family_run *run, uint32_t function, "
                    "const whit_lang_argument *a, whit_lang_argument *result, unsigned line, unsigned column)\n{\n"
                    "    whit_status status = run->call(run->user, function, a, result, run->error);\n"
                    "    if (status == WHIT_OK) return WHIT_OK;\n    whit_error told = *run->error;\n"
                    "    return whit_fail(run->error, status, \"%s:%%u:%%u: %%s\", line, column, told.message);\n}\n\n"
                    "static inline whit_status divided(const whit_family_run *run, unsigned line, unsigned column)\n{\n"
                    "    return whit_fail(run->error, WHIT_ERROR_ARGUMENT, \"%s:%%u:%%u: a division by zero\", line, "
                    "column);\n}\n",
                    file, file, file);
    for (const lang_function *f = w->vm->scope.functions; f; f = f->next)
        for (const lang_function *instance = f->instances; instance; instance = instance->next) {
            head_of_function(w, instance);
            whit_buf_append_str(w->out, ";");
        }
    for (const lang_function *f = w->vm->scope.functions; f; f = f->next)
        for (const lang_function *instance = f->instances; instance; instance = instance->next) function(w, instance);
    w->function = NULL;
    w->n_values = 0;
    whit_buf_printf(w->out,
                    "\nwhit_status whit_family_%s(const whit_family_run *run)\n{\n    whit_lang_argument g[%u] = {0};\n"
                    "    memcpy(g, run->config, %u * sizeof *g);\n    (void)divided;\n",
                    name, w->vm->scope.n_globals, n_config);
    write_statement(w, w->vm->program);
    whit_buf_append_str(w->out, "    return WHIT_OK;\n}\n");
}

static void check_status(whit_status status, const whit_error *error)
{
    if (status == WHIT_OK) return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

int main(int argc, char **argv)
{
    const whit_cpu any = {0};
    whit_quat_kernels quat;
    whit_error error = {0};
    whit_buf program = {0}, out = {0};
    whit_lang *lang;
    whit_config config = {0};
    whit_config_number number;
    uint32_t n_config = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: compile NAME PROGRAM.ndl OUT.c\n");
        return 2;
    }
    const char *slash = strrchr(argv[2], '/'), *file = slash ? slash + 1 : argv[2];
    const whit_lang_host host = {whit_family_functions, whit_family_n_functions, NULL, NULL};
    check_status(whit_quat_select(&any, NULL, &quat, &error), &error);
    check_status(whit_read_file(argv[2], WHIT_LANG_MAX_TEXT_BYTES, &program, &error), &error);
    const whit_lang_options options = {.quat = &quat, .host = &host};
    check_status(whit_lang_open(&options, &lang, &error), &error);
    for (; whit_config_number_at(&config, n_config, &number); n_config++)
        check_status(whit_lang_declare(lang, number.key, number.is_float ? WHIT_LANG_FLOAT : WHIT_LANG_INT, &error),
                     &error);
    check_status(whit_lang_load(lang, file, whit_chars(&program), program.size_bytes, &error), &error);
    struct writer w = {.out = &out, .file = file, .vm = lang};
    write_family(&w, argv[1], file, n_config);
    if (out.failed) check_status(whit_fail_memory(&error, "a program", out.size_bytes), &error);
    check_status(whit_write_file(argv[3], out.data, out.size_bytes, &error), &error);
    whit_lang_close(lang);
    whit_buf_free(&program);
    whit_buf_free(&out);
    return 0;
}
