/* SPDX-License-Identifier: MIT
 * Declares frames and chains of an .ndf file: their layout, their hashes, and functions that read and write them.
 * Layout of a frame, in bytes:
 *
 * header 128 | payload | zeros up to a multiple of 64 | leaf hashes, one per 1 MiB chunk of the payload | zeros up to a
 * multiple of 64 */
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
/* Returns the offset of the leaf hashes, counted from the frame's header. payload_bytes must be at most
 * WHIT_NDF_MAX_PAYLOAD_BYTES. */
uint64_t whit_ndf_leaves_offset(uint64_t payload_bytes);
uint64_t whit_ndf_frame_bytes(uint64_t payload_bytes);
#define WHIT_NDF_MAX_PAYLOAD_BYTES ((uint64_t)1 << 60)

void whit_ndf_leaf(const void *chunk, size_t size_bytes, uint8_t digest[WHIT_HASH_BYTES]);
void whit_ndf_root(const uint8_t *leaves, uint64_t n_chunks, uint8_t digest[WHIT_HASH_BYTES]);
/* Computes the root hash of a payload in memory, of any size. It runs in one thread and keeps no hashes of chunks, so
 * it is meant for small frames. */
void whit_ndf_small_root(const uint8_t *payload, uint64_t payload_bytes, uint8_t digest[WHIT_HASH_BYTES]);
void whit_ndf_frame_hash(const whit_ndf_header *header, uint8_t digest[WHIT_HASH_BYTES]);

/* ---- reading a chain ---- */

/* Source of a chain: a file or bytes in memory. A file is read by pread, so that its truncation by another program
 * causes an error and not a SIGBUS. */
typedef struct whit_ndf_input {
    int fd;
    const uint8_t *data; /* NULL: read from `fd` */
    uint64_t size_bytes; /* size of `data` */
} whit_ndf_input;

/* The frames of a file up to its last complete commit. */
typedef struct whit_ndf_chain {
    whit_buf frames;    /* array of whit_ndf_frame; frames that are not committed may follow the n_frames committed
                         * ones */
    uint32_t n_frames;  /* number of committed frames, commits included */
    uint64_t end_bytes; /* position after the last complete commit */
    uint64_t file_bytes;
    uint8_t last_hash[WHIT_HASH_BYTES]; /* frame hash of the last commit */
    char stop[160];                     /* why the bytes after end_bytes are not committed frames; "" without such
                                         * bytes */
} whit_ndf_chain;

/* Reads a chain. If it has no complete commit, this fails, and the error says what was found instead. */
whit_status whit_ndf_chain_read(const whit_ndf_input *input, const char *path, const whit_allocator *allocator,
                                whit_ndf_chain *chain, whit_error *error);
/* Returns whether a complete commit frame begins at `offset`. It need not belong to the chain that was read. */
bool whit_ndf_is_commit(int fd, uint64_t offset);
void whit_ndf_chain_free(whit_ndf_chain *chain);
static inline const whit_ndf_frame *whit_ndf_chain_at(const whit_ndf_chain *chain, uint32_t i)
{
    return (const whit_ndf_frame *)chain->frames.data + i;
}

/* ---- writing a chain ---- */

/* Writes frames one after the other and hashes their payloads. */
typedef struct whit_ndf_stream {
    whit_writer *out; /* not owned; out->offset_bytes is the position of the next byte */
    uint32_t n_frames;
    uint8_t previous[WHIT_HASH_BYTES];
    /* The members below are the state of the frame that is being written. */
    uint32_t type;
    uint64_t header_offset, payload_bytes;
    whit_hash chunk;
    whit_buf leaves;
} whit_ndf_stream;

whit_status whit_ndf_stream_begin(whit_ndf_stream *stream, uint32_t type, whit_error *error);
whit_status whit_ndf_stream_add(whit_ndf_stream *stream, const void *data, size_t size_bytes, whit_error *error);
/* Appends zeros until the payload has `payload_bytes` bytes. */
whit_status whit_ndf_stream_pad(whit_ndf_stream *stream, uint64_t payload_bytes, whit_error *error);
whit_status whit_ndf_stream_end(whit_ndf_stream *stream, whit_error *error);
/* Appends a complete frame, whose payload is in memory. */
whit_status whit_ndf_stream_frame(whit_ndf_stream *stream, uint32_t type, const void *payload, size_t payload_bytes,
                                  whit_error *error);
whit_status whit_ndf_stream_commit(whit_ndf_stream *stream, whit_error *error);
void whit_ndf_stream_free(whit_ndf_stream *stream);

#endif
