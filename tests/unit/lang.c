/* SPDX-License-Identifier: MIT
 * Tests the array language: results, refusals and their places, limits, loops in closed form against single rounds,
 * and failing allocations. */
#include "base/clock.h"
#include "base/rng.h"
#include "kernels/quat/quat.h"
#include "lang/core/lang.h"
#include "lang/jit/jit.h"
#include "test_folder.h"

#include <locale.h>

static whit_quat_kernels kernels;
static char printed[8192];
static size_t n_printed;

static bool keep(void *user, const char *text, size_t n)
{
    (void)user;
    if (n_printed + n >= sizeof printed) return false;
    memcpy(printed + n_printed, text, n);
    n_printed += n;
    printed[n_printed] = 0;
    return true;
}

/* Replaces the library's clock (linked with --wrap). While clock_counts, it advances by a millisecond with every
 * reading, so that a limit of time is a limit of readings and does not depend on the machine. */
static bool clock_counts;
static uint64_t n_looks;
uint64_t __real_whit_thread_cpu_ns(void);
uint64_t __wrap_whit_thread_cpu_ns(void);
uint64_t __wrap_whit_thread_cpu_ns(void)
{
    return clock_counts ? ++n_looks * 1000000 : __real_whit_thread_cpu_ns();
}

static void begin_counting(void)
{
    clock_counts = true;
    n_looks = 0;
}

static uint64_t end_counting(void)
{
    clock_counts = false;
    return n_looks;
}

static whit_lang_options options_of(int tier)
{
    return (whit_lang_options){.quat = &kernels, .jit = whit_lang_jit_native(), .print = keep, .tier = tier};
}

static whit_status run(const whit_lang_options *options, const char *text, whit_error *error, whit_lang_place *place)
{
    whit_lang *lang;
    n_printed = 0;
    printed[0] = 0;
    assert_ok(whit_lang_open(options, &lang, error), *error);
    whit_status status = whit_lang_load(lang, "test", text, strlen(text), error);
    if (status == WHIT_OK) status = whit_lang_run(lang, error);
    if (place) *place = whit_lang_failed_at(lang);
    whit_lang_close(lang);
    return status;
}

