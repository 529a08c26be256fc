/* SPDX-License-Identifier: MIT
 * Runs the calibration text through the model, block by block: once through the original blocks and once through the
 * compressed ones. Each side runs the family's graph on its own tape (train/tape.h), one layer's nodes at a time. Only
 * one layer's weights are in memory as floats.
 *
 *    whit_stream_open; for each layer: whit_stream_load, whit_stream_run as often as needed,
 *    whit_stream_advance; whit_stream_close
 *
 * Tapes are large: whit_stream_rest frees their memory between runs, and whit_stream_wake opens them again. */
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
    whit_params params[WHIT_STREAM_SIDES]; /* both sides have the same tensors; only the values of the current layer and
                                            * of the RoPE divisors are valid */
    whit_graph graph, block;               /* the model's graph, and the part of it that is the current layer */
    whit_ref input, output;                /* values at the beginning and at the end of the block */
    whit_tape tape[WHIT_STREAM_SIDES];
    bool awake;                        /* the tapes are open */
    bool is_single;                    /* only the compressed side is run */
    whit_within within;                /* receives the progress of a pass over the text, as a share of its batches */
    _Atomic uint64_t *multiply_adds;   /* counter that the tapes add to; NULL: not counted */
    float *weights[WHIT_STREAM_SIDES]; /* weights of the current layer on each side */
    size_t weight_elems;
    float *head; /* weights of the tensors after the last layer; NULL: not loaded */
    size_t head_elems;
    float *divisors[WHIT_ROPES_MAX]; /* divisors of the RoPE tables */
    size_t n_divisors[WHIT_ROPES_MAX];
    int32_t *ids; /* (n_batches, n_rows) */
    uint32_t n_sequences, n_tokens, n_rows, n_batches, n_embd;
    const whit_ranks *ranks;            /* processes that share the batches; NULL: only this process */
    const char *spool;                  /* folder for unnamed files; valid only during whit_stream_open */
    bool is_spooled[WHIT_STREAM_SIDES]; /* x is in an unnamed file */
    float *x[WHIT_STREAM_SIDES];        /* (n_batches, n_rows, n_embd) the residual stream before the current block */
} whit_stream;

/* Opens a stream. The text is divided into consecutive windows of n_tokens ids; at most max_tokens ids are used, in
 * windows from all parts of the text. `bos` replaces the first id of each window (-1: no replacement). `embed` is the
 * type of the embedding in the finished file. Activations are stored in an unnamed file in the folder `spool`, or in
 * memory if that is not possible or `spool` is NULL. The pool and the source must outlive the stream. */
whit_status whit_stream_open(whit_stream *stream, const whit_source *source, const int32_t *ids, size_t n_ids,
                             uint32_t n_tokens, size_t max_tokens, int32_t bos, const whit_tensor_type *embed,
                             const char *spool, whit_pool *pool, const whit_allocator *allocator, whit_error *error);
void whit_stream_close(whit_stream *stream); /* accepts a zero-initialised stream */

/* Reads the layer's tensors. Both sides then have the original's values. The error WHIT_ERROR_NUMERIC names a tensor
 * that contains a NaN or an infinity. */
whit_status whit_stream_load(whit_stream *stream, uint32_t layer, whit_error *error);
/* Reads the tensors that are used after the last layer. The block's input is then the residual stream and its output
 * the logits. Both sides have the original's values. The caller opens its own tape for this block. */
whit_status whit_stream_load_head(whit_stream *stream, whit_error *error);
/* Opens the layer's tapes, unless they are open. Needed before whit_stream_run and whit_stream_advance. */
whit_status whit_stream_wake(whit_stream *stream, whit_error *error);
/* Closes the tapes. Pointers to their values become invalid. */
void whit_stream_rest(whit_stream *stream);
/* Returns the values of a parameter on one side. They may be read, and replaced by those of a compressed matrix. */
float *whit_stream_values(const whit_stream *stream, whit_stream_side side, int32_t param);
/* Runs batch `batch` up to `value` on both sides, with is_single only on the compressed side. The tapes then contain
 * the batch's values. */
void whit_stream_run(whit_stream *stream, uint32_t batch, whit_ref value);
/* Returns the end of this rank's batches, and their first one in *begin; without ranks these are all batches. Only
 * these are run and advanced in this process. */
uint32_t whit_stream_own_batches(const whit_stream *stream, uint32_t *begin);
/* Returns the position of a batch among the held-out batches, or among the other ones. is_held_out: some batches are
 * held out. */
uint32_t whit_stream_place(const whit_stream *stream, uint32_t batch, bool is_held_out);
/* Runs one side's text through the block: the block's outputs become the inputs of the next block. If stream->within
 * ends the work, the text must not be used afterwards. */
void whit_stream_advance(whit_stream *stream, whit_stream_side side);
/* Reads one row of a tensor as n_cols floats. */
whit_status whit_stream_read_row(const whit_source_tensor *tensor, uint32_t row, float *values,
                                 const whit_allocator *allocator, whit_error *error);
/* Returns whether the batch is held out; held-out batches decide when a solve stops. One in eight is, or none if there
 * are too few batches. */
bool whit_stream_is_held(const whit_stream *stream, uint32_t batch);

#endif
