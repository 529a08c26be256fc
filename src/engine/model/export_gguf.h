/* SPDX-License-Identifier: MIT
 * Writes a source as a GGUF file, so that other programs can run it. Nothing is rounded: each matrix gets a type that
 * stores it exactly, or the export is refused; the error names the matrix and the reason. */
#ifndef WHIT_MODEL_EXPORT_GGUF_H
#define WHIT_MODEL_EXPORT_GGUF_H

#include "format/gguf_write.h"
#include "model/source.h"
#include "tokenizer/image.h"

typedef struct whit_export_options {
    /* GGUF types for coded matrices (tq2_0, q2_k, ...; an embedding or head that the type cannot store exactly gets
     * q8_0, f16 or f32), and for all float matrices (f16 bf16 f32). NULL: a type that stores each coded matrix exactly;
     * float matrices keep their types. */
    const char *coded, *floats;
    const char *name; /* general.name becomes the last part of this path; NULL: of the source's path */
    bool no_tokenizer;
    whit_progress_fn *progress;
    void *user;
} whit_export_options;

/* Writes a GGUF file with one of the architectures llama (rows of q and k permuted), qwen2, qwen3, bitnet,
 * bitnet-b1.58, qwen3moe, qwen35, qwen35moe, qwen3next, lfm2, lfm2moe, gpt-oss, gemma4. For the two BitNet
 * architectures, a scale that is not a float16 is stored in a separate tensor (blk.N.NAME.scale). */
whit_status whit_export_gguf(const whit_source *source, const whit_export_options *options, const char *path,
                             whit_error *error);

/* Returns the name of the GGUF type of two to three bits with the smallest loss for matrices of a low-bit codec: q2_0
 * represents trits and signs exactly, q2_k approximates four levels. Returns NULL for other codecs. */
const char *whit_export_closest(uint8_t codec);

/* Finds the architecture that can describe a model's configuration; returns WHIT_ERROR_UNSUPPORTED if no architecture
 * can. */
whit_status whit_export_architecture(const whit_source *source, const char **architecture, whit_error *error);
/* Writes the keys of an architecture's configuration. */
void whit_export_put_config(whit_gguf_writer *writer, const char *architecture, const whit_config *config);

/* Writes a copy of the unsplit GGUF file that `like` was read from, in which the layers' matrices of `source` with
 * group scales replace those of the same type. *n_replaced: number of replaced tensors, at least 1. Tensors of other
 * types, tensors whose columns the importer reorders, and tensors that the type cannot store exactly keep their
 * bytes. */
whit_status whit_export_gguf_like(const whit_source *source, const whit_source *like, const char *path,
                                  uint32_t *n_replaced, whit_error *error);

/* Writes the tokenizer.ggml.* keys for a tokenizer image. Returns WHIT_ERROR_UNSUPPORTED if GGUF cannot represent its
 * pipeline. */
whit_status whit_export_gguf_tokenizer(const whit_tokenizer_view *view, const char *path, whit_gguf_writer *writer,
                                       const whit_allocator *allocator, whit_error *error);

#endif
