/* SPDX-License-Identifier: MIT
 * Publishes KV events, which are changes of the prefix caches, over ZeroMQ in vLLM's format, for routers that
 * distribute requests (docs/dev/kv-events.md).
 *
 * Every model of the server's options has a channel with its own topic and numbered batches of events. The number of
 * the first batch is the start time in microseconds, so that a restarted server never repeats a number and its
 * subscribers see a gap. An engine collects the events of a step in its channel and publishes them as one batch. A
 * separate thread sends the batches, keeps the last ones, and sends these again to subscribers that have missed
 * some. */
#ifndef WHIT_SERVER_KV_EVENTS_H
#define WHIT_SERVER_KV_EVENTS_H

#include "base/mem.h"
#include "server/server.h"
#include "whit/cache.h"

typedef struct whit_events whit_events;

/* Collects the events of one model. Only one thread may use it at a time. */
typedef struct whit_event_channel {
    whit_events *events;
    const char *model;
    const whit_server_adapter *adapters; /* the server's adapters; events name them */
    char *topic;
    uint64_t n_batches; /* number that the next batch gets */
    whit_buf batch;     /* encoded events that were not published yet */
    size_t n_events;
} whit_event_channel;

/* Listens at options->kv_events and, for replays, options->kv_replay. Must be called before the sandbox is entered. If
 * both are NULL, opens nothing and sets *events to NULL; kv_replay without kv_events is an error. `address` is the
 * server's own address, which is part of the topics unless options->advertise is set. */
whit_status whit_events_open(const whit_server_options *options, const char *address, whit_events **events,
                             whit_error *error);
/* Starts the sending thread. Does nothing if `events` is NULL. */
whit_status whit_events_start(whit_events *events, whit_error *error);
/* Sends all published batches, ends the thread and frees `events`. Does nothing if `events` is NULL. */
void whit_events_close(whit_events *events);
/* Returns the channel of a model by its name; NULL if the server's options have no such model or `events` is NULL. */
whit_event_channel *whit_events_channel(whit_events *events, const char *model);
/* Gives a batch the channel's next number and queues it for sending; takes ownership of it. If the queue is full, the
 * oldest batches are dropped, even if they were not sent: subscribers then see a gap. */
void whit_events_send(whit_event_channel *channel, whit_buf *batch);
/* Returns the version of libzmq; NULL if it is not installed or this build does not support it. */
const char *whit_events_library(char version[16]);

/* The following functions are in kv_batch.c. They do nothing if `channel` is NULL. */

/* Adds the event that a block was stored. lora: 1 + the index of the adapter with which the block was computed; 0:
 * computed with no adapter, or with several. */
void whit_channel_store(whit_event_channel *channel, const whit_cache_event *event, uint32_t lora);
/* Adds the event that the block event->key was removed. */
void whit_channel_remove(whit_event_channel *channel, const whit_cache_event *event);
/* Drops all collected events, and publishes the event that the cache is empty. */
void whit_channel_clear(whit_event_channel *channel);
/* Publishes the collected events, if any, as one batch. */
void whit_channel_publish(whit_event_channel *channel);

#endif
