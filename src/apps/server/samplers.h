/* SPDX-License-Identifier: MIT */
#ifndef WHIT_SERVER_SAMPLERS_H
#define WHIT_SERVER_SAMPLERS_H

#include "server/replies.h"

/* Switches off all sampling stages that the request's "samplers", a list of names or a text of letters, does not
 * contain; if it is absent or an empty text, all stages stay. The order of stages is fixed: if "samplers" has another
 * order or an unknown stage, replies 400 and returns false. */
bool whit_samplers_read(const json_t *body, whit_sampler_options *s, whit_web_reply *reply);

#endif
