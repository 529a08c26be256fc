/* SPDX-License-Identifier: MIT
 * Makes small valid .ndf files for tests. */
#ifndef WHIT_TESTS_NDF_SAMPLE_H
#define WHIT_TESTS_NDF_SAMPLE_H

#include "format/ndf_write.h"

typedef struct ndf_sample_options {
    uint32_t n_tensors;      /* default 5 */
    uint64_t row_bytes;      /* bytes per row of codes; default 200 */
    uint64_t max_data_bytes; /* limit of DATA in a file; 0: not split */
    bool reversed;           /* the same model in another order of declaration, with other provenance */
    const whit_allocator *allocator;
} ndf_sample_options;

/* Writes a model. If path is NULL, it is written to memory, and *fd becomes a descriptor that the caller closes. Byte j
 * of part k of tensor i is ndf_sample_byte(i, k, j). `identity` and `fd` may be NULL. */
whit_status ndf_sample_write(const char *path, const ndf_sample_options *options, uint8_t identity[WHIT_HASH_BYTES],
                             int *fd, whit_error *error);
uint8_t ndf_sample_byte(uint32_t tensor, uint32_t part, uint64_t j);
/* Returns "tensor.N"; the text is valid until the next call in the thread. */
const char *ndf_sample_name(uint32_t tensor);

/* Returns a whole file; the caller frees it. */
uint8_t *ndf_sample_load(const char *path, size_t *size_bytes);
/* Returns a path in a scratch folder of this process. With NULL it removes the folder; if a test left a file there,
 * this fails. */
char *ndf_sample_path(const char *name);

#endif
