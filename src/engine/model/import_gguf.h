/* SPDX-License-Identifier: MIT
 * Parts of the GGUF importer: import_gguf.c reads the configuration, import_gguf_tensors.c the
 * weights, import_gguf_tokenizer.c the vocabulary. Private to them. */
#ifndef WHIT_MODEL_IMPORT_GGUF_H
#define WHIT_MODEL_IMPORT_GGUF_H

#include "format/gguf.h"
#include "model/source.h"

typedef struct whit_gguf_architecture {
    const char *name, *family;
    bool permuted; /* RoPE pairs lie side by side */
    bool bitnet;   /* ternary matrices are W1.58A8 whatever type holds them */
    bool sub_norm, qk_norm, attn_bias;
    uint8_t gate;
} whit_gguf_architecture;

/* One tensor of the file, ready to be read by rows. */
struct whit_gguf_import {
    whit_ggml_view view; /* data NULL: `constant` everywhere */
    whit_ggml_twin twin;
    float factor;  /* of all scales: NVFP4's "NAME.scale"; otherwise 1 */
    float inverse; /* of s, where a float matrix of {-s, 0, s} is read as its signs */
    float constant;
    const struct whit_gguf_importer *importer;
    const whit_gguf_tensor *file;
};

struct whit_gguf_importer {
    whit_gguf *gguf;
    struct whit_gguf_import *tensors; /* capacity fixed before the first is used: addresses stay */
    size_t n_tensors, capacity;
};

/* The other way round, for export: "layers.0.q" to "blk.0.attn_q.weight"; *rotary where its rows hold
 * RoPE pairs. False where GGUF has no name for it. */
bool whit_gguf_tensor_name(const char *ours, char out[96], bool *rotary);

/* Refuses (unsupported, by name) a key that may change the arithmetic and that nobody here reads. */
whit_status whit_import_gguf_keys(const whit_gguf *gguf, const char *path, const char *architecture, whit_error *error);
whit_status whit_import_gguf_tensors(whit_source *source, struct whit_gguf_importer *importer,
                                     const whit_gguf_architecture *architecture, whit_error *error);
/* A vector that is `value` everywhere. */
whit_status whit_import_gguf_constant(whit_source *source, struct whit_gguf_importer *importer, const char *name,
                                      uint32_t n, float value, whit_error *error);
whit_status whit_import_gguf_tokenizer(whit_source *source, const whit_gguf *gguf, whit_error *error);

#endif
