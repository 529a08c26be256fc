/* SPDX-License-Identifier: MIT
 * Writes an .ndf: declare everything, then stream the data in the declared order.
 *
 *     whit_ndf_writer_open             a path, or NULL for a file in memory
 *     whit_table_set_*                 into whit_ndf_writer_config, _meta, _templates
 *     whit_ndf_writer_set_tokenizer
 *     whit_ndf_writer_declare          every tensor: type and bytes of each part
 *     whit_ndf_writer_begin            writes the directory
 *     whit_ndf_writer_add              the bytes of every part, in pieces of any size
 *     whit_ndf_writer_set_digest       of every tensor, in any order
 *     whit_ndf_writer_commit           seal, flush, rename
 *     whit_ndf_writer_close            always; without a commit no file remains
 *
 * Memory: the directory and 32 bytes per MiB; never the data. Only one thread may use it at a time. After a failure the
 * only thing left to do is close. */
#ifndef WHIT_FORMAT_NDF_WRITE_H
#define WHIT_FORMAT_NDF_WRITE_H

#include "format/ndf.h"

typedef struct whit_ndf_writer whit_ndf_writer;

typedef struct whit_ndf_write_options {
    /* A file contains at most this many bytes of tensor data; 0: all data is in one file. A tensor is never divided, so
     * a larger tensor gets a file of its own. With PATH "dir/NAME.ndf" the further files are
     * dir/NAME-00002-of-0000N.ndf. */
    uint64_t max_data_bytes;
} whit_ndf_write_options;

/* Opens a writer. `options` may be NULL. */
whit_status whit_ndf_writer_open(const char *path, const whit_ndf_write_options *options,
                                 const whit_allocator *allocator, whit_ndf_writer **writer, whit_error *error);
/* Return the builders of the three tables, to be filled before begin; they belong to the writer. */
whit_table_builder *whit_ndf_writer_config(whit_ndf_writer *writer);
whit_table_builder *whit_ndf_writer_meta(whit_ndf_writer *writer);
whit_table_builder *whit_ndf_writer_templates(whit_ndf_writer *writer);
/* Sets the tokenizer's image, which stays the caller's and must not change until begin has returned. */
void whit_ndf_writer_set_tokenizer(whit_ndf_writer *writer, const void *image, size_t size_bytes);

/* Declares a tensor (the name is copied); part_bytes[k] is 0 for parts that it does not have. The
 * order of declaration is the order of the data. *tensor is its number for the calls below (not
 * its number in the finished file). */
whit_status whit_ndf_writer_declare(whit_ndf_writer *writer, const char *name, const whit_tensor_type *type,
                                    const uint64_t part_bytes[WHIT_PART_COUNT], uint32_t *tensor, whit_error *error);
whit_status whit_ndf_writer_begin(whit_ndf_writer *writer, whit_error *error);
/* Adds data, which must come in order: tensors as declared, the parts of each by rising number. */
whit_status whit_ndf_writer_add(whit_ndf_writer *writer, uint32_t tensor, whit_part part, const void *data,
                                size_t size_bytes, whit_error *error);
void whit_ndf_writer_set_digest(whit_ndf_writer *writer, uint32_t tensor, const uint8_t digest[WHIT_HASH_BYTES]);
/* Commits the file; `identity` (32 bytes) may be NULL. Part files are renamed first, the main file last: a crash in
 * between leaves an old main file that refuses the new parts, never a mixture. */
whit_status whit_ndf_writer_commit(whit_ndf_writer *writer, uint8_t identity[WHIT_HASH_BYTES], whit_error *error);
/* Returns the descriptor of a committed file in memory, for whit_ndf_open_fd; it belongs to the writer. */
int whit_ndf_writer_fd(const whit_ndf_writer *writer);
void whit_ndf_writer_close(whit_ndf_writer *writer);

#endif