static const struct {
    const char *text, *prints;
} programs[] = {
    {"print 1 + 2 * 3, 7 / 2, -7 / 2, -7 % 3, 2.5 * 2", "7 3 -3 -1 5.0\n"},
    {"print 9223372036854775807 + 1, -9223372036854775807 - 1 - 1, 1 << 65, -8 >> 1",
     "-9223372036854775808 9223372036854775807 2 -4\n"},
    {"let m = 0 - 9223372036854775807 - 1\nprint m / -1, m % -1, abs(m)",
     "-9223372036854775808 0 -9223372036854775808\n"},
    {"print -9223372036854775808, - 9223372036854775808 + 1, 0x8000000000000000, 9223372036854775808.0 - 1, 2 * "
     "-9223372036854775808",
     "-9223372036854775808 -9223372036854775807 -9223372036854775808 9.223372036854776e+18 0\n"},
    {"print 6 & 3 | 8 ^ 1, ~0, not 3, 1 < 2 and 2 < 1, 0 or 5", "11 -1 0 0 1\n"},
    {"print int(2.9), int(-2.9), int(1e30), float(3) / 2, 1 == 1.0", "2 -2 9223372036854775807 1.5 1\n"},
    {"let x = 0.0\nprint int(x / x), x / x, 1 / x, -1 / x", "0 nan inf -inf\n"},
    {"let s = 0\nfor i in 0..10 { if i % 2 { continue }\n if i > 6 { break }\n s += i }\nprint s", "12\n"},
    {"let n = 27\nlet k = 0\nwhile n != 1 { if n % 2 { n = 3 * n + 1 } else { n /= 2 }\n k += 1 }\nprint k", "111\n"},
    {"fn gcd(a, b) { while b { let t = a % b\n a = b\n b = t }\n return a }\nprint gcd(1071, 462)", "21\n"},
    {"fn fib(n) { if n < 2 { return n }\n return fib(n - 1) + fib(n - 2) }\nprint fib(15)", "610\n"},
    {"fn half(x) { return x / 2 }\nprint half(7), half(7.0), half([1, 2])", "3 3.5 [0.5, 1.0]\n"},
    {"fn say(x) { print x }\nsay(3)", "3\n"},
    {"let v = range(4)\nlet w = v\nw[1] = 9\nw[2] += 0.5\nprint v, w, v[1..3], len(v)",
     "[0.0, 1.0, 2.0, 3.0] [0.0, 9.0, 2.5, 3.0] [1.0, 2.0] 4\n"},
    {"let a = [1, 2, 3]\nprint a * 2 + 2 * a - a / [1, 2, 4], a < 2.5, max(a, 2), -a",
     "[3.0, 7.0, 11.25] [1.0, 1.0, 0.0] [2.0, 2.0, 3.0] [-1.0, -2.0, -3.0]\n"},
    {"let a = [3, 1, 2]\nprint sum(a), mean(a), largest(a), smallest(a), argmax(a), sort(a), dot(a, a), concat(a, [7])",
     "6.0 2.0 3.0 1.0 0 [1.0, 2.0, 3.0] 14.0 [3.0, 1.0, 2.0, 7.0]\n"},
    {"print gemv([1, 2, 3, 4], [1, 10]), select([1, 0], [5, 6], [7, 8]), count([1, 0, 3]), relu([-1, 2])",
     "[21.0, 43.0] [5.0, 8.0] 2 [0.0, 2.0]\n"},
    {"let q = quat([1, -2, 0.4, 1.7])\nprint q, q + -q, q * q, silu(q), abs(q), q < q * q, vec(q), sum(q), dot(q, q)",
     "quat[1, -2, 1, 2] quat[1, 1, 1, 1] quat[1, 2, 1, 2] quat[1, -1, 1, 2] quat[1, 2, 1, 2] quat[-1, 1, -1, -1] "
     "[1.0, -2.0, 1.0, 2.0] 2.0 10.0\n"},
    {"let q = quat([4, -8], 2)\nprint q, scale(q), q[1], q + quat([1, 1], 0), rmsnorm(q)",
     "quat[1, -2] * 2^2 2 -8.0 quat[1, -2] * 2^2 quat[1, -1]\n"},
    {"let a = quat([1, -1, 1, -1])\nlet b = quat([1, 1, -1, -1])\n"
     "print hamming(a, b), bundle(a, b, a), bundle(a, b), permute(a, 1), count(a)",
     "2 quat[1, -1, 1, -1] quat[1, -1, 1, -1] quat[-1, 1, -1, 1] 2\n"},
    {"let big = vec(40, 1)\nprint big[0..2], sum(big)\nprint range(33)",
     "[1.0, 1.0] 40.0\n[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, "
     "17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0, ... 33 in all]\n"},
    {"print sort([0, -0.0, 2, 0.0 / 0.0, -1e30, 1e-40, -0.0, 0]), sort(-range(200))[197..200]",
     "[-1e+30, -0.0, -0.0, 0.0, 0.0, 1e-40, 2.0, nan] [-2.0, -1.0, -0.0]\n"},
    {"\xEF\xBB\xBFprint 1\r\n# nothing", "1\n"},
    {"print count(quat([1, 2, 2, -1])), count(quat(-range(70) - 1)), count(quat([]))", "1 70 0\n"},
    /* A variable of the outermost level and one of the function may have the same index. */
    {"let one = 1\nlet base = quat([2, 2], 0)\nfn f(d) { let r = base + d; return r }\nprint f(quat([-1, -1], 0))",
     "quat[1, 1]\n"},
    {"let g = quat([2, 2], 0)\nfn f(q, d) { q = g + d; return q }\nprint f(quat([-2, -2], 0), quat([-1, -1], 0))",
     "quat[1, 1]\n"},
    {"let g = quat([2, 2], 0)\nfn f(q, d) { for i in 0..9 { q = g + d }\n return q }\n"
     "print f(quat([-2, -2], 0), quat([-1, -1], 0))",
     "quat[1, 1]\n"},
    {"let x = 1\nfor i in 0..4 { x = x * 257 }\nprint x", "4362470401\n"},
    /* Functions see the outermost level, not the block that calls them. */
    {"let i = 100\nfn f(x) { return x + i }\nfor i in 0..3 { print f(0) }\n{ let i = 7; print f(0), i }",
     "100\n100\n100\n100 7\n"},
    {"# nothing\n\n;;print (1 +\n 2); print 0x10, 1e3, .5", "3\n16 1000.0 0.5\n"},
};

static void test_programs(void **state)
{
    (void)state;
    whit_error error;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
            whit_lang_options options = options_of(tier);
            assert_ok(run(&options, programs[i].text, &error, NULL), error);
            assert_string_equal(printed, programs[i].prints);
        }
}

