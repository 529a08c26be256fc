/* SPDX-License-Identifier: MIT
 * Computes a graph in double precision, as simply as possible; training is compared with it. */
#ifndef WHIT_TESTS_TRAIN_REFERENCE_H
#define WHIT_TESTS_TRAIN_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/tape.h"

typedef struct reference {
    const whit_graph *graph;
    double **weights; /* weights of each parameter */
    double **values;  /* content of each value */
    uint32_t n_params, n_sequences, n_tokens, n_rows;
    double theta;
    const double *route; /* routes of the last dispatch to experts */
    double unbalance;    /* sum over all routers of the loss that balances experts, with weight 1 */
} reference;

/* Returns the number of rows of a value. A value by expert has a row for each pair of token and expert; here the pairs
 * are ordered by token. */
static inline size_t reference_rows(const reference *r, whit_ref value)
{
    bool pairs = r->graph->values[value - 1].rows == WHIT_ROWS_EXPERT;
    return (size_t)r->n_rows * (pairs ? r->graph->n_used : 1);
}

static inline reference reference_open(const whit_graph *graph, const whit_params *params, uint32_t n_sequences,
                                       uint32_t n_tokens, double theta)
{
    reference r = {graph,
                   calloc(params->n, sizeof(double *)),
                   calloc(graph->n_values + 1, sizeof(double *)),
                   params->n,
                   n_sequences,
                   n_tokens,
                   n_sequences * n_tokens,
                   theta,
                   NULL,
                   0};
    for (uint32_t i = 0; i < params->n; i++) {
        r.weights[i] = malloc(params->items[i].n * sizeof(double));
        for (size_t k = 0; k < params->items[i].n; k++) r.weights[i][k] = params->items[i].value[k];
    }
    for (uint32_t v = 1; v <= graph->n_values; v++)
        r.values[v] = malloc(reference_rows(&r, v) * graph->values[v - 1].width * sizeof(double));
    return r;
}

static inline void reference_close(reference *r)
{
    for (uint32_t i = 0; i < r->n_params; i++) free(r->weights[i]);
    for (uint32_t v = 1; v <= r->graph->n_values; v++) free(r->values[v]);
    free(r->weights);
    free(r->values);
}

static inline void reference_attention(reference *r, const whit_node *node)
{
    uint32_t width = r->graph->values[node->output - 1].width, kv = r->graph->values[node->input[1] - 1].width;
    uint32_t d = node->head_dim, per = width / kv;
    const double *q = r->values[node->input[0]], *k = r->values[node->input[1]], *v = r->values[node->input[2]];
    double *y = r->values[node->output], *p = malloc(r->n_tokens * sizeof(double));
    for (uint32_t row = 0; row < r->n_rows; row++)
        for (uint32_t head = 0; head < width / d; head++) {
            uint32_t begin = row - row % r->n_tokens, at = head / per * d;
            if (node->window && row - begin + 1 > node->window) begin = row + 1 - node->window;
            double sum = 0;
            for (uint32_t t = begin; t <= row; t++) {
                double s = 0;
                for (uint32_t i = 0; i < d; i++) s += q[row * width + head * d + i] * k[t * kv + at + i];
                sum += p[t - begin] = exp(s * node->constant);
            }
            for (uint32_t i = 0; i < d; i++) {
                double o = 0;
                for (uint32_t t = begin; t <= row; t++) o += p[t - begin] / sum * v[t * kv + at + i];
                y[row * width + head * d + i] = o;
            }
        }
    free(p);
}

/* Causal convolution of each channel; rows before the beginning of a sequence are zeros. */
static inline void reference_conv(reference *r, const whit_node *node)
{
    const double *x = r->values[node->input[0]], *w = r->weights[node->weight];
    double *y = r->values[node->output];
    size_t width = r->graph->values[node->output - 1].width;
    for (size_t row = 0; row < r->n_rows; row++)
        for (size_t c = 0; c < width; c++) {
            double sum = 0;
            for (size_t j = 0; j < node->n_taps; j++) {
                size_t back = node->n_taps - 1 - j;
                if (back <= row % r->n_tokens) sum += w[j * width + c] * x[(row - back) * width + c];
            }
            y[row * width + c] = node->is_silu ? sum / (1 + exp(-sum)) : sum;
        }
}

