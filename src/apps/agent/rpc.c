/* SPDX-License-Identifier: MIT */
#include "agent/rpc.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/items.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define WRITE_MS 30000 /* time without progress after which a write fails */

/* Parses the next whole line of `bytes` into *message; after the end of the input, the rest is a line, too. Returns
 * false if there is no whole line yet. *got is WHIT_RPC_TIMEOUT for an empty line, and WHIT_RPC_BAD for a line that is
 * too long, even before its end has arrived. */
static bool take_line(whit_rpc *rpc, json_t **message, whit_rpc_got *got)
{
    const char *text = whit_chars(&rpc->bytes) + rpc->n_taken;
    size_t left = rpc->bytes.size_bytes - rpc->n_taken;
    const char *end = left ? memchr(text, '\n', left) : NULL;
    *message = NULL;
    *got = WHIT_RPC_TIMEOUT; /* also the result for an empty line */
    if (!end && left && rpc->has_ended) end = text + left;
    if (!end) {
        if (rpc->n_taken) { /* move the unread bytes to the front */
            memmove(rpc->bytes.data, text, left);
            rpc->bytes.size_bytes = left;
            rpc->n_taken = 0;
        }
        if (left <= WHIT_RPC_LINE_BYTES) return false;
        rpc->bytes.size_bytes = 0;
        *got = WHIT_RPC_BAD;
        return true;
    }
    size_t n = (size_t)(end - text);
    rpc->n_taken += n + (n < left);
    if (n && text[n - 1] == '\r') n--;
    if (!n) return true;
    *message = json_loadb(text, n, JSON_DECODE_ANY | (rpc->allows_nul ? JSON_ALLOW_NUL : 0), NULL);
    if (json_is_object(*message))
        *got = WHIT_RPC_MESSAGE;
    else if (*message)
        *got = WHIT_RPC_OTHER;
    else
        *got = WHIT_RPC_BAD;
    if (*got != WHIT_RPC_MESSAGE) {
        json_decref(*message);
        *message = NULL;
    }
    return true;
}

