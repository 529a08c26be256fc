/* SPDX-License-Identifier: MIT
 * Runs the requests of one model by continuous batching. Every step computes the next token of all generations, and as
 * much of the waiting prompts as its time budget allows. A sequence keeps its tokens when its request ends; the next
 * request reuses the longest common prefix, from its own sequence or another one. */
#include "server/engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "server/embedder.h"
#include "whit/experts.h"
#include "whit/steps.h"
#include "server/keep.h"
#include "server/kv_events.h"

enum { BATCH_TOKENS = 256, PROMPT_LOGITS = 16, IDLE_MS = 2000, STAGES_MAX = 3 };

/* Work for the engine's thread between two steps: texts whose vectors or scores are wanted, or an action on a slot. The
 * thread that waits for the result owns it. */
typedef struct errand {
    whit_slot_action *action; /* NULL: the work is `work`, texts whose vectors or scores are wanted */
    const whit_vector_work *work;
    whit_status status;
    whit_error *error;
    bool finished;
    struct errand *next;
} errand;

typedef struct slot {
    whit_job *job; /* NULL: the slot is free */
    whit_generation *generation;
    whit_sampler *sampler;
    /* stages that run before the sampler picks a token, in this order: a program's, that of a thinking limit, and that
     * of a grammar, which decides last */
    whit_stage stages[STAGES_MAX];
    const whit_stage *stage_list[STAGES_MAX];
    int32_t *held; /* tokens of the sequence while the slot is free */
    size_t n_held;
    uint32_t n_cached;                  /* tokens of the current job's prompt that need not be computed */
    whit_mount mounts[WHIT_MOUNTS_MAX]; /* adapters with which the sequence's tokens were computed */
    size_t n_mounts;
    bool is_kept;           /* the tokens are saved in the cache folder, and have not changed since */
    bool is_prompt_counted; /* the counts include the prompt of the current job already */
    uint64_t used;          /* number of the step in which the slot was last used */
    uint64_t conversation;  /* conversation to which the sequence's tokens belong; 0: unknown */
} slot;

struct whit_engine {
    const whit_model *model;
    whit_session *session;
    whit_engine_options options;
    slot *slots;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, changed;
    whit_job *first, *last; /* queue of waiting jobs */
    errand *first_errand, *last_errand;
    whit_embedder embedder;
    whit_keep keep;
    whit_engine_counts counts;
    whit_error *opening; /* where `open_session` stores its error; NULL once it has been called */
    whit_status status;  /* status of opening the session */
    bool stop, running;
};

/* ---- reuse of prefixes ------------------------------------------------------------------------- */

static size_t common_tokens(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b)
{
    size_t n = n_a < n_b ? n_a : n_b, i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i;
}

/* Returns the tokens of a slot's sequence. For a busy slot these are the tokens of its generation that were computed so
 * far. */
static const int32_t *held_tokens(const whit_engine *e, uint32_t i, size_t *n)
{
    const slot *s = &e->slots[i];
    if (!s->generation) {
        *n = s->n_held;
        return s->held;
    }
    const int32_t *ids = whit_generation_ids(s->generation, n);
    uint32_t position = whit_session_position(e->session, i);
    if (position < *n) *n = position;
    return ids;
}

static bool mounts_same(const slot *s, const whit_job *job)
{
    bool same = s->n_mounts == job->n_mounts;
    for (size_t i = 0; same && i < s->n_mounts; i++)
        same = s->mounts[i].adapter == job->mounts[i].adapter && s->mounts[i].scale == job->mounts[i].scale;
    return same;
}

/* Chooses a free slot. The first choice is the slot that the job names, the second a slot with the job's conversation.
 * Otherwise it is the slot whose tokens have the longest common prefix with the prompt and, among equals, the slot that
 * was unused for longest. Slots whose tokens were computed with other adapters count as if they had no common prefix.
 * For a job with a conversation, so do slots of other conversations: they are spared, since the job can reuse a prefix
 * from any slot. */
static int choose_slot(const whit_engine *e, const whit_job *job)
{
    int best = -1;
    size_t n_common = 0;
    for (uint32_t i = 0; i < e->options.n_slots; i++) {
        const slot *s = &e->slots[i];
        if (s->job) continue;
        if ((int32_t)i == job->id_slot) return (int)i;
        size_t n = mounts_same(s, job) ? common_tokens(s->held, s->n_held, job->ids, job->n_ids) : 0;
        if (job->conversation && s->conversation == job->conversation)
            n = SIZE_MAX;
        else if (job->conversation && s->conversation)
            n = 0;
        if (best < 0 || n > n_common || (n == n_common && s->used < e->slots[best].used)) {
            best = (int)i;
            n_common = n;
        }
    }
    return best;
}

