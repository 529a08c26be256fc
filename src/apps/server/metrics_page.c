/* SPDX-License-Identifier: MIT
 * Serves GET /metrics in Prometheus' text format. Every line names its model. Counters of a closed model are still
 * listed. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/access.h"
#include "server/endpoints.h"
#include "base/items.h"
#include "server/models.h"
#include "whit/cache.h"

enum { N_ROWS = 31 };

static const struct {
    const char *name, *type, *help;
    const char *vllm; /* the name under which vLLM has this metric, which dashboards and routers expect; NULL: vLLM
                       * lacks it */
} rows[N_ROWS] = {
    {"prompt_tokens_total", "counter", "Prompt tokens computed."},
    {"prompt_tokens_cached_total", "counter", "Prompt tokens that were there already."},
    {"prompt_seconds_total", "counter", "Time with prompts."},
    {"tokens_predicted_total", "counter", "Tokens generated."},
    {"tokens_predicted_seconds_total", "counter", "Time with generation, summed over requests."},
    {"requests_total", "counter", "Requests begun."},
    {"requests_cancelled_total", "counter", "Requests whose client left."},
    {"queue_seconds_total", "counter", "Time that requests waited for a slot."},
    {"first_token_seconds_total", "counter", "Time from a request to its first token."},
    {"steps_total", "counter", "Steps of the engine."},
    {"requests_processing", "gauge", "Requests at work.", "num_requests_running"},
    {"requests_deferred", "gauge", "Requests that wait.", "num_requests_waiting"},
    {"slots", "gauge", "Slots in all; 0 while the model is closed."},
    {"kv_cache_usage_ratio", "gauge", "Tokens held, of those that fit.", "kv_cache_usage_perc"},
    {"n_busy_slots_per_decode", "gauge", "Slots at work in a step, on average."},
    {"state_memory_bytes", "gauge", "Memory of checkpoints of recurrent layers and packed caches."},
    {"state_memory_max_bytes", "gauge", "Memory that checkpoints may take."},
    {"state_checkpoints_made_total", "counter", "Checkpoints made."},
    {"state_checkpoints_used_total", "counter", "Times that a sequence resumed at a checkpoint."},
    {"state_checkpoints_evicted_total", "counter", "Checkpoints that gave way to others."},
    {"kv_blocks", "gauge", "Blocks of 64 tokens that the prefix cache can find."},
    {"kv_blocks_max", "gauge", "Blocks that there is memory for."},
    {"draft_tokens_total", "counter", "Tokens guessed ahead."},
    {"draft_tokens_accepted_total", "counter", "Guessed tokens that were right."},
    {"prompts_waiting", "gauge", "Prompts in slots that are not yet computed in full."},
    {"step_budget_seconds", "gauge", "Time that a step in which answers grow should take; 0 is no limit."},
    {"step_predicted_seconds", "gauge", "Predicted time of the last step in which answers grew."},
    {"steps_over_budget_total", "counter", "Steps in which answers grew that took longer than the budget."},
    {"experts_memory_bytes", "gauge", "Memory of a mixture's experts that is in use, with --experts-memory."},
    {"experts_memory_max_bytes", "gauge", "Memory that a mixture's experts may take; 0 without --experts-memory."},
    {"experts_read_bytes_total", "counter", "Bytes of experts read from the file, with --experts-memory."},
};

static void list_values(const whit_engine_counts *c, double values[N_ROWS])
{
    double n_kv = (double)c->n_slots * c->n_ctx_tokens;
    const double list[N_ROWS] = {(double)c->n_prompt_tokens,
                                 (double)c->n_cached_tokens,
                                 (double)c->prompt_ns / 1e9,
                                 (double)c->n_generated_tokens,
                                 (double)c->generate_ns / 1e9,
                                 (double)c->n_requests,
                                 (double)c->n_cancelled,
                                 (double)c->queue_ns / 1e9,
                                 (double)c->first_token_ns / 1e9,
                                 (double)c->n_steps,
                                 c->n_busy,
                                 c->n_queued,
                                 c->n_slots,
                                 n_kv > 0 ? (double)c->n_kv_tokens / n_kv : 0,
                                 c->n_steps ? (double)c->n_busy_slot_steps / (double)c->n_steps : 0,
                                 (double)c->mark_bytes,
                                 (double)c->mark_bytes_max,
                                 (double)c->n_marks_made,
                                 (double)c->n_marks_used,
                                 (double)c->n_marks_evicted,
                                 c->n_blocks_found,
                                 c->n_blocks,
                                 (double)c->n_guessed_tokens,
                                 (double)c->n_guessed_right,
                                 c->n_prompts_waiting,
                                 (double)c->step_budget_ns / 1e9,
                                 (double)c->step_predicted_ns / 1e9,
                                 (double)c->n_steps_over,
                                 (double)c->expert_bytes,
                                 (double)c->expert_bytes_max,
                                 (double)c->expert_read_bytes};
    memcpy(values, list, sizeof list);
}

/* Appends a label's value with the escapes of Prometheus' format. */
static void append_label(whit_buf *out, const char *text)
{
    for (; *text; text++) {
        char c = *text;
        if (c == '\\' || c == '"' || c == '\n') whit_buf_append(out, "\\", 1);
        whit_buf_append(out, c == '\n' ? "n" : &c, 1);
    }
}

