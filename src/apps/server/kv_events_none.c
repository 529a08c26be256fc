/* SPDX-License-Identifier: MIT
 * Replaces the publisher of KV events in a build without libzmq: publishing fails with an error. */
#include "server/kv_events.h"

whit_status whit_events_open(const whit_server_options *options, const char *address, whit_events **events,
                             whit_error *error)
{
    (void)address;
    *events = NULL;
    if (!options->kv_events && !options->kv_replay) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "this build has no libzmq, so it cannot publish KV events: install its headers and build again");
}

whit_status whit_events_start(whit_events *events, whit_error *error)
{
    (void)events, (void)error;
    return WHIT_OK;
}

void whit_events_close(whit_events *events)
{
    (void)events;
}

whit_event_channel *whit_events_channel(whit_events *events, const char *model)
{
    (void)events, (void)model;
    return NULL;
}

void whit_events_send(whit_event_channel *channel, whit_buf *batch)
{
    (void)channel;
    whit_buf_free(batch);
}

const char *whit_events_library(char version[16])
{
    (void)version;
    return NULL;
}