static whit_status prepare_sequence(whit_engine *e, uint32_t at, whit_job *job, whit_error *error)
{
    slot *s = &e->slots[at];
    free(s->held);
    s->held = NULL;
    s->n_held = s->n_cached = 0;
    s->n_mounts = job->n_mounts;
    s->conversation = job->conversation;
    memcpy(s->mounts, job->mounts, sizeof s->mounts);
    WHIT_TRY(whit_session_mount(e->session, at, job->mounts, job->n_mounts, error));
    if (job->prompt_logprobs) {
        WHIT_TRY(whit_session_truncate(e->session, at, 0, error));
    } else {
        WHIT_TRY(whit_session_reuse(e->session, at, job->ids, job->n_ids, &s->n_cached, error));
    }
    return WHIT_OK;
}

/* ---- jobs and steps ---------------------------------------------------------------------------- */

static whit_status open_generation(whit_engine *e, uint32_t at, whit_job *job, whit_error *error)
{
    slot *s = &e->slots[at];
    whit_generate_options options = whit_generate_options_default();
    WHIT_TRY(prepare_sequence(e, at, job, error));
    WHIT_TRY(whit_sampler_open(e->model, &job->sampling, &s->sampler, error));
    options.sequence = at;
    options.n_present = s->n_cached;
    options.n_tokens = job->n_tokens;
    options.n_draft_tokens = e->options.n_draft_tokens;
    options.ignore_end = job->ignore_end;
    options.keep_special = job->keep_special;
    options.end_ids = &job->end_id;
    options.n_end_ids = job->end_id >= 0;
    options.stop = (const char *const *)job->stops;
    options.n_stop = job->n_stops;
    options.logprobs = job->logprobs;
    options.n_top_logprobs = job->n_top;
    options.prompt_logprobs = job->prompt_logprobs;
    size_t n_stages = 0;
    if (job->program) s->stages[n_stages++] = whit_program_stage(job->program);
    if (job->limit) s->stages[n_stages++] = whit_thinking_limit_stage(job->limit);
    if (job->state) s->stages[n_stages++] = whit_grammar_stage(job->state);
    for (size_t i = 0; i < n_stages; i++) s->stage_list[i] = &s->stages[i];
    options.stages = s->stage_list;
    options.n_stages = n_stages;
    return whit_generation_open(e->session, s->sampler, job->ids, job->n_ids, &options, &s->generation, error);
}

/* Marks a job as finished. Must be called with the lock held, in the engine's thread or after that has ended. */
static void finish_job(whit_engine *e, whit_job *job, whit_finish finish, const whit_error *error)
{
    /* releases only this job's hold; other jobs may still use the grammar */
    whit_job_drop_grammar(job);
    job->finish = finish;
    if (error) job->error = *error;
    job->finished = true;
    job->done_ns = whit_now_ns();
    bool has_left = atomic_load(&job->cancelled);
    if (finish == WHIT_FINISH_CANCELLED && has_left) e->counts.n_cancelled++;
    job->is_late = finish == WHIT_FINISH_CANCELLED && !has_left && job->deadline_ns && job->done_ns > job->deadline_ns;
    if (job->started) whit_histogram_add(&e->counts.whole, WHIT_HISTOGRAM_TIMES, job->done_ns - job->queued_ns);
    pthread_cond_broadcast(&e->changed);
    whit_job_close(job);
}

static void free_slot(whit_engine *e, uint32_t at)
{
    slot *s = &e->slots[at];
    size_t n = 0;
    const int32_t *ids = s->generation ? held_tokens(e, at, &n) : NULL;
    free(s->held);
    s->held = n ? malloc(n * sizeof *ids) : NULL;
    s->n_held = s->held ? n : 0;
    if (s->held) memcpy(s->held, ids, n * sizeof *ids);
    s->is_kept = s->is_prompt_counted = false;
    whit_generation_close(s->generation);
    whit_sampler_close(s->sampler);
    s->generation = NULL;
    s->sampler = NULL;
    s->job = NULL;
    s->used = e->counts.n_steps;
}

/* Removes from the queue the waiting job whose key has the fewest jobs in slots; among equals, the job that was
 * submitted first. */
