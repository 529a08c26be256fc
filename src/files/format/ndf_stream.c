/* SPDX-License-Identifier: MIT
 * Writes frames. The header of a frame is written last, after its hashes are known. */
#include "format/ndf_frame.h"

whit_status whit_ndf_stream_begin(whit_ndf_stream *stream, uint32_t type, whit_error *error)
{
    static const uint8_t room[sizeof(whit_ndf_header)];
    stream->type = type;
    stream->header_offset = stream->out->offset_bytes;
    stream->payload_bytes = 0;
    stream->leaves.size_bytes = 0;
    stream->leaves.allocator = stream->out->allocator;
    return whit_writer_append(stream->out, room, sizeof room, error);
}

/* Ends the current chunk and appends its leaf hash. */
static whit_status end_leaf(whit_ndf_stream *stream, whit_error *error)
{
    uint8_t leaf[WHIT_HASH_BYTES];
    whit_hash_end(&stream->chunk, leaf);
    if (!whit_buf_append(&stream->leaves, leaf, sizeof leaf))
        return whit_fail_memory(error, "the digests of the file", stream->leaves.size_bytes + sizeof leaf);
    return WHIT_OK;
}

whit_status whit_ndf_stream_add(whit_ndf_stream *stream, const void *data, size_t size_bytes, whit_error *error)
{
    const uint8_t *bytes = data;
    WHIT_TRY(whit_writer_append(stream->out, data, size_bytes, error));
    while (size_bytes) {
        size_t done = stream->payload_bytes % WHIT_NDF_CHUNK_BYTES;
        size_t n = WHIT_NDF_CHUNK_BYTES - done;
        if (n > size_bytes) n = size_bytes;
        if (done == 0) whit_hash_begin(&stream->chunk, WHIT_NDF_DOMAIN_LEAF);
        whit_hash_add(&stream->chunk, bytes, n);
        bytes += n;
        size_bytes -= n;
        stream->payload_bytes += n;
        if (done + n == WHIT_NDF_CHUNK_BYTES) WHIT_TRY(end_leaf(stream, error));
    }
    return WHIT_OK;
}

static const uint8_t zeros[4096];

whit_status whit_ndf_stream_pad(whit_ndf_stream *stream, uint64_t payload_bytes, whit_error *error)
{
    while (stream->payload_bytes < payload_bytes) {
        uint64_t n = payload_bytes - stream->payload_bytes;
        WHIT_TRY(whit_ndf_stream_add(stream, zeros, n < sizeof zeros ? n : sizeof zeros, error));
    }
    return WHIT_OK;
}

/* Appends zeros up to the next multiple of WHIT_NDF_ALIGN_BYTES. No hash covers these zeros; whit_ndf_verify checks
 * them. */
static whit_status align_file(whit_ndf_stream *stream, whit_error *error)
{
    size_t rest = stream->out->offset_bytes % WHIT_NDF_ALIGN_BYTES;
    return rest ? whit_writer_append(stream->out, zeros, WHIT_NDF_ALIGN_BYTES - rest, error) : WHIT_OK;
}

whit_status whit_ndf_stream_end(whit_ndf_stream *stream, whit_error *error)
{
    if (stream->payload_bytes % WHIT_NDF_CHUNK_BYTES) WHIT_TRY(end_leaf(stream, error));
    WHIT_TRY(align_file(stream, error));
    WHIT_TRY(whit_writer_append(stream->out, stream->leaves.data, stream->leaves.size_bytes, error));
    WHIT_TRY(align_file(stream, error));
    whit_ndf_header header = {
        .version = WHIT_NDF_VERSION,
        .type = stream->type,
        .index = stream->n_frames,
        .payload_bytes = stream->payload_bytes,
    };
    memcpy(header.magic, WHIT_NDF_MAGIC, sizeof header.magic);
    memcpy(header.previous, stream->previous, sizeof header.previous);
    whit_ndf_root(stream->leaves.data, stream->leaves.size_bytes / WHIT_HASH_BYTES, header.root);
    whit_ndf_frame_hash(&header, header.hash);
    memcpy(stream->previous, header.hash, sizeof header.hash);
    stream->n_frames++;
    return whit_writer_at(stream->out, stream->header_offset, &header, sizeof header, error);
}

whit_status whit_ndf_stream_frame(whit_ndf_stream *stream, uint32_t type, const void *payload, size_t payload_bytes,
                                  whit_error *error)
{
    WHIT_TRY(whit_ndf_stream_begin(stream, type, error));
    WHIT_TRY(whit_ndf_stream_add(stream, payload, payload_bytes, error));
    return whit_ndf_stream_end(stream, error);
}

whit_status whit_ndf_stream_commit(whit_ndf_stream *stream, whit_error *error)
{
    whit_ndf_commit commit = {
        .end_bytes = stream->out->offset_bytes + whit_ndf_frame_bytes(sizeof commit),
        .n_frames = (uint64_t)stream->n_frames + 1,
    };
    return whit_ndf_stream_frame(stream, WHIT_NDF_COMMIT, &commit, sizeof commit, error);
}

void whit_ndf_stream_free(whit_ndf_stream *stream)
{
    whit_buf_free(&stream->leaves);
}
