/* SPDX-License-Identifier: MIT
 * whit runs language models with 1-bit, ternary and 2-bit weights on an ordinary CPU.
 *
 * This header includes the public interface, except the five headers that say so: cache, experts, facts, names and
 * steps. A *model* is a file mapped into memory. A *session* holds the KV caches of *sequences* and the threads that
 * compute. A *sampler* picks tokens. First use:
 *
 *     whit_model *model;
 *     whit_session *session;
 *     whit_sampler *sampler;
 *     whit_error error;
 *     int32_t ids[256];
 *     size_t n;
 *     whit_generate_options options = whit_generate_options_default();
 *     options.on_text = print; // bool print(void *user, const char *text, size_t text_bytes)
 *     if (whit_model_open("model.ndf", NULL, &model, &error) != WHIT_OK) return puts(error.message);
 *     whit_session_open(model, NULL, &session, &error);
 *     whit_sampler_open(model, NULL, &sampler, &error);
 *     whit_tokenize(model, "Once", 4, true, true, ids, 256, &n, &error);
 *     whit_generate(session, sampler, ids, n, &options, NULL, &error);
 *
 * Every fallible function returns a whit_status and writes a line for people into `error` (which may be NULL). On
 * failure nothing is handed out, and a pointer to what would have been opened is NULL; other results count only where
 * the function says so. On success the caller owns what was handed out and closes it. Every close accepts NULL.
 *
 * The library has no global state, prints nothing, installs no signal handler and never exits. The same model, tokens
 * and settings give the same bits on every CPU, thread count and batch. */
#ifndef WHIT_H
#define WHIT_H

#include "whit/base.h"
#include "whit/model.h"
#include "whit/text.h"
#include "whit/session.h"
#include "whit/adapter.h"
#include "whit/sampler.h"
#include "whit/generation.h"
#include "whit/chat.h"
#include "whit/thinking.h"
#include "whit/embeddings.h"
#include "whit/session_file.h"
#include "whit/grammar.h"
#include "whit/program.h"
#include "whit/calls.h"
#include "whit/conversation.h"
#include "whit/bindings.h"

#endif
