/* SPDX-License-Identifier: MIT
 * Reads a Hugging Face model folder: its JSON documents, its weights, and where its tokenizer lies.
 *
 * Documents are small: they are read whole and kept as parsed JSON; typed getters take dotted paths
 * ("rope_scaling.factor"). Weights are mapped. Nothing is interpreted here. Read-only once open. */
#ifndef WHIT_FORMAT_HF_H
#define WHIT_FORMAT_HF_H

#include "format/safetensors.h"

/* Holds a JSON document of the folder; a missing document reads like an empty one. */
typedef struct whit_hf_document {
    bool present;
    char *path;
    whit_buf text;
    whit_json json;
    uint32_t root; /* the object to which paths are relative */
} whit_hf_document;

typedef struct whit_hf {
    const whit_allocator *allocator;
    char *folder;                       /* without a slash at its end */
    whit_hf_document config;            /* config.json: always present */
    whit_hf_document generation_config; /* generation_config.json */
    whit_hf_document tokenizer_config;  /* tokenizer_config.json */
    whit_hf_document special_tokens;    /* special_tokens_map.json */
    whit_hf_document added_tokens;      /* added_tokens.json */
    whit_hf_document template_json;     /* chat_template.json */
    char *tokenizer_json;               /* paths of existing files, else NULL */
    char *tokenizer_model;
    char *template_jinja;      /* chat_template.jinja */
    whit_safetensors *weights; /* NULL until whit_hf_open_weights */
} whit_hf;

/* Reads the documents; a git-LFS pointer in the place of any file is refused. */
whit_status whit_hf_open(const char *folder, const whit_allocator *allocator, whit_hf **hf, whit_error *error);
/* Reads only a config.json, under any name: the other documents are absent and there is no folder. */
whit_status whit_hf_open_config(const char *path, const whit_allocator *allocator, whit_hf **hf, whit_error *error);
/* Opens model.safetensors, else the shards of model.safetensors.index.json, else the folder's only
 * .safetensors file. Weights in other formats are refused by name. */
whit_status whit_hf_open_weights(whit_hf *hf, whit_error *error);
void whit_hf_close(whit_hf *hf);

/* Reads a JSON document of the folder by its name, which may be of any kind; if it is absent, `present` stays false.
 * The caller closes it, also after a failure, before the folder. `document` is zeroed before the call. */
whit_status whit_hf_read_document(const whit_hf *hf, const char *name, whit_hf_document *document, whit_error *error);
void whit_hf_close_document(const whit_hf *hf, whit_hf_document *document);
/* Opens a .safetensors file of the folder by its name. */
whit_status whit_hf_open_safetensors(const whit_hf *hf, const char *name, whit_safetensors **set, whit_error *error);

/* Returns the node at a dotted path; WHIT_JSON_NONE if absent. */
uint32_t whit_hf_node(const whit_hf_document *document, const char *path);

/* Read a typed value. If the path is absent or null, *value keeps its value and the status is WHIT_OK; a value of
 * another type is a format error naming file and line. Integers may be written 1e4 or 128.0; integers above 2^64 become
 * UINT64_MAX (model_max_length is 10^30 in many files). */
whit_status whit_hf_u64(const whit_hf_document *document, const char *path, uint64_t *value, whit_error *error);
whit_status whit_hf_f64(const whit_hf_document *document, const char *path, double *value, whit_error *error);
whit_status whit_hf_bool(const whit_hf_document *document, const char *path, bool *value, whit_error *error);
/* Returns the text in place, not terminated. */
whit_status whit_hf_string(const whit_hf_document *document, const char *path, const char **text, size_t *text_bytes,
                           whit_error *error);

#endif