static whit_job *next_job(whit_engine *e)
{
    whit_job *best = NULL, *before_best = NULL, *before = NULL;
    uint32_t fewest = UINT32_MAX;
    for (whit_job *job = e->first; job; before = job, job = job->next) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < e->options.n_slots; i++) n += e->slots[i].job && e->slots[i].job->key == job->key;
        if (n < fewest) fewest = n, best = job, before_best = before;
    }
    if (!best) return NULL;
    if (before_best)
        before_best->next = best->next;
    else
        e->first = best->next;
    if (e->last == best) e->last = before_best;
    best->next = NULL;
    e->counts.n_queued--;
    return best;
}

/* Ends all waiting jobs whose client has left or whose deadline has passed. Must be called with the lock held. */
static void sweep_queue(whit_engine *e)
{
    uint64_t now_ns = e->first ? whit_now_ns() : 0;
    whit_job **at = &e->first, *last = NULL;
    whit_error late;
    while (*at) {
        whit_job *job = *at;
        bool left = atomic_load(&job->cancelled), is_late = job->deadline_ns && now_ns > job->deadline_ns;
        if (!left && !is_late) {
            last = job;
            at = &job->next;
            continue;
        }
        *at = job->next;
        job->next = NULL;
        e->counts.n_queued--;
        if (!left)
            (void)whit_fail(&late, WHIT_ERROR_LIMIT,
                            "all slots answered other requests until this one had waited too long; try again later");
        whit_finish finish = left ? WHIT_FINISH_CANCELLED : WHIT_FINISH_FAILED;
        finish_job(e, job, finish, left ? NULL : &late);
    }
    e->last = last;
}

/* Moves waiting jobs to free slots. Must be called with the lock held. The lock is released while a job is prepared,
 * because its prompt may be long. */
static void start_jobs(whit_engine *e)
{
    sweep_queue(e);
    while (e->first && e->counts.n_busy < e->options.n_slots) {
        whit_job *job = next_job(e);
        whit_error error;
        int at = choose_slot(e, job);
        e->slots[at].job = job;
        e->counts.n_busy++;
        pthread_mutex_unlock(&e->lock);
        uint64_t started_ns = whit_now_ns();
        whit_status status = open_generation(e, (uint32_t)at, job, &error);
        pthread_mutex_lock(&e->lock);
        job->started = true;
        job->started_ns = started_ns;
        job->n_cached = e->slots[at].n_cached;
        e->counts.queue_ns += started_ns - job->queued_ns;
        whit_histogram_add(&e->counts.queued, WHIT_HISTOGRAM_TIMES, started_ns - job->queued_ns);
        if (status != WHIT_OK) {
            free_slot(e, (uint32_t)at);
            e->counts.n_busy--;
            finish_job(e, job, WHIT_FINISH_FAILED, &error);
            continue;
        }
        e->counts.n_requests++;
        e->counts.n_cached_tokens += job->n_cached;
    }
}

/* Records how much of a slot's prompt has been computed, if this step has computed some of it and the job wants to
 * know. */
static void note_progress(const whit_engine *e, const slot *s, bool is_done)
{
    whit_job *job = s->job;
    size_t n_marks = job->progress.size_bytes / sizeof(whit_progress);
    whit_progress last = {0};
    uint32_t n_fed = whit_session_position(e->session, (uint32_t)(s - e->slots));
    if (!job->tells_progress) return;
    if (n_marks) memcpy(&last, job->progress.data + (n_marks - 1) * sizeof last, sizeof last);
    if (is_done || n_fed > job->n_ids) n_fed = (uint32_t)job->n_ids;
    if (last.n_fed == job->n_ids || (n_marks && n_fed <= last.n_fed)) return;
    last = (whit_progress){n_fed, whit_now_ns()};
    whit_buf_append(&job->progress, &last, sizeof last);
}

/* Passes new final text and tokens to the job; returns true if the generation is finished. Must be called with the lock
 * held. */
