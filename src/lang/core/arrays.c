/* SPDX-License-Identifier: MIT
 * Allocates arrays within the session's memory limit, reads and writes their elements, and runs operations on
 * quaternary vectors (elements -2, -1, 1 and 2 times a scale). */
#include "base/bounds.h"
#include "lang/core/vm.h"

/* Alignment of the elements of long vectors. If one vector began a few cache lines after another one, modulo a page,
 * loads from one would wait for stores to the other, because the processor compares addresses only within a page. */
enum { PAGE_BYTES = 4096 };

static lang_array *take_array(whit_lang *vm, const lang_node *at, size_t data_bytes)
{
    bool pages = data_bytes >= PAGE_BYTES;
    size_t size = sizeof(lang_array) + whit_round_up(data_bytes, 64) + (pages ? PAGE_BYTES : 0);
    lang_array *array = vm->spare;
    if (array && array->size_bytes == size)
        vm->spare = NULL;
    else {
        if (vm->spare && vm->n_bytes + size > vm->options.max_bytes) {
            array = vm->spare;
            vm->spare = NULL;
            vm->n_bytes -= array->size_bytes;
            whit_free(vm->options.allocator, array, array->size_bytes);
        }
        if (size > vm->options.max_bytes || vm->n_bytes > vm->options.max_bytes - size)
            lang_raise(vm, at, WHIT_ERROR_LIMIT, "the arrays take more than %zu bytes together, which is the limit",
                       vm->options.max_bytes);
        array = whit_alloc(vm->options.allocator, size);
        if (!array) lang_raise(vm, at, WHIT_ERROR_MEMORY, "there is not enough memory for an array of %zu bytes", size);
        vm->n_bytes += size;
        array->size_bytes = size;
    }
    array->refs = 1;
    array->x = array->own;
    if (pages) array->x += (PAGE_BYTES - (uintptr_t)array->own % PAGE_BYTES) % PAGE_BYTES / sizeof(float);
    array->previous = NULL;
    array->next = vm->arrays;
    if (vm->arrays) vm->arrays->previous = array;
    vm->arrays = array;
    return array;
}

void lang_destroy(whit_lang *vm, lang_array *array)
{
    if (array == vm->lent) return; /* the host's vector is not freed, because it may be lent again */
    if (array->previous)
        array->previous->next = array->next;
    else
        vm->arrays = array->next;
    if (array->next) array->next->previous = array->previous;
    lang_array *old = vm->spare;
    vm->spare = array;
    if (!old) return;
    vm->n_bytes -= old->size_bytes;
    whit_free(vm->options.allocator, old, old->size_bytes);
}

static uint32_t check_length(whit_lang *vm, const lang_node *at, int64_t n)
{
    if (n < 0 || n > (int64_t)1 << 30)
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "a vector cannot have %lld elements (0 to 2^30 are possible)",
                   (long long)n);
    lang_step(vm, at, n / 64 + 1);
    return (uint32_t)n;
}

lang_array *lang_new_vec(whit_lang *vm, const lang_node *at, int64_t n)
{
    uint32_t length = check_length(vm, at, n);
    lang_array *array = take_array(vm, at, (size_t)length * sizeof(float));
    array->n = length;
    array->type = WHIT_LANG_VEC;
    array->scale = 0;
    return array;
}

lang_array *lang_new_head(whit_lang *vm, const lang_node *at, float *x, uint32_t n)
{
    lang_array *array = take_array(vm, at, 0);
    array->n = n;
    array->type = WHIT_LANG_VEC;
    array->scale = 0;
    array->x = x;
    return array;
}

lang_array *lang_new_quat(whit_lang *vm, const lang_node *at, int64_t n, int8_t scale)
{
    uint32_t length = check_length(vm, at, n);
    lang_array *array = take_array(vm, at, (size_t)lang_plane_words(length) * 16);
    array->n = length;
    array->type = WHIT_LANG_QUAT;
    array->scale = scale;
    return array;
}

lang_array *lang_array_of(whit_lang *vm, const lang_node *at, lang_array *array)
{
    if (!array) lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "this variable has no value yet");
    return array;
}

lang_array *lang_settle(whit_lang *vm, const lang_node *at, const lang_array *held, lang_array *value)
{
    if (value != vm->lent || value == held) return value;
    lang_array *copy = lang_new_vec(vm, at, value->n);
    memcpy(copy->x, value->x, (size_t)value->n * sizeof(float));
    lang_release(vm, value);
    return copy;
}