/* Gated delta rule, with a matrix S (key_dim, value_dim) for each value head. */
static inline void reference_delta(reference *r, const whit_node *node)
{
    uint32_t nk = node->head_dim, nv = node->value_dim, keys = node->n_key_heads * nk;
    size_t width = r->graph->values[node->input[0] - 1].width;
    const double *mixed = r->values[node->input[0]], *beta = r->values[node->input[1]],
                 *decay = r->values[node->input[2]], *a = r->weights[node->weight], *dt = r->weights[node->bias];
    double *y = r->values[node->output], *state = malloc((size_t)nk * nv * sizeof *state);
    for (uint32_t head = 0; head < node->n_heads; head++)
        for (size_t row = 0; row < r->n_rows; row++) {
            const uint32_t key_head =
                node->is_grouped ? head * node->n_key_heads / node->n_heads : head % node->n_key_heads;
            const double *q = mixed + row * width + key_head * nk, *k = q + keys,
                         *v = mixed + row * width + 2 * keys + head * nv;
            size_t at = row * node->n_heads + head;
            double qq = 1e-6, kk = 1e-6, b = 1 / (1 + exp(-beta[at])),
                   g = exp(a[head] * log1p(exp(decay[at] + dt[head])));
            if (row % r->n_tokens == 0) memset(state, 0, (size_t)nk * nv * sizeof *state);
            for (uint32_t i = 0; i < nk; i++) {
                qq += q[i] * q[i];
                kk += k[i] * k[i];
            }
            for (uint32_t c = 0; c < nv; c++) {
                double read = 0, out = 0;
                for (uint32_t i = 0; i < nk; i++) read += g * state[i * nv + c] * k[i] / sqrt(kk);
                for (uint32_t i = 0; i < nk; i++) {
                    state[i * nv + c] = g * state[i * nv + c] + k[i] / sqrt(kk) * b * (v[c] - read);
                    out += state[i * nv + c] * q[i] / sqrt(qq * nk);
                }
                y[at * nv + c] = out;
            }
        }
    free(state);
}

static inline void reference_route(reference *r, const whit_node *node)
{
    const uint32_t n = node->n_experts, n_used = node->n_used;
    double *scores = malloc(n * sizeof *scores), *means = calloc(2 * n, sizeof *means), *shares = means + n;
    bool *taken = malloc(n * sizeof *taken);
    for (size_t row = 0; row < r->n_rows; row++) {
        const double *logits = r->values[node->input[0]] + row * n;
        double *y = r->values[node->output] + row * 2 * n_used, all = 0, chosen = node->added;
        for (uint32_t e = 0; e < n; e++) all += exp(logits[e]);
        for (uint32_t e = 0; e < n; e++)
            scores[e] = node->route & WHIT_ROUTE_SIGMOID ? 1 / (1 + exp(-logits[e])) : exp(logits[e]) / all;
        memset(taken, 0, n * sizeof *taken);
        for (uint32_t e = 0; e < n; e++) means[e] += scores[e] / r->n_rows;
        for (uint32_t i = 0; i < n_used; i++) {
            double most = -1e300;
            uint32_t best = 0;
            for (uint32_t e = 0; e < n; e++) {
                double rank = scores[e] + (node->weight >= 0 ? r->weights[node->weight][e] : 0);
                if (taken[e] || rank <= most) continue;
                most = rank;
                best = e;
            }
            taken[best] = true;
            shares[best] += 1.0 / n_used / r->n_rows;
            y[i] = best;
            chosen += scores[best];
        }
        for (uint32_t i = 0; i < n_used; i++) {
            double scale = node->bias >= 0 ? r->weights[node->bias][(size_t)y[i]] : 1;
            y[n_used + i] =
                scores[(size_t)y[i]] / (node->route & WHIT_ROUTE_NORM ? chosen : 1) * node->constant * scale;
        }
    }
    for (uint32_t e = 0; e < n; e++) r->unbalance += n * shares[e] * means[e];
    free(scores);
    free(means);
    free(taken);
}

static inline void reference_expert_linear(reference *r, const whit_node *node)
{
    const uint32_t n_used = node->n_used;
    size_t width = r->graph->values[node->output - 1].width, k = r->graph->values[node->input[0] - 1].width;
    for (size_t row = 0; row < (size_t)r->n_rows * n_used; row++) {
        size_t expert = (size_t)r->route[row / n_used * 2 * n_used + row % n_used];
        const double *x = r->values[node->input[0]] + row * k, *w = r->weights[node->weight] + expert * width * k;
        double *y = r->values[node->output] + row * width;
        for (size_t i = 0; i < width; i++) {
            y[i] = node->bias >= 0 ? r->weights[node->bias][expert * width + i] : 0;
            for (size_t j = 0; j < k; j++) y[i] += x[j] * w[i * k + j];
        }
    }
}

