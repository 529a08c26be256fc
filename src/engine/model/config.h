/* SPDX-License-Identifier: MIT
 * Holds the canonical configuration: every number that defines a model's mathematics, in one form for all file formats.
 * It is part of the model's identity; names and licences are not.
 *
 * The rows of queries and keys are always stored so that RoPE rotates pairs (i, i + rope_dim / 2): importers permute
 * the rows of sources with other pairs. */
#ifndef WHIT_MODEL_CONFIG_H
#define WHIT_MODEL_CONFIG_H

#include "base/status.h"
#include "format/ndf.h"

#define WHIT_FAMILY_BYTES 32
#define WHIT_MAX_LAYERS   1024
#define WHIT_KINDS_MAX    8
#define WHIT_ROPES_MAX    4
#define WHIT_EXPERTS_MAX  1024

typedef enum whit_gate {
    WHIT_GATE_SILU = 0,    /* silu(gate) * up */
    WHIT_GATE_RELU2 = 1,   /* relu(gate)^2 * up */
    WHIT_GATE_GELU = 2,    /* gelu(gate) * up, the tanh approximation */
    WHIT_GATE_SIGMOID = 3, /* up / (1 + exp(-gate)); used in programs of families */
    WHIT_GATE_PRODUCT = 4, /* gate * up; used in programs of families */
    WHIT_GATE_SWISH1 = 5,  /* gate / (1 + exp(-1.702 gate)) * (up + 1) */
    WHIT_GATE_COUNT
} whit_gate;

/* Names the operation by which a layer combines the values of different tokens. */
typedef enum whit_mixer { WHIT_MIXER_ATTENTION, WHIT_MIXER_SHORT_CONV, WHIT_MIXER_DELTA, WHIT_MIXER_COUNT } whit_mixer;

/* Describes a kind of layer: the parameters that may differ between layers. */
typedef struct whit_layer_kind {
    uint32_t mixer; /* whit_mixer */
    uint32_t rope;  /* index of the layer's RoPE table */
    uint32_t n_heads, n_kv_heads, head_dim;
    uint32_t rope_dim; /* number of rotated dimensions: 0, or the dimensions of the layer's RoPE table */
    uint32_t window;   /* sliding window in tokens; 0: all positions */
    uint32_t n_ff;
} whit_layer_kind;

/* Names the rule by which a RoPE table's frequencies are computed from theta (rope_scaling.h). */
typedef enum whit_rope_scaling {
    WHIT_ROPE_PLAIN,
    WHIT_ROPE_LINEAR,  /* frequencies are divided by `factor` */
    WHIT_ROPE_DYNAMIC, /* in contexts of more than `length` tokens, theta grows with the context */
    WHIT_ROPE_YARN,
    WHIT_ROPE_LONG, /* frequencies are divided by tensor "rope_factors_short", in contexts over `length` by
                     * "rope_factors_long" */
    WHIT_ROPE_SCALING_COUNT
} whit_rope_scaling;

/* Holds the parameters of a RoPE table. */
typedef struct whit_rope {
    double theta;
    uint32_t dims;         /* number of rotated dimensions of a head; even */
    uint8_t scaling;       /* whit_rope_scaling */
    bool has_factors;      /* frequencies are also divided by tensor "rope_factors" (dims / 2) */
    bool rounds;           /* yarn: the ends of the ramp are rounded to integers */
    double factor, length; /* factor: divisor of frequencies (LINEAR, YARN), or growth of theta (DYNAMIC); length:
                            * context before scaling, in tokens (0 for PLAIN and LINEAR) */
    /* yarn: frequencies of pairs with more than beta_fast turns in `length` are unchanged; those with fewer than
     * beta_slow turns are divided by `factor`; those between are interpolated by the pair's index */
    double beta_fast, beta_slow;
    double magnitude; /* factor by which cosines and sines are multiplied */
} whit_rope;

