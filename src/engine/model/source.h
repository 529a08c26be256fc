/* SPDX-License-Identifier: MIT
 * A source: a model in somebody else's format, seen as ours. Importers (import_*.c) fill it;
 * convert.c writes it out. Weights are read by rows, in the terms of the type that holds them
 * exactly, so a conversion needs memory for a few rows only. */
#ifndef WHIT_MODEL_SOURCE_H
#define WHIT_MODEL_SOURCE_H

#include "format/ndf_write.h"
#include "kernels/codec.h"
#include "model/config.h"
#include "model/families.h"

typedef struct whit_source_tensor whit_source_tensor;

struct whit_source_tensor {
    char name[WHIT_VALUE_NAME_BYTES]; /* canonical, as the graph asks for it */
    whit_tensor_type type;            /* holds the source exactly */
    /* Row `row` (of the canonical order) of the tensor into row 0 of `rows`. Any thread. */
    whit_status (*read_row)(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error);
    /* The rows read so far will not be read again soon: their pages may go. NULL: nothing to do. */
    void (*drop)(const whit_source_tensor *tensor);
    const void *context;                             /* the importer's */
    bool used;                                       /* by the graph */
    uint32_t unpermute_head_dim, unpermute_rope_dim; /* rows of each head interleave its RoPE pairs; 0: no */
    uint32_t part_begin;                             /* it is some rows of the file's tensor, from this one on; */
    uint32_t part_run;                               /* if not 0: of every 2 part_run rows the first part_run */
    uint32_t order_begin, order_dim;                 /* from this row on, heads of order_dim rows; 0: no such heads */
    uint32_t order_heads, order_key_heads;           /* are grouped by key head in the file, and tiled in ours */
    bool orders_columns;                             /* so are columns, in place of rows */
    bool adds_one;                                   /* a norm of 1 + w, of which the file holds w */
};

typedef struct whit_source {
    whit_config config;
    whit_source_tensor *tensors;
    uint32_t n_tensors, capacity_tensors;
    whit_buf tokenizer;           /* image; empty: none */
    whit_table_builder templates; /* chat templates by name; the usual one is "default" */
    whit_buf notes;               /* lines for the user: what was decided */
    whit_buf passed_over;         /* names of fields that describe and were not read, with commas between */
    bool is_strict;               /* refuses such fields */
    const char *path;             /* for messages */
    const whit_allocator *allocator;
    /* Copies name, licence, ... into the container's metadata. */
    whit_status (*write_metadata)(const struct whit_source *source, whit_ndf_writer *writer, whit_error *error);
    void *importer; /* the opened files */
    void (*close)(struct whit_source *source);
} whit_source;

/* Opens a GGUF file, a Hugging Face folder (or a .safetensors file in one) or an .ndf, and checks
 * that a graph can run it. */
whit_status whit_source_open(const char *path, const whit_allocator *allocator, whit_source *source, whit_error *error);
/* The same with a program in place of the family's own; NULL: none. Then importers take architectures,
 * fields and tensors that they do not know: the program says what they mean. Name and text must outlive the
 * source. is_strict: fields that are not known are refused, those too that describe and change no result. */
whit_status whit_source_open_as(const char *path, const whit_family_program *program, bool is_strict,
                                const whit_allocator *allocator, whit_source *source, whit_error *error);
void whit_source_close(whit_source *source);

/* Names and types of the tensors for a graph; `source` must stay where it is while it is used. */
whit_resolver whit_source_resolver(const whit_source *source);

/* For importers: adds a tensor, refusing a second one of the same name. NULL on failure. */
whit_source_tensor *whit_source_add(whit_source *source, const char *name, whit_error *error);
const whit_source_tensor *whit_source_find(const whit_source *source, const char *name);
/* For importers: notes a field that describes and is not read, or refuses it if the source is strict. */
whit_status whit_source_pass_over(whit_source *source, const char *name, size_t name_bytes, whit_error *error);
/* The text is copied; a second template of a name replaces the first. */
whit_status whit_source_add_template(whit_source *source, const char *name, size_t name_bytes, const char *text,
                                     size_t text_bytes, whit_error *error);
/* The element or row of the file that holds canonical one i, as far as value heads of a delta rule are reordered. */
uint32_t whit_source_head_order(const whit_source_tensor *tensor, uint32_t i);
/* The row of the file that holds canonical row `row`. */
uint32_t whit_source_row(const whit_source_tensor *tensor, uint32_t row);

/* Importers; `source` is zeroed but for allocator and path. */
whit_status whit_import_gguf(whit_source *source, whit_error *error);
whit_status whit_import_ndf(whit_source *source, whit_error *error);
whit_status whit_import_hf(whit_source *source, const char *folder, whit_error *error);

#endif
