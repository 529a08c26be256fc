/* SPDX-License-Identifier: MIT */
#include "whit/thinking.h"

#include "runtime/chat.h"
#include "base/mem.h"

#include <math.h>

enum { TAG_TOKENS_MAX = 32 };

typedef struct tag {
    int32_t ids[TAG_TOKENS_MAX];
    size_t n;
} tag;

struct whit_thinking_limit {
    tag open, close;
    int32_t last[TAG_TOKENS_MAX]; /* last tokens of the answer, oldest first; -1: no token yet */
    uint32_t n_left;              /* number of tokens that may still be picked freely in the thinking section */
    size_t n_forced;              /* number of tokens of the closing tag that were already forced */
    bool is_inside, is_over;
};

static whit_status read_tag(const whit_model *model, const char *text, tag *out, whit_error *error)
{
    return whit_tokenize(model, text, strlen(text), false, true, out->ids, TAG_TOKENS_MAX, &out->n, error);
}

whit_status whit_thinking_limit_open(const whit_chat_template *chat, const whit_chat_prompt *prompt, uint32_t n_tokens,
                                     whit_thinking_limit **out, whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    WHIT_NEED(chat);
    const char *open, *close;
    if (!whit_chat_template_thinking(chat, &open, &close)) return WHIT_OK;
    whit_thinking_limit *limit = whit_zalloc(NULL, sizeof *limit);
    if (!limit) return whit_fail_memory(error, "a limit of thinking", sizeof *limit);
    const whit_model *model = whit_chat_template_model(chat);
    *limit = (whit_thinking_limit){.n_left = n_tokens, .is_inside = whit_chat_prompt_thinks(prompt)};
    for (size_t i = 0; i < TAG_TOKENS_MAX; i++) limit->last[i] = -1;
    whit_status status = read_tag(model, open, &limit->open, error);
    if (status == WHIT_OK) status = read_tag(model, close, &limit->close, error);
    if (status != WHIT_OK || !limit->open.n || !limit->close.n) {
        whit_thinking_limit_close(limit);
        return status;
    }
    *out = limit;
    return WHIT_OK;
}

void whit_thinking_limit_close(whit_thinking_limit *limit)
{
    whit_free(NULL, limit, sizeof *limit);
}

static bool ends_with(const whit_thinking_limit *limit, const tag *wanted)
{
    return memcmp(limit->last + TAG_TOKENS_MAX - wanted->n, wanted->ids, wanted->n * sizeof *wanted->ids) == 0;
}

static whit_status force_end(void *user, float *logits, uint32_t n_vocab, whit_error *error)
{
    const whit_thinking_limit *limit = user;
    (void)error;
    if (!limit->is_inside || limit->n_left) return WHIT_OK;
    const uint32_t id = (uint32_t)limit->close.ids[limit->n_forced];
    for (uint32_t i = 0; i < n_vocab; i++) logits[i] = i == id ? 0 : -INFINITY;
    return WHIT_OK;
}

static whit_status follow_token(void *user, int32_t id, bool *end, whit_error *error)
{
    whit_thinking_limit *limit = user;
    (void)end;
    (void)error;
    if (limit->is_over) return WHIT_OK;
    memmove(limit->last, limit->last + 1, (TAG_TOKENS_MAX - 1) * sizeof *limit->last);
    limit->last[TAG_TOKENS_MAX - 1] = id;
    if (!limit->is_inside) {
        limit->is_inside = ends_with(limit, &limit->open);
    } else if (ends_with(limit, &limit->close)) {
        limit->is_inside = false;
        limit->is_over = true;
    } else if (limit->n_left) {
        limit->n_left--;
    } else {
        limit->n_forced++;
    }
    return WHIT_OK;
}

whit_stage whit_thinking_limit_stage(whit_thinking_limit *limit)
{
    whit_stage stage = whit_stage_default();
    stage.user = limit;
    stage.apply = force_end;
    stage.accept = follow_token;
    return stage;
}
