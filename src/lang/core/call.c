/* SPDX-License-Identifier: MIT
 * Implements `print` and the functions of the language that do not work element by element. Sums of floats have sixteen
 * lanes: element i is added to lane i mod 16. At the end the upper half of the lanes is added to the lower half, until
 * one lane is left. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bounds.h"
#include "lang/core/chunk.h"
#include "base/items.h"
#include "lang/core/vm.h"

static double sum_of(const whit_lang *vm, const lang_array *a, const float *b)
{
    float lanes[16] = {0};
    if (b)
        vm->kernels->dot(lanes, a->x, b, a->n);
    else
        vm->kernels->sum(lanes, a->x, a->n);
    return lang_lanes_total(lanes);
}

static uint32_t argmax(const float *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static void want_elements(whit_lang *vm, const lang_node *at, const lang_array *a)
{
    if (!a->n) lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "an empty vector has no such element");
}

/* Returns the softmax of a vector; overwrites the vector if nothing else refers to it. */
static lang_array *softmax(whit_lang *vm, const lang_node *at, lang_array *a)
{
    lang_array *out = a->refs == 1 ? lang_retain(a) : lang_new_vec(vm, at, a->n);
    if (!a->n) return out;
    const lang_chunk_kernels *k = vm->kernels;
    float lanes[16] = {0}, most = lang_largest(k, a->x, a->n);
    /* chunk by chunk, so that elements stay in the L1 cache */
    for (uint32_t begin = 0; begin < a->n; begin += LANG_CHUNK) {
        uint32_t n = a->n - begin < LANG_CHUNK ? a->n - begin : LANG_CHUNK;
        k->binary_scalar[OP_SUB](out->x + begin, a->x + begin, most, n);
        k->unary[OP_EXP](out->x + begin, out->x + begin, n);
        k->sum(lanes, out->x + begin, n);
    }
    k->binary_scalar[OP_DIV](out->x, out->x, lang_lanes_total(lanes), a->n);
    return out;
}

static lang_array *rms_norm(whit_lang *vm, const lang_node *at, const lang_array *a, const lang_array *weight)
{
    if (weight) lang_same_length(vm, at, a, weight);
    if (a->type == WHIT_LANG_QUAT) {
        want_elements(vm, at, a);
        lang_array *out = lang_new_quat(vm, at, a->n, 0);
        whit_quat_view w = weight ? lang_view(weight) : (whit_quat_view){0};
        int scale = whit_quat_rms_norm(vm->options.quat, lang_planes(out), lang_view(a), w, a->n);
        scale += weight ? weight->scale : 0;
        out->scale = (int8_t)(scale > 127 ? 127 : scale);
        return out;
    }
    lang_array *out = lang_new_vec(vm, at, a->n);
    double squares = sum_of(vm, a, a->x);
    float factor = (float)(1 / sqrt(squares / a->n + 1e-6));
    for (uint32_t i = 0; i < a->n; i++) out->x[i] = a->x[i] * factor * (weight ? weight->x[i] : 1);
    return out;
}

