/* SPDX-License-Identifier: MIT
 * Keeps the state of recurrent layers: the part of a sequence's past that is not in the KV cache.
 *
 * A layer has a causal convolution, optionally followed by a delta rule. Everything is f32:
 *
 *   convolution   ring of the inputs of the newest tokens: (n_taps - 1 + WHIT_STATE_RING, n_channels)
 *   delta rule    for each value head: the state (key_dim, value_dim) at the *committed* position, and a ring of the
 *                 updates of the tokens after it: keys (WHIT_STATE_RING, key_dim), changes (WHIT_STATE_RING,
 *                 value_dim), decays (WHIT_STATE_RING)
 *
 * Position p is entry p mod the length of a ring. whit_state_commit gives the committed position from the sequence's
 * length: a sequence can be cut back to the committed position or any later one without a copy. To be cut back further,
 * it needs a saved state (kv/tail.h).
 *
 * Memory is the caller's. Different heads and channels may be written by different threads. */
#ifndef WHIT_KV_STATE_H
#define WHIT_KV_STATE_H

#include "base/status.h"

/* Parts of a layer that commit positions independently: a pass may be cancelled after one and before the other. */
enum { WHIT_STATE_CONVOLUTION, WHIT_STATE_DELTA, WHIT_STATE_PARTS };

#define WHIT_STATE_RING        16u
#define WHIT_STATE_BACK_TOKENS 8u /* a sequence can be cut back by at least this many tokens from its greatest length */

/* Holds the shape of a recurrent layer's state; n_channels is 0 if the layer is not recurrent. */
typedef struct whit_state_layer {
    uint32_t n_channels, n_taps; /* channels and taps of the convolution */
    uint32_t n_heads;            /* value heads of the delta rule; 0: the layer has only a convolution */
    uint32_t key_dim, value_dim;
} whit_state_layer;

typedef struct whit_state {
    uint32_t n_layers, n_sequences;
    struct whit_state_place {
        whit_state_layer shape;
        uint64_t ring, heads; /* offsets of the layer's ring and heads within the floats of a sequence */
    } * places;               /* (n_layers) shape and place of each layer */
    uint32_t *committed;      /* (n_sequences, n_layers, WHIT_STATE_PARTS) committed positions */
    float *memory;            /* (n_sequences, sequence_elems) rings and states */
    uint64_t sequence_elems;  /* floats per sequence; 0: no layer is recurrent */
} whit_state;

/* Sets the sizes of a state, and *bytes to the size of the 64-byte aligned memory that whit_state_init needs. Returns
 * false if that size overflows. `layers` has n_layers elements, stride_bytes apart. */
bool whit_state_measure(whit_state *state, const whit_state_layer *layers, size_t stride_bytes, uint32_t n_layers,
                        uint32_t n_sequences, uint64_t *bytes);
void whit_state_init(whit_state *state, const whit_state_layer *layers, size_t stride_bytes, uint32_t n_layers,
                     uint32_t n_sequences, void *memory);

/* Returns the position that is committed once a sequence has n_tokens: 8 to 15 tokens before its end, or 0 for fewer
 * than WHIT_STATE_RING tokens. */
static inline uint32_t whit_state_commit(uint32_t n_tokens)
{
    return n_tokens < WHIT_STATE_RING
        ? 0
        : n_tokens / WHIT_STATE_BACK_TOKENS * WHIT_STATE_BACK_TOKENS - WHIT_STATE_BACK_TOKENS;
}
/* Returns whether a sequence of at least n_tokens can be continued at position n_tokens: n_tokens is 0, or no layer has
 * committed a later position. */
bool whit_state_reaches(const whit_state *state, uint32_t sequence, uint32_t n_tokens);
/* Returns whether all parts of all layers have committed the same position, which is true after every pass that was not
 * cancelled. A part that a layer lacks has the committed position of the layer's other part. */
bool whit_state_is_even(const whit_state *state, uint32_t sequence);
/* Resets a sequence to the state of no tokens. */
void whit_state_reset(whit_state *state, uint32_t sequence);
void whit_state_copy(whit_state *state, uint32_t from, uint32_t to);

/* ---- saved states. A saved state is a header {committed, n_tokens}, then each layer's rings in the order of positions
 * and its states. Padding, and entries of positions outside of [first, n_tokens), are zero, so that equal tokens and
 * committed positions give equal bytes; `first` is committed, and committed - (n_taps - 1) for convolutions. ---- */

uint64_t whit_state_saved_bytes(const whit_state *state);
/* Saves the state at n_tokens. whit_state_reaches must be true for n_tokens, and whit_state_is_even for the
 * sequence. */
void whit_state_save(const whit_state *state, uint32_t sequence, uint32_t n_tokens, uint8_t *saved);
/* Returns whether the header is valid for n_tokens, as whit_state_save writes it, and all floats are finite. Such a
 * state is safe to load, whatever its values. */
bool whit_state_is_sound(const whit_state *state, uint32_t n_tokens, const uint8_t *saved);
/* Returns the committed position of a saved state. */
uint32_t whit_state_saved_commit(const uint8_t *saved);
/* Returns whether a sequence can be continued at `position` from a saved state. */
bool whit_state_serves(const uint8_t *saved, uint32_t position);
void whit_state_load(whit_state *state, uint32_t sequence, const uint8_t *saved);

/* ---- addresses ---- */

static inline uint32_t *whit_state_committed(const whit_state *state, uint32_t sequence, uint32_t layer, uint32_t part)
{
    return &state->committed[((size_t)sequence * state->n_layers + layer) * WHIT_STATE_PARTS + part];
}
static inline uint32_t whit_state_ring_rows(const whit_state_layer *shape)
{
    return shape->n_taps - 1 + WHIT_STATE_RING;
}
/* Returns the inputs (n_channels) of the convolution at a position. */
static inline float *whit_state_inputs(const whit_state *state, uint32_t sequence, uint32_t layer, uint32_t position)
{
    const struct whit_state_place *place = &state->places[layer];
    return state->memory + sequence * state->sequence_elems + place->ring +
        (size_t)(position % whit_state_ring_rows(&place->shape)) * place->shape.n_channels;
}
static inline size_t whit_state_head_elems(const whit_state_layer *shape)
{
    return (size_t)shape->key_dim * shape->value_dim +
        WHIT_STATE_RING * ((size_t)shape->key_dim + shape->value_dim + 1);
}
typedef struct whit_state_head {
    float *state;   /* (key_dim, value_dim); undefined while the committed position is 0: readers then use zeros */
    float *keys;    /* (WHIT_STATE_RING, key_dim) keys of the updates */
    float *changes; /* (WHIT_STATE_RING, value_dim) changes of the updates */
    float *decays;  /* (WHIT_STATE_RING) decays of the updates */
} whit_state_head;
static inline whit_state_head whit_state_head_at(const whit_state_layer *shape, float *head)
{
    whit_state_head at = {.state = head};
    at.keys = at.state + (size_t)shape->key_dim * shape->value_dim;
    at.changes = at.keys + (size_t)WHIT_STATE_RING * shape->key_dim;
    at.decays = at.changes + (size_t)WHIT_STATE_RING * shape->value_dim;
    return at;
}
static inline whit_state_head whit_state_head_of(const whit_state *state, uint32_t sequence, uint32_t layer,
                                                 uint32_t head)
{
    const struct whit_state_place *place = &state->places[layer];
    return whit_state_head_at(&place->shape,
                              state->memory + sequence * state->sequence_elems + place->heads +
                                  head * whit_state_head_elems(&place->shape));
}

#endif
