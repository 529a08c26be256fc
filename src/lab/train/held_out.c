/* SPDX-License-Identifier: MIT */
#include "train/held_out.h"

uint32_t whit_held_out_windows(const whit_corpus *text, uint32_t n_tokens, uint32_t limit)
{
    size_t n = text->n ? (text->n - 1) / n_tokens : 0;
    if (limit && n > limit) n = limit;
    return n > 1u << 20 ? 1u << 20 : (uint32_t)n;
}

/* Fills one batch with the windows from number `first` on. There are n windows, which begin `stride` times n_tokens
 * tokens apart; sequences after the last window repeat it. Rows that are not scored get the target -1. */
static void fill(const whit_corpus *text, const whit_tape_options *batch, uint32_t first, uint32_t n, size_t stride,
                 int32_t *ids, int32_t *targets)
{
    uint32_t n_tokens = batch->n_tokens;
    for (uint32_t s = 0; s < batch->n_sequences; s++) {
        uint32_t window = first + s < n ? first + s : n - 1;
        const int32_t *from = text->ids + window * stride * n_tokens;
        for (uint32_t t = 0; t < n_tokens; t++, ids++, targets++) {
            *ids = from[t];
            *targets = first + s < n && t >= n_tokens / 2 && t + 1 < n_tokens ? from[t + 1] : -1;
        }
    }
}

whit_held_out_result whit_held_out_measure(whit_tape *student, whit_tape *teacher, whit_loss *loss,
                                           const whit_corpus *text, uint32_t n_windows, int32_t *ids, int32_t *targets,
                                           whit_held_out_fn *progress, void *user)
{
    const whit_tape_options *batch = &student->options;
    whit_ref output = student->graph->output;
    uint32_t n_vocab = student->graph->values[output - 1].width;
    uint32_t all = whit_held_out_windows(text, batch->n_tokens, 0);
    uint32_t n = whit_held_out_windows(text, batch->n_tokens, n_windows);
    whit_held_out_result result = {.n_windows = n};
    for (uint32_t first = 0; first < n; first += batch->n_sequences) {
        uint32_t scored = n - first < batch->n_sequences ? n - first : batch->n_sequences;
        double weight = (double)scored / n;
        if (progress && !progress(user, "measuring", (double)first / n)) return (whit_held_out_result){.n_windows = 0};
        fill(text, batch, first, n, all / n, ids, targets);
        if (teacher) whit_tape_forward(teacher, ids);
        whit_tape_forward(student, ids);
        float *logits = teacher ? whit_tape_value(teacher, teacher->graph->output) : NULL;
        whit_loss_run(loss, student->pool, whit_tape_value(student, output), logits, targets, n_vocab, 0);
        result.kl += weight * loss->kl;
        result.ce += weight * loss->ce;
        if (!teacher) continue;
        whit_loss_run(loss, student->pool, logits, NULL, targets, n_vocab, 0);
        result.teacher_ce += weight * loss->ce;
    }
    return result;
}
