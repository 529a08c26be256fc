/* SPDX-License-Identifier: MIT */
#include "format/ndf_append.h"

#include "format/ndf_log.h"

#include <inttypes.h>

whit_status whit_ndf_append(const char *path, uint32_t type, const char *name, const void *data, size_t size_bytes,
                            const whit_allocator *allocator, whit_error *error)
{
    whit_ndf_log log;
    WHIT_TRY(whit_ndf_log_open(path, WHIT_NDF_LOG_APPEND, allocator, &log, error));
    whit_status status = whit_ndf_log_begin(&log, type, name, size_bytes, error);
    if (status == WHIT_OK) status = whit_ndf_log_add(&log, data, size_bytes, error);
    if (status == WHIT_OK) status = whit_ndf_log_commit(&log, error);
    if (status != WHIT_OK) whit_ndf_log_cancel(&log);
    whit_ndf_log_close(&log);
    return status;
}

static whit_status write_loose(const char *path, bool is_private, uint32_t type, const char *name, const void *data,
                               size_t size_bytes, const whit_allocator *allocator, whit_error *error)
{
    whit_hash_prepare();
    WHIT_TRY(whit_ndf_check_appended(path, type, name, error));
    whit_writer out = {.fd = -1};
    WHIT_TRY((is_private ? whit_writer_open_private : whit_writer_open)(path, allocator, &out, error));
    whit_ndf_stream stream = {.out = &out};
    whit_status status = whit_ndf_begin_appended(&stream, type, name, size_bytes, error);
    if (status == WHIT_OK) status = whit_ndf_stream_add(&stream, data, size_bytes, error);
    if (status == WHIT_OK) status = whit_ndf_stream_end(&stream, error);
    if (status == WHIT_OK) status = whit_ndf_stream_commit(&stream, error);
    if (status == WHIT_OK) status = whit_writer_commit(&out, error);
    whit_ndf_stream_free(&stream);
    whit_writer_discard(&out);
    return status;
}

whit_status whit_ndf_write_loose(const char *path, uint32_t type, const char *name, const void *data, size_t size_bytes,
                                 const whit_allocator *allocator, whit_error *error)
{
    return write_loose(path, false, type, name, data, size_bytes, allocator, error);
}

whit_status whit_ndf_create_loose(const char *path, uint32_t type, const char *name, const void *data,
                                  size_t size_bytes, const whit_allocator *allocator, whit_error *error)
{
    return write_loose(path, true, type, name, data, size_bytes, allocator, error);
}
