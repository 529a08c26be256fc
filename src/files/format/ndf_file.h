/* SPDX-License-Identifier: MIT
 * Declares the members of an open whit_ndf. Only files of this folder include it. */
#ifndef WHIT_FORMAT_NDF_FILE_H
#define WHIT_FORMAT_NDF_FILE_H

#include "format/ndf.h"
#include "format/ndf_frame.h"

typedef struct whit_ndf_file_view {
    whit_map map;
    whit_ndf_chain chain;
    const uint8_t *data; /* payload of the file's DATA frame */
    uint64_t data_bytes;
    uint32_t data_frame;
} whit_ndf_file_view;

struct whit_ndf {
    const whit_allocator *allocator;
    whit_ndf_file_view *files;      /* (n_files) */
    uint32_t n_files, n_files_room; /* n_files_room: number of files in the file directory; 0 for a loose file */
    uint32_t n_base_frames;         /* number of frames of the model itself, including its commit; 0 for a loose file */

    const uint8_t *head; /* payload of HEAD */
    uint64_t head_bytes;
    whit_table config, meta, templates;
    whit_ndf_names tensors;
    const whit_ndf_part_entry *parts; /* sorted by file and offset */
    uint32_t n_parts;
    const whit_ndf_file_entry *file_entries;
    const uint8_t *file_names; /* the name offsets of file_entries count from here */

    const uint8_t *tokenizer;
    uint64_t tokenizer_bytes;
    const whit_ndf_seal *seal;
};

static inline const whit_ndf_tensor_entry *whit_ndf_tensor_entry_at(const whit_ndf *ndf, uint32_t i)
{
    return (const whit_ndf_tensor_entry *)whit_ndf_name_at(&ndf->tensors, i);
}

/* Checks and describes the appended frame at index `i` of the main file's chain. */
whit_status whit_ndf_read_appended(const whit_ndf *ndf, uint32_t i, whit_ndf_appended *appended, whit_error *error);

#endif
