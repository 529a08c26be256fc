/* SPDX-License-Identifier: MIT
 * Opens any bytes as an importance matrix, in both forms, and reads every entry. */
#include "format/imatrix.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_imatrix imatrix;
    whit_error error;
    if (whit_imatrix_open_memory(&imatrix, data, size, "fuzz", NULL, &error) != WHIT_OK) return 0;
    for (size_t i = 0; i < imatrix.n; i++) {
        const whit_imatrix_entry *entry = &imatrix.entries[i];
        if (entry->n > size / 4) abort();
        float *means = malloc((size_t)entry->n * sizeof *means + 1);
        if (means && whit_imatrix_means(&imatrix, entry, (uint32_t)entry->n, means, &error) == WHIT_OK)
            for (uint64_t j = 0; j < entry->n; j++)
                if (!(means[j] >= 0)) abort();
        free(means);
    }
    (void)whit_imatrix_find(&imatrix, "blk.0.attn_q.weight");
    whit_imatrix_close(&imatrix);
    return 0;
}