static const struct {
    const char *text, *says;
    uint32_t line, column;
} mistakes[] = {
    {"let x = 1\nlet y = (x + zz)", "'zz' is not defined", 2, 14},
    {"let x = 1 +", "an expression expected before the end", 1, 12},
    {"x = 1", "'let x = ...' defines it", 1, 1},
    {"let x = 1\nx = 2.5", "'x' is an integer, not a float", 2, 5},
    {"let x = @", "'@' has no meaning here", 1, 9},
    {"let x = 1 let y = 2", "the end of the statement", 1, 11},
    {"break", "'break' is only possible inside a loop", 1, 1},
    {"return 1", "'return' is only possible inside a function", 1, 1},
    {"let v = [1, 2] + quat([1, 2])", "a quaternary vector can only be combined with another one", 1, 16},
    {"print sqrt([1], 2)", "'sqrt' takes (a float) or (a vector), not (a vector, an integer)", 1, 7},
    {"print foo(1)", "there is no function 'foo'", 1, 7},
    {"fn f(a) { return f(a) }\nprint f(1)", "not known here yet", 1, 18},
    {"fn f(a) { return a }\nprint f(1, 2)", "takes 1 argument, not 2", 2, 7},
    {"let a = 1\nfn f() { a = 2\n return 1 }\nprint f()", "cannot change the global variable 'a'", 2, 10},
    {"let sum = 1", "'sum' is a built-in function", 1, 5},
    {"if [1] { }", "a condition must be an integer, not a vector", 1, 4},
    {"print 1 / 0", "division of 1 by zero", 1, 9},
    {"let v = range(3)\nprint v[3]", "index 3 is outside a vector of 3", 2, 8},
    {"let v = range(3)\nv[-1] = 0", "index -1 is outside", 2, 2},
    {"let v = range(3)\nprint v[2..1]", "[2..1] is outside a vector", 2, 8},
    {"print range(3) + range(4)", "3 and 4 elements", 1, 16},
    /* When a chain of operations is compiled as one loop, the reported operation and the output before it must be those
     * of the tree walker. */
    {"let a = range(3)\nlet c = a * 2 + (a - range(4)) * 3", "3 and 4 elements", 2, 20},
    {"let a = range(3)\nlet c = sum(a * a + range(4) * a)", "4 and 3 elements", 2, 30},
    {"let a = range(3)\nfn f(x) { return vec(x, 1 / 0) }\nlet c = (a + range(4)) + f(3)", "3 and 4 elements", 3, 12},
    {"let a = range(3)\nfn f(x) { return vec(x, 1 / 0) }\nlet c = a + (f(3) + range(4))", "division of 1", 2, 27},
    {"let h\xC3\xA9 = 1", "only comments may contain characters outside ASCII", 1, 6},
    {"print vec(-1, 0)", "a vector cannot have -1 elements", 1, 7},
    {"fn f(n) { if n < 0 { return 0 }\n return f(n + 1) }\nprint f(0)", "nested more than", 2, 9},
    {"fn f(n) { if n { return 1 } }\nprint f(0)", "without returning", 2, 7},
    {"print argmax([])", "empty", 1, 7},
    {"print 99999999999999999999", "64 bits", 1, 7},
    {"print 1, 9223372036854775808", "the largest integer is 9223372036854775807", 1, 10},
    {"print 1 - 9223372036854775808", "the largest integer is 9223372036854775807", 1, 11},
    {"print -(9223372036854775808)", "the largest integer is 9223372036854775807", 1, 9},
    {"print ~9223372036854775808", "the largest integer is 9223372036854775807", 1, 8},
};

static void test_mistakes(void **state)
{
    (void)state;
    whit_error error;
    whit_lang_place place;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
            whit_lang_options options = options_of(tier);
            options.max_steps = 100000;
            assert_int_not_equal(run(&options, mistakes[i].text, &error, &place), WHIT_OK);
            if (!strstr(error.message, mistakes[i].says)) fail_msg("'%s' gave: %s", mistakes[i].text, error.message);
            if (place.line != mistakes[i].line || place.column != mistakes[i].column)
                fail_msg("'%s' at %u:%u", mistakes[i].text, place.line, place.column);
        }
}

