/* SPDX-License-Identifier: MIT
 * Runs the calibration text through the model block by block, once through the original blocks and once through the
 * blocks already compressed: the family's graph on two tapes (train/tape.h), one layer's nodes at a time. Only one
 * layer's weights are in memory as float.
 *
 *   whit_stream_open; for each layer: whit_stream_load, whit_stream_run as often as wanted,
 *   whit_stream_advance; whit_stream_close
 *
 * Tapes are large: between runs whit_stream_rest gives their memory back, and whit_stream_wake opens them again. */
#ifndef WHIT_COMPRESS_STREAM_H
#define WHIT_COMPRESS_STREAM_H

#include "base/ranks.h"
#include "compress/within.h"
#include "model/source.h"
#include "train/tape.h"

typedef enum whit_stream_side { WHIT_STREAM_ORIGINAL, WHIT_STREAM_COMPRESSED, WHIT_STREAM_SIDES } whit_stream_side;

typedef struct whit_stream {
    const whit_source *source;
    whit_pool *pool;
    const whit_allocator *allocator;
    whit_params params[WHIT_STREAM_SIDES]; /* the same tensors on both sides; only the current layer has values */
    whit_graph graph, block;               /* the model's graph, and the current layer's part of it */
    whit_ref input, output;                /* values at the start and end of the block */
    whit_tape tape[WHIT_STREAM_SIDES];
    bool awake;                        /* the tapes are open */
    bool is_single;                    /* only the compressed side runs */
    whit_within within;                /* receives the share of the batches of a pass over the text */
    _Atomic uint64_t *multiply_adds;   /* counter that the tapes add to; NULL: not counted */
    float *weights[WHIT_STREAM_SIDES]; /* weights of the current layer */
    size_t weight_elems;
    float *head; /* weights after the last layer; NULL: not loaded */
    size_t head_elems;
    float *divisors[WHIT_ROPES_MAX]; /* divisors of the RoPE tables */
    size_t n_divisors[WHIT_ROPES_MAX];
    int32_t *ids; /* (n_batches, n_rows) */
    uint32_t n_sequences, n_tokens, n_rows, n_batches, n_embd;
    const whit_ranks *ranks;            /* several processes share the batches; NULL: only this process */
    const char *spool;                  /* folder of the spool; valid only while the stream is opened */
    bool is_spooled[WHIT_STREAM_SIDES]; /* x is in an unnamed file */
    float *x[WHIT_STREAM_SIDES];        /* (n_batches, n_rows, n_embd) the residual stream before the block */
} whit_stream;

/* Opens a stream of windows of n_tokens ids from the text, one after the other, at most max_tokens ids spread over all
 * of it; bos (-1: no such token) replaces the first id of each window. `embed` says how the finished file stores the
 * embedding. Activations lie in a nameless file in the folder `spool` if it can be created, else (also if `spool` is
 * NULL) in memory. The pool and the source outlive the stream. */
whit_status whit_stream_open(whit_stream *stream, const whit_source *source, const int32_t *ids, size_t n_ids,
                             uint32_t n_tokens, size_t max_tokens, int32_t bos, const whit_tensor_type *embed,
                             const char *spool, whit_pool *pool, const whit_allocator *allocator, whit_error *error);
void whit_stream_close(whit_stream *stream); /* accepts a zero-initialised stream */

/* Reads the layer's tensors, so that both sides have the original's values. WHIT_ERROR_NUMERIC names a tensor that
 * contains a NaN or an infinity. */
whit_status whit_stream_load(whit_stream *stream, uint32_t layer, whit_error *error);
/* Reads the tensors that follow the last layer; the block's input is then the residual stream, its output the logits.
 * Both sides share the original's values. The caller opens its own tape. */
whit_status whit_stream_load_head(whit_stream *stream, whit_error *error);
/* Opens the layer's tapes that are closed; for whit_stream_run and whit_stream_advance. */
whit_status whit_stream_wake(whit_stream *stream, whit_error *error);
/* Closes the tapes; values taken from them become invalid. */
void whit_stream_rest(whit_stream *stream);
/* Returns the values of a parameter on one side: to read, or to write a compressed matrix's values. */
float *whit_stream_values(const whit_stream *stream, whit_stream_side side, int32_t param);
/* Runs batch `batch` on both sides up to `value`; the tapes then have the batch's values. */
void whit_stream_run(whit_stream *stream, uint32_t batch, whit_ref value);
/* Finds the batches of this rank, [*begin, end); without ranks all of them. Only these batches are run and moved past
 * blocks here. */
uint32_t whit_stream_own_batches(const whit_stream *stream, uint32_t *begin);
/* Returns the index of a batch among the held-out batches or among the others; is_held_out: whether some batches are
 * held out. */
uint32_t whit_stream_place(const whit_stream *stream, uint32_t batch, bool is_held_out);
/* Moves one side's text past the block: its outputs become the next block's inputs. If stream->within ends it, the text
 * must not be used afterwards. */
void whit_stream_advance(whit_stream *stream, whit_stream_side side);
/* Reads one row of a tensor as f32, (n_cols). */
whit_status whit_stream_read_row(const whit_source_tensor *tensor, uint32_t row, float *values,
                                 const whit_allocator *allocator, whit_error *error);
/* Returns whether the batch is held out to decide when to stop: one in eight, and none if there are too few batches. */
bool whit_stream_is_held(const whit_stream *stream, uint32_t batch);

#endif
