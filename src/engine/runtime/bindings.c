/* SPDX-License-Identifier: MIT */
#include "whit/bindings.h"

#include "whit.h"
#include "whit/steps.h"

static void fill_struct(void *to, size_t size_bytes, const void *defaults, size_t known_bytes)
{
    if (!to || size_bytes < sizeof(size_t)) return;
    size_t n = size_bytes < known_bytes ? size_bytes : known_bytes;
    memcpy(to, defaults, n);
    memset((char *)to + n, 0, size_bytes - n);
    memcpy(to, &size_bytes, sizeof size_bytes); /* the first member, struct_bytes */
}

#define DEFINE_INIT(name)                                                                                              \
    _Static_assert(offsetof(whit_##name, struct_bytes) == 0 &&                                                         \
                       sizeof(((whit_##name *)0)->struct_bytes) == sizeof(size_t),                                     \
                   "the size comes first");                                                                            \
    size_t whit_##name##_init(void *to, size_t size_bytes)                                                             \
    {                                                                                                                  \
        const whit_##name defaults = whit_##name##_default();                                                          \
        fill_struct(to, size_bytes, &defaults, sizeof defaults);                                                       \
        return sizeof defaults;                                                                                        \
    }

DEFINE_INIT(answer)
DEFINE_INIT(answer_options)
DEFINE_INIT(call_options)
DEFINE_INIT(chat_request)
DEFINE_INIT(chat_template_options)
DEFINE_INIT(embed_options)
DEFINE_INIT(generate_options)
DEFINE_INIT(generate_result)
DEFINE_INIT(model_options)
DEFINE_INIT(program_options)
DEFINE_INIT(rerank_options)
DEFINE_INIT(rerank_pair)
DEFINE_INIT(sampler_options)
DEFINE_INIT(session_options)
DEFINE_INIT(session_replay)
DEFINE_INIT(session_turn)
DEFINE_INIT(step_report)
DEFINE_INIT(stage)
