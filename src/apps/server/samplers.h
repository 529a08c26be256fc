/* SPDX-License-Identifier: MIT */
#ifndef WHIT_SERVER_SAMPLERS_H
#define WHIT_SERVER_SAMPLERS_H

#include "server/replies.h"

/* Switches off the stages of sampling that the request's list "samplers" omits. The order of stages is fixed: another
 * order, or an unknown stage, is refused with 400, and the function returns false. */
bool whit_samplers_read(const json_t *body, whit_sampler_options *s, whit_web_reply *reply);

#endif