/* Returns a key for sorting: the unsigned order of keys is the order of the numbers, with -0 before 0 and NaN last. */
static uint32_t sort_key(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return UINT32_MAX;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* Returns a sorted copy of a vector. Both methods are stable, so the result does not depend on the method: insertion
 * sort for few elements, else radix sort by eleven bits of the keys at a time. */
static lang_array *sort(whit_lang *vm, const lang_node *at, const lang_array *a)
{
    enum { FEW = 128, BITS = 11, PASSES = 3, BUCKETS = 1 << BITS };
    lang_array *out = lang_new_vec(vm, at, a->n), *other;
    uint32_t n = a->n, ends[BUCKETS];
    lang_step(vm, at, n / 16);
    memcpy(out->x, a->x, n * sizeof(float));
    if (n <= FEW) {
        for (uint32_t i = 1, k; i < n; i++) {
            float x = out->x[i];
            for (k = i; k && sort_key(out->x[k - 1]) > sort_key(x); k--) out->x[k] = out->x[k - 1];
            out->x[k] = x;
        }
        return out;
    }
    other = lang_new_vec(vm, at, n);
    for (unsigned shift = 0; shift < PASSES * BITS; shift += BITS) {
        uint32_t end = 0;
        memset(ends, 0, sizeof ends);
        for (uint32_t i = 0; i < n; i++) {
            lang_look(vm, at, i);
            ends[sort_key(out->x[i]) >> shift & (BUCKETS - 1)]++;
        }
        for (uint32_t k = 0; k < BUCKETS; k++) {
            uint32_t count = ends[k];
            ends[k] = end;
            end += count;
        }
        for (uint32_t i = 0; i < n; i++) {
            lang_look(vm, at, i);
            other->x[ends[sort_key(out->x[i]) >> shift & (BUCKETS - 1)]++] = out->x[i];
        }
        lang_array *sorted = other;
        other = out;
        out = sorted;
    }
    lang_release(vm, other);
    return out;
}

/* Rotates the elements of q by k positions: out[i] = q[(i - k) mod n]. */
static lang_array *permute(whit_lang *vm, const lang_node *at, const lang_array *q, int64_t k)
{
    lang_array *out = lang_new_quat(vm, at, q->n, q->scale);
    int64_t n = q->n, shift = n ? (k % n + n) % n : 0;
    for (int64_t i = 0; i < n; i++) {
        lang_look(vm, at, (uint32_t)i);
        int64_t from = i - shift < 0 ? i - shift + n : i - shift;
        whit_quat_put(lang_planes(out), (uint32_t)i, whit_quat_at(lang_view(q), (uint32_t)from));
    }
    return out;
}

/* Computes the majority of the signs, +1 or -1, for each element; with an even number of vectors, a tie gets the sign
 * of the first vector. */
static lang_array *bundle(whit_lang *vm, const lang_node *at, const lang_value *arguments, uint32_t n)
{
    lang_array *out = lang_new_quat(vm, at, arguments[0].a->n, 0);
    for (uint32_t k = 1; k < n; k++) lang_same_length(vm, at, arguments[0].a, arguments[k].a);
    whit_quat_planes planes = lang_planes(out);
    for (uint32_t w = 0; w < whit_quat_words(out->n); w++) {
        uint64_t counts[6] = {0}; /* bit planes: bit i of each element's number of positive signs is in counts[i] */
        for (uint32_t k = 0; k < n; k++) {
            uint64_t carry = lang_view(arguments[k].a).sign[w];
            for (unsigned bit = 0; bit < 6; bit++) {
                uint64_t both = counts[bit] & carry;
                counts[bit] ^= carry;
                carry = both;
            }
        }
        /* Compares the counts with n / 2, from the highest bit down: `more` gets the elements with more than n / 2
         * positive signs, `equal` those with exactly n / 2. */
        uint64_t more = 0, equal = ~(uint64_t)0;
        for (unsigned bit = 6; bit-- > 0;) {
            uint64_t half = n / 2 >> bit & 1 ? ~(uint64_t)0 : 0;
            more |= equal & counts[bit] & ~half;
            equal &= ~(counts[bit] ^ half);
        }
        uint64_t sign = more | (n % 2 ? 0 : equal & lang_view(arguments[0].a).sign[w]);
        planes.sign[w] = sign;
        planes.extra[w] = ~sign;
    }
    return out;
}

/* Returns the number of elements whose signs differ; if b is NULL, the number of negative elements (sign bit 0). */
static int64_t count_signs(const lang_array *a, const lang_array *b)
{
    uint32_t n_words = whit_quat_words(a->n);
    int64_t count = 0;
    for (uint32_t w = 0; w < n_words; w++) {
        uint64_t last = w + 1 == n_words && a->n % 64 ? ((uint64_t)1 << a->n % 64) - 1 : ~(uint64_t)0;
        count += __builtin_popcountll((lang_view(a).sign[w] ^ (b ? lang_view(b).sign[w] : ~(uint64_t)0)) & last);
    }
    return count;
}

static lang_array *gemv(whit_lang *vm, const lang_node *at, const lang_array *m, const lang_array *x)
{
    uint32_t cols = x->n, rows = cols ? m->n / cols : 0;
    if (!cols || m->n % cols)
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "a matrix of %u elements has no rows of %u", m->n, cols);
    lang_step(vm, at, m->n / 64 + 1);
    lang_array *y = lang_new_vec(vm, at, rows);
    if (m->type == WHIT_LANG_VEC) {
        for (uint32_t r = 0; r < rows; r++) {
            float lanes[16] = {0};
            vm->kernels->dot(lanes, m->x + (size_t)r * cols, x->x, cols);
            y->x[r] = lang_lanes_total(lanes);
        }
        return y;
    }
    if (cols % 64)
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "rows of a quaternary matrix are multiples of 64 elements, not %u",
                   cols);
    for (uint32_t r = 0; r < rows; r++) {
        size_t begin = (size_t)r * (cols / 64);
        whit_quat_view row = {lang_view(m).sign + begin, lang_view(m).extra + begin};
        y->x[r] = (float)ldexp((double)vm->options.quat->dot(row, lang_view(x), cols), m->scale + x->scale);
    }
    return y;
}