static void test_limits(void **state)
{
    (void)state;
    whit_error error;
    for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
        whit_lang_options options = options_of(tier);
        options.max_steps = 1000000;
        assert_int_equal(run(&options, "let i = 0\nwhile 1 { i += 1\n if i % 100000 == 0 { print i } }", &error, NULL),
                         WHIT_ERROR_LIMIT);
        assert_non_null(strstr(printed, "\n900000\n")); /* the limit is exceeded by less than a tenth */
        assert_null(strstr(printed, "1100000"));
        assert_int_equal(run(&options, "let v = vec(1000000, 1)\nwhile 1 { v = v + v }", &error, NULL),
                         WHIT_ERROR_LIMIT);
        for (int64_t most = 100; most <= 100000; most = most * 10) { /* exactly, also if the clock is read often */
            whit_lang *lang;
            int64_t rounds;
            const char *text = "let i = 0\nwhile 1 { i += 1 }";
            options.max_steps = (uint64_t)most;
            assert_ok(whit_lang_open(&options, &lang, &error), error);
            assert_ok(whit_lang_load(lang, "test", text, strlen(text), &error), error);
            assert_int_equal(whit_lang_run(lang, &error), WHIT_ERROR_LIMIT);
            assert_true(whit_lang_get_int(lang, "i", &rounds) && rounds == most);
            whit_lang_close(lang);
        }
        options = options_of(tier);
        options.max_bytes = 1 << 20;
        assert_int_equal(run(&options, "let v = vec(1000, 1)\nwhile 1 { v = concat(v, v) }", &error, NULL),
                         WHIT_ERROR_LIMIT);
        assert_int_equal(run(&options, "print sum(vec(200000, 1))", &error, NULL), WHIT_OK);
        options = options_of(tier);
        options.max_ms = 50;
        begin_counting();
        assert_int_equal(run(&options, "let i = 0\nwhile 1 { i += 1 }", &error, NULL), WHIT_ERROR_LIMIT);
        /* 50 readings within the limit, one at the start, one that exceeds the limit */
        assert_in_range(end_counting(), 51, 53);
        options.max_ms = 2; /* limit of the real clock */
        assert_int_equal(run(&options, "let i = 0\nwhile 1 { i += 1 }", &error, NULL), WHIT_ERROR_LIMIT);
        assert_non_null(strstr(error.message, "2 ms of processor time"));
        volatile bool cancel = true;
        options.cancel = &cancel;
        assert_int_equal(run(&options, "let i = 0\nwhile 1 { i += 1 }", &error, NULL), WHIT_ERROR_CANCELLED);
    }
    char deep[4096];
    memset(deep, '(', 2000);
    deep[2000] = 0;
    whit_lang_options options = options_of(1);
    assert_int_not_equal(run(&options, deep, &error, NULL), WHIT_OK);
    assert_non_null(strstr(error.message, "nested more than"));

    /* Chains in parentheses: at the allowed depth, and deeper. */
    for (int n = 990; n <= 1000; n += 10) {
        static char chains[16384];
        strcpy(chains, "let x = 1\nprint ((((x");
        for (int k = 0; k < 2 + (n == 1000) * 2; k++) {
            for (int i = 0; i < n; i++) strcat(chains, " - 1");
            strcat(chains, ")");
        }
        if (n == 990) strcat(chains, "))");
        for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
            options = options_of(tier);
            assert_int_equal(run(&options, chains, &error, NULL), n == 990 ? WHIT_OK : WHIT_ERROR_ARGUMENT);
            if (n == 990)
                assert_string_equal(printed, "-1979\n");
            else
                assert_non_null(strstr(error.message, "an expression has more than 2000 levels"));
        }
    }
}

/* Returns a text of n copies of `part` between `before` and `after`. */
static const char *repeated(const char *before, const char *part, int n, const char *after)
{
    static char text[WHIT_LANG_MAX_TEXT_BYTES];
    size_t at = strlen(strcpy(text, before)), n_part = strlen(part);
    for (int i = 0; i < n; i++, at += n_part) memcpy(text + at, part, n_part);
    strcpy(text + at, after);
    return text;
}

/* Functions that call themselves or others inside long expressions must end with an error, not with a stack
 * overflow. */
static void test_depth(void **state)
{
    (void)state;
    whit_error error;
    for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
        whit_lang_options options = options_of(tier);
        const char *text =
            repeated("fn f(n) {\nif n <= 0 { return 0.0 }\nreturn f(n - 1)", "+1.5", 990, "\n}\nprint f(198)");
        assert_int_equal(run(&options, text, &error, NULL), WHIT_ERROR_LIMIT);
        assert_non_null(strstr(error.message, "calls are nested more than 20000 levels"));
        text = repeated("fn f(n) {\nif n <= 0 { return 0 }\nreturn f(n - 1)", "+1", 40, "\n}\nprint f(198)");
        assert_ok(run(&options, text, &error, NULL), error);
        assert_string_equal(printed, "7920\n");
        /* Functions that are first checked while an expression of the calling function is checked. */
        static char nested[WHIT_LANG_MAX_TEXT_BYTES];
        size_t at = 0;
        for (int i = 0; i < 99; i++) {
            at += (size_t)sprintf(nested + at, "fn f%d(n) { return f%d(n)", i, i + 1);
            for (int k = 0; k < 990; k++, at += 2) memcpy(nested + at, "+1", 2);
            at += (size_t)sprintf(nested + at, " }\n");
        }
        sprintf(nested + at, "fn f99(n) { return n }\nprint f0(1)");
        assert_int_not_equal(run(&options, nested, &error, NULL), WHIT_OK);
        assert_non_null(strstr(error.message, "nested more than 2500 levels"));
        /* Arguments are checked before the function, so their depths do not add up. */
        at = 0;
        for (int i = 0; i < 2; i++) {
            at += (size_t)sprintf(nested + at, i ? "fn f(n) { return (g(n)" : "fn g(n) { return (n");
            for (int k = 0; k < 700; k++, at += 2) memcpy(nested + at, "+1", 2);
            nested[at++] = ')';
            for (int k = 0; k < 700; k++, at += 2) memcpy(nested + at, "+1", 2);
            at += (size_t)sprintf(nested + at, " }\n");
        }
        sprintf(nested + at, "print f(g(0))");
        assert_ok(run(&options, nested, &error, NULL), error);
        assert_string_equal(printed, "4200\n");
        /* More vectors than one loop can read: the chain is compiled as several loops, each once. */
        at = 0;
        for (int i = 0; i < 30; i++) at += (size_t)sprintf(nested + at, "let v%d = range(64) + %d\n", i, i);
        at += (size_t)sprintf(nested + at, "let s = v0");
        for (int i = 0; i < 400; i++) at += (size_t)sprintf(nested + at, " + (v%d * v%d)", i % 30, (i * 7 + 1) % 30);
        sprintf(nested + at, "\nprint sum(s)");
        assert_ok(run(&options, nested, &error, NULL), error);
        assert_string_equal(printed, "62777696.0\n");
    }
}