static inline double reference_gate(uint8_t gate, double x)
{
    switch (gate) {
    case WHIT_GATE_RELU2: return x > 0 ? x * x : 0;
    case WHIT_GATE_GELU: return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case WHIT_GATE_SIGMOID: return 1 / (1 + exp(-x));
    case WHIT_GATE_PRODUCT: return x;
    case WHIT_GATE_SWISH1: return x / (1 + exp(-1.702 * x));
    default: return x / (1 + exp(-x));
    }
}

static inline void reference_node(reference *r, const whit_node *node, const int32_t *ids)
{
    const double *a = r->values[node->input[0]], *b = r->values[node->input[1]];
    const double *w = node->weight >= 0 ? r->weights[node->weight] : NULL;
    double *y = r->values[node->output];
    size_t width = r->graph->values[node->output - 1].width, n = reference_rows(r, node->output) * width,
           group = node->head_dim;
    size_t k = node->input[0] ? r->graph->values[node->input[0] - 1].width : 0;
    switch (node->op) {
    case WHIT_OP_EMBED:
        for (size_t i = 0; i < n; i++) y[i] = w[(size_t)ids[i / width] * width + i % width];
        break;
    case WHIT_OP_RMS_NORM:
        for (size_t i = 0; i < n; i++) {
            double squares = 0;
            for (size_t j = i - i % group; j < i - i % group + group; j++) squares += a[j] * a[j];
            y[i] = w[i % group] * a[i] / sqrt(squares / (double)group + node->constant);
        }
        break;
    case WHIT_OP_LINEAR:
        for (size_t i = 0; i < n; i++) {
            y[i] = node->bias >= 0 ? r->weights[node->bias][i % width] : 0;
            for (size_t j = 0; j < k; j++) y[i] += a[i / width * k + j] * w[i % width * k + j];
        }
        break;
    case WHIT_OP_ROPE:
        for (size_t i = 0; i < n; i++) {
            size_t in_head = i % width % group, half = node->rotary / 2;
            double at = (double)(i / width % r->n_tokens) * pow(r->theta, -(double)(in_head % half) / (double)half);
            y[i] = in_head >= node->rotary ? a[i]
                : in_head < half           ? a[i] * cos(at) - a[i + half] * sin(at)
                                           : a[i] * cos(at) + a[i - half] * sin(at);
        }
        break;
    case WHIT_OP_ATTENTION: reference_attention(r, node); break;
    case WHIT_OP_GATE:
        for (size_t i = 0; i < n; i++)
            y[i] = (b[i] + (node->gate == WHIT_GATE_SWISH1)) * reference_gate(node->gate, a[i]);
        break;
    case WHIT_OP_ADD:
        for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
        break;
    case WHIT_OP_SCALE:
        for (size_t i = 0; i < n; i++) y[i] = node->constant * a[i];
        break;
    case WHIT_OP_CONV: reference_conv(r, node); break;
    case WHIT_OP_DELTA: reference_delta(r, node); break;
    case WHIT_OP_SCALE_ROWS:
        for (size_t i = 0; i < n; i++) y[i] = a[i] / (1 + exp(-b[i / width]));
        break;
    case WHIT_OP_CLAMP:
        for (size_t i = 0; i < n; i++)
            y[i] = fmin(node->only_above ? a[i] : fmax(a[i], -node->constant), node->constant);
        break;
    case WHIT_OP_ROUTE: reference_route(r, node); break;
    case WHIT_OP_DISPATCH:
        r->route = b;
        for (size_t i = 0; i < n; i++) y[i] = a[i / width / node->n_used * width + i % width];
        break;
    case WHIT_OP_EXPERT_LINEAR: reference_expert_linear(r, node); break;
    case WHIT_OP_COMBINE:
        memset(y, 0, n * sizeof *y);
        for (size_t row = 0; row < (size_t)r->n_rows * node->n_used; row++) {
            size_t token = row / node->n_used;
            for (size_t i = 0; i < width; i++)
                y[token * width + i] +=
                    b[token * 2 * node->n_used + node->n_used + row % node->n_used] * a[row * width + i];
        }
        break;
    default: memcpy(y, a, n * sizeof *y);
    }
}

/* Runs the graph and returns the logits. */
static inline const double *reference_run(reference *r, const int32_t *ids)
{
    r->unbalance = 0;
    for (uint32_t i = 0; i < r->graph->n_nodes; i++) reference_node(r, &r->graph->nodes[i], ids);
    return r->values[r->graph->output];
}

static inline double reference_log_sum(const double *x, uint32_t n)
{
    double sum = 0, max = x[0];
    for (uint32_t i = 1; i < n; i++) max = fmax(max, x[i]);
    for (uint32_t i = 0; i < n; i++) sum += exp(x[i] - max);
    return max + log(sum);
}

#endif
