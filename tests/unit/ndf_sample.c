/* SPDX-License-Identifier: MIT */
#include "ndf_sample.h"

#include "format/ndf_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

uint8_t ndf_sample_byte(uint32_t tensor, uint32_t part, uint64_t j)
{
    return (uint8_t)(31 * tensor + 101 * part + j + (j >> 8));
}

const char *ndf_sample_name(uint32_t tensor)
{
    static _Thread_local char name[32];
    snprintf(name, sizeof name, "tensor.%u", tensor);
    return name;
}

static void describe(whit_ndf_writer *writer, bool reversed)
{
    static const uint64_t heads[] = {4, 4, 2};
    static const char *const tags[] = {"tiny", "", "test"};
    whit_table_builder *config = whit_ndf_writer_config(writer);
    for (int pass = 0; pass < 2; pass++) {
        if ((pass == 0) != reversed) {
            whit_table_set_string(config, "family", "llama");
            whit_table_set_u64(config, "n_layers", 5);
        } else {
            whit_table_set_f64(config, "rope.theta", 10000.0);
            whit_table_set_u64_array(config, "heads", heads, 3);
        }
    }
    whit_table_builder *meta = whit_ndf_writer_meta(writer);
    whit_table_set_string(meta, "general.name", "sample");
    whit_table_set_string(meta, "provenance.command", reversed ? "other" : "test");
    whit_table_set_string_array(meta, "general.tags", tags, NULL, 3);
    whit_table_set_bool(meta, "general.odd", true);
    whit_table_set_i64(meta, "general.negative", -7);
    whit_table_set_bytes(meta, "general.blob", "\0\1\2", 3);
    whit_table_set_string(whit_ndf_writer_templates(writer), "default", "{{ messages }}");
    whit_ndf_writer_set_tokenizer(writer, "tokenizer image", 15);
}

static whit_status write_data(whit_ndf_writer *writer, uint32_t i, uint32_t number,
                              const uint64_t part_bytes[WHIT_PART_COUNT], whit_error *error)
{
    uint8_t digest[WHIT_HASH_BYTES], bytes[1000];
    whit_hash hash;
    whit_hash_begin(&hash, "sample");
    for (uint32_t k = 0; k < WHIT_PART_COUNT; k++)
        for (uint64_t done = 0; done < part_bytes[k];) {
            size_t n = 0;
            /* Pieces of odd sizes, which cross the borders of chunks. */
            while (n < 1 + (done * 7 + i) % sizeof bytes && done + n < part_bytes[k]) {
                bytes[n] = ndf_sample_byte(i, k, done + n);
                n++;
            }
            whit_hash_add(&hash, bytes, n);
            WHIT_TRY(whit_ndf_writer_add(writer, number, (whit_part)k, bytes, n, error));
            done += n;
        }
    whit_hash_end(&hash, digest);
    whit_ndf_writer_set_digest(writer, number, digest);
    return WHIT_OK;
}

static whit_status write_all(whit_ndf_writer *writer, const ndf_sample_options *options,
                             uint8_t identity[WHIT_HASH_BYTES], whit_error *error)
{
    uint32_t n = options->n_tensors, numbers[256];
    describe(writer, options->reversed);
    for (uint32_t at = 0; at < n; at++) {
        uint32_t i = options->reversed ? n - 1 - at : at;
        whit_tensor_type type = {.codec = WHIT_CODEC_I8,
                                 .layout = WHIT_LAYOUT_TILE16,
                                 .scale_kind = WHIT_SCALE_ROW,
                                 .n_rows = 4 + i,
                                 .n_cols = 8};
        uint64_t part_bytes[WHIT_PART_COUNT] = {options->row_bytes + i, 4 * (4 + i)};
        WHIT_TRY(whit_ndf_writer_declare(writer, ndf_sample_name(i), &type, part_bytes, &numbers[i], error));
    }
    WHIT_TRY(whit_ndf_writer_begin(writer, error));
    for (uint32_t at = 0; at < n; at++) {
        uint32_t i = options->reversed ? n - 1 - at : at;
        uint64_t part_bytes[WHIT_PART_COUNT] = {options->row_bytes + i, 4 * (4 + i)};
        WHIT_TRY(write_data(writer, i, numbers[i], part_bytes, error));
    }
    return whit_ndf_writer_commit(writer, identity, error);
}

whit_status ndf_sample_write(const char *path, const ndf_sample_options *options, uint8_t identity[WHIT_HASH_BYTES],
                             int *fd, whit_error *error)
{
    ndf_sample_options all = options ? *options : (ndf_sample_options){0};
    if (!all.n_tensors) all.n_tensors = 5;
    if (!all.row_bytes) all.row_bytes = 200;
    whit_ndf_writer *writer;
    whit_ndf_write_options how = {.max_data_bytes = all.max_data_bytes};
    WHIT_TRY(whit_ndf_writer_open(path, &how, all.allocator, &writer, error));
    whit_status status = write_all(writer, &all, identity, error);
    if (status == WHIT_OK && fd) *fd = dup(whit_ndf_writer_fd(writer));
    whit_ndf_writer_close(writer);
    return status;
}

uint8_t *ndf_sample_load(const char *path, size_t *size_bytes)
{
    whit_buf buf = {0};
    if (whit_read_file(path, (size_t)1 << 30, &buf, NULL) != WHIT_OK) return NULL;
    *size_bytes = buf.size_bytes;
    return buf.data;
}

char *ndf_sample_path(const char *name)
{
    static char folder[] = "/tmp/whit-ndf-XXXXXX", paths[32][128];
    static unsigned next;
    static bool made;
    if (!made && !(made = mkdtemp(folder) != NULL)) abort();
    if (!name) return rmdir(folder) == 0 ? folder : NULL;
    char *path = paths[next++ % 32];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}
