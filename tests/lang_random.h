/* SPDX-License-Identifier: MIT
 * Writes random programs that the checker accepts: typed expressions over a few variables, short loops, branches,
 * functions. They may fail while they run; every tier must then fail in the same way. */
#ifndef WHIT_TESTS_LANG_RANDOM_H
#define WHIT_TESTS_LANG_RANDOM_H

#include <stdio.h>
#include <string.h>

#include "base/rng.h"

typedef struct lang_writer {
    char text[16384];
    size_t n;
    whit_rng rng;
    int loops, depth, counters, whiles;
    bool integers; /* inside a loop that the compiler translates as a whole */
    int statements_left;
} lang_writer;

static inline uint32_t lw_below(lang_writer *w, uint32_t n)
{
    return (uint32_t)whit_rng_below(&w->rng, n);
}

static inline void lw_put(lang_writer *w, const char *text)
{
    size_t n = strlen(text);
    if (w->n + n + 1 > sizeof w->text) return;
    memcpy(w->text + w->n, text, n + 1);
    w->n += n;
}

static inline void lw_name(lang_writer *w, char letter, uint32_t n)
{
    char name[4] = {letter, (char)('0' + lw_below(w, n)), 0};
    lw_put(w, name);
}

static inline void lw_expression(lang_writer *w, char type, int depth);

static inline void lw_call(lang_writer *w, const char *name, const char *types, int depth)
{
    lw_put(w, name);
    lw_put(w, "(");
    for (; *types; types++) {
        lw_expression(w, *types, depth - 1);
        if (types[1]) lw_put(w, ", ");
    }
    lw_put(w, ")");
}

static inline void lw_binary(lang_writer *w, const char *const *ops, uint32_t n_ops, char left, char right, int depth)
{
    lw_put(w, "(");
    lw_expression(w, left, depth - 1);
    lw_put(w, ops[lw_below(w, n_ops)]);
    lw_expression(w, right, depth - 1);
    lw_put(w, ")");
}

