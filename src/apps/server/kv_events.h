/* SPDX-License-Identifier: MIT
 * Publishes KV events, which are changes of the prefix caches, for routers by ZeroMQ in vLLM's format
 * (docs/dev/kv-events.md).
 *
 * Every model has a channel: a topic and batches of events. The first batch has the start time in microseconds as its
 * number, so that a restarted server never repeats a number, and its subscribers see a gap. An engine collects the
 * events of a step in its channel and publishes them as one batch. A separate thread sends batches, stores the last
 * ones, and sends these again to subscribers that missed some. */
#ifndef WHIT_SERVER_KV_EVENTS_H
#define WHIT_SERVER_KV_EVENTS_H

#include "base/mem.h"
#include "server/server.h"
#include "whit/cache.h"

typedef struct whit_events whit_events;

/* Holds the events of one model. It is used by one thread at a time. */
typedef struct whit_event_channel {
    whit_events *events;
    const char *model;
    const whit_server_adapter *adapters; /* the server's adapters, which events name by their index */
    char *topic;
    uint64_t n_batches; /* number of the next batch */
    whit_buf batch;     /* encoded events that are not published yet */
    size_t n_events;
} whit_event_channel;

/* Listens on options->kv_events and options->kv_replay, before the sandbox is entered; if they are NULL, opens nothing
 * and sets *events to NULL. `address` is the server's own address, which topics contain unless options->advertise is
 * set. */
whit_status whit_events_open(const whit_server_options *options, const char *address, whit_events **events,
                             whit_error *error);
/* Starts the sending thread. Has no effect if `events` is NULL. */
whit_status whit_events_start(whit_events *events, whit_error *error);
/* Sends the published batches and ends the thread. Has no effect if `events` is NULL. */
void whit_events_close(whit_events *events);
/* Returns the channel of the model of that name; NULL if events is NULL. */
whit_event_channel *whit_events_channel(whit_events *events, const char *model);
/* Queues a batch for sending and takes ownership of it. If the queue is full, the oldest batches are dropped, whether
 * or not they were sent: the subscriber sees a gap. */
void whit_events_send(whit_event_channel *channel, whit_buf *batch);
/* Returns the version of libzmq; NULL if it is not installed, or not supported by this build. */
const char *whit_events_library(char version[16]);

/* The following functions are in kv_batch.c. All of them accept NULL for the channel. */

/* Adds the event that a block was stored. lora: number of the adapter that it was computed with, from 1 on; 0: no
 * adapter, or several. */
void whit_channel_store(whit_event_channel *channel, const whit_cache_event *event, uint32_t lora);
/* Adds the event that the block with that key was removed. */
void whit_channel_remove(whit_event_channel *channel, const whit_cache_event *event);
/* Drops the collected events and publishes that the cache is empty. */
void whit_channel_clear(whit_event_channel *channel);
/* Publishes the collected events, if any, as one batch. */
void whit_channel_publish(whit_event_channel *channel);

#endif
