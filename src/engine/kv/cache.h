/* SPDX-License-Identifier: MIT
 * Keeps the KV cache: the keys and values of every sequence, in blocks of 64 positions.
 *
 * Layers of one shape and window (packed types: also with one RoPE of keys) are a *kind*; each kind has a *class*, or
 * three (whit_kv_role). A class has a pool of blocks of its own (kv/pool.h), so that a block can be dropped, or shared
 * between sequences with a common beginning. A table per class and sequence gives the pool's block for each block of
 * positions; its entries are reused modulo its length. A class with a window stores the positions that some query can
 * still attend to, and WHIT_KV_BEYOND_TOKENS before them, so that the last tokens can be removed again; it stores no
 * other positions of a long sequence.
 *
 * A packed type stores the newest positions in open blocks, in f16. When an open block is full, it is packed into a
 * closed block; both forms are stored while some query reads the open one.
 *
 * An endless cache gives a window to every class without one, or with one larger than the context less the *sinks*: the
 * first positions, to which every query of these classes attends, so their block 0 is kept (docs/use/context.md). Other
 * classes have no such sinks (n_sinks 0).
 *
 * The caller owns the memory, whose size never changes. One thread at a time may change tables; any thread may read,
 * and threads may write different heads. */
#ifndef WHIT_KV_CACHE_H
#define WHIT_KV_CACHE_H

#include "kv/pool.h"
#include "kv/state.h"

/* Number of positions before a window that are stored although no query attends to them, so that the last tokens can be
 * removed. */
#define WHIT_KV_BEYOND_TOKENS 128
#define WHIT_KV_KINDS_MAX     8                       /* maximum number of kinds of attention layers */
#define WHIT_KV_CLASSES_MAX   (3 * WHIT_KV_KINDS_MAX) /* packed types have three classes for each kind of layers */

/* Holds the properties of a layer that determine its part of the cache. */
typedef struct whit_kv_layer {
    uint32_t n_heads, n_kv_heads, head_dim; /* all 0: a layer without attention */
    uint32_t window;                        /* number of positions that a query attends to, its own included; 0: all */
    bool is_bidirectional;                  /* a query attends to positions on both sides, at most window / 2 away;
                                             * window 0: to all */
    uint32_t rope_pairs;                    /* number of pairs that RoPE rotates in each key head; 0: keys are not
                                             * rotated */
    uint32_t rope;                          /* index of the RoPE table of its keys */
    bool has_key_bias;
    whit_state_layer state; /* shape of a recurrent layer's state */
} whit_kv_layer;

typedef struct whit_kv_shape {
    whit_kv_type type;
    const whit_kv_layer *layers; /* (n_layers) properties of the layers; must outlive the cache */
    uint32_t n_layers;
    uint32_t n_sequences, n_ctx_tokens;
    uint32_t n_batch_tokens; /* maximum number of tokens that one pass adds to all sequences together */
    bool is_endless;
    uint32_t n_sinks;         /* endless cache: number of sink positions */
    uint32_t n_window_blocks; /* packed types: a query reads at least this number of full blocks before it as f16
                               * (whit_kv_reads_closed) */
} whit_kv_shape;

/* whit_kv.layers refers to classes of role LAYERS. A plain type has no other classes. A packed type has three
 * consecutive classes for each kind of layers: LAYERS stores closed blocks; OPEN stores open blocks, the newest
 * positions in f16; SINKS stores, in one block per sequence, the first WHIT_KV_SINKS positions with the precision of
 * f16, in caches that are not endless, too (whit_kv_sinks in kernels/kv_packed.h). */
typedef enum whit_kv_role { WHIT_KV_ROLE_LAYERS, WHIT_KV_ROLE_OPEN, WHIT_KV_ROLE_SINKS } whit_kv_role;

typedef struct whit_kv_class {
    whit_kv_type type; /* type of the blocks; open blocks are f16 */
    uint8_t role;      /* whit_kv_role */
    uint32_t n_layers, n_heads, n_kv_heads, head_dim;
    uint32_t window;                      /* number of positions that a query attends to, in OPEN only those read as
                                           * f16; 0: no limit */
    uint32_t beyond;                      /* number of positions before the window that are stored, too */
    bool is_bidirectional;                /* queries attend to both sides; all blocks are kept */
    uint32_t sides;                       /* is_bidirectional: largest distance to a position; UINT32_MAX: any */
    uint32_t n_window_blocks, rope_pairs; /* packed types: as in whit_kv_shape; number of pairs of each key head whose
                                           * rotation by RoPE is undone before packing, 0: keys are packed as they
                                           * are */
    uint32_t rope;                        /* packed types: index of the RoPE table of that rotation */
    uint32_t n_sinks;                     /* number of first positions that every query attends to in addition to its
                                           * window */
    bool keeps_all;                       /* whit_kv_settle drops no blocks: the class has no window, or one that saves
                                           * no memory */
    uint32_t n_places;                    /* number of entries in `table` that a sequence's blocks use in turn: block b
                                           * has entry b mod n_places */
    whit_kv_pool pool;
    /* (n_sequences, n_places + 1) numbers of blocks in the pool; if n_sinks > 0, the last entry is for block 0 */
    uint32_t *table;
    uint32_t *first; /* (n_sequences) the first stored block of the sequence; if n_sinks > 0, block 0 is stored in
                      * addition */
} whit_kv_class;