/* Appends the names of the adapters in the bit mask that the request's key may use, separated by commas. */
static void append_adapters(const whit_call *call, uint64_t bits, whit_buf *out)
{
    const whit_server_options *options = call->site->options;
    bool is_first = true;
    for (size_t k = 0; k < options->n_adapters; k++) {
        if (!(bits >> k & 1) || !whit_key_may_use(call->site, call->key, options->adapters[k].name)) continue;
        if (!is_first) whit_buf_append(out, ",", 1);
        append_label(out, options->adapters[k].name);
        is_first = false;
    }
}

/* Appends the size of the prefix cache, and the names of adapters in use, as metrics that routers for vLLM read. */
static void append_infos(const whit_call *call, size_t n, const whit_engine_counts *counts, const whit_buf *names,
                         whit_buf *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    whit_buf_append_str(out,
                        "# HELP vllm:cache_config_info Blocks of the prefix cache.\n"
                        "# TYPE vllm:cache_config_info gauge\n");
    for (size_t i = 0; i < n; i++)
        whit_buf_printf(out, "vllm:cache_config_info{model_name=\"%s\",block_size=\"%d\",num_gpu_blocks=\"%u\"} 1\n",
                        whit_chars(&names[i]), WHIT_CACHE_BLOCK_TOKENS, counts[i].n_blocks);
    whit_buf_append_str(out,
                        "# HELP vllm:lora_requests_info Adapters of requests; the value is the time.\n"
                        "# TYPE vllm:lora_requests_info gauge\n");
    for (size_t i = 0; i < n; i++) {
        whit_buf_printf(out, "vllm:lora_requests_info{model_name=\"%s\",max_lora=\"%zu\",running_lora_adapters=\"",
                        whit_chars(&names[i]), call->site->options->n_adapters);
        append_adapters(call, counts[i].running_loras, out);
        whit_buf_append_str(out, "\",waiting_lora_adapters=\"");
        append_adapters(call, counts[i].waiting_loras, out);
        whit_buf_printf(out, "\"} %lld\n", (long long)now.tv_sec);
    }
}

void whit_metrics_get(whit_call *call)
{
    whit_site *site = call->site;
    whit_web_reply *reply = call->reply;
    size_t n_models = site->models->n_places, n = 0; /* n: how many models the request's key may use */
    whit_engine_counts *counts = calloc(n_models, sizeof *counts);
    double(*values)[N_ROWS] = calloc(n_models, sizeof *values);
    whit_buf *names = calloc(n_models, sizeof *names), *out = &reply->body;
    bool ok = counts && values && names;
    whit_entry entry;
    for (size_t i = 0; ok && n < n_models && whit_models_at(site, i, &entry); i++) {
        const char *name = entry.options->name;
        if (!whit_key_may_use(site, call->key, name)) continue;
        whit_models_count(site, name, &counts[n]);
        list_values(&counts[n], values[n]);
        append_label(&names[n], name);
        whit_buf_append(&names[n], "", 1);
        ok = !names[n].failed;
        n++;
    }
    const struct {
        const char *name, *help;
        size_t at;
        whit_histogram_kind kind;
    } histograms[] = {
        {"queue_time_seconds", "Time that requests waited for a slot.", offsetof(whit_engine_counts, queued)},
        {"time_to_first_token_seconds", "Time from a request to its first token.",
         offsetof(whit_engine_counts, first_token)},
        {"time_per_output_token_seconds", "Time between two tokens of an answer.",
         offsetof(whit_engine_counts, per_token)},
        {"request_latency_seconds", "Time from a request to the end of its answer.",
         offsetof(whit_engine_counts, whole)},
        {"step_seconds", "Time of a step in which answers grow.", offsetof(whit_engine_counts, step)},
        {"step_prompt_tokens", "Prompt tokens of a step that has any.", offsetof(whit_engine_counts, prompt_piece),
         WHIT_HISTOGRAM_TOKENS},
    };
    for (size_t k = 0; ok && k < sizeof histograms / sizeof *histograms; k++) {
        whit_metric_begin(histograms[k].name, "histogram", histograms[k].help, out);
        for (size_t i = 0; i < n; i++)
            whit_histogram_write((const whit_histogram *)((const char *)&counts[i] + histograms[k].at),
                                 histograms[k].kind, histograms[k].name, whit_chars(&names[i]), out);
    }
    for (size_t k = 0; ok && k < N_ROWS; k++) {
        whit_metric_begin(rows[k].name, rows[k].type, rows[k].help, out);
        for (size_t i = 0; i < n; i++)
            whit_buf_printf(out, "whit:%s{model=\"%s\"} %.9g\n", rows[k].name, whit_chars(&names[i]), values[i][k]);
        if (!rows[k].vllm) continue;
        whit_buf_printf(out, "# HELP vllm:%s %s\n# TYPE vllm:%s %s\n", rows[k].vllm, rows[k].help, rows[k].vllm,
                        rows[k].type);
        for (size_t i = 0; i < n; i++)
            whit_buf_printf(out, "vllm:%s{model_name=\"%s\"} %.9g\n", rows[k].vllm, whit_chars(&names[i]),
                            values[i][k]);
    }
    if (ok) append_infos(call, n, counts, names, out);
    for (size_t i = 0; names && i < n; i++) whit_buf_free(&names[i]);
    free(names);
    free(values);
    free(counts);
    reply->status = ok && !out->failed ? 200 : 500;
    reply->type = "text/plain; version=0.0.4";
}