/* A program that is too large to be compiled must leave nothing half compiled; functions may be called after that. */
static void test_too_large(void **state)
{
    (void)state;
    whit_lang_options options = options_of(WHIT_LANG_TIERS - 1);
    whit_lang *lang;
    whit_error error;
    char call[64];
    int n = 0;
    assert_ok(whit_lang_open(&options, &lang, &error), error);
    for (whit_status status = WHIT_OK; status == WHIT_OK; n++) {
        char head[96], tail[96];
        snprintf(head, sizeof head, "fn g%d(v) { return v * 2 }\nfn f%d(v) { return g%d(v)", n, n, n);
        snprintf(tail, sizeof tail, " }\nlet x%d = f%d(range(40))", n, n);
        const char *text = repeated(head, " + v * 3", 450, tail);
        status = whit_lang_load(lang, "t", text, strlen(text), &error);
        assert_true(n < 1000);
    }
    for (int i = 0; i < n; i++) {
        int bytes = snprintf(call, sizeof call, "let y = f%d(range(40))", i);
        if (whit_lang_load(lang, "t", call, (size_t)bytes, &error) == WHIT_OK)
            assert_ok(whit_lang_run(lang, &error), error);
    }
    whit_lang_close(lang);
}

static bool drop(void *user, const char *text, size_t n)
{
    (void)user, (void)text, (void)n;
    return true;
}

static uint64_t count_looks(int tier, const char *text)
{
    whit_lang_options options = options_of(tier);
    whit_error error;
    options.max_ms = UINT32_MAX;
    options.print = drop;
    begin_counting();
    whit_status status = run(&options, text, &error, NULL);
    uint64_t n = end_counting();
    assert_ok(status, error);
    return n;
}

/* Operations that take long on one value must read the clock inside, at least once per 72,000 units of work. `n` counts
 * these units: elements read or written, or numbers printed. */
static void test_long_operations(void **state)
{
    (void)state;
    static const struct {
        const char *before, *operation, *endless;
        uint64_t n;
    } cases[] = {
        {"let v = range(1000000) * 0.001\n", "v = tanh(v)\n", "while 1 { v = tanh(v) }", 1000000},
        {"let v = sin(range(1000000))\n", "v = sort(v)\n", "while 1 { v = sort(v) }",
         6 * 1000000} /* three passes over digits, which count and move */,
        {"let v = range(1000000)\n", "let q = quat(v)\n", "while 1 { let q = quat(v) }", 3 * 1000000},
        {"let v = range(30) / 7\n", "for i in 0..1000 { print v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v }\n",
         "while 1 { print v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v }", 16 * 30 * 1000},
    };
    char text[400];
    whit_error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
            snprintf(text, sizeof text, "%s%s", cases[i].before, cases[i].operation);
            uint64_t n = count_looks(tier, text) - count_looks(tier, cases[i].before);
            if (n < cases[i].n / 72000)
                fail_msg("tier %d, %s: %llu looks", tier, cases[i].operation, (unsigned long long)n);
            snprintf(text, sizeof text, "%s%s", cases[i].before, cases[i].endless);
            whit_lang_options options = options_of(tier);
            options.max_ms = 100;
            options.print = drop;
            begin_counting();
            assert_int_equal(run(&options, text, &error, NULL), WHIT_ERROR_LIMIT);
            assert_in_range(end_counting(), 101, 103);
        }
}

/* Variables and functions persist between loads. A load that fails to be checked changes nothing; the effects of lines
 * that ran before a failure remain. */