static bool take_output(whit_engine *e, slot *s)
{
    whit_job *job = s->job;
    whit_generate_result result = whit_generate_result_default();
    size_t n;
    const char *text = whit_generation_text(s->generation, &n);
    if (n && !whit_buf_append(&job->text, text, n)) atomic_store(&job->cancelled, true);
    whit_generation_result(s->generation, &result);
    /* An answer may end without a token, if no token was wanted or the first one ended it. */
    bool prompt_done = result.n_generated_tokens || whit_generation_finished(s->generation);
    note_progress(e, s, prompt_done);
    if (prompt_done && !s->is_prompt_counted) {
        s->is_prompt_counted = true;
        e->counts.n_prompt_tokens += result.n_prompt_tokens;
        e->counts.prompt_ns += result.prompt_ns;
    }
    if (job->n_generated == 0 && result.n_generated_tokens) {
        job->first_ns = whit_now_ns();
        e->counts.first_token_ns += job->first_ns - job->queued_ns;
        whit_histogram_add(&e->counts.first_token, WHIT_HISTOGRAM_TIMES, job->first_ns - job->queued_ns);
        job->last_ns = job->first_ns;
    } else if (result.n_generated_tokens > job->n_generated) {
        uint64_t now = whit_now_ns(), n_new = result.n_generated_tokens - job->n_generated;
        for (uint64_t i = 0; i < n_new; i++)
            whit_histogram_add(&e->counts.per_token, WHIT_HISTOGRAM_TIMES, (now - job->last_ns) / n_new);
        job->last_ns = now;
    }
    for (uint32_t i = job->n_generated; job->logprobs && i < result.n_generated_tokens; i++) {
        whit_logprob drawn[1 + WHIT_TOP_MAX];
        const whit_logprob *entries = job->logs_drawn ? drawn : whit_generation_logprobs(s->generation, i);
        /* Here a step gives exactly one token: drafts are not used together with log-probabilities of drawn tokens. */
        if (job->logs_drawn) e->options.drawn(s->sampler, job->n_top, drawn);
        if (entries) whit_buf_append(&job->logprobs_of, entries, (1 + job->n_top) * sizeof *entries);
    }
    if (job->prompt_logprobs && prompt_done && !job->prompt_logprobs_of.size_bytes)
        for (size_t i = 1; i < job->n_ids; i++) {
            const whit_logprob *entries = whit_generation_prompt_logprobs(s->generation, i);
            if (entries) whit_buf_append(&job->prompt_logprobs_of, entries, (1 + job->n_top) * sizeof *entries);
        }
    if (job->prompt_logprobs_of.failed) atomic_store(&job->cancelled, true);
    if (job->keeps_tokens) {
        size_t n_all;
        const int32_t *ids = whit_generation_ids(s->generation, &n_all);
        size_t n_told = job->n_ids + job->n_generated, n_now = job->n_ids + result.n_generated_tokens;
        if (n_now <= n_all) whit_buf_append(&job->tokens, ids + n_told, (n_now - n_told) * sizeof *ids);
    }
    e->counts.n_generated_tokens += result.n_generated_tokens - job->n_generated;
    job->n_generated = result.n_generated_tokens;
    if (!whit_generation_finished(s->generation)) return false;
    e->counts.generate_ns += result.generate_ns;
    job->finish = result.finish;
    bool by_own = result.finish == WHIT_FINISH_STOP && result.i_stop < job->n_own_stops;
    job->stopped_by = by_own ? job->stops[result.i_stop] : NULL;
    return true;
}

/* Updates the counts of blocks, checkpoints and experts. Must be called with the lock held, in the engine's thread. */
static void count_cache(whit_engine *e)
{
    whit_mark_counts marks = {.struct_bytes = sizeof marks};
    whit_session_count_blocks(e->session, &e->counts.n_blocks, &e->counts.n_blocks_found);
    whit_session_count_marks(e->session, &marks);
    whit_expert_counts experts = {.struct_bytes = sizeof experts};
    whit_session_count_experts(e->session, &experts);
    e->counts.expert_bytes = experts.bytes;
    e->counts.expert_bytes_max = experts.bytes_max;
    e->counts.expert_read_bytes = experts.read_bytes;
    e->counts.mark_bytes = marks.n_marks * marks.mark_bytes;
    e->counts.mark_bytes_max = marks.n_marks_max * marks.mark_bytes;
    e->counts.n_marks_made = marks.n_made;
    e->counts.n_marks_used = marks.n_used;
    e->counts.n_marks_evicted = marks.n_evicted;
}

/* Returns how many tokens of a busy slot's prompt are not computed yet. */
static size_t prompt_left(const whit_engine *e, uint32_t at)
{
    uint32_t position = whit_session_position(e->session, at);
    size_t n_ids = e->slots[at].job->n_ids;
    return position < n_ids ? n_ids - position : 0;
}

/* Lists the generations of busy slots, those with the fewest uncomputed prompt tokens first, and returns their number.
 * The first one gets most of a step's budget for prompts, so a short question does not wait for a long document. */
