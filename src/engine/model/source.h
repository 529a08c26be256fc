/* SPDX-License-Identifier: MIT
 * Declares a source: a model in any format that whit can read, described in whit's terms. Importers (import_*.c) fill
 * it; convert.c writes it. Weights are read row by row, in the type that stores them exactly, so a conversion needs
 * memory for a few rows only. */
#ifndef WHIT_MODEL_SOURCE_H
#define WHIT_MODEL_SOURCE_H

#include "format/ndf_write.h"
#include "kernels/codec.h"
#include "model/config.h"
#include "model/families.h"

typedef struct whit_source_tensor whit_source_tensor;

/* Describes a section of the file's tensor: n of its rows, from row `begin` on. They are the first `run` of every
 * `stride` rows; run 0: consecutive rows. */
typedef struct whit_source_section {
    uint32_t n, begin, run, stride;
} whit_source_section;

#define WHIT_SOURCE_SECTIONS_MAX 3

struct whit_source_tensor {
    char name[WHIT_VALUE_NAME_BYTES]; /* canonical name, as in the graph */
    whit_tensor_type type;            /* a type that represents the source exactly */
    /* Reads row `row` of the tensor, in canonical order, into row 0 of `rows`. Any thread may call it. */
    whit_status (*read_row)(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error);
    /* Hints that the rows read so far will not be read again soon, so their pages may be dropped; may be NULL. */
    void (*drop)(const whit_source_tensor *tensor);
    const void *context;                             /* data of the importer, which owns it */
    bool used;                                       /* the graph reads the tensor */
    uint32_t unpermute_head_dim, unpermute_rope_dim; /* RoPE pairs are adjacent rows in the file: size of a head,
                                                      * rotated dimensions of a head; 0: they are half of rope_dim
                                                      * apart */
    /* (n_sections) sections of the file's tensor that contain this tensor's rows, in order; n_sections 0: all rows */
    whit_source_section sections[WHIT_SOURCE_SECTIONS_MAX];
    uint32_t n_sections;
    uint32_t order_begin, order_dim; /* first row of heads that must be reordered, rows per head; order_dim 0: nothing
                                      * is reordered */
    /* number of these heads, number of key heads; the heads are grouped by key head in the file, and tiled in our
     * order. For the reverse, order_key_heads is the number of these heads per key head. */
    uint32_t order_heads, order_key_heads;
    bool orders_columns; /* columns are reordered instead of rows */
    /* (n_parts) matrices that are stacked to this tensor, one per expert; NULL: the tensor is not stacked */
    whit_source_tensor *parts;
    uint32_t n_parts;
    /* columns of the file's rows: index of the first, distance between neighbours; column_step 0: all columns */
    uint32_t column_begin, column_step;
    bool is_recoded; /* `type` corresponds to another kind of GGUF tensor than the file's */
    bool adds_one;   /* the tensor is a norm that multiplies by 1 + w, and the file stores w */
};

typedef struct whit_source {
    whit_config config;
    whit_source_tensor *tensors;
    uint32_t n_tensors, capacity_tensors;
    whit_buf tokenizer;           /* image of the tokenizer; empty if absent */
    whit_table_builder templates; /* chat templates by name; the usual one is "default" */
    whit_buf notes;               /* notes for the user about the import, one per line */
    whit_buf passed_over;         /* names of skipped fields that only describe the model, separated by commas */
    const struct whit_source_options *options;
    const char *path; /* path of the source, with which messages begin; it must outlive the source */
    const whit_allocator *allocator;
    /* Copies descriptions such as name and licence into the container's metadata. */
    whit_status (*write_metadata)(const struct whit_source *source, whit_ndf_writer *writer, whit_error *error);
    void *importer;                            /* holds the opened files */
    void (*close)(struct whit_source *source); /* closes `importer`; NULL: it is not open */
} whit_source;

/* Opens a GGUF file, a Hugging Face folder, a .safetensors file (its folder is opened) or an .ndf file, and checks that
 * a graph can run the model. */
whit_status whit_source_open(const char *path, const whit_allocator *allocator, whit_source *source, whit_error *error);
typedef struct whit_source_options {
    /* Program of the forward pass that replaces the model's program; NULL: the program in the .ndf file, else the
     * family's. With it, importers accept unknown architectures, fields and tensors, which the program defines. Its
     * name and text must outlive the source. */
    const whit_family_program *program;
    bool is_strict;    /* refuse unknown fields, including fields that only describe the model */
    bool reads_values; /* tensors with corrections are read as f32 values */
    /* (n_overrides) changes of the metadata of a GGUF file, as for whit_gguf_override; refused for other sources */
    const char *const *overrides;
    size_t n_overrides;
} whit_source_options;
/* Opens a source like whit_source_open, with options, which must outlive the source. */
whit_status whit_source_open_as(const char *path, const whit_source_options *options, const whit_allocator *allocator,
                                whit_source *source, whit_error *error);
/* Opens a source like whit_source_open, but reads tensors with corrections as f32 values. */
whit_status whit_source_open_values(const char *path, const whit_allocator *allocator, whit_source *source,
                                    whit_error *error);
void whit_source_close(whit_source *source);

/* Returns a resolver of the source's tensors for a graph; `source` must not move while the resolver is used. */
whit_resolver whit_source_resolver(const whit_source *source);

/* For importers: adds a tensor; returns NULL on failure, also if the name exists already. The pointer is valid until
 * the next tensor is added. */
whit_source_tensor *whit_source_add(whit_source *source, const char *name, whit_error *error);
/* For importers: returns part number `part` (an expert's) of the n_parts parts of the tensor `name`, zeroed except for
 * its name. The tensor is added with its first part. Returns NULL on failure, also if the part was added before. */
whit_source_tensor *whit_source_add_part(whit_source *source, const char *name, uint32_t part, uint32_t n_parts,
                                         whit_error *error);
/* For importers, after the last part: stacks the parts of each tensor to one matrix. Returns an error if a part is
 * missing or differs from the first part in type. One scale per part becomes one scale per row; but scales of q2, and
 * of codes with an offset, must be equal. */
whit_status whit_source_join_parts(whit_source *source, whit_error *error);
const whit_source_tensor *whit_source_find(const whit_source *source, const char *name);
/* For importers: records that a field which only describes the model was skipped; refuses the source if it is
 * strict. */
whit_status whit_source_pass_over(whit_source *source, const char *name, size_t name_bytes, whit_error *error);
/* Adds a chat template. The text is copied; a second template of the same name replaces the first. */
whit_status whit_source_add_template(whit_source *source, const char *name, size_t name_bytes, const char *text,
                                     size_t text_bytes, whit_error *error);
/* Returns the index in the file of our element or row i, as far as the order of the value heads of a delta rule
 * determines it. */
uint32_t whit_source_head_order(const whit_source_tensor *tensor, uint32_t i);
/* Returns the row of the file that stores our row `row`. */
uint32_t whit_source_row(const whit_source_tensor *tensor, uint32_t row);

/* The importers fill `source`. The caller has zeroed it, except for its allocator, path, options and program. */
whit_status whit_import_gguf(whit_source *source, whit_error *error);
whit_status whit_import_ndf(whit_source *source, whit_error *error);
whit_status whit_import_hf(whit_source *source, const char *folder, whit_error *error);

#endif
