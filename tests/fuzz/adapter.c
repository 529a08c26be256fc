/* SPDX-License-Identifier: MIT
 * Checks adapter images. If bit 0 of the input's first byte is set, the rest is an image; otherwise it is edits of a
 * valid one, two bytes of offset and one of value each. An image that passes the check is read to its last byte and
 * used in a product. */
#include "kernels/kernels.h"
#include "model/adapter.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static whit_buf sound;

static void make_sound(void)
{
    enum { RANK = 3, WIDTH = 20 };
    static float values[RANK * WIDTH];
    const uint8_t identity[WHIT_HASH_BYTES] = {1, 2, 3};
    whit_adapter_floats pairs[] = {{"layers.0.q", WIDTH, WIDTH, RANK, values, values},
                                   {"layers.0.up", WIDTH - 3, WIDTH, RANK - 1, values, values}};
    whit_table_builder meta = {0};
    whit_error error;
    for (int i = 0; i < RANK * WIDTH; i++) values[i] = (float)(i % 7 - 3) * 0.1f;
    whit_table_set_string(&meta, "general.name", "sound");
    whit_table_set_f64(&meta, "adapter.alpha", 16);
    if (whit_adapter_build(identity, &meta, pairs, 2, &sound, &error) != WHIT_OK) abort();
    whit_table_builder_free(&meta);
}

/* Unpacks the last row of the first factor, and multiplies with the whole second factor. */
static void touch(const whit_kernels *kernels, const whit_adapter_pair *pair)
{
    const whit_tensor_type *a = &pair->a.type, *b = &pair->b.type;
    int8_t *codes = malloc(a->n_cols);
    float *low = calloc(b->n_cols, sizeof *low), *y = calloc(b->n_rows, sizeof *y);
    if (codes && low && y) {
        kernels->low_rank(&pair->b, low, b->n_cols, 1, 0, (b->n_rows + 15) / 16, y, b->n_rows);
        whit_codec_unpack(&pair->a, a->n_rows - 1, 1, &(whit_rows){.elems = codes, .fields = low});
    }
    free(codes);
    free(low);
    free(y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_error error = {0};
    whit_adapter_view view;
    whit_kernels kernels;
    whit_cpu cpu;
    if (!sound.size_bytes) make_sound();
    if (size < 1 || size > (1u << 20)) return 0;
    bool raw = data[0] & 1;
    size_t n = raw ? size - 1 : sound.size_bytes;
    uint8_t *image = aligned_alloc(64, whit_round_up(n + 1, 64));
    if (!image) return 0;
    memcpy(image, raw ? data + 1 : sound.data, n);
    for (size_t i = 1; !raw && i + 3 <= size; i += 3) image[(data[i] | (size_t)data[i + 1] << 8) % n] = data[i + 2];
    whit_cpu_detect(&cpu);
    if (whit_kernels_select(&cpu, "generic", &kernels, &error) != WHIT_OK) abort();
    if (whit_adapter_check(image, n, "fuzz", &view, &error) != WHIT_OK) {
        if (strncmp(error.message, "fuzz", 4) != 0) abort();
    } else {
        for (uint32_t i = 0; i < view.n_pairs; i++) {
            whit_adapter_pair pair = whit_adapter_pair_at(&view, i);
            if (pair.b.type.n_rows < 4096) touch(&kernels, &pair);
        }
    }
    free(image);
    return 0;
}
