/* SPDX-License-Identifier: MIT */
#include "kv/state.h"

#include "base/mem.h"

#define HEADER_BYTES 64

typedef struct saved_header {
    uint32_t committed, n_tokens;
} saved_header;

/* ---- memory --------------------------------------------------------------------------------- */

static uint64_t ring_elems(const whit_state_layer *shape)
{
    return shape->n_channels ? (uint64_t)whit_state_ring_rows(shape) * shape->n_channels : 0;
}

static uint64_t layer_elems(const whit_state_layer *shape)
{
    if (!shape->n_channels) return 0;
    return (ring_elems(shape) + (uint64_t)shape->n_heads * whit_state_head_elems(shape) + 15) / 16 * 16;
}

static const whit_state_layer *layer_at(const whit_state_layer *layers, size_t stride_bytes, uint32_t i)
{
    return (const whit_state_layer *)(const void *)((const uint8_t *)layers + i * stride_bytes);
}

/* Returns the number of bytes of the table of places and of the committed positions, which precede the floats. */
static uint64_t table_bytes(uint32_t n_layers, uint32_t n_sequences)
{
    return whit_round_up(n_layers * sizeof(struct whit_state_place) +
                             (uint64_t)n_sequences * n_layers * WHIT_STATE_PARTS * 4,
                         WHIT_ALIGN_BYTES);
}

bool whit_state_measure(whit_state *state, const whit_state_layer *layers, size_t stride_bytes, uint32_t n_layers,
                        uint32_t n_sequences, uint64_t *bytes)
{
    uint64_t floats;
    *state = (whit_state){.n_layers = n_layers, .n_sequences = n_sequences};
    for (uint32_t i = 0; i < n_layers; i++) state->sequence_elems += layer_elems(layer_at(layers, stride_bytes, i));
    *bytes = 0;
    if (!state->sequence_elems) return true;
    return !__builtin_mul_overflow(state->sequence_elems * sizeof(float), (uint64_t)n_sequences, &floats) &&
        !__builtin_add_overflow(floats, table_bytes(n_layers, n_sequences), bytes);
}

void whit_state_init(whit_state *state, const whit_state_layer *layers, size_t stride_bytes, uint32_t n_layers,
                     uint32_t n_sequences, void *memory)
{
    uint64_t bytes, elems = 0;
    (void)whit_state_measure(state, layers, stride_bytes, n_layers, n_sequences, &bytes);
    if (!state->sequence_elems) return;
    state->places = memory;
    state->committed = (uint32_t *)(void *)(state->places + n_layers);
    memset(state->committed, 0, (size_t)n_sequences * n_layers * WHIT_STATE_PARTS * sizeof *state->committed);
    state->memory = (float *)(void *)((uint8_t *)memory + table_bytes(n_layers, n_sequences));
    for (uint32_t i = 0; i < n_layers; i++) {
        const whit_state_layer *shape = layer_at(layers, stride_bytes, i);
        state->places[i] =
            (struct whit_state_place){.shape = *shape, .ring = elems, .heads = elems + ring_elems(shape)};
        elems += layer_elems(shape);
    }
}

/* ---- positions ------------------------------------------------------------------------------ */

bool whit_state_reaches(const whit_state *state, uint32_t sequence, uint32_t n_tokens)
{
    const uint32_t n = state->sequence_elems ? state->n_layers * WHIT_STATE_PARTS : 0;
    for (uint32_t i = 0; i < n && n_tokens; i++)
        if (whit_state_committed(state, sequence, 0, 0)[i] > n_tokens) return false;
    return true;
}

bool whit_state_is_even(const whit_state *state, uint32_t sequence)
{
    uint32_t committed = UINT32_MAX;
    for (uint32_t i = 0; i < state->n_layers && state->sequence_elems; i++) {
        if (!state->places[i].shape.n_channels) continue;
        const uint32_t *parts = whit_state_committed(state, sequence, i, 0);
        if (parts[0] != parts[1] || (committed != UINT32_MAX && parts[0] != committed)) return false;
        committed = parts[0];
    }
    return true;
}

void whit_state_reset(whit_state *state, uint32_t sequence)
{
    if (state->sequence_elems)
        memset(whit_state_committed(state, sequence, 0, 0), 0,
               state->n_layers * WHIT_STATE_PARTS * sizeof *state->committed);
}

void whit_state_copy(whit_state *state, uint32_t from, uint32_t to)
{
    if (!state->sequence_elems || from == to) return;
    memcpy(state->memory + to * state->sequence_elems, state->memory + from * state->sequence_elems,
           state->sequence_elems * sizeof(float));
    memcpy(whit_state_committed(state, to, 0, 0), whit_state_committed(state, from, 0, 0),
           state->n_layers * WHIT_STATE_PARTS * sizeof *state->committed);
}

/* ---- saved states --------------------------------------------------------------------------- */

uint64_t whit_state_saved_bytes(const whit_state *state)
{
    return state->sequence_elems ? HEADER_BYTES + state->sequence_elems * sizeof(float) : 0;
}