lang_array *lang_own(whit_lang *vm, const lang_node *at, lang_array *array)
{
    if (array->refs == 1) return array;
    lang_array *copy =
        array->type == WHIT_LANG_VEC ? lang_new_vec(vm, at, array->n) : lang_new_quat(vm, at, array->n, array->scale);
    memcpy(copy->x, array->x,
           array->type == WHIT_LANG_VEC ? (size_t)array->n * sizeof(float) : (size_t)lang_plane_words(array->n) * 16);
    lang_release(vm, array);
    return copy;
}

double lang_element(whit_lang *vm, const lang_node *at, const lang_array *array, int64_t i)
{
    lang_check_index(vm, at, array, i);
    if (array->type == WHIT_LANG_VEC) return array->x[i];
    double unit = array->scale >= 0 ? (double)((uint64_t)1 << (array->scale & 63)) : 1.0;
    int value = whit_quat_at(lang_view(array), (uint32_t)i);
    if (array->scale >= 0 && array->scale < 63) return value * unit;
    return __builtin_ldexp(value, array->scale);
}

lang_array *lang_slice(whit_lang *vm, const lang_node *at, const lang_array *array, int64_t begin, int64_t end)
{
    if (begin < 0 || begin > end || end > array->n)
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "the range [%lld..%lld] is outside a vector of %u elements",
                   (long long)begin, (long long)end, array->n);
    lang_array *part = lang_new_vec(vm, at, end - begin);
    memcpy(part->x, array->x + begin, (size_t)(end - begin) * sizeof(float));
    return part;
}

uint32_t lang_same_length(whit_lang *vm, const lang_node *at, const lang_array *a, const lang_array *b)
{
    if (a->n != b->n)
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "vectors of %u and %u elements cannot be combined", a->n, b->n);
    return a->n;
}

lang_array *lang_quat_unary(whit_lang *vm, const lang_node *at, lang_op op, const lang_array *a)
{
    const whit_quat_kernels *kernels = vm->options.quat;
    lang_array *out = lang_new_quat(vm, at, a->n, a->scale);
    whit_quat_unary_fn *fn;
    if (op == OP_NEG)
        fn = kernels->negate;
    else if (op == OP_ABS)
        fn = kernels->absolute;
    else
        fn = kernels->silu;
    fn(lang_planes(out), lang_view(a), whit_quat_words(a->n));
    return out;
}

/* Applies an operation to quaternary vectors element by element. Comparisons give +1 if they are true, else -1. Sums,
 * differences and products accept different scales; all other operations require equal scales. */
lang_array *lang_quat_binary(whit_lang *vm, const lang_node *at, lang_op op, const lang_array *a, const lang_array *b)
{
    const whit_quat_kernels *kernels = vm->options.quat;
    uint32_t n = lang_same_length(vm, at, a, b), words = whit_quat_words(n);
    lang_array *out = lang_new_quat(vm, at, n, 0);
    whit_quat_planes planes = lang_planes(out);
    whit_quat_view x = lang_view(a), y = lang_view(b);
    if (op == OP_ADD || op == OP_SUB) {
        if (op == OP_SUB) {
            kernels->negate(planes, y, words);
            y = lang_view(out);
        }
        out->scale = whit_quat_add_scaled(kernels, planes, x, a->scale, y, b->scale, words);
        return out;
    }
    if (op == OP_MUL) {
        int scale = a->scale + b->scale;
        out->scale = (int8_t)whit_within(scale, -128, 127);
        kernels->mul(planes, x, y, words);
        return out;
    }
    if (a->scale != b->scale)
        lang_raise(vm, at, WHIT_ERROR_ARGUMENT, "quaternary vectors of scales 2^%d and 2^%d cannot be compared",
                   a->scale, b->scale);
    bool equal = op == OP_EQ || op == OP_NE, swap = op == OP_GT || op == OP_LE || op == OP_MAX;
    bool flip = op == OP_NE || op == OP_LE || op == OP_GE;
    whit_quat_compare_fn *compare = equal ? kernels->equal : kernels->less;
    whit_quat_view larger = swap ? x : y;
    compare(planes.extra, swap ? y : x, larger, words);
    if (op == OP_MIN || op == OP_MAX) { /* planes.extra is 1 where a < b, or, for the maximum, where b < a: take a
                                         * there, else b */
        kernels->select(planes, planes.extra, x, y, words);
        out->scale = a->scale;
        return out;
    }
    for (uint32_t i = 0; i < words; i++) {
        uint64_t holds = flip ? ~planes.extra[i] : planes.extra[i];
        planes.sign[i] = holds;
        planes.extra[i] = ~holds;
    }
    return out;
}