static size_t list_generations(const whit_engine *e, whit_generation **generations)
{
    size_t n = 0, left[WHIT_ENGINE_MOST_SLOTS];
    for (uint32_t i = 0; i < e->options.n_slots; i++) {
        if (!e->slots[i].job) continue;
        size_t n_left = prompt_left(e, i), at = n++;
        for (; at > 0 && left[at - 1] > n_left; at--) {
            left[at] = left[at - 1];
            generations[at] = generations[at - 1];
        }
        left[at] = n_left;
        generations[at] = e->slots[i].generation;
    }
    return n;
}

/* Adds one step to the counts. Must be called with the lock held. */
static void count_step(whit_engine *e, size_t n_busy, const whit_step_report *report)
{
    whit_engine_counts *c = &e->counts;
    c->n_steps++;
    c->n_busy_slot_steps += n_busy;
    c->n_prompts_waiting = report->n_prompts_waiting;
    if (report->n_prompt_tokens) whit_histogram_add(&c->prompt_piece, WHIT_HISTOGRAM_TOKENS, report->n_prompt_tokens);
    c->n_guessed_tokens += report->n_guessed;
    c->n_guessed_right += report->n_guessed_right;
    if (!report->n_columns) return;
    whit_histogram_add(&c->step, WHIT_HISTOGRAM_TIMES, report->taken_ns);
    c->step_predicted_ns = report->predicted_ns;
    c->n_steps_over += e->options.step_budget_ns && report->taken_ns > e->options.step_budget_ns;
}

static void step_engine(whit_engine *e)
{
    whit_generation *generations[WHIT_ENGINE_MOST_SLOTS] = {NULL};
    size_t n_open;
    whit_error error;
    whit_step_report report = whit_step_report_default();
    for (uint32_t i = 0; i < e->options.n_slots; i++)
        if (e->slots[i].job) {
            bool late = e->slots[i].job->deadline_ns && whit_now_ns() > e->slots[i].job->deadline_ns;
            if (late || atomic_load(&e->slots[i].job->cancelled)) whit_generation_cancel(e->slots[i].generation);
        }
    size_t n = list_generations(e, generations);
    whit_status status =
        whit_generations_step_within(e->session, generations, n, e->options.step_budget_ns, &report, &n_open, &error);
    if (status != WHIT_OK)
        for (size_t i = 0; i < n; i++) whit_generation_cancel(generations[i]);
    /* events are published before answers: a client that has its answer may request the events at once */
    whit_channel_publish(e->options.events);
    pthread_mutex_lock(&e->lock);
    count_step(e, n, &report);
    for (uint32_t i = 0; i < e->options.n_slots; i++) {
        slot *s = &e->slots[i];
        if (!s->job || !take_output(e, s)) continue;
        whit_job *job = s->job;
        const whit_error *reason = status != WHIT_OK ? &error : whit_generation_error(s->generation);
        whit_error own;
        if (reason) own = *reason, reason = &own;
        whit_finish finish = reason ? WHIT_FINISH_FAILED : job->finish;
        free_slot(e, i);
        e->counts.n_busy--;
        finish_job(e, job, finish, reason);
    }
    uint32_t n_kv = 0;
    for (uint32_t i = 0; i < e->options.n_slots; i++) n_kv += whit_session_position(e->session, i);
    e->counts.n_kv_tokens = n_kv;
    count_cache(e);
    pthread_cond_broadcast(&e->changed);
}

/* ---- errands: work between steps --------------------------------------------------------------- */

/* Removes the first errand from the queue and returns it; NULL if the queue is empty. Must be called with the lock
 * held. */
static errand *next_errand(whit_engine *e)
{
    errand *first = e->first_errand;
    if (first) e->first_errand = first->next;
    if (!e->first_errand) e->last_errand = NULL;
    return first;
}

/* Marks an errand as finished and wakes its thread. Must be called with the lock held. */
static void finish_errand(whit_engine *e, errand *one, whit_status status)
{
    one->status = status;
    one->finished = true;
    pthread_cond_broadcast(&e->changed);
}

/* Saves, restores or erases the tokens of a slot, which must be free. */
static whit_status act_on_slot(whit_engine *e, whit_slot_action *action, whit_error *error)
{
    slot *s = &e->slots[action->id_slot];
    int32_t *ids = NULL;
    size_t n = s->n_held;
    if (s->job) return whit_fail(error, WHIT_ERROR_ARGUMENT, "the slot is in use by a request; try again later");
    if (action->kind == WHIT_SLOT_SAVE && s->n_mounts)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "a slot whose tokens were computed with an adapter cannot be saved: use it without adapters");
    if (action->kind == WHIT_SLOT_SAVE) {
        return whit_keep_write(e->session, action->id_slot, action->path, &action->n_tokens, error);
    }
    WHIT_TRY(whit_session_mount(e->session, action->id_slot, NULL, 0, error));
    WHIT_TRY(whit_session_truncate(e->session, action->id_slot, 0, error));
    whit_status status = WHIT_OK;
    if (action->kind == WHIT_SLOT_RESTORE)
        status = whit_keep_read(e->session, action->id_slot, action->path, &ids, &n, error);
    free(s->held);
    s->held = ids;
    s->n_held = ids ? n : 0;
    s->n_mounts = s->conversation = 0;
    s->is_kept = false;
    action->n_tokens = n;
    return status;
}

