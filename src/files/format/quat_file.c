/* SPDX-License-Identifier: MIT */
#include "format/quat_file.h"

#include <math.h>

enum { VERSION_PACKED = 2, VERSION_PADDED = 5, CHUNK_WORDS = 64 };
static const char magic[4] = "NDAM";

static whit_status check(whit_quat_file *file, whit_error *error)
{
    const whit_map *map = &file->map;
    const uint8_t *head = map->data;
    if (map->size_bytes < WHIT_QUAT_FILE_HEADER_BYTES || memcmp(head, magic, 4) != 0)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: is no matrix file (it does not begin with NDAM and 14 bytes)",
                         map->path);
    unsigned version = whit_load_u16(head + 4);
    file->n_rows = whit_load_u32(head + 6);
    file->n_cols = whit_load_u32(head + 10);
    file->scale = whit_load_f32(head + 14);
    if (version != VERSION_PACKED && version != VERSION_PADDED)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: offset 4: version %u; known are 2 (quaternary) and 5 (quaternary, padded rows)",
                         map->path, version);
    if (!file->n_rows || !file->n_cols)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: offset 6: %u rows of %u columns; neither may be 0", map->path,
                         file->n_rows, file->n_cols);
    if (!isfinite(file->scale))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: offset 14: the scale is not finite", map->path);
    file->padded = version == VERSION_PADDED;
    file->row_bits = file->padded ? ((uint64_t)file->n_cols + 63) / 64 * 64 : file->n_cols;
    uint64_t bits; /* below 2^64: both factors are below 2^32, but for padding of the larger */
    if (__builtin_mul_overflow(file->row_bits, (uint64_t)file->n_rows, &bits)) bits = UINT64_MAX;
    file->plane_bytes = bits / 8 + (bits % 8 != 0);
    uint64_t wanted = WHIT_QUAT_FILE_HEADER_BYTES + 2 * file->plane_bytes;
    if (map->size_bytes != wanted)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: has %zu bytes; %u rows of %u columns need %llu", map->path,
                         map->size_bytes, file->n_rows, file->n_cols, (unsigned long long)wanted);
    file->sign = head + WHIT_QUAT_FILE_HEADER_BYTES;
    file->extra = file->sign + file->plane_bytes;
    return WHIT_OK;
}

whit_status whit_quat_file_open(const char *path, const whit_allocator *allocator, whit_quat_file *file,
                                whit_error *error)
{
    *file = (whit_quat_file){0};
    WHIT_TRY(whit_map_open(path, allocator, &file->map, error));
    whit_status status = check(file, error);
    if (status != WHIT_OK) whit_quat_file_close(file);
    return status;
}

whit_status whit_quat_file_open_memory(const void *data, size_t size_bytes, const char *name,
                                       const whit_allocator *allocator, whit_quat_file *file, whit_error *error)
{
    *file = (whit_quat_file){0};
    WHIT_TRY(whit_map_open_memory(data, size_bytes, name, allocator, &file->map, error));
    whit_status status = check(file, error);
    if (status != WHIT_OK) whit_quat_file_close(file);
    return status;
}

void whit_quat_file_close(whit_quat_file *file)
{
    whit_map_close(&file->map);
    *file = (whit_quat_file){0};
}

/* 64 lanes of a plane from any bit on, of which n are wanted; reads no byte that holds none of them. */
static uint64_t word_at(const uint8_t *plane, uint64_t bit, uint64_t n)
{
    uint8_t bytes[16] = {0};
    unsigned shift = bit % 8;
    if (n > 64) n = 64;
    memcpy(bytes, plane + bit / 8, (size_t)((shift + n + 7) / 8));
    uint64_t word = whit_load_u64(bytes) >> shift;
    if (shift) word |= whit_load_u64(bytes + 8) << (64 - shift);
    return n == 64 ? word : word & (((uint64_t)1 << n) - 1);
}

void whit_quat_file_row(const whit_quat_file *file, uint32_t row, uint32_t word_begin, uint32_t n_words,
                        whit_quat_planes out)
{
    uint64_t begin = file->row_bits * row;
    for (uint32_t i = 0; i < n_words; i++) {
        uint64_t lane = ((uint64_t)word_begin + i) * 64, left = lane < file->n_cols ? file->n_cols - lane : 0;
        out.sign[i] = left ? word_at(file->sign, begin + lane, left) : 0;
        out.extra[i] = left ? word_at(file->extra, begin + lane, left) : 0;
    }
}

void whit_quat_file_gemv(const whit_quat_file *file, const whit_quat_kernels *kernels, whit_quat_view x, int8_t x_scale,
                         float *y)
{
    uint64_t sign[CHUNK_WORDS], extra[CHUNK_WORDS];
    uint32_t n_words = whit_quat_words(file->n_cols);
    double scale = ldexp((double)file->scale, x_scale);
    for (uint32_t r = 0; r < file->n_rows; r++) {
        int64_t sum = 0;
        for (uint32_t w = 0; w < n_words; w += CHUNK_WORDS) {
            uint32_t n = n_words - w < CHUNK_WORDS ? n_words - w : CHUNK_WORDS, left = file->n_cols - w * 64;
            whit_quat_file_row(file, r, w, n, (whit_quat_planes){sign, extra});
            sum += kernels->dot((whit_quat_view){sign, extra}, (whit_quat_view){x.sign + w, x.extra + w},
                                left < n * 64 ? left : n * 64);
        }
        y[r] = (float)(scale * (double)sum);
    }
}

/* One plane's bits, row after row. */
static bool write_plane(whit_buf *buf, const uint64_t *plane, uint32_t n_rows, uint64_t n_cols, uint64_t row_bits,
                        uint32_t row_words)
{
    size_t begin = buf->size_bytes;
    if (!whit_buf_append_zeros(buf, (size_t)((row_bits * n_rows + 7) / 8))) return false;
    uint8_t *out = buf->data + begin;
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint64_t c = 0, bit = row_bits * r; c < n_cols; c++, bit++)
            out[bit / 8] |= (uint8_t)((plane[(size_t)r * row_words + c / 64] >> c % 64 & 1) << bit % 8);
    return true;
}

whit_status whit_quat_file_write(const char *path, whit_quat_view matrix, uint32_t n_rows, uint32_t n_cols,
                                 uint32_t row_words, float scale, bool padded, whit_error *error)
{
    uint8_t head[WHIT_QUAT_FILE_HEADER_BYTES];
    uint16_t version = padded ? VERSION_PADDED : VERSION_PACKED;
    uint64_t row_bits = padded ? ((uint64_t)n_cols + 63) / 64 * 64 : n_cols;
    whit_buf buf = {0};
    memcpy(head, magic, 4);
    memcpy(head + 4, &version, 2);
    memcpy(head + 6, &n_rows, 4);
    memcpy(head + 10, &n_cols, 4);
    memcpy(head + 14, &scale, 4);
    bool ok = whit_buf_append(&buf, head, sizeof head) &&
        write_plane(&buf, matrix.sign, n_rows, n_cols, row_bits, row_words) &&
        write_plane(&buf, matrix.extra, n_rows, n_cols, row_bits, row_words);
    whit_status status = ok ? whit_write_file(path, buf.data, buf.size_bytes, error)
                            : whit_fail_memory(error, "a matrix", (size_t)(row_bits / 4 * n_rows));
    whit_buf_free(&buf);
    return status;
}
