/* SPDX-License-Identifier: MIT
 * The canonical configuration: every number that defines a model's mathematics, in one form
 * whatever file it came from. It is part of the model's identity; names and licences are not.
 *
 * Queries and keys are always stored so that RoPE turns pairs (i, i + rope_dim / 2): importers
 * permute where a source has them otherwise. */
#ifndef WHIT_MODEL_CONFIG_H
#define WHIT_MODEL_CONFIG_H

#include "base/status.h"
#include "format/ndf.h"

#define WHIT_FAMILY_BYTES 32
#define WHIT_MAX_LAYERS   1024

typedef enum whit_gate {
    WHIT_GATE_SILU = 0,  /* silu(gate) * up */
    WHIT_GATE_RELU2 = 1, /* relu(gate)^2 * up */
    WHIT_GATE_GELU = 2,  /* gelu(gate) * up, the tanh form; with a program alone */
    WHIT_GATE_COUNT
} whit_gate;

typedef struct whit_config {
    char family[WHIT_FAMILY_BYTES]; /* names the graph's program: "llama", "qwen2", "qwen3", "bitnet" */
    uint32_t n_layers;
    uint32_t n_embd;
    uint32_t n_ff;
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim;
    uint32_t rope_dim; /* leading dimensions of a head that turn; even */
    uint32_t n_vocab;
    uint32_t n_ctx;    /* as trained, in tokens */
    uint32_t window;   /* sliding window in tokens; 0: none */
    uint8_t gate;      /* whit_gate */
    bool tied_head;    /* the head is the embedding */
    bool attn_bias;    /* q, k, v have biases */
    bool out_bias;     /* o has a bias */
    bool ffn_bias;     /* gate, up, down have biases */
    bool qk_norm;      /* RMSNorm over each head of q and k, before RoPE */
    bool sub_norm;     /* BitNet: norms in front of o and down */
    bool rope_factors; /* tensor "rope_factors" divides the frequencies */
    double norm_eps;
    double rope_theta;
    const char *program_name; /* begins its error lines; NULL: the family's name */
    const char *program;      /* states the forward pass (families.h), NULL: the family's; lives as long as its file */
} whit_config;

/* The numbers above by name, in order, from i = 0; false after the last. Switches are integers. */
typedef struct whit_config_number {
    const char *key;
    bool is_float;
    int64_t i;
    double f;
} whit_config_number;
bool whit_config_number_at(const whit_config *config, size_t i, whit_config_number *number);

/* Refuses what no graph could run: zero or absurd sizes, heads that do not divide, odd rope_dim. */
whit_status whit_config_check(const whit_config *config, const char *path, whit_error *error);

whit_status whit_config_load(const whit_ndf *file, whit_config *config, whit_error *error);
/* Sets the fields in the table that defines the mathematics. */
void whit_config_save(const whit_config *config, whit_table_builder *table);

#endif