/* Reads available bytes and appends them to `bytes`. Returns false at the end of the input or if memory runs out. */
static bool take_bytes(whit_rpc *rpc)
{
    if (!whit_buf_reserve(&rpc->bytes, 65536)) return false;
    ssize_t got = read(rpc->in, rpc->bytes.data + rpc->bytes.size_bytes, 65536);
    if (got > 0) rpc->bytes.size_bytes += (size_t)got;
    return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

static int64_t milliseconds_left(uint64_t begin_ns, int timeout_ms)
{
    return timeout_ms - (int64_t)((whit_now_ns() - begin_ns) / 1000000);
}

whit_rpc_got whit_rpc_read(whit_rpc *rpc, int timeout_ms, json_t **message)
{
    const uint64_t begin = whit_now_ns();
    for (;;) {
        whit_rpc_got got;
        while (take_line(rpc, message, &got))
            if (got != WHIT_RPC_TIMEOUT) return got;
        if (rpc->has_ended || whit_flag_is_set(rpc->cancel)) return WHIT_RPC_END;
        int64_t left = timeout_ms < 0 ? -1 : milliseconds_left(begin, timeout_ms);
        if (timeout_ms >= 0 && left <= 0) return WHIT_RPC_TIMEOUT;
        struct pollfd look = {rpc->in, POLLIN, 0};
        /* the cancel flag, which another thread may set, is checked five times a second; a signal ends the wait at
         * once */
        int wait = rpc->cancel && (left < 0 || left > 200) ? 200 : (int)left;
        int ready = poll(&look, 1, wait);
        if (ready < 0 && errno != EINTR) return WHIT_RPC_END;
        /* the next take_line() also accepts a last line without a line feed */
        if (ready > 0 && !take_bytes(rpc)) rpc->has_ended = true;
    }
}

/* Waits until the other side accepts more bytes, and reads its output meanwhile, since it may itself be blocked on
 * writing. Returns false after WRITE_MS, on an error or if cancelled. */
static bool wait_to_write(whit_rpc *rpc)
{
    const uint64_t begin = whit_now_ns();
    while (milliseconds_left(begin, WRITE_MS) > 0 && !whit_flag_is_set(rpc->cancel)) {
        bool has_room = rpc->bytes.size_bytes - rpc->n_taken <= WHIT_RPC_LINE_BYTES;
        struct pollfd look[2] = {{rpc->out, POLLOUT, 0}, {has_room ? rpc->in : -1, POLLIN, 0}};
        int ready = poll(look, 2, 200);
        if (ready < 0 && errno != EINTR) return false;
        if (ready > 0 && look[0].revents) return true;
        if (ready > 0 && look[1].revents && !take_bytes(rpc)) return false;
    }
    return false;
}

/* Writes a message and frees it. Returns false if the other side has closed the connection or accepts no bytes for half
 * a minute, if waiting was cancelled, or if memory ran out. */
static bool rpc_write(whit_rpc *rpc, json_t *message)
{
    if (message) json_object_set_new(message, "jsonrpc", json_string("2.0"));
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    if (!text) return false;
    size_t n = strlen(text), done = 0;
    text[n++] = '\n'; /* the line feed replaces the terminating zero byte */
    while (done < n) {
        ssize_t put = write(rpc->out, text + done, n - done);
        if (put < 0 && errno == EAGAIN) {
            if (!wait_to_write(rpc)) break;
        } else if (put < 0 && errno != EINTR) {
            break;
        }
        if (put > 0) done += (size_t)put;
    }
    free(text);
    return done == n;
}

bool whit_rpc_notify(whit_rpc *rpc, const char *method, json_t *params)
{
    return rpc_write(rpc, json_pack("{s:s, s:o*}", "method", method, "params", params));
}

bool whit_rpc_reply(whit_rpc *rpc, const json_t *id, json_t *result)
{
    return rpc_write(rpc, json_pack("{s:O, s:o}", "id", id, "result", result));
}

bool whit_rpc_refuse(whit_rpc *rpc, const json_t *id, int code, const char *message)
{
    return rpc_write(
        rpc, json_pack("{s:O?, s:{s:i, s:s}}", "id", id ? id : NULL, "error", "code", code, "message", message));
}

bool whit_rpc_ask(whit_rpc *rpc, const char *method, json_t *params, int64_t *id)
{
    *id = ++rpc->next_id;
    return rpc_write(rpc, json_pack("{s:I, s:s, s:o*}", "id", (json_int_t)*id, "method", method, "params", params));
}

bool whit_rpc_is_reply(const json_t *message, int64_t id)
{
    const json_t *own = json_object_get(message, "id");
    return !json_object_get(message, "method") && json_is_integer(own) && json_integer_value(own) == id;
}

static void answer_request(whit_rpc *rpc, const json_t *id, const char *method)
{
    json_t *result = rpc->answer ? rpc->answer(rpc->user, method) : NULL;
    if (!result && strcmp(method, "ping") == 0) result = json_object();
    if (result)
        whit_rpc_reply(rpc, id, result);
    else
        whit_rpc_refuse(rpc, id, -32601, "method not supported by this client");
}

json_t *whit_rpc_converse(whit_rpc *rpc, const char *method, json_t *params, int timeout_ms)
{
    const uint64_t begin = whit_now_ns();
    int64_t id, left;
    if (whit_flag_is_set(rpc->cancel)) { /* no request is sent after a cancellation */
        json_decref(params);
        return NULL;
    }
    if (!whit_rpc_ask(rpc, method, params, &id)) return NULL;
    while ((left = milliseconds_left(begin, timeout_ms)) > 0) {
        json_t *message;
        whit_rpc_got got = whit_rpc_read(rpc, (int)left, &message);
        if (got == WHIT_RPC_BAD || got == WHIT_RPC_OTHER) continue;
        if (got != WHIT_RPC_MESSAGE) return NULL;
        if (whit_rpc_is_reply(message, id)) return message;
        const json_t *asked_id = json_object_get(message, "id");
        const char *asked = json_string_value(json_object_get(message, "method"));
        if (asked_id && asked) answer_request(rpc, asked_id, asked);
        json_decref(message);
    }
    return NULL;
}

void whit_rpc_free(whit_rpc *rpc)
{
    whit_buf_free(&rpc->bytes);
}