static double quat_dot(whit_lang *vm, const lang_array *a, const lang_array *b)
{
    return ldexp((double)vm->options.quat->dot(lang_view(a), lang_view(b), a->n), a->scale + b->scale);
}

static lang_array *select_of(whit_lang *vm, const lang_node *at, const lang_array *m, const lang_array *a,
                             const lang_array *b)
{
    lang_same_length(vm, at, m, a);
    lang_same_length(vm, at, a, b);
    if (a->type == WHIT_LANG_VEC) {
        lang_array *out = lang_new_vec(vm, at, a->n);
        for (uint32_t i = 0; i < a->n; i++) out->x[i] = m->x[i] != 0 ? a->x[i] : b->x[i];
        return out;
    }
    if (a->scale != b->scale)
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "select needs vectors of equal scales, not 2^%d and 2^%d", a->scale,
                   b->scale);
    lang_array *out = lang_new_quat(vm, at, a->n, a->scale);
    vm->options.quat->select(lang_planes(out), lang_view(m).sign, lang_view(a), lang_view(b), whit_quat_words(a->n));
    return out;
}

/* Rounds a vector to a quaternary vector with scale 2^*given; if `given` is NULL, with the scale that has the least
 * squared error. */
static lang_array *quat(whit_lang *vm, const lang_node *at, const lang_array *a, const int64_t *given)
{
    enum { PIECE = 65536 };
    whit_quat_fitting fit;
    float largest = 0;
    for (uint32_t i = 0; !given && i < a->n; i += PIECE) {
        lang_look(vm, at, i);
        float most = whit_quat_largest(a->x + i, a->n - i < PIECE ? a->n - i : PIECE);
        largest = most > largest ? most : largest;
    }
    whit_quat_fit_begin(&fit, largest);
    for (uint32_t i = 0; !given && i < a->n; i += PIECE) {
        lang_look(vm, at, i);
        whit_quat_fit_add(&fit, a->x + i, a->n - i < PIECE ? a->n - i : PIECE);
    }
    int64_t scale = given ? *given : whit_quat_fit_end(&fit);
    if (scale < -126 || scale > 126)
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "a scale cannot be 2^%lld (exponents from -126 to 126 are possible)",
                   (long long)scale);
    lang_array *out = lang_new_quat(vm, at, a->n, (int8_t)scale);
    for (uint32_t i = 0; i < a->n; i += PIECE) {
        whit_quat_planes planes = lang_planes(out);
        planes.sign += i / 64;
        planes.extra += i / 64;
        lang_look(vm, at, i);
        whit_quat_round(a->x + i, a->n - i < PIECE ? a->n - i : PIECE, (int8_t)scale, planes);
    }
    return out;
}

