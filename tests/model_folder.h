/* SPDX-License-Identifier: MIT
 * Writes model folders as `huggingface-cli download` leaves them: the configs, tensor names, shapes
 * and shards of published models, with random weights. Layers and widths can be cut for tests. The
 * vocabulary is a stand-in of the right size (256 bytes, in the order of the free ids, fillers, and
 * the special tokens that the model's template writes) unless a folder with a real one is given. */
#ifndef WHIT_TESTS_MODEL_FOLDER_H
#define WHIT_TESTS_MODEL_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum folder_weights {
    FOLDER_FLOAT,   /* every matrix in the model's float type */
    FOLDER_PACKED,  /* projections U8, four codes in a byte, with weight_scale */
    FOLDER_I8,      /* projections I8: -1, 0, 1, with weight_scale */
    FOLDER_TERNARY, /* projections float, all elements -s, 0 or s */
} folder_weights;

/* One published model, or what a test makes of it. */
typedef struct folder_model {
    const char *name;  /* "bitnet-2b4t" */
    const char *dtype; /* of float tensors: "BF16", "F16", "F32" */
    folder_weights weights;
    uint32_t n_layers, hidden, intermediate, n_heads, n_kv_heads, head_dim, n_vocab;
    const char *config;       /* JSON fields that do not depend on the sizes, without braces */
    const char *sub_norms[2]; /* of attention and feed-forward; NULL: none */
    bool qk_norm, qkv_bias, out_bias, mlp_bias;
    bool embed, head; /* which of the two matrices are stored; both and tied: equal */
    bool tied;
    bool states_head_dim; /* config.json has head_dim */
    bool old_table;       /* holds rotary_emb.inv_freq, as old checkpoints do */
    uint32_t bos, eos;
    struct folder_special { /* special tokens that its template writes; text NULL ends them */
        uint32_t id;
        const char *text;
    } specials[6];
    uint32_t n_shards; /* 1: model.safetensors */
} folder_model;

/* Finds a folder model by its name; NULL if there is not one. folder_names has all names, and ends with NULL. */
const folder_model *folder_find(const char *name);
extern const char *const folder_names[];

/* n_layers (0: as it is), and widths divided by `divisor` with heads of 32 or more; the vocabulary
 * stays where n_vocab is 0. */
folder_model folder_reduce(const folder_model *model, uint32_t n_layers, uint32_t divisor, uint32_t n_vocab);

/* Makes the folder at `path` (which may exist) and fills it. `vocabulary` is a folder whose
 * tokenizer files are copied, NULL for the stand-in; `chat_template` a file, or NULL. False after a
 * message on stderr. The same seed gives the same bytes. */
bool folder_write(const folder_model *model, const char *path, uint64_t seed, const char *vocabulary,
                  const char *chat_template);

#endif
