/* SPDX-License-Identifier: MIT
 * Reads a Hugging Face model folder: its JSON documents, its weights, and the paths of its tokenizer's files.
 *
 * Documents are small: each is read whole and kept as parsed JSON. Typed getters accept dotted paths
 * ("rope_scaling.factor"). Weights are mapped. Nothing is interpreted here. An open folder is read-only. */
#ifndef WHIT_FORMAT_HF_H
#define WHIT_FORMAT_HF_H

#include "format/safetensors.h"

/* A JSON document of the folder. The getters treat a missing document like an empty one. */
typedef struct whit_hf_document {
    bool present;
    char *path;
    whit_buf text;
    whit_json json;
    uint32_t root; /* the node to which paths are relative */
} whit_hf_document;

typedef struct whit_hf {
    const whit_allocator *allocator;
    char *folder;                       /* without a slash at its end; NULL after whit_hf_open_config */
    whit_hf_document config;            /* config.json; always present */
    whit_hf_document generation_config; /* generation_config.json */
    whit_hf_document tokenizer_config;  /* tokenizer_config.json */
    whit_hf_document special_tokens;    /* special_tokens_map.json */
    whit_hf_document added_tokens;      /* added_tokens.json; not read if tokenizer.json exists */
    whit_hf_document template_json;     /* chat_template.json */
    char *tokenizer_json;               /* path of tokenizer.json; NULL if the file cannot be opened */
    char *tokenizer_model;
    char *template_jinja;      /* path of chat_template.jinja; NULL if the file cannot be opened */
    whit_safetensors *weights; /* NULL until whit_hf_open_weights */
} whit_hf;

/* Reads the folder's documents. It is an error if config.json is missing, a document is not a JSON object, or a file is
 * a git-LFS pointer instead of its content. */
whit_status whit_hf_open(const char *folder, const whit_allocator *allocator, whit_hf **hf, whit_error *error);
/* Reads only a config.json, which may have another name. The other documents count as missing, and there is no
 * folder. */
whit_status whit_hf_open_config(const char *path, const whit_allocator *allocator, whit_hf **hf, whit_error *error);
/* Opens model.safetensors, else the shards of model.safetensors.index.json, else the folder's only .safetensors file.
 * If the folder has weights in another format, the error names it. */
whit_status whit_hf_open_weights(whit_hf *hf, whit_error *error);
void whit_hf_close(whit_hf *hf);

/* Reads a JSON document of the folder, with any type of root node. If the file does not exist, `present` is false. The
 * caller zeroes `document` before the call and closes it afterwards, even after a failure, and before whit_hf_close. */
whit_status whit_hf_read_document(const whit_hf *hf, const char *name, whit_hf_document *document, whit_error *error);
void whit_hf_close_document(const whit_hf *hf, whit_hf_document *document);
/* Opens a .safetensors file of the folder, by its file name. */
whit_status whit_hf_open_safetensors(const whit_hf *hf, const char *name, whit_safetensors **set, whit_error *error);

/* Returns the node at a dotted path; WHIT_JSON_NONE if absent. */
uint32_t whit_hf_node(const whit_hf_document *document, const char *path);

/* Read the value at a path as the given type. If it is absent or null, *value is unchanged and the result is WHIT_OK. A
 * value of another type is a format error that names the file and the line. Integers may be written like 1e4 or 128.0;
 * those of 2^64 or more become UINT64_MAX (many files have a model_max_length of 10^30). */
whit_status whit_hf_u64(const whit_hf_document *document, const char *path, uint64_t *value, whit_error *error);
whit_status whit_hf_f64(const whit_hf_document *document, const char *path, double *value, whit_error *error);
whit_status whit_hf_bool(const whit_hf_document *document, const char *path, bool *value, whit_error *error);
/* Like the functions above; *text points into the document and is not terminated. */
whit_status whit_hf_string(const whit_hf_document *document, const char *path, const char **text, size_t *text_bytes,
                           whit_error *error);

#endif