lang_value lang_call_builtin(whit_lang *vm, const lang_node *at, const lang_value *v, uint32_t n)
{
    const lang_array *a = at->a->type >= WHIT_LANG_VEC ? v[0].a : NULL;
    const lang_array *b = n > 1 && at->a->next->type >= WHIT_LANG_VEC ? v[1].a : NULL;
    lang_array *out;
    if (a) lang_step(vm, at, a->n / 64 + 1);
    bool vec = a && a->type == WHIT_LANG_VEC;
    switch ((lang_builtin)at->op) {
    case FN_LEN: return (lang_value){.i = a->n};
    case FN_VEC:
        out = lang_new_vec(vm, at, a ? a->n : v[0].i);
        for (uint32_t i = 0; !a && i < out->n; i++) out->x[i] = (float)v[1].f;
        if (a) whit_quat_expand(lang_view(a), a->n, a->scale, out->x);
        return (lang_value){.a = out};
    case FN_RANGE:
        out = lang_new_vec(vm, at, v[0].i);
        for (uint32_t i = 0; i < out->n; i++) out->x[i] = (float)i;
        return (lang_value){.a = out};
    case FN_SUM:
    case FN_MEAN: {
        double sum = vec ? sum_of(vm, a, NULL) : ldexp((double)vm->options.quat->sum(lang_view(a), a->n), a->scale);
        return (lang_value){.f = at->op == FN_MEAN ? sum / a->n : sum};
    }
    case FN_LARGEST: want_elements(vm, at, a); return (lang_value){.f = lang_largest(vm->kernels, a->x, a->n)};
    case FN_SMALLEST: {
        want_elements(vm, at, a);
        float smallest = a->x[0];
        for (uint32_t i = 1; i < a->n; i++) smallest = a->x[i] < smallest ? a->x[i] : smallest;
        return (lang_value){.f = smallest};
    }
    case FN_DOT:
        lang_same_length(vm, at, a, b);
        return (lang_value){.f = vec ? sum_of(vm, a, b->x) : quat_dot(vm, a, b)};
    case FN_ARGMAX: want_elements(vm, at, a); return (lang_value){.i = argmax(a->x, a->n)};
    case FN_SOFTMAX: return (lang_value){.a = softmax(vm, at, v[0].a)};
    case FN_RMSNORM: return (lang_value){.a = rms_norm(vm, at, a, b)};
    case FN_QUAT: return (lang_value){.a = quat(vm, at, a, n > 1 ? &v[1].i : NULL)};
    case FN_SCALE: return (lang_value){.i = a->scale};
    case FN_SWIGLU:
        lang_same_length(vm, at, a, b);
        if (vec) {
            out = lang_new_vec(vm, at, a->n);
            vm->kernels->unary[OP_SILU](out->x, a->x, a->n);
            vm->kernels->binary[OP_MUL](out->x, out->x, b->x, a->n);
        } else {
            int scale = a->scale + b->scale;
            out = lang_new_quat(vm, at, a->n, (int8_t)whit_within(scale, -128, 127));
            vm->options.quat->swiglu(lang_planes(out), lang_view(a), lang_view(b), whit_quat_words(a->n));
        }
        return (lang_value){.a = out};
    case FN_SELECT: return (lang_value){.a = select_of(vm, at, a, b, v[2].a)};
    case FN_COUNT: {
        int64_t count = 0;
        if (!vec) return (lang_value){.i = count_signs(a, NULL)};
        for (uint32_t i = 0; i < a->n; i++) count += a->x[i] != 0;
        return (lang_value){.i = count};
    }
    case FN_GEMV: return (lang_value){.a = gemv(vm, at, a, b)};
    case FN_CONCAT:
        out = lang_new_vec(vm, at, (int64_t)a->n + b->n);
        memcpy(out->x, a->x, a->n * sizeof(float));
        memcpy(out->x + a->n, b->x, b->n * sizeof(float));
        return (lang_value){.a = out};
    case FN_SORT: return (lang_value){.a = sort(vm, at, a)};
    case FN_PERMUTE: return (lang_value){.a = permute(vm, at, a, v[1].i)};
    case FN_BUNDLE: return (lang_value){.a = bundle(vm, at, v, n)};
    case FN_HAMMING: lang_same_length(vm, at, a, b); return (lang_value){.i = count_signs(a, b)};
    case FN_COSINE: {
        lang_same_length(vm, at, a, b);
        double ab = vec ? sum_of(vm, a, b->x) : quat_dot(vm, a, b);
        double aa = vec ? sum_of(vm, a, a->x) : quat_dot(vm, a, a);
        double bb = vec ? sum_of(vm, b, b->x) : quat_dot(vm, b, b);
        return (lang_value){.f = ab / sqrt(aa * bb)};
    }
    case N_BUILTINS: break;
    }
    return (lang_value){0};
}

