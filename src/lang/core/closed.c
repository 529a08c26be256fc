/* SPDX-License-Identifier: MIT
 * Computes loops in closed form. If the body of a loop is a list of integer assignments that are affine in the
 * variables, one round is a multiplication by a matrix over the integers modulo 2^64, and n rounds are its n-th power.
 *
 * For counting loops the matrix is M = 1 + N with N^d = 0, so M^n v is the sum of C(n, j) N^j v over j < d; other
 * powers are computed by squaring. Modulo 2^64, d may exceed the number of rows: x = x * 257 has N = 256 and d = 8. */
#include "base/bounds.h"
#include "lang/core/ast.h"

enum { MAX = LANG_AFFINE_MAX };

struct finder {
    const lang_node *loop;
    uint32_t n; /* number of variables found so far */
    uint32_t slots[MAX];
    uint64_t rows[MAX][MAX]; /* each variable after the statements so far, as coefficients of the variables before the
                              * round; column MAX - 2: the counter, MAX - 1: the constant 1 */
};

static bool variable(struct finder *f, uint32_t slot, uint32_t *index)
{
    for (*index = 0; *index < f->n; ++*index)
        if (f->slots[*index] == slot) return true;
    if (f->n == MAX - 2) return false;
    f->slots[f->n] = slot;
    f->rows[f->n][f->n] = 1;
    f->n++;
    return true;
}

/* Sets `row` to the coefficients of an expression; returns false if the expression is not affine. */
static bool row_of(struct finder *f, const lang_node *e, uint64_t row[MAX])
{
    uint64_t a[MAX], b[MAX];
    uint32_t k;
    memset(row, 0, MAX * sizeof *row);
    if (e->type != WHIT_LANG_INT) return false;
    switch (e->kind) {
    case NODE_INT: row[MAX - 1] = (uint64_t)e->i; return true;
    case NODE_SLOT:
        if (e->global != f->loop->global) return false;
        if (e->slot == f->loop->slot) {
            row[MAX - 2] = 1;
            return true;
        }
        if (!variable(f, e->slot, &k)) return false;
        memcpy(row, f->rows[k], sizeof f->rows[k]);
        return true;
    case NODE_UNARY:
        if (e->op != OP_NEG || !row_of(f, e->a, a)) return false;
        for (k = 0; k < MAX; k++) row[k] = 0 - a[k];
        return true;
    case NODE_BINARY:
        if ((e->op != OP_ADD && e->op != OP_SUB && e->op != OP_MUL) || !row_of(f, e->a, a) || !row_of(f, e->b, b))
            return false;
        if (e->op == OP_MUL) { /* at least one operand must be a constant */
            uint64_t a_rest = 0, b_rest = 0;
            for (k = 0; k < MAX - 1; k++) {
                a_rest |= a[k];
                b_rest |= b[k];
            }
            if (a_rest && b_rest) return false;
            uint64_t factor = a_rest ? b[MAX - 1] : a[MAX - 1];
            for (k = 0; k < MAX; k++) row[k] = factor * (a_rest ? a[k] : b[k]);
            return true;
        }
        for (k = 0; k < MAX; k++) row[k] = e->op == OP_ADD ? a[k] + b[k] : a[k] - b[k];
        return true;
    default: return false;
    }
}

static bool statements(struct finder *f, const lang_node *s)
{
    uint64_t row[MAX];
    uint32_t k;
    for (; s; s = s->next) {
        if (s->kind == NODE_BLOCK) {
            if (!statements(f, s->a)) return false;
            continue;
        }
        if (s->kind != NODE_ASSIGN || s->type != WHIT_LANG_INT || s->global != f->loop->global ||
            s->slot == f->loop->slot || !row_of(f, s->a, row) || !variable(f, s->slot, &k))
            return false;
        memcpy(f->rows[k], row, sizeof row);
    }
    return true;
}

static void multiply_affine(uint32_t n, uint64_t out[MAX][MAX], const uint64_t a[MAX][MAX], const uint64_t b[MAX][MAX])
{
    uint64_t product[MAX][MAX] = {{0}};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t j = 0; j < n; j++) product[i][j] += a[i][k] * b[k][j];
    memcpy(out, product, sizeof product);
}

lang_affine *lang_affine_find(lang_arena *arena, const lang_node *loop)
{
    struct finder f = {.loop = loop};
    if (!statements(&f, loop->c->a)) return NULL;
    lang_affine *affine = lang_arena_take(arena, sizeof *affine);
    if (!affine) return NULL;
    uint32_t n = f.n + 2;
    affine->n = n;
    affine->n_variables = f.n;
    memcpy(affine->slots, f.slots, sizeof f.slots);
    for (uint32_t i = 0; i < f.n; i++) {
        memcpy(affine->matrix[i], f.rows[i], f.n * sizeof f.rows[i][0]);
        affine->matrix[i][f.n] = f.rows[i][MAX - 2];
        affine->matrix[i][f.n + 1] = f.rows[i][MAX - 1];
    }
    affine->matrix[f.n][f.n] = affine->matrix[f.n][f.n + 1] = affine->matrix[f.n + 1][f.n + 1] = 1;
    uint64_t power[MAX][MAX], rest = 0;
    memcpy(power, affine->matrix, sizeof power);
    for (uint32_t i = 0; i < n; i++) power[i][i] -= 1;
    for (uint32_t k = 1; k < MAX; k *= 2) multiply_affine(n, power, power, power);
    for (uint32_t i = 0; i < MAX * MAX; i++) rest |= power[i / MAX][i % MAX];
    affine->unipotent = rest == 0;
    return affine;
}

/* Returns the binomial coefficient C(n, j) modulo 2^64. Before multiplying, the factors of j! are divided out of the
 * factors n, n - 1, ... of the numerator. */
static uint64_t binomial(uint64_t n, uint32_t j)
{
    uint64_t factors[MAX], product = 1;
    if (j > n) return 0;
    for (uint32_t i = 0; i < j; i++) factors[i] = n - i;
    for (uint64_t d = 2; d <= j; d++) {
        uint64_t left = d;
        for (uint32_t i = 0; i < j && left > 1; i++) {
            uint64_t common = whit_common_divisor(factors[i], left);
            factors[i] /= common;
            left /= common;
        }
    }
    for (uint32_t i = 0; i < j; i++) product *= factors[i];
    return product;
}

static bool apply_affine(const lang_affine *affine, bool less_one, const uint64_t in[MAX], uint64_t out[MAX])
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < affine->n; i++) {
        out[i] = less_one ? 0 - in[i] : 0;
        for (uint32_t k = 0; k < affine->n; k++) out[i] += affine->matrix[i][k] * in[k];
        any |= out[i];
    }
    return any != 0;
}

void lang_affine_run(const lang_affine *affine, uint64_t rounds, uint64_t state[LANG_AFFINE_MAX])
{
    uint64_t v[MAX] = {0}, next[MAX] = {0};
    memcpy(v, state, affine->n * sizeof *v);
    if (affine->unipotent) {
        for (uint32_t j = 1; j < MAX && apply_affine(affine, true, v, next); j++) {
            uint64_t c = binomial(rounds, j);
            for (uint32_t i = 0; i < affine->n; i++) state[i] += c * next[i];
            memcpy(v, next, sizeof v);
        }
        return;
    }
    lang_affine power = *affine;
    for (; rounds; rounds >>= 1) {
        if (rounds & 1) {
            apply_affine(&power, false, v, next);
            memcpy(v, next, sizeof v);
        }
        multiply_affine(affine->n, power.matrix, power.matrix, power.matrix);
    }
    memcpy(state, v, affine->n * sizeof *v);
}
