/* SPDX-License-Identifier: MIT
 * Declares frames and chains of an .ndf file: their geometry, their hashes, and functions that read and write them.
 *
 * header 128 | payload | zeros to 64 | leaf hash of each 1 MiB chunk | zeros to 64 */
#ifndef WHIT_FORMAT_NDF_FRAME_H
#define WHIT_FORMAT_NDF_FRAME_H

#include "base/file.h"
#include "format/ndf.h"
#include "format/ndf_layout.h"

/* ---- one frame ---- */

typedef struct whit_ndf_frame {
    uint64_t offset; /* position of the header in the file */
    uint64_t payload_bytes;
    uint32_t type;
} whit_ndf_frame;

static inline uint64_t whit_ndf_payload_offset(const whit_ndf_frame *frame)
{
    return frame->offset + sizeof(whit_ndf_header);
}
uint64_t whit_ndf_n_chunks(uint64_t payload_bytes);
/* Returns the offset of the leaf hashes from the frame's header; payload_bytes is at most
 * WHIT_NDF_MAX_PAYLOAD_BYTES. */
uint64_t whit_ndf_leaves_offset(uint64_t payload_bytes);
uint64_t whit_ndf_frame_bytes(uint64_t payload_bytes);
#define WHIT_NDF_MAX_PAYLOAD_BYTES ((uint64_t)1 << 60)

void whit_ndf_leaf(const void *chunk, size_t size_bytes, uint8_t digest[WHIT_HASH_BYTES]);
void whit_ndf_root(const uint8_t *leaves, uint64_t n_chunks, uint8_t digest[WHIT_HASH_BYTES]);
/* Computes the root of a payload in memory, without its leaf table; for small frames. */
void whit_ndf_small_root(const uint8_t *payload, uint64_t payload_bytes, uint8_t digest[WHIT_HASH_BYTES]);
void whit_ndf_frame_hash(const whit_ndf_header *header, uint8_t digest[WHIT_HASH_BYTES]);

/* ---- reading a chain ---- */

/* A chain is read from a file, by pread, so that a truncation meanwhile is an error and not a SIGBUS, or from bytes in
 * memory. */
typedef struct whit_ndf_input {
    int fd;
    const uint8_t *data; /* NULL: read from `fd` */
    uint64_t size_bytes; /* size of `data` */
} whit_ndf_input;

/* Lists the frames of a file up to its last whole commit. */
typedef struct whit_ndf_chain {
    whit_buf frames;    /* array of whit_ndf_frame */
    uint32_t n_frames;  /* committed frames */
    uint64_t end_bytes; /* where the last commit ends */
    uint64_t file_bytes;
    uint8_t last_hash[WHIT_HASH_BYTES]; /* frame hash of the last commit */
    char stop[160];                     /* why reading stopped before the end of the file; "" if it did not */
} whit_ndf_chain;

/* Reads a chain. Fails if there is no whole commit at all; the error then says what was found instead. */
whit_status whit_ndf_chain_read(const whit_ndf_input *input, const char *path, const whit_allocator *allocator,
                                whit_ndf_chain *chain, whit_error *error);
/* Returns whether there is a whole commit at `offset`, whatever chain it belongs to. */
bool whit_ndf_is_commit(int fd, uint64_t offset);
void whit_ndf_chain_free(whit_ndf_chain *chain);
static inline const whit_ndf_frame *whit_ndf_chain_at(const whit_ndf_chain *chain, uint32_t i)
{
    return (const whit_ndf_frame *)chain->frames.data + i;
}

/* ---- writing a chain ---- */

/* Writes frames sequentially and hashes their payloads. */
typedef struct whit_ndf_stream {
    whit_writer *out; /* the caller's; out->offset_bytes is where the next byte goes */
    uint32_t n_frames;
    uint8_t previous[WHIT_HASH_BYTES];
    /* The members below are the state of the open frame. */
    uint32_t type;
    uint64_t header_offset, payload_bytes;
    whit_hash chunk;
    whit_buf leaves;
} whit_ndf_stream;

whit_status whit_ndf_stream_begin(whit_ndf_stream *stream, uint32_t type, whit_error *error);
whit_status whit_ndf_stream_add(whit_ndf_stream *stream, const void *data, size_t size_bytes, whit_error *error);
/* Adds zeros up to `payload_bytes` of the payload. */
whit_status whit_ndf_stream_pad(whit_ndf_stream *stream, uint64_t payload_bytes, whit_error *error);
whit_status whit_ndf_stream_end(whit_ndf_stream *stream, whit_error *error);
/* Appends a whole frame. */
whit_status whit_ndf_stream_frame(whit_ndf_stream *stream, uint32_t type, const void *payload, size_t payload_bytes,
                                  whit_error *error);
whit_status whit_ndf_stream_commit(whit_ndf_stream *stream, whit_error *error);
void whit_ndf_stream_free(whit_ndf_stream *stream);

#endif