/* ---- printing --------------------------------------------------------------------------------- */

/* Appends the shortest decimal number that reads back as `value`; single: as a float32. */
static void print_float(whit_buf *out, double value, bool single)
{
    char text[40];
    /* subnormal numbers have fewer significant digits, so fewer are tried first */
    bool tiny = fabs(value) < (single ? (double)FLT_MIN : DBL_MIN);
    int digits = 15;
    if (tiny)
        digits = 1;
    else if (single)
        digits = 6;
    if (value != value) {
        whit_buf_append_str(out, "nan");
        return;
    }
    do {
        snprintf(text, sizeof text, "%.*g", digits, value);
    } while ((single ? strtof(text, NULL) != (float)value : strtod(text, NULL) != value) && ++digits < 18);
    if (!strpbrk(text, ".ein")) strcat(text, ".0");
    whit_buf_append_str(out, text);
}

enum { PRINTED_MAX = 32 };

static void print_value(whit_buf *out, lang_value value, uint8_t type)
{
    if (type == WHIT_LANG_INT) {
        whit_buf_printf(out, "%lld", (long long)value.i);
        return;
    }
    if (type == WHIT_LANG_FLOAT) {
        print_float(out, value.f, false);
        return;
    }
    const lang_array *a = value.a;
    whit_buf_append_str(out, type == WHIT_LANG_QUAT ? "quat[" : "[");
    for (uint32_t i = 0; i < a->n && i < PRINTED_MAX; i++) {
        if (i) whit_buf_append_str(out, ", ");
        if (type == WHIT_LANG_VEC)
            print_float(out, a->x[i], true);
        else
            whit_buf_printf(out, "%d", whit_quat_at(lang_view(a), i));
    }
    if (a->n > PRINTED_MAX) whit_buf_printf(out, ", ... %u in all", a->n);
    whit_buf_append_str(out, "]");
    if (type == WHIT_LANG_QUAT && a->scale) whit_buf_printf(out, " * 2^%d", a->scale);
}

void lang_print(whit_lang *vm, const lang_node *at, const lang_value *values, const uint8_t *types, uint32_t n)
{
    enum { STEPS = 64 }; /* steps per printed value and per number in it, each of which takes hundreds of ns */
    whit_buf out = {.allocator = vm->options.allocator};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t numbers = PRINTED_MAX;
        if (types[i] < WHIT_LANG_VEC)
            numbers = 1;
        else if (values[i].a->n < PRINTED_MAX)
            numbers = values[i].a->n;
        lang_step(vm, at, STEPS * (1 + numbers));
    }
    if (!vm->options.print) return;
    for (uint32_t i = 0; i < n; i++) {
        if (i) whit_buf_append_str(&out, " ");
        print_value(&out, values[i], types[i]);
    }
    whit_buf_append_str(&out, "\n");
    bool failed = out.failed,
         goes_on = failed || vm->options.print(vm->options.user, WHIT_ITEMS(char, &out), out.size_bytes);
    whit_buf_free(&out);
    if (failed) lang_raise(vm, at, WHIT_ERROR_MEMORY, "there is not enough memory for a line");
    if (!goes_on) lang_raise(vm, at, WHIT_ERROR_IO, "the program's output cannot be written");
}
