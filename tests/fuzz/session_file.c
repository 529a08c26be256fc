/* SPDX-License-Identifier: MIT
 * Loads session files. The first byte of an input says what the rest is: 0: a file; 1: a file whose hashes are made
 * right first; otherwise the data of a TURN frame after a valid beginning. */
#include "base/file.h"
#include "format/ndf_sign.h"
#include "format/ndf_table.h"
#include "ndf_reseal.h"
#include "runtime/session_frames.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static whit_status touch(void *user, const whit_session_record *before, const whit_turn_view *turn, whit_error *error)
{
    uint64_t *sum = user;
    whit_sampler_options options;
    whit_buf ids = {0}, values = {0};
    (void)before;
    (void)error;
    for (uint64_t i = 0; i < turn->header->n_ids; i++) *sum += (uint64_t)turn->ids[i];
    for (uint64_t i = 0; i < turn->header->note_bytes; i++) *sum += (uint8_t)turn->note[i];
    if (turn->settings) (void)whit_session_settings_read(turn->settings, &options, &ids, &values, NULL);
    whit_buf_free(&ids);
    whit_buf_free(&values);
    return WHIT_OK;
}

static void read_it(int fd)
{
    whit_error error = {0};
    whit_ndf_log log;
    whit_ndf_signed found;
    whit_session_record record = {0};
    uint64_t sum = 0;
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (whit_ndf_log_open(path, WHIT_NDF_LOG_READ, NULL, &log, &error) == WHIT_OK) {
        (void)whit_ndf_check_signed(&log, NULL, &found, &error);
        whit_status status = whit_session_record_read(&log, NULL, touch, &sum, &record, &error);
        if (status != WHIT_OK && strncmp(error.message, path, strlen(path)) != 0 &&
            strncmp(error.message, "cannot", 6) != 0 && status != WHIT_ERROR_MEMORY)
            abort();
        whit_session_record_free(&record);
        whit_ndf_log_close(&log);
    }
}

/* Writes the frames BEGIN and COMMIT, then the data as a TURN frame and another COMMIT. */
static void write_turn(int fd, const uint8_t *data, size_t size)
{
    whit_error error;
    whit_writer out = {.fd = fd};
    whit_ndf_stream stream = {.out = &out};
    whit_table_builder table = {0};
    whit_buf begin = {0};
    const uint64_t head[8] = {WHIT_SESSION_BEGIN};
    whit_table_set_u64(&table, "session.block_bytes", 256);
    whit_buf_append(&begin, head, sizeof head);
    bool made = whit_table_build(&table, &begin, &error) == WHIT_OK;
    if (made && whit_ndf_begin_appended(&stream, WHIT_NDF_SESSION, "begin", begin.size_bytes, &error) == WHIT_OK &&
        whit_ndf_stream_add(&stream, begin.data, begin.size_bytes, &error) == WHIT_OK &&
        whit_ndf_stream_end(&stream, &error) == WHIT_OK && whit_ndf_stream_commit(&stream, &error) == WHIT_OK &&
        whit_ndf_begin_appended(&stream, WHIT_NDF_SESSION, "turn", size, &error) == WHIT_OK &&
        whit_ndf_stream_add(&stream, data, size, &error) == WHIT_OK &&
        whit_ndf_stream_end(&stream, &error) == WHIT_OK && whit_ndf_stream_commit(&stream, &error) == WHIT_OK)
        read_it(fd);
    whit_ndf_stream_free(&stream);
    whit_table_builder_free(&table);
    whit_buf_free(&begin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > (1u << 20)) return 0;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0) return 0;
    if (data[0] > 1) {
        write_turn(fd, data + 1, size - 1);
    } else {
        uint8_t *file = malloc(size);
        if (!file) abort();
        memcpy(file, data + 1, size - 1);
        if (data[0] == 1) ndf_reseal(file, size - 1);
        if (pwrite(fd, file, size - 1, 0) == (ssize_t)(size - 1)) read_it(fd);
        free(file);
    }
    close(fd);
    return 0;
}
