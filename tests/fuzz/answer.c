/* SPDX-License-Identifier: MIT
 * Parses any bytes as an answer: the result does not depend on how it is cut into pieces, no byte of a text without
 * calls is lost, and the message is valid JSON. The first byte chooses the syntax and the pieces. */
#include "runtime/chat.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

/* Appends an event to the log. */
static bool note(void *user, const whit_chat_event *event)
{
    whit_buf *log = user;
    if (event->kind >= WHIT_CHAT_CALL_BEGIN && event->kind != WHIT_CHAT_CALL_ARGUMENTS)
        (void)whit_buf_printf(log, "<%d %u %d>", event->kind, event->i_call, event->complete);
    (void)whit_buf_append(log, event->text, event->text_bytes);
    return true;
}

static void parse(const uint8_t *data, size_t size, uint8_t how, size_t piece, whit_buf *log, whit_buf *message)
{
    whit_error error;
    whit_chat_parser *parser;
    size_t n;
    whit_json json = {0};
    if (whit_answer_open((whit_call_syntax)(how % 7), how & 64, "<think>", "</think>", how & 128, note, log, NULL,
                         &parser, &error) != WHIT_OK)
        abort();
    for (size_t i = 0; i < size; i += piece)
        if (whit_chat_parser_push(parser, (const char *)data + i, size - i < piece ? size - i : piece, &error) !=
            WHIT_OK)
            abort();
    if (whit_chat_parser_flush(parser, &error) != WHIT_OK) abort();
    const char *text = whit_chat_parser_message(parser, &n);
    if (!whit_buf_append(message, text, n)) abort();
    if (whit_json_parse("message", (const char *)message->data, message->size_bytes, NULL, &json, &error) != WHIT_OK)
        abort();
    whit_json_close(&json);
    whit_chat_parser_close(parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_buf log = {0}, message = {0}, other_log = {0}, other = {0};
    if (size < 1 || size > 1 << 13) return 0;
    parse(data + 1, size - 1, data[0], size, &log, &message);
    parse(data + 1, size - 1, data[0], 1 + (data[0] >> 3) % 3, &other_log, &other);
    if (log.size_bytes != other_log.size_bytes ||
        (log.size_bytes && memcmp(log.data, other_log.data, log.size_bytes) != 0))
        abort();
    if (message.size_bytes != other.size_bytes || memcmp(message.data, other.data, message.size_bytes) != 0) abort();
    if (!(data[0] & (64 | 128)) && !memmem(data + 1, size - 1, "<think>", 7) &&
        (log.size_bytes != size - 1 || (size > 1 && memcmp(log.data, data + 1, size - 1) != 0)))
        abort();
    whit_buf_free(&log);
    whit_buf_free(&message);
    whit_buf_free(&other_log);
    whit_buf_free(&other);
    return 0;
}