typedef struct whit_kv {
    whit_kv_shape shape;
    whit_kv_class classes[WHIT_KV_CLASSES_MAX];
    uint32_t n_classes;
    struct whit_kv_place {
        uint16_t class, layer;
    } * layers;         /* (n_layers) index of the layer's class, and of the layer within that class; no meaning for
                         * layers without attention */
    uint32_t *n_tokens; /* (n_sequences) number of positions that a sequence has */
    whit_state state;   /* state of the recurrent layers */
} whit_kv;

/* Returns the number of different kinds of attention layers, at most WHIT_KV_KINDS_MAX; WHIT_KV_KINDS_MAX + 1 if there
 * are more. */
uint32_t whit_kv_kinds(const whit_kv_shape *shape);
/* Sets all fields that need no memory, and *bytes to the size of the memory that whit_kv_init needs. Returns false if
 * that size or a number of blocks is too large, or there are more than WHIT_KV_KINDS_MAX kinds of attention layers. */
bool whit_kv_measure(const whit_kv_shape *shape, whit_kv *kv, uint64_t *bytes);
/* Lays out tables and pools in `memory`, which is 64-byte aligned and large enough; its keys and values need not be
 * zeroed. */
void whit_kv_init(whit_kv *kv, const whit_kv_shape *shape, void *memory);

/* Extends a sequence to n_tokens positions and allocates their blocks; called before each pass for each of its
 * sequences. A last block that is partly filled is copied first if it is shared, or named and memory is left for a
 * copy; else it loses its name. Does nothing if the sequence has n_tokens or more. Returns WHIT_ERROR_LIMIT if n_tokens
 * exceeds the context of a cache that is not endless. */
whit_status whit_kv_extend(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, whit_error *error);
/* After a pass, drops the blocks all of whose positions precede the window and the `beyond` positions before it, except
 * block 0 if n_sinks > 0. Classes with keeps_all drop no blocks. */
void whit_kv_settle(whit_kv *kv, uint32_t sequence);
/* Called after each pass: prepares a little of the memory of the blocks that the sequences with tokens will take next
 * (whit_kv_pool_populate). */
void whit_kv_populate(whit_kv *kv);
/* Returns whether a sequence can be resumed at position n_tokens: always at 0; else if it has that many tokens, and
 * every block that the next query sees, and the recurrent state, are still stored. */
bool whit_kv_reaches(const whit_kv *kv, uint32_t sequence, uint32_t n_tokens);
/* Drops the positions from n_tokens on. n_tokens is 0, or a position for which whit_kv_reaches is true. */
void whit_kv_truncate(whit_kv *kv, uint32_t sequence, uint32_t n_tokens);
/* Replaces sequence `to` by the first n_tokens of `from`, for which whit_kv_reaches is true; from == to: truncates the
 * sequence. Blocks are shared until either sequence writes to them (copy on write). Refuses an n_tokens over the length
 * of `from`. */
whit_status whit_kv_share(whit_kv *kv, uint32_t from, uint32_t to, uint32_t n_tokens, whit_error *error);

/* ---- prefix cache ---- */

/* Returns the first block that a class must store for a sequence to be resumed at position n_tokens; if n_sinks > 0, it
 * must store block 0, too. */
static inline uint32_t whit_kv_first_needed(const whit_kv_class *class, uint32_t n_tokens)
{
    return class->window && n_tokens + 1 > class->window ? (n_tokens + 1 - class->window) / WHIT_KV_BLOCK_TOKENS : 0;
}
/* Returns the class whose named blocks represent the prefix cache: the first class with role LAYERS that has no window,
 * or the first with role LAYERS if all have windows; NULL if no layer has attention. */
whit_kv_class *whit_kv_told_class(whit_kv *kv);
/* Names a full block of a sequence in every class that stores it. Returns true if the block of whit_kv_told_class
 * received a name. */
bool whit_kv_name_block(whit_kv *kv, uint32_t sequence, uint32_t block, const uint8_t key[WHIT_HASH_BYTES],
                        const int32_t ids[WHIT_KV_BLOCK_TOKENS]);
