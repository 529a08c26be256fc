/* SPDX-License-Identifier: MIT
 * Writes model folders like those of `huggingface-cli download`: the configs, tensor names, shapes and shards of
 * published models, with random weights. Layers and widths can be reduced for tests. Unless a folder with a real
 * vocabulary is given, the vocabulary is made up in the right size: 256 bytes in the order of the free ids, fillers,
 * and the special tokens that the model's template writes. */
#ifndef WHIT_TESTS_MODEL_FOLDER_H
#define WHIT_TESTS_MODEL_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum folder_weights {
    FOLDER_FLOAT,   /* all matrices in the model's float type */
    FOLDER_PACKED,  /* projections as U8 with four codes per byte, and a weight_scale */
    FOLDER_I8,      /* projections as I8 with the values -1, 0 and 1, and a weight_scale */
    FOLDER_TERNARY, /* projections as floats with the values -s, 0 and s */
} folder_weights;

/* The properties of a published model, possibly changed by a test. */
typedef struct folder_model {
    const char *name;  /* "bitnet-2b4t" */
    const char *dtype; /* type of float tensors: "BF16", "F16" or "F32" */
    folder_weights weights;
    uint32_t n_layers, hidden, intermediate, n_heads, n_kv_heads, head_dim, n_vocab;
    const char *config;       /* JSON fields of config.json that do not depend on sizes, without braces */
    const char *sub_norms[2]; /* names of the norms inside attention and feed-forward; NULL: none */
    bool qk_norm, qkv_bias, out_bias, mlp_bias;
    bool embed, head; /* which of the two matrices are stored; if both are and `tied` is set, they are equal */
    bool tied;
    bool states_head_dim; /* config.json contains head_dim */
    bool old_table;       /* contains rotary_emb.inv_freq, as old checkpoints do */
    uint32_t bos, eos;
    struct folder_special { /* special tokens that the chat template writes; text NULL ends the list */
        uint32_t id;
        const char *text;
    } specials[6];
    uint32_t n_shards; /* number of weight files; 1: model.safetensors */
} folder_model;

/* Returns the folder model of this name, or NULL. folder_names lists all names and ends with NULL. */
const folder_model *folder_find(const char *name);
extern const char *const folder_names[];

/* Returns a smaller model: with n_layers layers (0: unchanged), and widths divided by `divisor`, where heads keep at
 * least 32 dimensions. n_vocab 0: the vocabulary is unchanged. */
folder_model folder_reduce(const folder_model *model, uint32_t n_layers, uint32_t divisor, uint32_t n_vocab);

/* Creates the folder at `path`, which may exist, and writes the model. `vocabulary` is a folder whose tokenizer files
 * are copied (NULL: a substitute is written); `chat_template` is a file, or NULL. Returns false after printing a
 * message on stderr. Equal seeds give equal bytes. */
bool folder_write(const folder_model *model, const char *path, uint64_t seed, const char *vocabulary,
                  const char *chat_template);

#endif
