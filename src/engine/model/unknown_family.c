/* SPDX-License-Identifier: MIT */
#include "model/unknown_family.h"

#include <stdio.h>
#include <string.h>

#define MAKES_PICTURES "a program for diffusion: it makes pictures or films"

/* Lists the beginnings of names, in lower-case letters and digits, with the features that the family would need;
 * specific names precede general ones. */
static const struct missing {
    const char *begin, *needs;
} table[] = {
    {"apertus", "xIELU"},
    {"arctic", "a mixture of experts"},
    {"auraflow", MAKES_PICTURES},
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
    {"clip", "the text model that it was published with: it is the part for images or sound (mmproj)"},
    {"controlvector", "a model to be added to: it is a control vector, which whit does not apply"},
    {"cosmos", MAKES_PICTURES},
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
    {"flux", MAKES_PICTURES},
    {"gemma3n", "layers that only Gemma 3n has (AltUp, LAuReL)"},
    {"gemma", "capped attention scores"},
    {"glm", "partial RoPE and norms after the sublayers"},
    {"gpt2", "learned positions and LayerNorm"},
    {"gptneox", "LayerNorm, parallel blocks and fused q, k, v weights"},
    {"hidream", MAKES_PICTURES},
    {"hyvid", MAKES_PICTURES},
    {"hunyuanvl", "an image encoder"},
    {"hunyuan", "a mixture of experts"},
    {"granitehybrid", "Mamba layers"},
    {"granitemoe", "Mamba layers or a shared expert without a gate"},
    {"grok", "a mixture of experts"},
    {"internvl", "an image encoder"},
    {"idefics", "an image encoder"},
    {"internlm2", "fused q, k, v weights"},
    {"jamba", "Mamba layers and a mixture of experts"},
    {"kimilinear", "recurrent layers and latent attention"},
    {"kimi", "latent attention and a mixture of experts"},
    {"lfm2audio", "an encoder of sound"},
    {"lfm2vl", "an image encoder"},
    {"ltxv", MAKES_PICTURES},
    {"lumina2", MAKES_PICTURES},
    {"llama4", "attention in chunks and a mixture of experts"},
    {"llava", "an image encoder"},
    {"mamba", "Mamba layers"},
    {"minicpm", "scaled embeddings, residuals and logits"},
    {"minimax", "linear attention and a mixture of experts"},
    {"mixtral", "a mixture of experts"},
    {"mllama", "an image encoder"},
    {"mpt", "ALiBi and LayerNorm"},
    {"nemotronh", "Mamba layers"},
    {"nemotron", "LayerNorm of (1 + w) and partial RoPE"},
    {"olmoe", "a mixture of experts"},
    {"olmo", "norms without weights"},
    {"openelm", "another width in each layer"},
    {"paligemma", "an image encoder"},
    {"phi4multimodal", "encoders of images and sound"},
    {"phi", "LayerNorm, parallel blocks and partial RoPE"},
    {"plamo", "parallel blocks"},
    {"qwen2moe", "a mixture of experts"},
    {"qwen25vl", "an image encoder"},
    {"qwenimage", MAKES_PICTURES},
    {"qwen2audio", "an encoder of sound"},
    {"qwen2vl", "an image encoder"},
    {"qwen3vl", "an image encoder"},
    {"qwen3omni", "encoders of images and sound"},
    {"rwkv", "recurrent layers"},
    {"sd1", MAKES_PICTURES},
    {"sd3", MAKES_PICTURES},
    {"sdxl", MAKES_PICTURES},
    {"smolvlm", "an image encoder"},
    {"speecht5", "an encoder of sound"},
    {"seedoss", "its own biases"},
    {"stablelm", "LayerNorm and partial RoPE"},
    {"starcoder", "LayerNorm"},
    {"t5", "an encoder"},
    {"voxtral", "an encoder of sound"},
    {"wan", MAKES_PICTURES},
    {"whisper", "an encoder of sound: it writes down speech"},
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

const char *whit_family_needs(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (begins(name, n, table[i].begin)) return table[i].needs;
    return NULL;
}

whit_status whit_unknown_family(const char *path, const char *name, size_t n, whit_error *error)
{
    const char *needs = whit_family_needs(name, n);
    if (!needs) needs = "a graph of its own";
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: family '%.*s' is not known: it needs %s (known: " WHIT_KNOWN_FAMILIES ")", path,
                     (int)(n < 60 ? n : 60), name, needs);
}
