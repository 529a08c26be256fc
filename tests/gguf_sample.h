/* SPDX-License-Identifier: MIT
 * Makes a small GGUF file in memory, with every metadata type and several tensor types. */
#ifndef WHIT_TESTS_GGUF_SAMPLE_H
#define WHIT_TESTS_GGUF_SAMPLE_H

#include "test.h"

#include "format/gguf_write.h"

/* Returns the bytes of the anonymous file of a whit_writer, in a block of exactly this size, and closes the file. */
static inline uint8_t *take_memory_file(whit_writer *file, size_t *size_bytes)
{
    whit_error error;
    whit_map map;
    assert_ok(whit_map_open_fd(file->fd, "memory", NULL, &map, &error), error);
    uint8_t *bytes = malloc(map.size_bytes);
    memcpy(bytes, map.data, map.size_bytes);
    *size_bytes = map.size_bytes;
    whit_map_close(&map);
    whit_writer_discard(file);
    return bytes;
}

static inline void put_sample_keys(whit_gguf_writer *writer)
{
    static const float numbers[] = {1.5f, -2.0f, 0.25f};
    static const int32_t kinds[] = {1, 3, 6};
    whit_gguf_put_string(writer, "general.architecture", "llama", 5);
    whit_gguf_put(writer, "a.u16", WHIT_GGUF_U16, &(uint16_t){65535});
    whit_gguf_put_u32(writer, "a.u32", 7);
    whit_gguf_put(writer, "a.i32", WHIT_GGUF_I32, &(int32_t){-7});
    whit_gguf_put(writer, "a.u64", WHIT_GGUF_U64, &(uint64_t){UINT64_MAX});
    whit_gguf_put_f32(writer, "a.f32", 1e-5f);
    whit_gguf_put_bool(writer, "a.bool", true);
    whit_gguf_put_array(writer, "tokenizer.ggml.scores", WHIT_GGUF_F32, numbers, 3);
    whit_gguf_put_array(writer, "tokenizer.ggml.token_type", WHIT_GGUF_I32, kinds, 3);
    whit_gguf_put_array(writer, "a.empty", WHIT_GGUF_F32, NULL, 0);
    whit_gguf_put_strings(writer, "tokenizer.ggml.tokens", 3);
    whit_gguf_put_element(writer, "<s>", 3);
    whit_gguf_put_element(writer, "", 0);
    whit_gguf_put_element(writer, "a\0b", 3);
}

/* Makes a file with the tensors "f32" (4 x 2), "q8" (32 x 2) and "tq2" (256 x 1), whose bytes count up from 1. */
static inline uint8_t *make_sample_gguf(uint32_t alignment_bytes, size_t *size_bytes)
{
    whit_gguf_writer writer;
    whit_writer file;
    whit_error error;
    uint8_t data[128];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i + 1);
    whit_gguf_writer_init(&writer, alignment_bytes, NULL);
    put_sample_keys(&writer);
    whit_gguf_put_tensor(&writer, "f32", 0, 2, (const uint64_t[]){4, 2}, 32);
    whit_gguf_put_tensor(&writer, "q8", 8, 2, (const uint64_t[]){32, 2}, 68);
    whit_gguf_put_tensor(&writer, "tq2", 35, 1, (const uint64_t[]){256}, 66);
    assert_ok(whit_writer_open(NULL, NULL, &file, &error), error);
    assert_ok(whit_gguf_write_head(&writer, &file, &error), error);
    assert_ok(whit_gguf_write_data(&writer, data, 32, &error), error);
    assert_ok(whit_gguf_write_data(&writer, data, 68, &error), error);
    assert_ok(whit_gguf_write_data(&writer, data, 66, &error), error);
    assert_ok(whit_gguf_write_end(&writer, &error), error);
    whit_gguf_writer_close(&writer);
    return take_memory_file(&file, size_bytes);
}

#endif
