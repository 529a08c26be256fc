/* SPDX-License-Identifier: MIT
 * Writes a source as a GGUF file, so that other programs can run it. Nothing is rounded: each matrix gets a type that
 * stores it exactly, or the export is refused, naming it and the reason. */
#ifndef WHIT_MODEL_EXPORT_GGUF_H
#define WHIT_MODEL_EXPORT_GGUF_H

#include "format/gguf_write.h"
#include "model/source.h"
#include "tokenizer/image.h"

typedef struct whit_export_options {
    /* Type of the layers' coded matrices (tq2_0, q2_k, ...), of all float ones (f16 bf16 f32); NULL: the smallest that
     * holds each exactly, floats as they are. */
    const char *coded, *floats;
    const char *name; /* general.name: the last part of this path; NULL: of the source's */
    bool no_tokenizer;
    whit_progress_fn *progress;
    void *user;
} whit_export_options;

/* Architectures: llama (rows of q and k permuted), qwen2, qwen3, bitnet, bitnet-b1.58, qwen3moe, qwen35, qwen35moe,
 * qwen3next, lfm2, lfm2moe. For bitnet's two a scale that is no float16 is in a tensor of its own
 * (blk.N.NAME.scale). */
whit_status whit_export_gguf(const whit_source *source, const whit_export_options *options, const char *path,
                             whit_error *error);

/* Finds the architecture that can describe a model's configuration; WHIT_ERROR_UNSUPPORTED otherwise. */
whit_status whit_export_architecture(const whit_source *source, const char **architecture, whit_error *error);
/* Puts an architecture's keys. */
void whit_export_put_config(whit_gguf_writer *writer, const char *architecture, const whit_config *config);

/* Writes the unsplit GGUF file of `like` again, with the layers' matrices of `source` in place of its own where both
 * have the same type. *n_replaced: number of replaced tensors. Tensors of other types, and those whose columns the
 * importer reorders, keep their bytes. */
whit_status whit_export_gguf_like(const whit_source *source, const whit_source *like, const char *path,
                                  uint32_t *n_replaced, whit_error *error);

/* Puts the tokenizer.ggml.* keys of an image. Unsupported where the pipeline has no form in GGUF. */
whit_status whit_export_gguf_tokenizer(const whit_tokenizer_view *view, const char *path, whit_gguf_writer *writer,
                                       const whit_allocator *allocator, whit_error *error);

#endif
