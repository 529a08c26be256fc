/* SPDX-License-Identifier: MIT */
#ifndef WHIT_SERVER_SAMPLERS_H
#define WHIT_SERVER_SAMPLERS_H

#include "server/replies.h"

/* Switches off the stages of sampling that the request's list "samplers" leaves out. Their order is fixed: false, and a
 * 400, for another one or an unknown stage. */
bool whit_samplers_read(const json_t *body, whit_sampler_options *s, whit_web_reply *reply);

#endif
