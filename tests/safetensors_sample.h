/* SPDX-License-Identifier: MIT
 * Makes safetensors bytes from a header and a data size; the data counts up from 1. */
#ifndef WHIT_TESTS_SAFETENSORS_SAMPLE_H
#define WHIT_TESTS_SAFETENSORS_SAMPLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint8_t *make_safetensors(const char *header, size_t data_bytes, size_t *size_bytes)
{
    uint64_t header_bytes = strlen(header);
    *size_bytes = 8 + (size_t)header_bytes + data_bytes;
    uint8_t *bytes = malloc(*size_bytes);
    memcpy(bytes, &header_bytes, 8);
    memcpy(bytes + 8, header, (size_t)header_bytes);
    for (size_t i = 0; i < data_bytes; i++) bytes[8 + header_bytes + i] = (uint8_t)(i + 1);
    return bytes;
}

#define SAMPLE_HEADER                                                                                                  \
    "{\"__metadata__\":{\"format\":\"pt\"},"                                                                           \
    "\"b.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[16,28]},"                                      \
    "\"a.weight\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"                                          \
    "\"sc\\u0061le\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[28,30]},"                                       \
    "\"none\":{\"dtype\":\"I64\",\"shape\":[0,7],\"data_offsets\":[30,30]},"                                           \
    "\"packed\":{\"dtype\":\"U8\",\"shape\":[1,2],\"data_offsets\":[30,32]}}  "
#define SAMPLE_DATA_BYTES 32

#endif