typedef struct whit_config {
    char family[WHIT_FAMILY_BYTES]; /* name of the family, which determines the program of the graph: "llama", "qwen2",
                                     * "qwen3", "bitnet", ... */
    uint32_t n_layers;
    uint32_t n_embd;
    uint32_t n_ff;
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim;
    uint32_t rope_dim; /* number of leading dimensions of a head that RoPE rotates; even */
    uint32_t n_vocab;
    uint32_t n_ctx;    /* context of the training, in tokens */
    uint32_t window;   /* sliding window in tokens; 0: no window */
    uint8_t gate;      /* whit_gate */
    bool tied_head;    /* the head uses the matrix of the embedding */
    bool attn_bias;    /* the matrices of q, k and v have biases */
    bool out_bias;     /* attention's output matrix o has a bias */
    bool ffn_bias;     /* the feed-forward matrices gate, up and down have biases */
    bool qk_norm;      /* RMSNorm over each head of q and k, before RoPE (but see norm_after_rope) */
    bool sub_norm;     /* BitNet: additional norms before o and before down */
    bool rope_factors; /* tensor "rope_factors" divides the frequencies; used if n_ropes is 0 */
    double norm_eps;
    double rope_theta;
    /* Optional numbers are 0 if absent; files omit zeros. */
    double embedding_scale;      /* factor of embeddings */
    double residual_scale;       /* factor of a sublayer's output when it is added */
    double attention_scale;      /* factor of scores, in place of 1 / sqrt(head_dim) */
    double logit_divisor;        /* logits are divided by this */
    double temperature_scale;    /* b: queries at `position` are multiplied by 1 + b ln(1 + floor(position / l)), l =
                                  * temperature_length */
    uint32_t temperature_length; /* see temperature_scale; in tokens */
    double logit_cap;            /* logits become logit_cap tanh(logit / logit_cap) */
    bool norm_after_rope;        /* the norms of q and k come after RoPE, not before it */
    /* attention's output is multiplied by the sigmoid of a gate, computed from attention's input */
    bool attn_gate;
    uint32_t conv_taps; /* number of taps of the causal convolutions in recurrent layers */
    /* gated delta rule: number of value heads, number of key heads, size of a key head, size of a value head */
    uint32_t delta_heads, delta_key_heads, delta_key_dim, delta_value_dim;
    /* Rotated matrices (model/hadamard.h): elements of a block (0: no matrix is rotated), one bit per rotated matrix
     * (whit_hadamard_bit), and whether rotations include signs. */
    uint32_t hadamard_block, hadamard_matrices;
    bool hadamard_signs;
    bool delta_grouped;       /* the value heads of one key head are adjacent; otherwise they are tiled
                               * (kernels/delta.h) */
    bool value_norm;          /* RMSNorm without a weight over each head of v */
    bool value_from_key;      /* layers without a window have no matrix for v: v is k before the norm of k */
    bool layer_scale;         /* the residual stream after a layer is multiplied by the layer's tensor "layer_scale"
                               * (one element) */
    uint32_t n_shared_layers; /* number of layers, at the end, that attend to the keys and values of earlier layers */
    uint32_t side_width;      /* width of per-layer embeddings; 0: no such embeddings */
    /* Experts: layers with n_ff 0 have experts instead of a feed-forward part; layers of gemma.ndl have experts in
     * addition to it. */
    uint32_t n_experts, n_experts_used; /* number of experts in a layer; number used per token */
    uint32_t n_expert_ff;               /* width of the feed-forward part of an expert; a multiple of 16 */
    uint32_t n_shared_ff;               /* width of the shared expert, which every token uses; 0: no such expert */
    bool router_sigmoid;                /* scores are the sigmoid of the router's outputs; else their softmax */
    bool router_bias;                   /* tensor "router_choice" is added to the scores when experts are chosen, but
                                         * not to their weights */
    /* the scores of the chosen experts are divided by (their sum + router_norm_eps) */
    bool router_norm;
    double router_norm_eps; /* added to the sum that router_norm divides by */
    double router_scale;    /* factor of the scores; 0 stands for 1 */
    bool expert_bias;       /* the router and the experts' matrices have biases */
    double gate_limit;      /* experts: gates are limited to at most this, the values that they multiply to
                             * [-this, this]; 0: no limit */
    /* tensor "sinks" has one logit per head, which is one more summand in the softmax of attention, without a value */
    bool attn_sinks;
    bool input_norms;          /* each projection has its own norm of the input */
    bool bidirectional;        /* tokens attend to both sides: all tokens of a text must be computed in one pass */
    uint32_t n_positions;      /* number of rows in the table of learned positions; 0: no such table */
    uint32_t n_token_types;    /* number of rows in the table of token types; 0: no such table */
    uint32_t activation;       /* whit_activation (kernels.h) of a feed-forward without a gate */
    uint32_t dense_1, dense_2; /* widths of the dense layers after the final norm, whose output is a text's vector; 0:
                                * no such layer */
    uint32_t n_labels;         /* number of scores of a classification head, whose output replaces the vector; 0: no
                                * such head */
    bool score_dense;          /* a dense layer with tanh precedes the classification head */
    /* Draft models (docs/dev/drafts.md). n_draft_layers: number of layers after the last one, at most 1, that predict
     * one more token and are not part of the model's own pass. They have the kind of the last layer with attention. */
    uint32_t n_draft_layers;
    uint32_t draft_width; /* width of the rows of another model that this model reads to draft; 0: it reads none */
    /* Layer kinds: layer i has kind kinds[kind_of_layer[i]]; if n_kinds is 0, all layers have the values of the fields
     * above. */
    uint32_t n_kinds;
    whit_layer_kind kinds[WHIT_KINDS_MAX];
    uint8_t kind_of_layer[WHIT_MAX_LAYERS];
    /* RoPE tables; if n_ropes is 0, there is one table, from rope_theta, rope_dim and rope_factors. */
    uint32_t n_ropes;
    whit_rope ropes[WHIT_ROPES_MAX];
    const char *program_name; /* name that begins the program's error lines; NULL: the family's name */
    /* source of the program of the forward pass (families.h), NULL: the family's program; it points into the loaded
     * file or belongs to the caller, and must outlive the configuration */
    const char *program;
} whit_config;

