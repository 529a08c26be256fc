/* SPDX-License-Identifier: MIT
 * Models: files mapped into memory. A model never changes and may be shared by threads. */
#ifndef WHIT_MODEL_H
#define WHIT_MODEL_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whit_model whit_model;
typedef struct whit_model_options {
    size_t struct_bytes;
    const whit_allocator *allocator; /* default NULL: malloc and free */
    const char *cache_dir;           /* folder of the conversion cache, which holds converted sources; NULL:
                                      * $XDG_CACHE_HOME/whit, else $HOME/.cache/whit */
    bool no_cache;                   /* convert in memory; write nothing to the cache */
    whit_progress_fn *progress;      /* called repeatedly during a conversion */
    void *progress_user;
    /* Source of a program (docs/dev/family-programs.md) that defines the forward pass in place of the program of the
     * model's family; NULL: the family's program. The model, even an .ndf, is converted with this program and gets an
     * identity of its own. */
    const char *family_program;
    const char *family_name; /* name that begins the error lines of family_program; NULL: the family's name */
    /* Refuse a source with unknown fields, even if they only describe the model; otherwise the metadata "whit.notes"
     * names such fields. The conversion cache is not used. */
    bool strict;
    /* (n_overrides) Each text KEY=TYPE:VALUE, with a TYPE of int, float, bool or str, replaces or adds a metadata field
     * of a GGUF file before the family reads the fields. Such a conversion has its own entry in the cache. Other files
     * are refused. */
    const char *const *overrides;
    size_t n_overrides;
} whit_model_options;
static inline whit_model_options whit_model_options_default(void)
{
    whit_model_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    return options;
}

/* Opens an .ndf file in place; opens any other readable source through the conversion cache, or converts it in memory
 * if the cache cannot be used. */
WHIT_API WHIT_CHECKED whit_status whit_model_open(const char *path, const whit_model_options *options,
                                                  whit_model **model, whit_error *error);
/* Opens the bytes of an .ndf in memory; they must be 64-byte aligned and stay valid until the model is closed. */
WHIT_API WHIT_CHECKED whit_status whit_model_open_memory(const void *data, size_t size_bytes, const char *name,
                                                         const whit_allocator *allocator, whit_model **model,
                                                         whit_error *error);
WHIT_API void whit_model_close(whit_model *model);
/* Sets the model's name in messages, in place of its path, for hosts that hide paths. Call this before other threads
 * use the model. */
WHIT_API WHIT_CHECKED whit_status whit_model_set_name(whit_model *model, const char *name, whit_error *error);

WHIT_API uint32_t whit_model_vocab_size(const whit_model *model);
/* context size that the model was trained for, in tokens */
WHIT_API uint32_t whit_model_context_size(const whit_model *model);
/* number of elements in the vector of a text; with a classification head, the number of its scores */
WHIT_API uint32_t whit_model_embedding_size(const whit_model *model);
/* Returns one field of the model's metadata as text, in place; NULL if absent or not text. "general.architecture" is
 * always present: the family, if the source does not name it. */
WHIT_API const char *whit_model_metadata(const whit_model *model, const char *key);
/* Returns the model's identity: a digest of configuration, tokenizer and weights; 32 bytes. */
WHIT_API const uint8_t *whit_model_identity(const whit_model *model);
/* Returns the i-th mapped range and the path of its file; false if i is not less than the number of ranges. A host
 * whose read of a mapped file fails (SIGBUS, because the file was cut short) can find the file's path with it. */
WHIT_API bool whit_model_mapping(const whit_model *model, size_t i, const void **address, size_t *size_bytes,
                                 const char **path);

#ifdef __cplusplus
}
#endif
#endif
