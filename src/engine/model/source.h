/* SPDX-License-Identifier: MIT
 * Declares a source, which is a model in another program's format, described in whit's terms. Importers (import_*.c)
 * fill it; convert.c writes it. Weights are read row by row, in the type that stores them exactly, so a conversion
 * needs memory for a few rows only. */
#ifndef WHIT_MODEL_SOURCE_H
#define WHIT_MODEL_SOURCE_H

#include "format/ndf_write.h"
#include "kernels/codec.h"
#include "model/config.h"
#include "model/families.h"

typedef struct whit_source_tensor whit_source_tensor;

/* Describes a section of a file's tensor that belongs to a tensor: n rows, `run` of every `stride` rows from row
 * `begin` on; run 0: all rows from there. */
typedef struct whit_source_section {
    uint32_t n, begin, run, stride;
} whit_source_section;

#define WHIT_SOURCE_SECTIONS_MAX 3

struct whit_source_tensor {
    char name[WHIT_VALUE_NAME_BYTES]; /* canonical name, as in the graph */
    whit_tensor_type type;            /* a type that stores the source exactly */
    /* Reads row `row` (in canonical order) of the tensor into row 0 of `rows`. Any thread may call it. */
    whit_status (*read_row)(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error);
    /* Hints that the rows read so far will not be read again soon, so their pages may be dropped. May be NULL. */
    void (*drop)(const whit_source_tensor *tensor);
    const void *context;                             /* owned by the importer */
    bool used;                                       /* the graph reads the tensor */
    uint32_t unpermute_head_dim, unpermute_rope_dim; /* rows of each head interleave its RoPE pairs; 0: they do not */
    /* (n_sections) The tensor's rows in order; n_sections 0: all rows of the file's tensor. */
    whit_source_section sections[WHIT_SOURCE_SECTIONS_MAX];
    uint32_t n_sections;
    uint32_t order_begin, order_dim; /* from this row on, heads have order_dim rows each; 0: no such heads */
    /* numbers of these heads, which are grouped by key head in the file and tiled in ours */
    uint32_t order_heads, order_key_heads;
    bool orders_columns; /* the order applies to columns instead of rows */
    /* (n_parts) matrices of which the tensor consists, one for each expert; NULL: no parts */
    whit_source_tensor *parts;
    uint32_t n_parts;
    /* columns of the file's rows: the first, and the distance from each to the next; 0: all */
    uint32_t column_begin, column_step;
    bool is_recoded; /* `type` is the type of another kind of GGUF tensor than the file's */
    bool adds_one;   /* a norm that multiplies by 1 + w; the file stores w */
};

typedef struct whit_source {
    whit_config config;
    whit_source_tensor *tensors;
    uint32_t n_tensors, capacity_tensors;
    whit_buf tokenizer;           /* tokenizer image; empty if absent */
    whit_table_builder templates; /* chat templates by name; the usual one is "default" */
    whit_buf notes;               /* notes for the user about the import, one per line */
    whit_buf passed_over;         /* names of descriptive fields that were not read, separated by commas */
    const struct whit_source_options *options;
    const char *path; /* path that begins messages */
    const whit_allocator *allocator;
    /* Copies name, licence, ... into the container's metadata. */
    whit_status (*write_metadata)(const struct whit_source *source, whit_ndf_writer *writer, whit_error *error);
    void *importer; /* owner of the opened files */
    void (*close)(struct whit_source *source);
} whit_source;

/* Opens a GGUF file, a Hugging Face folder (or a .safetensors file in one) or an .ndf file, and checks that a graph can
 * run it. */
whit_status whit_source_open(const char *path, const whit_allocator *allocator, whit_source *source, whit_error *error);
typedef struct whit_source_options {
    /* The forward pass that replaces the family's; NULL: the family's. Importers then accept unknown architectures,
     * fields and tensors, which the program defines. Name and text must outlive the source. */
    const whit_family_program *program;
    bool is_strict;    /* refuse unknown fields, including fields that only describe the model */
    bool reads_values; /* tensors with corrections are given as f32 values */
    /* (n_overrides) Metadata of a GGUF file to replace, as whit_gguf_override takes it; refused for other sources. */
    const char *const *overrides;
    size_t n_overrides;
} whit_source_options;
/* Does the same as whit_source_open, with options, which must outlive the source. */
whit_status whit_source_open_as(const char *path, const whit_source_options *options, const whit_allocator *allocator,
                                whit_source *source, whit_error *error);
/* Does the same as whit_source_open, but tensors with corrections are given as f32 values. */
whit_status whit_source_open_values(const char *path, const whit_allocator *allocator, whit_source *source,
                                    whit_error *error);
void whit_source_close(whit_source *source);

/* Returns a resolver of the tensors for a graph; `source` must not move while it is used. */
whit_resolver whit_source_resolver(const whit_source *source);

/* For importers: adds a tensor, refusing a second one of the same name; returns NULL on failure. */
whit_source_tensor *whit_source_add(whit_source *source, const char *name, whit_error *error);
/* For importers: returns part number `part` of n_parts of the tensor `name`, all zero except its name; the tensor is
 * added with its first part. Returns NULL on failure, such as for a part that was added before. */
whit_source_tensor *whit_source_add_part(whit_source *source, const char *name, uint32_t part, uint32_t n_parts,
                                         whit_error *error);
/* For importers, after the last part: makes one matrix of each tensor's parts; returns WHIT_ERROR_FORMAT if one is
 * missing or differs from the first in its type; scales of whole parts become scales of rows. */
whit_status whit_source_join_parts(whit_source *source, whit_error *error);
const whit_source_tensor *whit_source_find(const whit_source *source, const char *name);
/* For importers: notes a descriptive field that is not read, or refuses it if the source is strict. */
whit_status whit_source_pass_over(whit_source *source, const char *name, size_t name_bytes, whit_error *error);
/* Adds a chat template. The text is copied; a second template of a name replaces the first. */
whit_status whit_source_add_template(whit_source *source, const char *name, size_t name_bytes, const char *text,
                                     size_t text_bytes, whit_error *error);
/* Returns the index in the file of canonical element or row i, considering only the order of value heads of a delta
 * rule. */
uint32_t whit_source_head_order(const whit_source_tensor *tensor, uint32_t i);
/* Returns the row of the file that holds canonical row `row`. */
uint32_t whit_source_row(const whit_source_tensor *tensor, uint32_t row);

/* The importers fill `source`, which is zeroed except allocator, path and options. */
whit_status whit_import_gguf(whit_source *source, whit_error *error);
whit_status whit_import_ndf(whit_source *source, whit_error *error);
whit_status whit_import_hf(whit_source *source, const char *folder, whit_error *error);

#endif