/* Returns the kind of a layer; if the configuration has no kinds, a kind made from the scalar fields. The draft layer,
 * number n_layers, has the kind of the last layer with attention. */
whit_layer_kind whit_config_kind(const whit_config *config, uint32_t layer);
/* Reads one field of a kind, given by its name in the struct; returns false if there is no such field. */
bool whit_layer_kind_field(const whit_layer_kind *kind, const char *name, int64_t *value);
/* Return the number of RoPE tables, at least 1, and RoPE table i. */
uint32_t whit_config_n_ropes(const whit_config *config);
whit_rope whit_config_rope(const whit_config *config, uint32_t i);
/* Sets an optional number by its name. In an integer field, a value outside its range becomes 0 and a fraction is cut
 * off; a switch is set unless the value is 0. Returns false if no optional number has that name. */
bool whit_config_set_number(whit_config *config, const char *name, double value);
/* Rounds to float32: GGUF files store numbers so, and kernels read them so; the same model from either format then has
 * the same configuration. */
double whit_round_to_f32(double x);
/* Gives a layer a kind, which is added if it is new; more than eight kinds are refused. Importers call
 * whit_config_settle_kinds after the last layer: it sets the scalar fields to the largest values of the kinds. It
 * removes the kinds if all layers have the same kind, with attention and RoPE table 0. */
whit_status whit_config_set_kind(whit_config *config, uint32_t layer, const whit_layer_kind *kind, const char *path,
                                 whit_error *error);
void whit_config_settle_kinds(whit_config *config);
/* Returns whether the configuration has kinds, RoPE tables or optional numbers, which programs built before December
 * 2026 cannot read. */
bool whit_config_is_extended(const whit_config *config);

/* Describes one number of a configuration. whit_config_number_at sets *number to number i of the configuration, with
 * its key; it returns false if there is no number i. Switches are integers, 0 or 1. */
typedef struct whit_config_number {
    const char *key;
    bool is_float;
    int64_t i;
    double f;
} whit_config_number;
bool whit_config_number_at(const whit_config *config, size_t i, whit_config_number *number);

/* Load kinds and RoPE tables from a table of the container, save them to a table, and check them (config_layers.c). */
whit_status whit_config_load_layers(const whit_table *table, const char *path, whit_config *config, whit_error *error);
void whit_config_save_layers(const whit_config *config, whit_table_builder *table);
whit_status whit_config_check_layers(const whit_config *config, const char *path, whit_error *error);

/* Refuses configurations with a field out of range: sizes that are zero or absurdly large, a number of heads that is
 * not a multiple of the number of KV heads, an odd rope_dim, invalid kinds of layers or RoPE tables, and others. */
whit_status whit_config_check(const whit_config *config, const char *path, whit_error *error);

whit_status whit_config_load(const whit_ndf *file, whit_config *config, whit_error *error);
/* Writes the configuration's fields into the container's table of the model's mathematics. */
void whit_config_save(const whit_config *config, whit_table_builder *table);

#endif
