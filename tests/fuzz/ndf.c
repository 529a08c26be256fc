/* SPDX-License-Identifier: MIT
 * Opens .ndf files. Bits of the input's first byte: bit 0: hashes are made right first, so that the fuzzer reaches
 * the code after their check; bit 1: it is also verified; bit 2: a frame is appended. */
#include "format/ndf_append.h"
#include "format/ndf_verify.h"
#include "ndf_reseal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* receives what was read, so that the compiler does not remove the reads */
static volatile uint8_t sink;

static void touch(const void *bytes, uint64_t n)
{
    const uint8_t *p = bytes;
    if (n == 0) return;
    sink ^= p[0];
    sink ^= p[n - 1];
}

static void touch_table(const whit_table *table)
{
    for (uint32_t i = 0; i < whit_table_count(table); i++) {
        whit_value value, again;
        const char *key = whit_table_at(table, i, &value);
        if (!whit_table_get(table, key, &again) || again.type != value.type) abort();
        switch (value.type) {
        case WHIT_VALUE_STRING:
            if (strnlen(value.string, value.count + 1) > value.count) abort();
            break;
        case WHIT_VALUE_BYTES:
        case WHIT_VALUE_BOOL_ARRAY: touch(value.bytes, value.count); break;
        case WHIT_VALUE_U64_ARRAY:
        case WHIT_VALUE_I64_ARRAY:
        case WHIT_VALUE_F64_ARRAY: touch(value.bytes, 8 * value.count); break;
        case WHIT_VALUE_STRING_ARRAY:
            for (uint64_t s = 0; s < value.count; s++) {
                size_t n;
                const char *text = whit_value_string_at(&value, s, &n);
                touch(text, n + 1);
            }
            break;
        default: break;
        }
    }
}

static void touch_all(const whit_ndf *ndf)
{
    size_t n;
    const void *tokenizer = whit_ndf_tokenizer(ndf, &n);
    touch(tokenizer, n);
    touch_table(whit_ndf_config(ndf));
    touch_table(whit_ndf_meta(ndf));
    touch_table(whit_ndf_templates(ndf));
    for (uint32_t i = 0; i < whit_ndf_n_tensors(ndf); i++) {
        whit_tensor tensor;
        if (whit_ndf_find(ndf, whit_ndf_tensor_name(ndf, i)) != i) abort();
        whit_ndf_tensor(ndf, i, &tensor);
        for (uint32_t k = 0; k < WHIT_PART_COUNT; k++) touch(tensor.part[k], tensor.part_bytes[k]);
        touch(whit_ndf_tensor_digest(ndf, i), WHIT_HASH_BYTES);
    }
    for (uint32_t i = 0; i < whit_ndf_n_appended(ndf); i++) {
        whit_ndf_appended appended;
        whit_error error;
        if (whit_ndf_appended_at(ndf, i, &appended, &error) != WHIT_OK) continue;
        touch(appended.name, strlen(appended.name) + 1);
        touch(appended.data, appended.size_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > (1u << 22)) return 0;
    uint8_t how = data[0], *file = aligned_alloc(64, whit_round_up(size, 64));
    if (!file) return 0;
    memcpy(file, data + 1, --size);
    if (how & 1) ndf_reseal(file, size);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    whit_error error = {0};
    whit_ndf *ndf = NULL;
    if (fd >= 0 && write(fd, file, size) == (ssize_t)size) {
        if (how & 4) {
            char path[64];
            snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
            (void)whit_ndf_append(path, WHIT_NDF_SESSION, "fuzz", "x", 1, NULL, &error);
        }
        whit_status status = whit_ndf_open_fd(fd, "fuzz.ndf", NULL, &ndf, &error);
        if (status == WHIT_OK) {
            touch_all(ndf);
            if (how & 2) status = whit_ndf_verify(ndf, 1, NULL, NULL, NULL, &error);
        }
        if (status != WHIT_OK && strncmp(error.message, "fuzz.ndf: ", 10) != 0) abort();
    }
    whit_ndf_close(ndf);
    if (fd >= 0) close(fd);
    free(file);
    return 0;
}
