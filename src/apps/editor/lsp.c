/* SPDX-License-Identifier: MIT */
#include "editor/lsp.h"

#include "base/piped.h"
#include "base/utf8.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define HEADER_BYTES 4096u
#define QUEUE_BYTES  (256u << 20) /* maximum number of queued bytes; a server that reads more slowly is closed */
#define WORDS_MAX    64
#define END_MS       200 /* milliseconds that a server has to exit by itself */

/* ---- messages ------------------------------------------------------------------------------ */

size_t whit_lsp_next(const void *data, size_t n_bytes, json_t **message)
{
    const char *text = data;
    *message = NULL;
    if (!n_bytes) return 0;
    const char *end = memmem(text, n_bytes < HEADER_BYTES ? n_bytes : HEADER_BYTES, "\r\n\r\n", 4);
    if (!end) return n_bytes < HEADER_BYTES ? 0 : WHIT_LSP_BROKEN;
    size_t n_header = (size_t)(end - text) + 4, size = 0;
    bool has_size = false;
    for (const char *line = text; line < end;) {
        const char *feed = memchr(line, '\r', (size_t)(end + 1 - line));
        if (!strncasecmp(line, "Content-Length:", 15) && !has_size) {
            const char *at = line + 15;
            while (*at == ' ') at++;
            for (has_size = *at >= '0' && *at <= '9'; *at >= '0' && *at <= '9' && size <= WHIT_LSP_MESSAGE_BYTES; at++)
                size = 10 * size + (size_t)(*at - '0');
        }
        line = feed + 2;
    }
    if (!has_size || size > WHIT_LSP_MESSAGE_BYTES) return WHIT_LSP_BROKEN;
    if (n_bytes - n_header < size) return 0;
    json_t *value = json_loadb(text + n_header, size, 0, NULL);
    if (json_is_object(value))
        *message = value;
    else
        json_decref(value);
    return n_header + size;
}

size_t whit_lsp_to_byte(const char *line, size_t n_bytes, uint64_t character, bool utf8)
{
    if (utf8) return character < n_bytes ? (size_t)character : n_bytes;
    size_t at = 0, length;
    for (uint64_t units = 0; at < n_bytes && units < character; at += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)line + at, n_bytes - at, &length);
        if (code == WHIT_UTF8_INVALID) length = 1;
        units += code != WHIT_UTF8_INVALID && code > 0xFFFF ? 2 : 1;
    }
    return at;
}

uint64_t whit_lsp_from_byte(const char *line, size_t n_bytes, size_t byte, bool utf8)
{
    if (byte > n_bytes) byte = n_bytes;
    if (utf8) return byte;
    uint64_t units = 0;
    for (size_t at = 0, length; at < byte; at += length) {
        uint32_t code = whit_utf8_decode((const uint8_t *)line + at, n_bytes - at, &length);
        if (code == WHIT_UTF8_INVALID) length = 1;
        units += code != WHIT_UTF8_INVALID && code > 0xFFFF ? 2 : 1;
    }
    return units;
}

/* ---- the process --------------------------------------------------------------------------- */

struct whit_lsp {
    whit_piped child;
    whit_buf read, queued;
    size_t taken, sent;
    uint64_t number;
    bool broken;
};

whit_status whit_lsp_open(const char *command, const char *folder, whit_lsp **lsp, whit_error *error)
{
    char *words[WORDS_MAX + 1], *copy = strdup(command);
    static const char *const keyless[] = {"WHIT_API_KEY", NULL}; /* the server must not inherit the endpoint's key */
    const whit_piped_how how = {.folder = folder, .changes = keyless};
    whit_lsp *own = calloc(1, sizeof *own);
    size_t n = 0;
    *lsp = NULL;
    if (!copy || !own) {
        free(copy);
        free(own);
        return whit_fail_memory(error, "a language server", sizeof *own);
    }
    own->read.limit_bytes = WHIT_LSP_MESSAGE_BYTES + 2 * HEADER_BYTES + 65536;
    own->queued.limit_bytes = QUEUE_BYTES;
    char *rest;
    for (char *word = strtok_r(copy, " \t", &rest); word && n < WORDS_MAX; word = strtok_r(NULL, " \t", &rest))
        words[n++] = word;
    words[n] = NULL;
    whit_status status = n ? whit_piped_start(&own->child, words, &how, error)
                           : whit_fail(error, WHIT_ERROR_ARGUMENT, "a language server needs a command");
    free(copy);
    if (status != WHIT_OK) {
        whit_lsp_close(own);
        return status;
    }
    *lsp = own;
    return WHIT_OK;
}

