/* SPDX-License-Identifier: MIT
 * Declares the request handlers that the route table names, ordered by file. */
#ifndef WHIT_SERVER_ENDPOINTS_H
#define WHIT_SERVER_ENDPOINTS_H

#include "server/routes.h"

/* page.c, metrics_page.c */
whit_handler whit_page_get, whit_manifest_get, whit_icon_get, whit_metrics_get;
/* status.c: the server and its models */
whit_handler whit_models_list, whit_models_get, whit_health_get, whit_slots_get, whit_props_get, whit_models_load,
    whit_models_unload_post;
/* adapters.c, render.c */
whit_handler whit_adapters_get, whit_adapters_set, whit_render_post, whit_completions_render_post;
/* slots.c */
whit_handler whit_slots_act;
/* tokens.c: texts, tokens and prompts */
whit_handler whit_tokenize_post, whit_detokenize_post, whit_template_post;
/* ask.c: OpenAI's chat and text completions */
whit_handler whit_chat_post, whit_completions_post;
/* embeddings.c */
whit_handler whit_embeddings_post, whit_embedding_post;
/* rerank.c */
whit_handler whit_rerank_post;
/* messages.c: Anthropic's API */
whit_handler whit_anthropic_post, whit_anthropic_count;
/* responses.c: OpenAI's Responses API */
whit_handler whit_responses_post, whit_responses_count;
/* completion.c: llama.cpp's API */
whit_handler whit_completion_post, whit_infill_post;
/* gemini.c */
whit_handler whit_gemini_generate, whit_gemini_stream, whit_gemini_count, whit_gemini_models, whit_gemini_model,
    whit_gemini_embed, whit_gemini_embed_batch;
/* ollama.c */
whit_handler whit_ollama_version, whit_ollama_tags, whit_ollama_ps, whit_ollama_show, whit_ollama_generate,
    whit_ollama_chat, whit_ollama_embed, whit_ollama_embeddings;
/* store.c */
whit_handler whit_ollama_pull, whit_ollama_copy, whit_ollama_create, whit_ollama_delete;

#endif
