/* SPDX-License-Identifier: MIT */
#include "model/unknown_family.h"

#include <stdio.h>
#include <string.h>

/* Prefixes of names, lower-case letters and digits only; specific ones before general ones. */
static const struct missing {
    const char *begin, *needs;
} table[] = {
    {"apertus", "xIELU"},
    {"arctic", "a mixture of experts"},
    {"baichuan", "fused q, k, v weights and ALiBi"},
    {"distilbert", "an encoder's graph of its own"},
    {"deberta", "attention to relative positions"},
    {"electra", "an encoder's graph of its own"},
    {"jinabert", "an encoder with ALiBi"},
    {"modernbert", "an encoder with RoPE and windows"},
    {"mpnet", "attention to relative positions"},
    {"newmodel", "an encoder with RoPE"},
    {"nomicbert", "an encoder with RoPE"},
    {"bloom", "ALiBi and LayerNorm"},
    {"chatglm", "partial RoPE and fused weights"},
    {"cohere", "LayerNorm, parallel blocks and scaled logits"},
    {"command", "LayerNorm, parallel blocks and scaled logits"},
    {"dbrx", "a mixture of experts"},
    {"deepseek", "latent attention and a mixture of experts"},
    {"dream", "diffusion instead of continuation"},
    {"ernie", "its own RoPE and, in part, a mixture of experts"},
    {"exaone", "its own norms and mixed attention"},
    {"falconh1", "Mamba layers"},
    {"falconmamba", "Mamba layers"},
    {"falcon", "LayerNorm, parallel blocks and fused q, k, v weights"},
    {"gemma", "capped attention scores"},
    {"glm", "partial RoPE and norms behind the sublayers"},
    {"gpt2", "learned positions and LayerNorm"},
    {"gptneox", "LayerNorm, parallel blocks and fused q, k, v weights"},
    {"hunyuan", "a mixture of experts"},
    {"granitemoe", "Mamba layers or a shared expert without a gate"},
    {"grok", "a mixture of experts"},
    {"internlm2", "fused q, k, v weights"},
    {"jamba", "Mamba layers and a mixture of experts"},
    {"llama4", "attention in chunks and a mixture of experts"},
    {"llava", "an image encoder"},
    {"mamba", "Mamba layers"},
    {"minicpm", "scaled embeddings, residuals and logits"},
    {"minimax", "linear attention and a mixture of experts"},
    {"mixtral", "a mixture of experts"},
    {"mllama", "an image encoder"},
    {"mpt", "ALiBi and LayerNorm"},
    {"nemotron", "LayerNorm of (1 + w) and partial RoPE"},
    {"olmoe", "a mixture of experts"},
    {"olmo", "norms without weights"},
    {"openelm", "another width in each layer"},
    {"phi", "LayerNorm, parallel blocks and partial RoPE"},
    {"plamo", "parallel blocks"},
    {"qwen2moe", "a mixture of experts"},
    {"qwen2vl", "an image encoder"},
    {"qwen3vl", "an image encoder"},
    {"rwkv", "recurrent layers"},
    {"seedoss", "its own biases"},
    {"stablelm", "LayerNorm and partial RoPE"},
    {"starcoder", "LayerNorm"},
    {"t5", "an encoder"},
    {"xverse", "its own norms"},
    {"xglm", "learned positions and LayerNorm"},
};

static bool begins(const char *name, size_t n, const char *begin)
{
    for (size_t i = 0; i < n && *begin; i++) {
        char c = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
        if (c == '_' || c == '-' || c == '.') continue;
        if (c != *begin++) return false;
    }
    return !*begin;
}

whit_status whit_unknown_family(const char *path, const char *name, size_t n, whit_error *error)
{
    const char *needs = "a graph of its own";
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (begins(name, n, table[i].begin)) {
            needs = table[i].needs;
            break;
        }
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: family '%.*s' is not known: it needs %s (known: " WHIT_KNOWN_FAMILIES ")", path,
                     (int)(n < 60 ? n : 60), name, needs);
}
