/* SPDX-License-Identifier: MIT
 * Small valid .ndf files for tests, and files forged from frames with right hashes. */
#ifndef WHIT_TESTS_NDF_SAMPLE_H
#define WHIT_TESTS_NDF_SAMPLE_H

#include "format/ndf_write.h"

typedef struct ndf_sample_options {
    uint32_t n_tensors;      /* default 5 */
    uint64_t row_bytes;      /* of each tensor's codes; default 200 */
    uint64_t max_data_bytes; /* split */
    bool reversed;           /* the same model declared in another order, with other provenance */
    const whit_allocator *allocator;
} ndf_sample_options;

/* Writes a model; path NULL: in memory, *fd receives a descriptor that the caller closes. Bytes of
 * tensor i, part k at j are ndf_sample_byte(i, k, j). `identity` and `fd` may be NULL. */
whit_status ndf_sample_write(const char *path, const ndf_sample_options *options, uint8_t identity[WHIT_HASH_BYTES],
                             int *fd, whit_error *error);
uint8_t ndf_sample_byte(uint32_t tensor, uint32_t part, uint64_t j);
/* "tensor.N" */
const char *ndf_sample_name(uint32_t tensor);

/* A whole file in memory; freed with free. */
uint8_t *ndf_sample_load(const char *path, size_t *size_bytes);
/* A path in a scratch folder of this process; NULL removes the folder and fails (NULL) where a test
 * left a file in it. */
char *ndf_sample_path(const char *name);

#endif
