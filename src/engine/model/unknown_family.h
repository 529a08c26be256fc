/* SPDX-License-Identifier: MIT
 * Makes the error for a model whose family is not supported; the error names the family and the features that the
 * family would need. */
#ifndef WHIT_MODEL_UNKNOWN_FAMILY_H
#define WHIT_MODEL_UNKNOWN_FAMILY_H

#include "base/status.h"

/* The supported families, as text for messages. */
#define WHIT_KNOWN_FAMILIES                                                                                            \
    "Llama, Mistral, Ministral 3, Qwen2, Qwen3, SmolLM3, Granite, Phi-3, OLMo 2 and 3, Gemma 3 and 4, Hunyuan dense, " \
    "BitNet, Qwen3.5, LFM2, BERT, and with experts Qwen3, Qwen3-Next, Qwen3.5, LFM2, Gemma 4, gpt-oss, Granite and "   \
    "Maple"

/* Returns the features that a known but unsupported family would need, to be read after "it needs"; NULL if the family
 * is not listed. */
const char *whit_family_needs(const char *name, size_t n);
/* Fails with an error about `name`, an architecture of a GGUF file or a class of transformers. */
whit_status whit_unknown_family(const char *path, const char *name, size_t n, whit_error *error);

#endif
