/* SPDX-License-Identifier: MIT
 * A graph in double precision, written as simply as can be: what training is compared with. */
#ifndef WHIT_TESTS_TRAIN_REFERENCE_H
#define WHIT_TESTS_TRAIN_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/tape.h"

typedef struct reference {
    const whit_graph *graph;
    double **weights; /* per parameter */
    double **values;  /* per value */
    uint32_t n_params, n_sequences, n_tokens, n_rows;
    double theta;
} reference;

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
                   theta};
    for (uint32_t i = 0; i < params->n; i++) {
        r.weights[i] = malloc(params->items[i].n * sizeof(double));
        for (size_t k = 0; k < params->items[i].n; k++) r.weights[i][k] = params->items[i].value[k];
    }
    for (uint32_t v = 1; v <= graph->n_values; v++)
        r.values[v] = malloc((size_t)r.n_rows * graph->values[v - 1].width * sizeof(double));
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

static inline void reference_node(reference *r, const whit_node *node, const int32_t *ids)
{
    const double *a = r->values[node->input[0]], *b = r->values[node->input[1]];
    const double *w = node->weight >= 0 ? r->weights[node->weight] : NULL;
    double *y = r->values[node->output];
    size_t width = r->graph->values[node->output - 1].width, n = r->n_rows * width, group = node->head_dim;
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
            y[i] = b[i] * (node->gate == WHIT_GATE_RELU2 ? (a[i] > 0 ? a[i] * a[i] : 0) : a[i] / (1 + exp(-a[i])));
        break;
    case WHIT_OP_ADD:
        for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
        break;
    case WHIT_OP_SCALE:
        for (size_t i = 0; i < n; i++) y[i] = node->constant * a[i];
        break;
    default: memcpy(y, a, n * sizeof *y);
    }
}

/* The logits. */
static inline const double *reference_run(reference *r, const int32_t *ids)
{
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
