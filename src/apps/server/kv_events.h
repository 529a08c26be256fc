/* SPDX-License-Identifier: MIT
 * KV events: changes of the prefix caches, published for routers by ZeroMQ in vLLM's format (docs/dev/kv-events.md).
 *
 * Every model has a channel: a topic and batches of events. Numbers of batches begin with the time of the start in
 * microseconds, so that a server that was started again never repeats a number, and its subscribers see a gap. An
 * engine collects the events of a step in its channel and publishes them as one batch; a thread of its own sends
 * batches, keeps the last ones, and sends these again to subscribers that missed some. */
#ifndef WHIT_SERVER_KV_EVENTS_H
#define WHIT_SERVER_KV_EVENTS_H

#include "base/mem.h"
#include "server/server.h"
#include "whit/cache.h"

typedef struct whit_events whit_events;

/* The events of one model. Used by one thread at a time. */
typedef struct whit_event_channel {
    whit_events *events;
    const char *model;
    const whit_server_adapter *adapters; /* adapters, which events name by their index */
    char *topic;
    uint64_t n_batches; /* number of the next batch */
    whit_buf batch;     /* encoded events that are not published yet */
    size_t n_events;
} whit_event_channel;

/* Listens on options->kv_events and options->kv_replay, before the sandbox closes; opens nothing and sets *events to
 * NULL if they are NULL. `address` is the server's own, which topics name unless options->advertise is set. */
whit_status whit_events_open(const whit_server_options *options, const char *address, whit_events **events,
                             whit_error *error);
/* Starts the sending thread. No effect if NULL. */
whit_status whit_events_start(whit_events *events, whit_error *error);
/* Sends the published batches and ends the thread. No effect if NULL. */
void whit_events_close(whit_events *events);
/* Returns the channel of the model of that name; NULL if events is NULL. */
whit_event_channel *whit_events_channel(whit_events *events, const char *model);
/* Queues a batch for sending and takes ownership of it. If there is no space, the oldest batches are dropped, sent or
 * not: a subscriber sees the gap. */
void whit_events_send(whit_event_channel *channel, whit_buf *batch);
/* Version of libzmq; NULL where it is not on this machine or in this build. */
const char *whit_events_library(char version[16]);

/* kv_batch.c. All of them accept NULL for the channel. */

/* Adds an event: a block was stored. lora: number of the adapter that it was computed with, from 1 on; 0: no adapter,
 * or several. */
void whit_channel_store(whit_event_channel *channel, const whit_cache_event *event, uint32_t lora);
/* Adds an event: the block of that key was removed. */
void whit_channel_remove(whit_event_channel *channel, const whit_cache_event *event);
/* Drops the collected events and publishes that the cache is empty. */
void whit_channel_clear(whit_event_channel *channel);
/* Publishes the collected events, if any, as one batch. */
void whit_channel_publish(whit_event_channel *channel);

#endif