static void test_session(void **state)
{
    (void)state;
    for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
        whit_lang_options options = options_of(tier);
        whit_lang *lang;
        whit_error error;
        int64_t i;
        float *x;
        uint32_t n;
        const float logits[] = {1, 2, 3};
        options.echo = true;
        n_printed = 0;
        assert_ok(whit_lang_open(&options, &lang, &error), error);
        assert_ok(whit_lang_declare(lang, "logits", WHIT_LANG_VEC, &error), error);
#define LOAD(text) whit_lang_load(lang, "t", text, sizeof text - 1, &error)
        assert_ok(LOAD("let a = 1"), error);
        assert_ok(whit_lang_run(lang, &error), error);
        assert_int_not_equal(LOAD("let b = 2\nlet c = nothing"), WHIT_OK);
        assert_int_not_equal(LOAD("b"), WHIT_OK);
        assert_int_equal(whit_lang_run(lang, &error), WHIT_ERROR_ARGUMENT); /* not the text before the failed one */
        assert_non_null(strstr(error.message, "there is no program to run"));
        assert_ok(LOAD("a = 2"), error);
        whit_lang_forget(lang);
        assert_int_equal(whit_lang_run(lang, &error), WHIT_ERROR_ARGUMENT);
        assert_int_not_equal(LOAD("fn g() { return nothing }\ng()"), WHIT_OK);
        assert_ok(LOAD("a = 5\nlet v = range(2)\nv[2] = 1"), error);
        assert_int_not_equal(whit_lang_run(lang, &error), WHIT_OK);
        assert_true(whit_lang_get_int(lang, "a", &i) && i == 5);
        assert_true(whit_lang_get_vec(lang, "v", &x, &n) && n == 2 && x[1] == 1);
        assert_ok(LOAD("logits = logits * 2 + a"), error);
        assert_int_not_equal(whit_lang_run(lang, &error), WHIT_OK); /* not set yet */
        assert_ok(whit_lang_set_vec(lang, "logits", logits, 3, &error), error);
        for (int round = 0; round < 3; round++) {
            assert_ok(whit_lang_set_vec(lang, "logits", logits, 3, &error), error);
            assert_ok(whit_lang_run(lang, &error), error);
            assert_true(whit_lang_get_vec(lang, "logits", &x, &n) && n == 3 && x[2] == 11);
        }
        assert_int_not_equal(whit_lang_set_int(lang, "logits", 1, &error), WHIT_OK);
        assert_false(whit_lang_get_int(lang, "unknown", &i));
        assert_ok(LOAD("a + 1"), error);
        assert_ok(whit_lang_run(lang, &error), error);
        assert_string_equal(printed, "6\n");
        assert_ok(LOAD("fn g(x) { return sum(w) }"), error);
        assert_int_not_equal(LOAD("{ let w = [1, 2]; g(0) }"), WHIT_OK); /* the block's w is not visible in g */
        assert_non_null(strstr(error.message, "'w' is not defined"));
        assert_ok(LOAD("fn h(x) { if x > 5 { return x }\n let y = h(3); let z = ~x; return z + y }"), error);
        /* the first check of h fails halfway; the second must fail in the same way */
        for (int round = 0; round < 2; round++) {
            assert_int_not_equal(LOAD("h(1.5)"), WHIT_OK);
            assert_string_equal(error.message, "t:2:25: '~' needs an integer, not a float");
        }
        assert_ok(LOAD("fn k(x) { return x + w }"), error);
        /* checked with a 'w' that is then removed */
        assert_int_not_equal(LOAD("let w = [1, 2]; k([3]); nothing"), WHIT_OK);
        n_printed = 0;
        assert_ok(LOAD("let w = 5; k([3])"), error);
        assert_ok(whit_lang_run(lang, &error), error);
        assert_string_equal(printed, "[8.0]\n");
        assert_ok(LOAD("fn twice(x) { return x * 2 }"), error);
        for (int line = 0; line < 20000; line++) { /* the trees of lines that ran are freed */
            bool fails = line % 100 == 50;
            const char *text = fails ? "let z = twice(nothing)"
                : line % 100         ? "a = twice(a) % 1000 - 7 * (a + 3) / 5"
                                     : "{ let t = a; a = t }";
            assert_int_equal(whit_lang_load(lang, "t", text, strlen(text), &error) != WHIT_OK, fails);
            if (!fails) assert_ok(whit_lang_run(lang, &error), error);
        }
        whit_lang_close(lang);
    }
}

/* Numbers have a point also if the host's locale has a comma. The locale is made by localedef, if that is here. */
static void test_decimal_comma(void **state)
{
    whit_lang_options options = options_of(WHIT_LANG_WALK);
    whit_lang *lang;
    whit_error error;
    int64_t value = 0;
    char command[320];
    assert_int_equal(make_folder(state), 0);
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s >/dev/null 2>&1", in_folder("de_DE"));
    setenv("LOCPATH", test_folder, 1);
    const bool is_there = system(command) >= 0 && setlocale(LC_NUMERIC, "de_DE") && strtod("1,5", NULL) > 1;
    if (is_there) {
        assert_ok(whit_lang_open(&options, &lang, &error), error);
        assert_ok(LOAD("let x = int(1.5 * 4)"), error);
        assert_ok(whit_lang_run(lang, &error), error);
        assert_true(whit_lang_get_int(lang, "x", &value));
        whit_lang_close(lang);
    }
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    remove_folder(state);
    if (!is_there) skip();
    assert_true(value == 6);
}

