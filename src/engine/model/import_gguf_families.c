/* SPDX-License-Identifier: MIT
 * The architectures of GGUF files that are known. A new family is a row here and tables of its names
 * (docs/dev/new-family.md). */
#include "model/import_gguf.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const whit_import_number granite_numbers[] = {
    {"embedding_scale", "embedding_scale"},
    {"residual_scale", "residual_scale"},
    {"attention.scale", "attention_scale"},
    {"logit_scale", "logit_divisor"},
    {NULL},
};

static const whit_import_number ministral3_numbers[] = {
    {"attention.temperature_scale", "temperature_scale"},
    {"rope.scaling.original_context_length", "temperature_length"},
    {NULL},
};

static const whit_import_name phi3_names[] = {
    {"attn_qkv.weight", "q", WHIT_IMPORT_Q, .is_projection = true},
    {"attn_qkv.weight", "k", WHIT_IMPORT_K, .is_projection = true},
    {"attn_qkv.weight", "v", WHIT_IMPORT_V, .is_projection = true},
    {"ffn_up.weight", "gate", WHIT_IMPORT_GATE, .is_projection = true},
    {"ffn_up.weight", "up", WHIT_IMPORT_UP, .is_projection = true},
    {NULL},
};

static const whit_gguf_architecture architectures[] = {
    {"llama", "llama", .permuted = true},
    {"mistral", "llama", .permuted = true},
    {"qwen2", "qwen2", .attn_bias = true},
    {"qwen3", "qwen3", .qk_norm = true},
    {"bitnet", "bitnet", .bitnet = true, .sub_norm = true, .gate = WHIT_GATE_SILU},
    {"bitnet-b1.58", "bitnet", .bitnet = true, .sub_norm = true, .gate = WHIT_GATE_RELU2},
    {"bitnet-25", "bitnet", .bitnet = true, .sub_norm = true, .gate = WHIT_GATE_RELU2},
    {"mistral3", "llama", .permuted = true, .numbers = ministral3_numbers},
    {"smollm3", "llama", .permuted = true, .no_rope_interval = 4},
    {"granite", "llama", .permuted = true, .numbers = granite_numbers},
    {"phi3", "llama", .names = phi3_names},
    {"hunyuan-dense", "llama", .qk_norm = true, .norm_after_rope = true},
};

const whit_gguf_architecture *whit_gguf_find_architecture(const char *name, size_t n)
{
    for (size_t i = 0; i < COUNT(architectures); i++)
        if (strlen(architectures[i].name) == n && memcmp(architectures[i].name, name, n) == 0) return &architectures[i];
    return NULL;
}

bool whit_gguf_is_permuted(const char *name, size_t n)
{
    static const char *const others[] = {"granitemoe"}; /* with a program alone */
    const whit_gguf_architecture *a = whit_gguf_find_architecture(name, n);
    bool permuted = a && a->permuted;
    for (size_t i = 0; i < COUNT(others); i++) permuted |= strlen(others[i]) == n && memcmp(others[i], name, n) == 0;
    return permuted;
}
