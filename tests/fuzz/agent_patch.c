/* SPDX-License-Identifier: MIT
 * Applies a patch to a file; the input's last zero byte separates the two. What can be applied is shown as a
 * difference. */
#include "code/diff.h"
#include "agent/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    whit_patch patch = {0};
    whit_error error;
    const uint8_t *zero = n_bytes ? memrchr(data, 0, n_bytes) : NULL;
    size_t n_patch = zero ? (size_t)(zero - data) : n_bytes, n_file = zero ? n_bytes - n_patch - 1 : 0;
    const char *file = zero ? (const char *)zero + 1 : "";
    if (whit_patch_parse((const char *)data, n_patch, &patch, &error) != WHIT_OK) return 0;
    for (size_t i = 0; i < whit_patch_n_files(&patch); i++) {
        whit_buf out = {0}, diff = {0};
        whit_patch_result result;
        if (whit_patch_apply(&patch, whit_patch_file_at(&patch, i), "f", file, n_file, &out, &result, &error) ==
            WHIT_OK)
            (void)whit_diff_hunks("a", file, n_file, "b", (const char *)out.data, out.size_bytes, &diff, NULL, &error);
        whit_buf_free(&out);
        whit_buf_free(&diff);
    }
    whit_patch_free(&patch);
    return 0;
}