/* The host's vector is changed by programs alone, and only one variable can have it. */
static void test_lent_vector(void **state)
{
    (void)state;
    for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
        whit_lang_options options = options_of(tier);
        whit_lang *lang;
        whit_error error;
        float host[3] = {1, 2, 3}, other[2] = {7, 8};
        const float set[3] = {4, 5, 6};
        assert_ok(whit_lang_open(&options, &lang, &error), error);
        assert_ok(whit_lang_declare(lang, "logits", WHIT_LANG_VEC, &error), error);
        assert_ok(whit_lang_declare(lang, "state", WHIT_LANG_VEC, &error), error);
        assert_ok(LOAD("logits = logits * 2"), error);
        assert_ok(whit_lang_lend_vec(lang, "logits", host, 3, &error), error);
        assert_int_equal(whit_lang_set_vec(lang, "logits", set, 3, &error), WHIT_ERROR_ARGUMENT);
        assert_int_equal(whit_lang_set_vec(lang, "logits", set, 2, &error), WHIT_ERROR_ARGUMENT);
        assert_true(host[0] == 1 && host[1] == 2 && host[2] == 3);
        assert_ok(whit_lang_set_vec(lang, "state", set, 3, &error), error);
        assert_int_equal(whit_lang_lend_vec(lang, "state", other, 2, &error), WHIT_ERROR_ARGUMENT);
        assert_ok(whit_lang_run(lang, &error), error);
        assert_true(host[0] == 2 && host[1] == 4 && host[2] == 6);
        assert_ok(whit_lang_lend_vec(lang, "logits", other, 2, &error), error);
        assert_ok(whit_lang_run(lang, &error), error);
        assert_true(other[0] == 14 && other[1] == 16 && host[0] == 2);
        whit_lang_close(lang);

        /* a variable that a text defines, and that is removed with the text */
        assert_ok(whit_lang_open(&options, &lang, &error), error);
        assert_ok(LOAD("let v = [1, 2]"), error);
        assert_ok(whit_lang_lend_vec(lang, "v", host, 3, &error), error);
        whit_lang_forget(lang);
        assert_ok(LOAD("let v = [5]"), error);
        assert_ok(whit_lang_run(lang, &error), error);
        assert_true(host[0] == 2);
        whit_lang_close(lang);
    }
}

/* An assignment that is interrupted within a long vector must leave the variable unchanged. */
static void test_interrupted_assignment(void **state)
{
    (void)state;
    enum { N = 200000 };
    for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
        whit_lang_options options = options_of(tier);
        whit_lang *lang;
        whit_error error;
        float *x;
        uint32_t n;
        bool cancel = false;
        options.cancel = &cancel;
        assert_ok(whit_lang_open(&options, &lang, &error), error);
        assert_ok(LOAD("let v = range(200000)"), error);
        assert_ok(whit_lang_run(lang, &error), error);
        assert_ok(LOAD("v = sin(v)"), error);
        cancel = true; /* seen after 65,536 elements */
        assert_int_equal(whit_lang_run(lang, &error), WHIT_ERROR_CANCELLED);
        assert_true(whit_lang_get_vec(lang, "v", &x, &n) && n == N);
        for (uint32_t i = 0; i < n; i++) assert_true(x[i] == (float)i);
        cancel = false;
        assert_ok(whit_lang_run(lang, &error), error);
        assert_true(whit_lang_get_vec(lang, "v", &x, &n) && n == N && x[0] == 0 && x[1] < 1 && x[N - 1] <= 1);
        whit_lang_close(lang);
    }
}

/* A variable whose definition was not reached has no value: every tier must report that at the same place. */
static void test_nothing_yet(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } uses[] = {
        {"q = q + quat(range(-2))", "t:1:5: this variable has no value yet"},
        {"q += quat(range(-2))", "t:1:1: this variable has no value yet"},
        {"for i in 0..20 { q = q + r }", "t:1:22: this variable has no value yet"},
        {"print v[1 / n]", "t:1:7: this variable has no value yet"},
        {"print v[0..1 / n]", "t:1:7: this variable has no value yet"},
        {"print sum(v * range(-2))", "t:1:11: this variable has no value yet"},
        {"v = v + range(-2)", "t:1:5: this variable has no value yet"},
        {"v[1 / n] = 1", "t:1:5: division of 1 by zero"},
        {"v[0] = 1", "t:1:2: this variable has no value yet"},
    };
    for (int tier = 0; tier < WHIT_LANG_TIERS; tier++) {
        whit_lang_options options = options_of(tier);
        whit_lang *lang;
        whit_error error;
        assert_ok(whit_lang_open(&options, &lang, &error), error);
        assert_ok(LOAD("let n = 0\nlet r = quat([1])\nlet m = 1 / n\nlet q = quat([1])\nlet v = [1]"), error);
        assert_int_equal(whit_lang_run(lang, &error), WHIT_ERROR_ARGUMENT);
        for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
            assert_ok(whit_lang_load(lang, "t", uses[i].text, strlen(uses[i].text), &error), error);
            assert_int_equal(whit_lang_run(lang, &error), WHIT_ERROR_ARGUMENT);
            assert_string_equal(error.message, uses[i].says);
        }
        whit_lang_close(lang);
    }
}

