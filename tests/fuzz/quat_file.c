/* SPDX-License-Identifier: MIT
 * Any bytes as a matrix file: opened, every row read. */
#include "format/quat_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_quat_file file;
    whit_error error;
    if (whit_quat_file_open_memory(data, size, "fuzz", NULL, &file, &error) != WHIT_OK) return 0;
    volatile uint64_t sum = 0;
    for (uint32_t r = 0; r < file.n_rows && r < 1000; r++)
        for (uint32_t w = 0; w < whit_quat_words(file.n_cols); w++) {
            uint64_t sign, extra;
            whit_quat_file_row(&file, r, w, 1, (whit_quat_planes){&sign, &extra});
            sum += sign ^ extra;
        }
    whit_quat_file_close(&file);
    return 0;
}
