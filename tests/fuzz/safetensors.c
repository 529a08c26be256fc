/* SPDX-License-Identifier: MIT
 * Opens any bytes as a safetensors file and reads every element. */
#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_safetensors *set;
    whit_error error;
    if (whit_safetensors_open_memory(data, size, "fuzz", NULL, &set, &error) != WHIT_OK) return 0;
    volatile double sum = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        double value;
        for (uint64_t e = 0; whit_safetensor_f64(&set->tensors[i], e, &value); e++) sum = sum + value;
    }
    whit_safetensors_close(set);
    return 0;
}