static inline void lw_int(lang_writer *w, int depth)
{
    static const char *const ops[] = {" + ", " - ", " * ", " / ", " % ", " & ", " | ", " ^ ", " << ", " >> "};
    static const char *const compares[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    static const char *const logic[] = {" and ", " or "}, *const unary[] = {"-", "not ", "~"};
    static const char *const of_vec[] = {"len", "argmax", "count"}, *const of_quat[] = {"fq", "fq", "hamming"};
    static const char *const numbers[] = {
        "0",  "1",   "2",   "3",         "7",          "-1",          "63",         "9223372036854775807",
        "64", "-64", "127", "128",       "-128",       "2147483647",  "2147483648", "0x8000000000000000",
        "16", "5",   "9",   "1000003",   "4294967296", "-2147483649", "-7",         "0x4000000000000000",
        "-2", "10",  "255", "0xFFFFFFFF"};
    enum { N_NUMBERS = sizeof numbers / sizeof *numbers, PLAIN = 17, ALL = 22 };
    char text[24];
    switch (depth <= 0 ? lw_below(w, 3) : lw_below(w, w->integers ? PLAIN : ALL)) {
    case 0: lw_name(w, 'i', 4); return;
    case 1: lw_put(w, numbers[lw_below(w, N_NUMBERS)]); return;
    case 2:
        if (w->counters) {
            snprintf(text, sizeof text, "k%d", (int)lw_below(w, (uint32_t)w->counters));
            lw_put(w, text);
        } else
            lw_name(w, 'i', 4);
        return;
    case 3:
    case 4:
    case 5:
    case 6: lw_binary(w, ops, 10, 'i', 'i', depth); return;
    case 7: lw_binary(w, compares, 6, 'i', 'i', depth); return;
    case 8:
    case 9: lw_binary(w, logic, 2, 'i', 'i', depth); return;
    case 10:
        lw_put(w, unary[lw_below(w, 3)]);
        lw_put(w, "(");
        lw_int(w, depth - 1);
        lw_put(w, ")");
        return;
    case 11: lw_call(w, "abs", "i", depth); return;
    case 12: lw_call(w, lw_below(w, 2) ? "max" : "min", "ii", depth); return;
    case 13: /* division or another operation by a constant */
    case 14:
        lw_put(w, "(");
        lw_int(w, depth - 1);
        lw_put(w, ops[lw_below(w, 10)]);
        lw_put(w, numbers[lw_below(w, N_NUMBERS)]);
        lw_put(w, ")");
        return;
    case 15:
    case 16: lw_name(w, 'i', 4); return;
    case 17: lw_binary(w, compares, 6, 'f', 'f', depth); return;
    case 18: lw_call(w, "int", "f", depth); return;
    case 19: lw_call(w, "fi", "ii", depth); return;
    case 20: lw_call(w, of_vec[lw_below(w, 3)], "v", depth); return;
    default: lw_call(w, lw_below(w, 2) ? "hamming" : of_quat[lw_below(w, 3)], "qq", depth); return;
    }
}

static inline void lw_float(lang_writer *w, int depth)
{
    static const char *const ops[] = {" + ", " - ", " * ", " / "};
    static const char *const numbers[] = {"0.0",  "1.5",   "-2.25",  "1e30",  "3.0",
                                          "-0.0", "1e300", "5e-324", "1e400", "-1e400"};
    static const char *const functions[] = {"sqrt", "abs", "floor", "relu", "round",   "exp",  "ceil",
                                            "silu", "log", "sin",   "cos",  "sigmoid", "tanh", "-"};
    static const char *const reductions[] = {"sum", "mean", "largest", "smallest"};
    switch (depth <= 0 ? lw_below(w, 2) : lw_below(w, 12)) {
    case 0: lw_name(w, 'f', 3); return;
    case 1: lw_put(w, numbers[lw_below(w, 10)]); return;
    case 2:
    case 3:
    case 4: lw_binary(w, ops, 4, 'f', lw_below(w, 3) ? 'f' : 'i', depth); return;
    case 5: lw_call(w, functions[lw_below(w, 14)], "f", depth); return;
    case 6: lw_call(w, reductions[lw_below(w, 4)], "v", depth); return;
    case 7: lw_call(w, lw_below(w, 4) ? "dot" : "cosine", lw_below(w, 3) ? "vv" : "qq", depth); return;
    case 8: lw_call(w, lw_below(w, 3) ? lw_below(w, 2) ? "max" : "min" : "cut", "ff", depth); return;
    case 10: lw_call(w, lw_below(w, 2) ? "sum" : "mean", "q", depth); return;
    case 9:
        lw_below(w, 4) ? lw_name(w, 'v', 3) : lw_name(w, 'q', 2);
        lw_put(w, "[");
        if (lw_below(w, 8)) {
            lw_put(w, "(");
            lw_int(w, depth - 1);
            lw_put(w, ") & 31");
        } else
            lw_int(w, depth - 1);
        lw_put(w, "]");
        return;
    /* a call that returns a value, or one that prints */
    default: lw_call(w, lw_below(w, 4) ? "ff" : "tell", lw_below(w, 4) ? "fv" : "iv", depth); return;
    }
}

static inline void lw_vec(lang_writer *w, int depth)
{
    enum { N_SIGNS = 10, N_UNARY = 16 };
    static const char *const ops[N_SIGNS] = {" + ", " - ", " * ", " / ", " < ", " >= ", " == ", " <= ", " > ", " != "};
    static const char *const functions[N_UNARY] = {"sqrt",    "abs",     "exp",  "silu",  "relu", "floor",
                                                   "sigmoid", "softmax", "ceil", "round", "tanh", "sort",
                                                   "rmsnorm", "log",     "sin",  "cos"};
    static const char *const parts[] = {"[1..9]", "[0..0]", "[3..4]", "[0..16]"};
    static const char *const picks[] = {"max", "min", "cut"}, *const pairs[] = {"swiglu", "rmsnorm"};
    switch (depth <= 0 ? 0 : lw_below(w, 14)) {
    case 0:
    case 1: lw_name(w, 'v', 3); return;
    case 2:
    case 3:
    case 4: lw_binary(w, ops, N_SIGNS, 'v', 'v', depth); return;
    case 5: lw_binary(w, ops, N_SIGNS, 'v', lw_below(w, 2) ? 'f' : 'i', depth); return;
    case 6: lw_binary(w, ops, N_SIGNS, 'f', 'v', depth); return;
    case 7: lw_call(w, functions[lw_below(w, N_UNARY)], "v", depth); return;
    case 8: lw_call(w, picks[lw_below(w, 3)], lw_below(w, 2) ? "vv" : "vf", depth); return;
    case 9:
        if (lw_below(w, 8) == 0) { /* a vector whose length differs from the others' */
            lw_name(w, 'v', 3);
            lw_put(w, parts[lw_below(w, 4)]);
        } else if (lw_below(w, 4))
            lw_call(w, "vec", "q", depth);
        else
            lw_call(w, "twice", "v", depth);
        return;
    case 10: lw_call(w, pairs[lw_below(w, 2)], "vv", depth); return;
    case 11: lw_call(w, "select", "vvv", depth); return;
    case 12:
        if (lw_below(w, 2))
            lw_call(w, "turned", "v", depth);
        else
            lw_call(w, "filled", "vf", depth);
        return;
    default:
        lw_put(w, "-(");
        lw_vec(w, depth - 1);
        lw_put(w, ")");
        return;
    }
}

static inline void lw_quat(lang_writer *w, int depth)
{
    enum { N_SIGNS = 10 };
    static const char *const ops[N_SIGNS] = {" + ", " - ", " * ", " + ", " < ", " >= ", " == ", " != ", " > ", " <= "};
    static const char *const two[] = {"rmsnorm", "bundle", "min", "max", "swiglu"},
                             *const unary[] = {"silu", "abs", "-"};
    switch (depth <= 0 ? 0 : lw_below(w, 11)) {
    case 0:
    case 1: lw_name(w, 'q', 2); return;
    case 2:
    case 3: lw_binary(w, ops, lw_below(w, 3) ? 4 : N_SIGNS, 'q', 'q', depth); return;
    case 4: lw_call(w, unary[lw_below(w, 3)], "q", depth); return;
    case 5: lw_call(w, two[lw_below(w, 5)], "qq", depth); return;
    case 6: lw_call(w, "quat", "v", depth); return;
    case 7: lw_call(w, lw_below(w, 2) ? "select" : "bundle", "qqq", depth); return;
    case 8:
        lw_put(w, "quat(");
        lw_vec(w, depth - 1);
        lw_put(w, ", (");
        lw_int(w, depth - 1);
        lw_put(w, ") & 3)");
        return;
    case 9: lw_call(w, "raised", "qq", depth); return;
    default: lw_call(w, "permute", "qi", depth); return;
    }
}

static inline void lw_expression(lang_writer *w, char type, int depth)
{
    if (type == 'i') lw_int(w, depth);
    if (type == 'f') lw_float(w, depth);
    if (type == 'v') lw_vec(w, depth);
    if (type == 'q') lw_quat(w, depth);
}

static inline void lw_assign(lang_writer *w)
{
    static const char types[] = "iiiifffvvvqq";
    static const uint32_t counts[128] = {['i'] = 4, ['f'] = 3, ['v'] = 3, ['q'] = 2};
    char type = types[lw_below(w, sizeof types - 1)];
    if (w->integers && type != 'i') {
        if (type == 'q' && lw_below(w, 2)) {
            lw_put(w, lw_below(w, 2) ? "q0 += q1\n" : "q1 += q0\n");
            return;
        }
        type = 'i';
    }
    if (type == 'v' && lw_below(w, 4) == 0) {
        lw_name(w, 'v', 3);
        lw_put(w, "[");
        lw_int(w, 1);
        lw_put(w, " & 31] = ");
        lw_float(w, 2);
    } else {
        lw_name(w, type, counts[(int)type]);
        lw_put(w, lw_below(w, 3) ? " = " : " += ");
        lw_expression(w, type, 1 + (int)lw_below(w, 4));
    }
    lw_put(w, "\n");
}

static inline void lw_statements(lang_writer *w, int n);

/* Writes a branch on low bits, which the compiler may translate into a choice between two values. */
static inline void lw_parity(lang_writer *w)
{
    static const char *const forms[] = {
        "if %c%d %% %d == 0 { %c%d = %c%d / %d } else { %c%d = %c%d * 3 + 1 }\n",
        "if %c%d %% %d != 0 { %c%d = %c%d ^ %d } else { %c%d = %c%d << 1 }\n",
        "if %c%d %% %d == 0 { %c%d = %c%d - %d } # %c%d %c%d\n",
    };
    int x = (int)lw_below(w, 4), y = lw_below(w, 2) ? x : (int)lw_below(w, 4), m = 1 << lw_below(w, 4);
    char text[160];
    snprintf(text, sizeof text, forms[lw_below(w, 3)], 'i', x, m, 'i', y, 'i', x, 1 << lw_below(w, 3), 'i', y, 'i', x);
    lw_put(w, text);
}

static inline void lw_block(lang_writer *w, int n)
{
    lw_put(w, " {\n");
    w->depth++;
    lw_statements(w, n);
    w->depth--;
    lw_put(w, "}\n");
}

static inline void lw_statement(lang_writer *w)
{
    char text[64];
    w->statements_left--;
    uint32_t kind = w->depth > 2 || w->statements_left < 0 ? 0 : lw_below(w, 14);
    if (kind == 8) {
        lw_put(w, "if ");
        lw_int(w, 2);
        lw_block(w, 2);
        if (lw_below(w, 2)) {
            w->text[--w->n] = 0; /* remove the line feed before "else" */
            lw_put(w, " else");
            lw_block(w, 2);
        }
    } else if (kind == 9 || kind == 10) {
        snprintf(text, sizeof text, "for k%d in %d..%d", w->counters, (int)lw_below(w, 5) - 2, (int)lw_below(w, 9));
        lw_put(w, text);
        bool before = w->integers;
        w->integers |= lw_below(w, 2) != 0;
        w->counters++;
        w->loops++;
        lw_block(w, 1 + (int)lw_below(w, 3));
        w->loops--;
        w->counters--;
        w->integers = before;
    } else if (kind == 12 && w->loops) {
        lw_parity(w);
    } else if (kind == 13 && !w->loops) { /* a loop that always ends, since its counter is its own variable */
        snprintf(text, sizeof text, "let w%d = %d\nwhile w%d", w->whiles, (int)lw_below(w, 9), w->whiles);
        lw_put(w, text);
        lw_put(w, lw_below(w, 2) ? " > 0" : "");
        lw_put(w, lw_below(w, 3) ? "" : " and i0 != 77");
        w->loops++;
        snprintf(text, sizeof text, "{\nw%d -= 1\n", w->whiles++);
        lw_put(w, text);
        w->integers = lw_below(w, 2) != 0;
        w->depth++;
        lw_statements(w, 1 + (int)lw_below(w, 3));
        w->depth--;
        w->integers = false;
        lw_put(w, "}\n");
        w->loops--;
    } else if (kind == 11 && w->loops) {
        lw_put(w, "if ");
        lw_int(w, 1);
        lw_put(w, lw_below(w, 2) ? " { break }\n" : " { continue }\n");
    } else
        lw_assign(w);
}

static inline void lw_statements(lang_writer *w, int n)
{
    for (int i = 0; i < n; i++) lw_statement(w);
}

static inline const char *lang_random(lang_writer *w, uint64_t seed)
{
    *w = (lang_writer){.rng = {seed * 0x9E3779B97F4A7C15u + 1}, .statements_left = 12};
    static const uint32_t short_ones[] = {0, 1, 15, 16, 17, 31, 33, 64};
    uint32_t n = lw_below(w, 8) ? 32 + lw_below(w, 3) * 517 : short_ones[lw_below(w, 8)];
    char text[200];
    lw_put(w,
           "fn fi(a, b) { if a < b { return a * 3 - b }\n let c = a ^ b\n return c * c + c }\n"
           "fn ff(x, y) { let t = sum(y) * x\n return t / (1.0 + t * t) }\n"
           "fn tell(x, y) { let t = x + y[3]\n print x, t\n return t * 0.5 }\n"
           "fn fq(a, b) { return scale(a) * 3 + count(b) }\n"
           "fn turned(y) { let n = len(y)\n if n < 3 { return y }\n return concat(y[2..n], y[0..2]) }\n"
           "fn filled(y, x) { let z = y\n for k in 0..len(z) { if k % 3 == 0 { z[k] = x } }\n"
           " return z + gemv(concat(y, z), z)[0] }\n"
           "fn twice(y) { if len(y) > 3 { return y + y } return y / 3 }\n"
           "fn raised(q, d) { q = level + d\n for k in 0..9 { q = level + d }\n return q }\n");
    /* the first global variable, as q is the first variable of the function */
    snprintf(text, sizeof text, "let level = quat(range(%u) - 9.5)\n", n);
    lw_put(w, text);
    lw_put(w,
           "let i0 = 5\nlet i1 = -3\nlet i2 = 1000000007\nlet i3 = 0\n"
           "let f0 = 0.5\nlet f1 = -3.25\nlet f2 = 100.0\n");
    snprintf(
        text, sizeof text,
        "let v0 = range(%u) - 7.5\nlet v1 = v0 * 0.25 + 1.0\nlet v2 = abs(v0)\nlet q0 = quat(v0)\nlet q1 = quat(v1)\n",
        n);
    lw_put(w, text);
    lw_statements(w, 4 + (int)lw_below(w, 6));
    return w->text;
}

#endif