/* Queues an errand for the engine's thread, and waits until it is finished. */
static whit_status wait_for(whit_engine *e, errand *one)
{
    pthread_mutex_lock(&e->lock);
    if (e->stop) {
        pthread_mutex_unlock(&e->lock);
        return whit_fail(one->error, WHIT_ERROR_IO, "the server is shutting down");
    }
    if (e->last_errand)
        e->last_errand->next = one;
    else
        e->first_errand = one;
    e->last_errand = one;
    pthread_cond_signal(&e->work);
    while (!one->finished) pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
    return one->status;
}

whit_status whit_engine_vectors(whit_engine *e, const whit_vector_work *work, whit_error *error)
{
    errand own = {.work = work, .error = error};
    return wait_for(e, &own);
}

whit_status whit_engine_act(whit_engine *e, whit_slot_action *action, whit_error *error)
{
    errand own = {.action = action, .error = error};
    if (action->id_slot >= e->options.n_slots)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "there is no slot %u; GET /slots lists them", action->id_slot);
    return wait_for(e, &own);
}

/* ---- KV events --------------------------------------------------------------------------------- */

/* Returns a bit mask of the mounted adapters: bit k is the adapter with index k in the options. */
static uint64_t adapter_bits(const whit_engine *e, const whit_mount *mounts, size_t n_mounts)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < n_mounts; i++)
        for (size_t k = 0; k < e->options.n_adapters; k++)
            if (e->options.adapters[k] == mounts[i].adapter) bits |= (uint64_t)1 << k;
    return bits;
}

static void on_cache_event(void *user, const whit_cache_event *event)
{
    whit_engine *e = user;
    if (!event->ids) {
        whit_channel_remove(e->options.events, event);
        return;
    }
    const slot *s = &e->slots[event->sequence];
    const uint64_t bits = adapter_bits(e, s->mounts, s->n_mounts);
    whit_channel_store(e->options.events, event, s->n_mounts == 1 && bits ? (uint32_t)__builtin_ctzll(bits) + 1 : 0);
}

/* ---- prefixes that outlive the engine ------------------------------------------------------------ */

static void load_kept(whit_engine *e)
{
    for (uint32_t i = 0; i < e->options.n_slots; i++) {
        e->slots[i].held = whit_keep_load(&e->keep, e->session, i, &e->slots[i].n_held);
        e->slots[i].is_kept = e->slots[i].held != NULL;
    }
}

/* Returns whether a slot should be saved: saving is on, and the slot is free and has unsaved tokens, which were
 * computed without adapters. */
static bool is_to_be_kept(const whit_engine *e, const slot *s)
{
    return e->keep.prefix && !s->job && s->held && !s->is_kept && !s->n_mounts;
}

static void keep_slot(whit_engine *e, uint32_t i)
{
    slot *s = &e->slots[i];
    if (!is_to_be_kept(e, s)) return;
    whit_keep_save(&e->keep, e->session, i);
    s->is_kept = true;
}

/* Returns the first slot that should be saved, or n_slots. */
static uint32_t unsaved_slot(const whit_engine *e)
{
    uint32_t i = 0;
    while (i < e->options.n_slots && !is_to_be_kept(e, &e->slots[i])) i++;
    return i;
}

/* Waits for work. After IDLE_MS without work, saves slots one after another until work arrives. Must be called with the
 * lock held and nothing to do. */
