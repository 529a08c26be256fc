/* SPDX-License-Identifier: MIT
 * Writes an .ndf file: first everything is declared, then the data is written in the declared order. Calls in order:
 *
 *    whit_ndf_writer_open           a path, or NULL for a file in memory
 *    whit_table_set_*               on whit_ndf_writer_config, _meta and _templates
 *    whit_ndf_writer_set_tokenizer
 *    whit_ndf_writer_declare        for every tensor: its type and the size of each part
 *    whit_ndf_writer_begin          writes the directory
 *    whit_ndf_writer_add            the bytes of every part, in pieces of any size
 *    whit_ndf_writer_set_digest     for every tensor, in any order
 *    whit_ndf_writer_commit         seals, flushes and renames the file
 *    whit_ndf_writer_close          always; without a commit no file remains
 *
 * Memory use: the directory and 32 bytes per MiB of data, but not the data itself, unless the file is in memory. Only
 * one thread may use a writer at a time. After a failure only whit_ndf_writer_close may be called. */
#ifndef WHIT_FORMAT_NDF_WRITE_H
#define WHIT_FORMAT_NDF_WRITE_H

#include "format/ndf.h"

typedef struct whit_ndf_writer whit_ndf_writer;

typedef struct whit_ndf_write_options {
    /* Limit of the tensor data of one file, in bytes; 0: no limit, one file. A tensor is never divided: one that is
     * larger than the limit gets a file of its own. For the path "dir/NAME.ndf", the further files are
     * dir/NAME-00002-of-0000N.ndf, or dir/NAME-00002-of-0000Nb.ndf if they replace files without the "b". */
    uint64_t max_data_bytes;
} whit_ndf_write_options;

/* Opens a writer. `path` NULL: a file in memory. `options` may be NULL. */
whit_status whit_ndf_writer_open(const char *path, const whit_ndf_write_options *options,
                                 const whit_allocator *allocator, whit_ndf_writer **writer, whit_error *error);
/* Return the builders of the three tables, which the caller fills before whit_ndf_writer_begin. The writer owns
 * them. */
whit_table_builder *whit_ndf_writer_config(whit_ndf_writer *writer);
whit_table_builder *whit_ndf_writer_meta(whit_ndf_writer *writer);
whit_table_builder *whit_ndf_writer_templates(whit_ndf_writer *writer);
/* Sets the tokenizer's image. It is not copied, and must not change until whit_ndf_writer_begin has returned. */
void whit_ndf_writer_set_tokenizer(whit_ndf_writer *writer, const void *image, size_t size_bytes);

/* Declares a tensor. The name is copied. part_bytes[k] is the size of part k, 0 if the tensor lacks it. The data must
 * be added in the order of the declarations. *tensor is the number for the calls below; the number in the finished file
 * may differ. */
whit_status whit_ndf_writer_declare(whit_ndf_writer *writer, const char *name, const whit_tensor_type *type,
                                    const uint64_t part_bytes[WHIT_PART_COUNT], uint32_t *tensor, whit_error *error);
whit_status whit_ndf_writer_begin(whit_ndf_writer *writer, whit_error *error);
/* Adds data. It must arrive in order: tensors as declared, and the parts of each tensor by increasing part number. */
whit_status whit_ndf_writer_add(whit_ndf_writer *writer, uint32_t tensor, whit_part part, const void *data,
                                size_t size_bytes, whit_error *error);
void whit_ndf_writer_set_digest(whit_ndf_writer *writer, uint32_t tensor, const uint8_t digest[WHIT_HASH_BYTES]);
/* Completes the file. `identity` (32 bytes) receives the model's identity and may be NULL. Part files are renamed
 * first, the main file last. After a crash between these steps the old main file does not accept the new part files, so
 * that old and new data are never mixed. */
whit_status whit_ndf_writer_commit(whit_ndf_writer *writer, uint8_t identity[WHIT_HASH_BYTES], whit_error *error);
/* Returns the file descriptor of a committed file in memory, for whit_ndf_open_fd; -1 for any other writer. The writer
 * owns it. */
int whit_ndf_writer_fd(const whit_ndf_writer *writer);
void whit_ndf_writer_close(whit_ndf_writer *writer);

#endif