/* Compares random loops over affine statements, which are computed in closed form, with loops that run round by
 * round. */
static void test_closed_forms(void **state)
{
    (void)state;
    whit_rng rng = {11};
    whit_error error;
    int n_loops = tests_are_brief() ? 500 : 10000;
    for (int k = 0; k < n_loops; k++) {
        char text[1024];
        int n =
            snprintf(text, sizeof text, "let a = %d\nlet b = %d\nlet c = %d\nfor i in %d..%d {\n",
                     (int)whit_rng_below(&rng, 200) - 100, (int)whit_rng_below(&rng, 9), (int)whit_rng_below(&rng, 3),
                     (int)whit_rng_below(&rng, 20) - 10, (int)whit_rng_below(&rng, 200));
        static const char *const names[] = {"a", "b", "c", "i", "7", "-3", "1", "257", "513", "4097"};
        enum { CONSTANTS = 4, ALL = sizeof names / sizeof *names };
        for (unsigned s = 0; s <= whit_rng_below(&rng, 4); s++) {
            const char *to = names[whit_rng_below(&rng, 3)];
            n += snprintf(text + n, sizeof text - (size_t)n, "%s = %s%s * %s %c %s\n", to,
                          whit_rng_below(&rng, 4) ? "" : "- ", names[whit_rng_below(&rng, ALL)],
                          names[CONSTANTS + whit_rng_below(&rng, ALL - CONSTANTS)], whit_rng_below(&rng, 2) ? '+' : '-',
                          names[whit_rng_below(&rng, ALL)]);
        }
        snprintf(text + n, sizeof text - (size_t)n, "}\nprint a, b, c");
        char first[sizeof printed];
        for (int closed = 0; closed < 2; closed++) {
            whit_lang_options options = options_of(closed ? 1 : 0);
            assert_ok(run(&options, text, &error, NULL), error);
            if (!closed) memcpy(first, printed, sizeof first);
        }
        if (strcmp(first, printed) != 0) fail_msg("%s\nrounds %sclosed %s", text, first, printed);
    }
    /* 10^12 rounds: n (n - 1) / 2 and its sums modulo 2^64. */
    whit_lang_options options = options_of(1);
    options.max_steps = 1000;
    const char *text =
        "let s = 0\nlet t = 0\nlet x = 1\nfor i in 0..1000000000000 { i_twice(0)\n s += i\n t += s }\nprint s";
    assert_int_not_equal(run(&options, text, &error, NULL), WHIT_OK); /* there is no function i_twice */
    text = "let s = 0\nlet x = 1\nfor i in 0..1000000000000 { s += i\n x = 3 * x + 1 }\nprint s, x";
    assert_ok(run(&options, text, &error, NULL), error);
    uint64_t power = 1, term = 3, e = 1000000000000; /* x = (3^(n + 1) - 1) / 2, by squaring (3^k - 1) / 2 */
    uint64_t sum = 1, step = 1;                      /* x after k rounds is 3^k x0 + (3^k - 1) / 2 */
    for (power = 1, sum = 0; e; e >>= 1) {
        if (e & 1) {
            sum = sum * term + step;
            power *= term;
        }
        step = step * term + step;
        term *= term;
    }
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%lld %lld\n",
             (long long)(uint64_t)((unsigned __int128)1000000000000 * 999999999999 / 2), (long long)(power + sum));
    assert_string_equal(printed, wanted);
}

int main(void)
{
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    if (whit_quat_select(&cpu, getenv("WHIT_CPU"), &kernels, NULL) != WHIT_OK) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),     cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_limits),       cmocka_unit_test(test_session),
        cmocka_unit_test(test_lent_vector),  cmocka_unit_test(test_interrupted_assignment),
        cmocka_unit_test(test_nothing_yet),  cmocka_unit_test(test_depth),
        cmocka_unit_test(test_too_large),    cmocka_unit_test(test_long_operations),
        cmocka_unit_test(test_closed_forms), cmocka_unit_test(test_decimal_comma)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