/* Returns the name of a sequence's block, which may be named in some classes only; NULL if no class names it. */
const whit_kv_name *whit_kv_name_of(const whit_kv *kv, uint32_t sequence, uint32_t block);
/* Appends block number `block` to a sequence, in every class that needs it to resume at n_tokens; other classes store
 * nothing for it. The block is full, and the pools contain it under the name (key, ids). closed_only: leaves out the
 * open blocks and the sinks of a packed type; the caller restores a tail afterwards (kv/tail.h). */
void whit_kv_adopt(whit_kv *kv, uint32_t sequence, uint32_t n_tokens, uint32_t block,
                   const uint8_t key[WHIT_HASH_BYTES], const int32_t ids[WHIT_KV_BLOCK_TOKENS], bool closed_only);
/* Replaces a sequence by n_blocks full blocks with undefined contents, of which classes with a window store only the
 * last few (block 0, too, if n_sinks > 0); the caller writes them (whit_kv_next_piece). Blocks of a packed type are
 * closed. If whit_kv_needs_tails, the caller restores a tail afterwards. Returns WHIT_ERROR_LIMIT like whit_kv_extend,
 * but then the sequence is empty. */
whit_status whit_kv_begin_at(whit_kv *kv, uint32_t sequence, uint32_t n_blocks, whit_error *error);

/* ---- addresses ---- */

static inline uint32_t *whit_kv_entry(const whit_kv_class *class, uint32_t sequence, uint32_t block)
{
    uint32_t *row = class->table + (size_t)sequence * (class->n_places + 1);
    if (block == 0 && class->n_sinks) return &row[class->n_places];
    return &row[block < class->n_places ? block : block % class->n_places];
}
/* Returns whether a class stores `block`, one of the sequence's blocks. */
static inline bool whit_kv_has(const whit_kv_class *class, uint32_t sequence, uint32_t block)
{
    if (class->role == WHIT_KV_ROLE_SINKS) return block == 0;
    return block >= class->first[sequence] || (block == 0 && class->n_sinks);
}
/* Return, for a class of role LAYERS: the class in which new tokens are written (OPEN of a packed type), and the class
 * of a packed type's sinks. */
static inline const whit_kv_class *whit_kv_open_class(const whit_kv_class *class)
{
    return class + (whit_kv_is_packed(class->type) ? WHIT_KV_ROLE_OPEN : 0);
}
static inline const whit_kv_class *whit_kv_sinks_class(const whit_kv_class *class)
{
    return class + WHIT_KV_ROLE_SINKS;
}
/* Returns whether a query at `position` reads a block of a packed type in its closed form. It does if the block ends at
 * least n_window_blocks blocks and WHIT_KV_LINGER_TOKENS positions before the query, and reads the open form
 * otherwise. */
#define WHIT_KV_LINGER_TOKENS 16
static inline bool whit_kv_reads_closed(const whit_kv_class *class, uint32_t position, uint32_t block)
{
    return whit_kv_is_packed(class->type) &&
        (uint64_t)(block + 1 + class->n_window_blocks) * WHIT_KV_BLOCK_TOKENS + WHIT_KV_LINGER_TOKENS <= position;
}
static inline const whit_kv_class *whit_kv_class_of(const whit_kv *kv, uint32_t layer)
{
    return &kv->classes[kv->layers[layer].class];
}
/* Returns the keys and values of one head in a block of a sequence, laid out as in kernels/kv_block.h. `layer` is an
 * index within the class. */
static inline void *whit_kv_class_block(const whit_kv_class *class, uint32_t layer, uint32_t head, uint32_t sequence,
                                        uint32_t block)
{
    return whit_kv_pool_piece(&class->pool, layer, head, *whit_kv_entry(class, sequence, block));
}
/* Returns the keys and values of one head in a block of a sequence; `layer` is an index within the model. */
static inline void *whit_kv_head_block(const whit_kv *kv, uint32_t layer, uint32_t head, uint32_t sequence,
                                       uint32_t block)
{
    return whit_kv_class_block(whit_kv_class_of(kv, layer), kv->layers[layer].layer, head, sequence, block);
}

/* ---- a block of all layers ---- */

/* Returns the number of bytes of a block in all layers together; for a packed type, of the closed form. */
uint64_t whit_kv_whole_block_bytes(const whit_kv *kv);
/* Returns whether all layers store a block of a sequence; for a packed type, the closed form of it. */
bool whit_kv_holds(const whit_kv *kv, uint32_t sequence, uint32_t block);
/* Iterates over the pieces of a block, one for each KV head of each layer, by layer of the model, then by head. `data`
 * is NULL if the layer's class does not store the block. Begin with a zeroed whit_kv_piece; the result is false after
 * the last piece. */
typedef struct whit_kv_piece {
    uint8_t *data;
    size_t size_bytes;
    uint32_t layer, head; /* the search for the next piece begins at this head of this layer */
} whit_kv_piece;
bool whit_kv_next_piece(const whit_kv *kv, uint32_t sequence, uint32_t block, whit_kv_piece *piece);

#endif