void whit_lsp_close(whit_lsp *lsp)
{
    if (!lsp) return;
    if (lsp->child.process) {
        whit_lsp_request(lsp, "shutdown", NULL);
        whit_lsp_notify(lsp, "exit", NULL);
        whit_lsp_pump(lsp);
        (void)whit_piped_end(&lsp->child, END_MS);
    }
    whit_buf_free(&lsp->read);
    whit_buf_free(&lsp->queued);
    free(lsp);
}

/* Queues a message and frees it. Returns false if memory runs out or QUEUE_BYTES are exceeded. */
static bool queue(whit_lsp *lsp, json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    bool ok = text && whit_buf_printf(&lsp->queued, "Content-Length: %zu\r\n\r\n", strlen(text)) &&
        whit_buf_append_str(&lsp->queued, text);
    free(text);
    json_decref(message);
    if (!ok) lsp->broken = true;
    return ok;
}

uint64_t whit_lsp_request(whit_lsp *lsp, const char *method, json_t *params)
{
    uint64_t number = ++lsp->number;
    json_t *message = json_pack("{s:s, s:I, s:s, s:o*}", "jsonrpc", "2.0", "id", (json_int_t)number, "method", method,
                                "params", params);
    return queue(lsp, message) ? number : 0;
}

void whit_lsp_notify(whit_lsp *lsp, const char *method, json_t *params)
{
    queue(lsp, json_pack("{s:s, s:s, s:o*}", "jsonrpc", "2.0", "method", method, "params", params));
}

void whit_lsp_reply(whit_lsp *lsp, const json_t *id, json_t *result, int error_code)
{
    json_t *own = json_deep_copy(id);
    if (!error_code) {
        queue(lsp, json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", own, "result", result ? result : json_null()));
        return;
    }
    json_decref(result);
    queue(lsp,
          json_pack("{s:s, s:o, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", own, "error", "code", error_code, "message",
                    "not supported"));
}

size_t whit_lsp_unsent(const whit_lsp *lsp)
{
    return lsp->queued.size_bytes - lsp->sent;
}

void whit_lsp_fds(const whit_lsp *lsp, int fds[2])
{
    fds[0] = lsp->child.out;
    fds[1] = lsp->sent < lsp->queued.size_bytes ? lsp->child.in : -1;
}

/* Writes bytes without SIGPIPE, which would end this process if the server has ended. */
static ssize_t write_quietly(int fd, const void *data, size_t n)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    ssize_t written = write(fd, data, n);
    int error = errno;
    sigaction(SIGPIPE, &before, NULL);
    errno = error;
    return written;
}

bool whit_lsp_pump(whit_lsp *lsp)
{
    while (!lsp->broken && lsp->sent < lsp->queued.size_bytes) {
        ssize_t n = write_quietly(lsp->child.in, lsp->queued.data + lsp->sent, lsp->queued.size_bytes - lsp->sent);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n <= 0) lsp->broken = true;
        if (n > 0) lsp->sent += (size_t)n;
    }
    if (lsp->sent == lsp->queued.size_bytes) lsp->sent = lsp->queued.size_bytes = 0;
    /* at most a megabyte is read in one call, so that keys do not wait */
    for (int i = 0; i < 16 && !lsp->broken; i++) {
        if (!whit_buf_reserve(&lsp->read, 65536)) {
            lsp->broken = true;
            break;
        }
        ssize_t n = read(lsp->child.out, lsp->read.data + lsp->read.size_bytes, 65536);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n <= 0) {
            lsp->broken = true;
            break;
        }
        lsp->read.size_bytes += (size_t)n;
    }
    return !lsp->broken;
}

json_t *whit_lsp_take(whit_lsp *lsp)
{
    json_t *message = NULL;
    if (!lsp->read.size_bytes) return NULL;
    while (!message) {
        size_t left = lsp->read.size_bytes - lsp->taken;
        size_t n = whit_lsp_next(lsp->read.data + lsp->taken, left, &message);
        if (n == WHIT_LSP_BROKEN) lsp->broken = true;
        if (!n || n == WHIT_LSP_BROKEN) break;
        lsp->taken += n;
    }
    if (lsp->taken == lsp->read.size_bytes || lsp->taken > 1u << 20) {
        memmove(lsp->read.data, lsp->read.data + lsp->taken, lsp->read.size_bytes - lsp->taken);
        lsp->read.size_bytes -= lsp->taken;
        lsp->taken = 0;
    }
    return message;
}