static void wait_idle(whit_engine *e)
{
    struct timespec until;
    if (unsaved_slot(e) == e->options.n_slots) {
        pthread_cond_wait(&e->work, &e->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_MS / 1000;
    if (pthread_cond_timedwait(&e->work, &e->lock, &until) == 0) return;
    for (uint32_t i = unsaved_slot(e); i < e->options.n_slots && !e->first && !e->first_errand && !e->stop;
         i = unsaved_slot(e)) {
        pthread_mutex_unlock(&e->lock);
        keep_slot(e, i);
        pthread_mutex_lock(&e->lock);
    }
}

/* Opens the session. Its workers are pinned to cores other than that of the thread that opens it. So the same thread
 * must run the steps; otherwise a worker could share its core. */
static bool open_session(whit_engine *e)
{
    whit_session_options wanted = whit_engine_session_options(&e->options);
    whit_embedder_suit(e->model, &wanted);
    const whit_model *drafter = whit_engine_drafter(e->model, &e->options);
    whit_status status = whit_session_open_drafting(e->model, &wanted, drafter, &e->session, e->opening);
    if (status == WHIT_OK && e->options.expert_bytes) {
        status = whit_session_limit_experts(e->session, e->options.expert_bytes, e->opening);
        /* the model has no experts, or all of them are always in memory */
        if (status == WHIT_ERROR_UNSUPPORTED) status = WHIT_OK;
    }
    if (status == WHIT_OK)
        status = whit_keep_open(e->model, e->options.cache_dir, e->options.i_server, e->options.i_twin, &wanted,
                                &e->keep, e->opening);
    if (status == WHIT_OK && e->options.events) {
        whit_channel_clear(e->options.events);
        whit_session_watch_cache(e->session, on_cache_event, e);
    }
    pthread_mutex_lock(&e->lock);
    e->counts.n_slots = e->options.n_slots;
    e->counts.step_budget_ns = e->options.step_budget_ns;
    if (status == WHIT_OK) {
        e->counts.n_ctx_tokens = whit_session_context_size(e->session);
        count_cache(e);
    }
    e->status = status;
    e->opening = NULL;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    return status == WHIT_OK;
}

static void *run_engine(void *user)
{
    whit_engine *e = user;
    if (!open_session(e)) return NULL;
    load_kept(e);
    whit_channel_publish(e->options.events);
    pthread_mutex_lock(&e->lock);
    count_cache(e);
    while (!e->stop) {
        start_jobs(e);
        errand *one = next_errand(e);
        if (one) {
            pthread_mutex_unlock(&e->lock);
            whit_status status = one->action
                ? act_on_slot(e, one->action, one->error)
                : whit_embedder_run(&e->embedder, e->model, &e->options, one->work, one->error);
            whit_channel_publish(e->options.events);
            pthread_mutex_lock(&e->lock);
            count_cache(e);
            finish_errand(e, one, status);
        }
        if (e->counts.n_busy == 0) {
            if (one) continue;
            wait_idle(e);
            continue;
        }
        pthread_mutex_unlock(&e->lock);
        step_engine(e); /* the lock is held again when step_engine returns */
    }
    pthread_mutex_unlock(&e->lock);
    for (uint32_t i = 0; i < e->options.n_slots; i++) keep_slot(e, i);
    whit_session_watch_cache(e->session, NULL, NULL);
    whit_channel_clear(e->options.events);
    return NULL;
}

/* ---- functions that other threads call --------------------------------------------------------- */

whit_session_options whit_engine_session_options(const whit_engine_options *options)
{
    whit_session_options wanted = whit_session_options_default();
    wanted.n_ctx_tokens = options->n_ctx_tokens;
    wanted.n_sequences = options->n_slots;
    wanted.n_threads = options->n_threads;
    wanted.n_batch_tokens = options->n_batch_tokens ? options->n_batch_tokens : BATCH_TOKENS;
    wanted.n_logits = options->n_slots + PROMPT_LOGITS;
    wanted.kv = options->kv;
    wanted.n_kv_window = options->n_kv_window;
    wanted.state_bytes = options->state_bytes;
    wanted.act = options->act;
    wanted.exact_head = options->exact_head;
    return wanted;
}

const whit_model *whit_engine_drafter(const whit_model *model, const whit_engine_options *options)
{
    if (options->drafter) return options->drafter;
    return options->has_draft_block && whit_model_has_draft_block(model) ? model : NULL;
}

whit_status whit_engine_open(const whit_model *model, const whit_engine_options *options, whit_engine **engine,
                             whit_error *error)
{
    *engine = NULL;
    whit_engine *e = calloc(1, sizeof *e);
    if (!e) return whit_fail_memory(error, "the engine", sizeof *e);
    e->model = model;
    e->options = *options;
    pthread_mutex_init(&e->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&e->work, &monotonic);
    pthread_cond_init(&e->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    e->slots = calloc(options->n_slots, sizeof *e->slots);
    whit_error unread;
    e->opening = error ? error : &unread;
    e->running = e->slots && pthread_create(&e->thread, NULL, run_engine, e) == 0;
    if (e->running) {
        pthread_mutex_lock(&e->lock);
        while (e->opening) pthread_cond_wait(&e->changed, &e->lock);
        pthread_mutex_unlock(&e->lock);
    }
    whit_status status;
    if (!e->slots)
        status = whit_fail_memory(error, "the engine", options->n_slots * sizeof *e->slots);
    else if (!e->running)
        status = whit_fail(error, WHIT_ERROR_IO, "the system starts no thread to run the model: end some processes");
    else
        status = e->status;
    if (status != WHIT_OK) {
        whit_engine_close(e);
        return status;
    }
    *engine = e;
    return WHIT_OK;
}

void whit_engine_close(whit_engine *e)
{
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_broadcast(&e->work);
    pthread_mutex_unlock(&e->lock);
    if (e->running) pthread_join(e->thread, NULL);
    pthread_mutex_lock(&e->lock);
    for (uint32_t i = 0; e->slots && i < e->options.n_slots; i++) {
        whit_job *job = e->slots[i].job;
        free_slot(e, i);
        free(e->slots[i].held);
        if (job) finish_job(e, job, WHIT_FINISH_CANCELLED, NULL);
    }
    for (whit_job *job = e->first, *next; job; job = next) {
        next = job->next;
        finish_job(e, job, WHIT_FINISH_CANCELLED, NULL);
    }
    for (errand *one = next_errand(e); one; one = next_errand(e))
        finish_errand(e, one, whit_fail(one->error, WHIT_ERROR_IO, "the server is shutting down"));
    pthread_mutex_unlock(&e->lock);
    whit_session_close(e->session);
    whit_embedder_close(&e->embedder);
    whit_keep_close(&e->keep);
    pthread_cond_destroy(&e->work);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e->slots);
    free(e);
}

uint32_t whit_engine_context_size(const whit_engine *e)
{
    return e->counts.n_ctx_tokens;
}

/* Returns whether the queue has no space for n more jobs, or the engine is ending; jobs that free slots can start at
 * once need no space. Must be called with the lock held. */
static bool is_full(const whit_engine *e, size_t n)
{
    uint32_t n_free = e->options.n_slots - e->counts.n_busy;
    return e->stop || e->counts.n_queued + n > (size_t)e->options.n_queue + n_free;
}

bool whit_engine_is_full(whit_engine *e, size_t n)
{
    pthread_mutex_lock(&e->lock);
    bool full = is_full(e, n);
    pthread_mutex_unlock(&e->lock);
    return full;
}

whit_status whit_engine_submit(whit_engine *e, whit_job *const *jobs, size_t n, whit_error *error)
{
    if (!whit_model_makes_text(e->model))
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "the model computes vectors or scores and cannot continue a text: use /v1/embeddings or /v1/rerank");
    pthread_mutex_lock(&e->lock);
    bool full = is_full(e, n);
    for (size_t i = 0; !full && i < n; i++) {
        whit_job *job = jobs[i];
        atomic_fetch_add(&job->n_holders, 1);
        job->queued_ns = whit_now_ns();
        if (e->last)
            e->last->next = job;
        else
            e->first = job;
        e->last = job;
        e->counts.n_queued++;
    }
    if (!full) pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
    return full ? whit_fail(error, WHIT_ERROR_LIMIT, "the queue of waiting requests (--queue) is full; try again later")
                : WHIT_OK;
}

void whit_engine_lock(whit_engine *e)
{
    pthread_mutex_lock(&e->lock);
}

void whit_engine_unlock(whit_engine *e)
{
    pthread_mutex_unlock(&e->lock);
}

void whit_engine_wait(whit_engine *e, uint32_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&e->changed, &e->lock, &until);
}

void whit_engine_count(whit_engine *e, whit_engine_counts *counts)
{
    pthread_mutex_lock(&e->lock);
    *counts = e->counts;
    for (uint32_t i = 0; i < e->options.n_slots; i++)
        if (e->slots[i].job)
            counts->running_loras |= adapter_bits(e, e->slots[i].job->mounts, e->slots[i].job->n_mounts);
    for (const whit_job *job = e->first; job; job = job->next)
        counts->waiting_loras |= adapter_bits(e, job->mounts, job->n_mounts);
    pthread_mutex_unlock(&e->lock);
}

bool whit_engine_is_idle(whit_engine *e)
{
    pthread_mutex_lock(&e->lock);
    bool idle = !e->first && !e->first_errand && e->counts.n_busy == 0;
    pthread_mutex_unlock(&e->lock);
    return idle;
}