/* Copies the rows (n_rows, width) of a ring buffer, where position p is row p mod n_rows, to (is_saved) or from the
 * saved form, ordered by position up to n_tokens - 1. Positions before `first` are saved as zeros. */
static void copy_ring(float *ring, float *saved, uint32_t n_rows, size_t width, uint32_t first, uint32_t n_tokens,
                      bool is_saved)
{
    for (uint32_t back = n_rows; back-- > 0; saved += width) {
        const uint32_t position = n_tokens - 1 - back;
        const bool is_there = back < n_tokens && position >= first;
        float *row = ring + (size_t)(position % n_rows) * width;
        if (!is_saved && is_there)
            memcpy(row, saved, width * sizeof *row);
        else if (is_saved && is_there)
            memcpy(saved, row, width * sizeof *row);
        else if (is_saved)
            memset(saved, 0, width * sizeof *row);
    }
}

static void copy_head(const whit_state_layer *shape, whit_state_head place, whit_state_head saved, uint32_t committed,
                      uint32_t n_tokens, bool is_saved)
{
    const size_t n_bytes = (size_t)shape->key_dim * shape->value_dim * sizeof(float);
    if (!is_saved)
        memcpy(place.state, saved.state, n_bytes);
    else if (committed)
        memcpy(saved.state, place.state, n_bytes);
    else
        memset(saved.state, 0, n_bytes);
    copy_ring(place.keys, saved.keys, WHIT_STATE_RING, shape->key_dim, committed, n_tokens, is_saved);
    copy_ring(place.changes, saved.changes, WHIT_STATE_RING, shape->value_dim, committed, n_tokens, is_saved);
    copy_ring(place.decays, saved.decays, WHIT_STATE_RING, 1, committed, n_tokens, is_saved);
}

/* Copies all recurrent layers to (is_saved) or from the saved form, in which rings are ordered by position and unused
 * entries are zero. */
static void copy_layers(const whit_state *state, uint32_t sequence, float *saved, uint32_t committed, uint32_t n_tokens,
                        bool is_saved)
{
    for (uint32_t i = 0; i < state->n_layers; i++) {
        const struct whit_state_place *place = &state->places[i];
        const whit_state_layer *shape = &place->shape;
        if (!shape->n_channels) continue;
        const uint32_t first = committed > shape->n_taps - 1 ? committed - (shape->n_taps - 1) : 0;
        float *ring = state->memory + sequence * state->sequence_elems + place->ring;
        copy_ring(ring, saved + place->ring, whit_state_ring_rows(shape), shape->n_channels, first, n_tokens, is_saved);
        for (uint32_t head = 0; head < shape->n_heads; head++)
            copy_head(shape, whit_state_head_of(state, sequence, i, head),
                      whit_state_head_at(shape, saved + place->heads + head * whit_state_head_elems(shape)), committed,
                      n_tokens, is_saved);
        const uint64_t used = place->heads - place->ring + shape->n_heads * whit_state_head_elems(shape);
        if (is_saved) memset(saved + place->ring + used, 0, (layer_elems(shape) - used) * sizeof *saved);
    }
}

void whit_state_save(const whit_state *state, uint32_t sequence, uint32_t n_tokens, uint8_t *saved)
{
    saved_header header = {.n_tokens = n_tokens};
    if (!state->sequence_elems) return;
    for (uint32_t i = 0; i < state->n_layers; i++)
        if (state->places[i].shape.n_channels) header.committed = *whit_state_committed(state, sequence, i, 0);
    memset(saved, 0, HEADER_BYTES);
    memcpy(saved, &header, sizeof header);
    copy_layers(state, sequence, (float *)(void *)(saved + HEADER_BYTES), header.committed, n_tokens, true);
}

bool whit_state_is_sound(const whit_state *state, uint32_t n_tokens, const uint8_t *saved)
{
    const uint32_t exponent = 0x7F800000, *words = (const uint32_t *)(const void *)(saved + HEADER_BYTES);
    saved_header header;
    bool are_finite = true;
    memcpy(&header, saved, sizeof header);
    for (uint64_t i = 0; i < state->sequence_elems; i++) are_finite &= (words[i] & exponent) != exponent;
    return are_finite && header.n_tokens == n_tokens && header.committed <= n_tokens &&
        n_tokens - header.committed < WHIT_STATE_RING;
}

uint32_t whit_state_saved_commit(const uint8_t *saved)
{
    saved_header header;
    memcpy(&header, saved, sizeof header);
    return header.committed;
}

bool whit_state_serves(const uint8_t *saved, uint32_t position)
{
    saved_header header;
    memcpy(&header, saved, sizeof header);
    return position >= header.committed && position <= header.n_tokens;
}

void whit_state_load(whit_state *state, uint32_t sequence, const uint8_t *saved)
{
    saved_header header;
    if (!state->sequence_elems) return;
    memcpy(&header, saved, sizeof header);
    for (uint32_t i = 0; i < state->n_layers * WHIT_STATE_PARTS; i++)
        whit_state_committed(state, sequence, 0, 0)[i] = header.committed;
    copy_layers(state, sequence, (float *)(void *)(uintptr_t)(saved + HEADER_BYTES), header.committed, header.n_tokens,
                false);
}
