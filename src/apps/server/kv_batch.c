/* SPDX-License-Identifier: MIT
 * Encodes batches of KV events in MessagePack, in the form of vLLM's KVEventBatch: [timestamp, [event, ...], rank],
 * where an event is [kind, field, ...]. */
#include "server/kv_events.h"

#include <string.h>
#include <time.h>

static const char medium[] = "cpu";

/* ---- MessagePack ------------------------------------------------------------------------------- */

/* Appends a type byte and the lowest n_bytes bytes of a value, most significant byte first. */
static void write_tagged(whit_buf *out, uint8_t type, uint64_t value, size_t n_bytes)
{
    uint8_t bytes[9] = {type};
    for (size_t i = 0; i < n_bytes; i++) bytes[1 + i] = (uint8_t)(value >> 8 * (n_bytes - 1 - i));
    whit_buf_append(out, bytes, 1 + n_bytes);
}

static void write_nil(whit_buf *out)
{
    write_tagged(out, 0xc0, 0, 0);
}

static void write_unsigned(whit_buf *out, uint64_t value)
{
    if (value < 128)
        write_tagged(out, (uint8_t)value, 0, 0);
    else if (value <= UINT32_MAX)
        write_tagged(out, 0xce, value, 4);
    else
        write_tagged(out, 0xcf, value, 8);
}

static void write_array(whit_buf *out, size_t n)
{
    if (n < 16)
        write_tagged(out, (uint8_t)(0x90 | n), 0, 0);
    else
        write_tagged(out, 0xdd, n, 4);
}

static void write_text(whit_buf *out, const char *text)
{
    const size_t n = strlen(text);
    write_tagged(out, 0xdb, n, 4);
    whit_buf_append(out, text, n);
}

static void write_double(whit_buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    write_tagged(out, 0xcb, bits, 8);
}

/* Appends a block's hash: the first eight bytes of its key, since subscribers expect 64 bits. */
static void write_hash(whit_buf *out, const uint8_t *key)
{
    uint64_t hash = 0;
    for (int i = 0; i < 8; i++) hash = hash << 8 | key[i];
    write_unsigned(out, hash);
}

/* ---- events ------------------------------------------------------------------------------------ */

void whit_channel_store(whit_event_channel *channel, const whit_cache_event *event, uint32_t lora)
{
    if (!channel) return;
    whit_buf *out = &channel->batch;
    write_array(out, 8);
    write_text(out, "BlockStored");
    write_array(out, 1);
    write_hash(out, event->key);
    if (event->parent)
        write_hash(out, event->parent);
    else
        write_nil(out);
    write_array(out, WHIT_CACHE_BLOCK_TOKENS);
    for (size_t i = 0; i < WHIT_CACHE_BLOCK_TOKENS; i++) write_unsigned(out, (uint32_t)event->ids[i]);
    write_unsigned(out, WHIT_CACHE_BLOCK_TOKENS);
    if (lora)
        write_unsigned(out, lora);
    else
        write_nil(out);
    write_text(out, medium);
    if (lora)
        write_text(out, channel->adapters[lora - 1].name);
    else
        write_nil(out);
    channel->n_events++;
}

void whit_channel_remove(whit_event_channel *channel, const whit_cache_event *event)
{
    if (!channel) return;
    write_array(&channel->batch, 3);
    write_text(&channel->batch, "BlockRemoved");
    write_array(&channel->batch, 1);
    write_hash(&channel->batch, event->key);
    write_text(&channel->batch, medium);
    channel->n_events++;
}

void whit_channel_publish(whit_event_channel *channel)
{
    struct timespec now;
    whit_buf whole = {0};
    if (!channel || !channel->n_events) return;
    clock_gettime(CLOCK_REALTIME, &now);
    write_array(&whole, 3);
    write_double(&whole, (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    write_array(&whole, channel->n_events);
    whit_buf_append(&whole, channel->batch.data, channel->batch.size_bytes);
    write_unsigned(&whole, 0);
    whole.failed |= channel->batch.failed;
    channel->batch.size_bytes = 0;
    channel->batch.failed = false;
    channel->n_events = 0;
    /* A batch that could not be encoded for lack of memory also gets a number, so that subscribers notice the gap. */
    whit_events_send(channel, &whole);
}

void whit_channel_clear(whit_event_channel *channel)
{
    if (!channel) return;
    channel->batch.size_bytes = 0;
    write_array(&channel->batch, 1);
    write_text(&channel->batch, "AllBlocksCleared");
    channel->n_events = 1;
    whit_channel_publish(channel);
}
