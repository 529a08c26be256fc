/* SPDX-License-Identifier: MIT
 * Runs one test, with its model, session and rounds. Between its steps a round also measures how fast the same threads
 * read the same weights, and how fast they multiply, so that noise affects these rates and the test alike. */
#include "bench/timed_work.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

enum { PIECE_BYTES = 256 << 10, PROBES_A_ROUND = 8, INT8_PROBE_NS = 4000000 };

struct bench_work {
    const bench_test *test;
    whit_model *model;
    whit_model *drafter; /* separate draft model from its own file, or NULL */
    bench_steps steps;
    bench_adapter adapter;
    bench_count count;
    whit_kernels probes; /* kernels that measure the machine's speed, at the CPU level of the matrix kernels */
    bench_range *pieces; /* the count's ranges and the used blocks of the KV cache, cut into pieces for the threads */
    uint32_t n_pieces;
    uint8_t *int8_w; /* for each thread, WHIT_PROBE_BYTES of codes and as many of activations */
    uint32_t int8_rounds;
    uint64_t *phase_ns;                           /* (n_phases) nanoseconds of each phase, summed over all rounds */
    double read_bytes, read_s, int8_macs, int8_s; /* totals of the current round */
};

static void read_pieces(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const bench_work *w = context;
    static _Thread_local volatile uint64_t kept; /* keeps the compiler from removing the reads */
    (void)worker;
    for (uint32_t i = begin; i < end; i++)
        kept += w->steps.session->kernels.probe_read(w->pieces[i].data, w->pieces[i].size_bytes);
}

static void multiply_probe(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const bench_work *w = context;
    static _Thread_local volatile uint32_t kept;
    const uint8_t *own = w->int8_w + (size_t)worker * 2 * WHIT_PROBE_BYTES;
    for (uint32_t i = begin; i < end; i++)
        kept += w->probes.probe_int8(own, (const int8_t *)(own + WHIT_PROBE_BYTES), w->int8_rounds);
}

static void probe(bench_work *w)
{
    uint64_t t0 = whit_now_ns();
    whit_pool_run(w->steps.session->pool, read_pieces, w, w->n_pieces, 1);
    uint64_t t1 = whit_now_ns();
    for (uint32_t i = 0; i < w->n_pieces; i++) w->read_bytes += (double)w->pieces[i].size_bytes;
    uint32_t n_items = 16 * w->test->n_threads;
    whit_pool_run(w->steps.session->pool, multiply_probe, w, n_items, 1);
    uint64_t t2 = whit_now_ns();
    w->read_s += (double)(t1 - t0) * 1e-9;
    w->int8_s += (double)(t2 - t1) * 1e-9;
    w->int8_macs += (double)n_items * w->int8_rounds * WHIT_PROBE_MACS_A_ROUND;
}

/* Cuts a range into pieces for the threads. Its size is rounded down to whole cache lines, which probe_read needs. */
static void cut_range(bench_work *w, bench_range range)
{
    range.size_bytes &= ~(uint64_t)63;
    for (uint64_t at = 0; at < range.size_bytes; at += PIECE_BYTES) {
        uint64_t rest = range.size_bytes - at;
        w->pieces[w->n_pieces++] = (bench_range){range.data + at, rest < PIECE_BYTES ? rest : PIECE_BYTES};
    }
}

/* Adds the existing blocks of [0, n_blocks) of one head in one layer of a class; contiguous blocks form one range. */
static void cut_head(bench_work *w, const whit_kv_class *class, uint32_t sequence, uint32_t layer, uint32_t head,
                     uint32_t n_blocks)
{
    bench_range range = {0};
    for (uint32_t b = class->first[sequence]; b < n_blocks && whit_kv_has(class, sequence, b);
         b++, range.size_bytes += class->pool.head_bytes) {
        const uint8_t *piece = whit_kv_class_block(class, layer, head, sequence, b);
        if (piece == range.data + range.size_bytes) continue;
        cut_range(w, range);
        range = (bench_range){piece, 0};
    }
    cut_range(w, range);
}

static void cut_class(bench_work *w, const whit_kv_class *class, uint32_t sequence, uint32_t n_blocks)
{
    for (uint32_t layer = 0; layer < class->n_layers; layer++)
        for (uint32_t head = 0; head < class->n_kv_heads; head++) cut_head(w, class, sequence, layer, head, n_blocks);
}

static whit_status make_probes(bench_work *w, whit_error *error)
{
    const bench_test *t = w->test;
    const whit_kv *kv = &w->steps.session->kv;
    uint32_t n_blocks = (t->depth + WHIT_KV_BLOCK_TOKENS - 1) / WHIT_KV_BLOCK_TOKENS, n = 0;
    for (uint32_t i = 0; i < w->count.n_ranges; i++) n += (uint32_t)(w->count.ranges[i].size_bytes / PIECE_BYTES) + 1;
    for (uint32_t c = 0; c < kv->n_classes; c++) {
        const whit_kv_pool *pool = &kv->classes[c].pool;
        n += t->columns * pool->n_layers * pool->n_kv_heads * n_blocks * (uint32_t)(pool->head_bytes / PIECE_BYTES + 1);
    }
    w->pieces = calloc(n + 1, sizeof *w->pieces);
    w->int8_w = whit_zalloc_array(NULL, t->n_threads, 2 * WHIT_PROBE_BYTES);
    if (!w->pieces || !w->int8_w) return whit_fail_memory(error, "the probes", n);
    for (uint32_t i = 0; i < w->count.n_ranges; i++) cut_range(w, w->count.ranges[i]);
    for (uint32_t s = 0; s < t->columns; s++)
        for (uint32_t c = 0; c < kv->n_classes; c++) cut_class(w, &kv->classes[c], s, n_blocks);
    for (size_t i = 0; i < (size_t)t->n_threads * 2 * WHIT_PROBE_BYTES; i++) w->int8_w[i] = (uint8_t)(i * 7 % 4);
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    WHIT_TRY(whit_kernels_select(&cpu, whit_isa_name(w->count.isa), &w->probes, error));
    for (w->int8_rounds = 1; w->int8_rounds < 1u << 20; w->int8_rounds *= 2) {
        w->int8_s = 0;
        probe(w);
        if (w->int8_s * 1e9 > INT8_PROBE_NS) break;
    }
    return WHIT_OK;
}

/* Reads the model's files so that they are cached: a round reads rows of the embedding at random, and they must not
 * come from a disk. read() is used and not the mapping, whose pages would count as the process's memory. Weights that
 * every pass reads are cached already, in huge pages. An error here only makes rounds slower. */
static void warm_files(const bench_work *w)
{
    const void *address;
    const char *path;
    size_t size_bytes;
    char *piece = malloc(PIECE_BYTES);
    for (uint32_t i = 0; piece && whit_ndf_mapping(w->model->file, i, &address, &size_bytes, &path); i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && read(fd, piece, PIECE_BYTES) > 0)
            ;
        if (fd >= 0) close(fd);
    }
    free(piece);
}

/* Returns the number of rows of a full-size pass. */
static uint32_t measured_rows(const bench_test *t)
{
    if (t->is_decode) return t->columns;
    return t->n_tokens < t->n_batch_tokens ? t->n_tokens : t->n_batch_tokens;
}

static uint32_t measured_selected(const bench_test *t)
{
    if (t->model->no_head) return 0;
    return t->is_decode ? t->columns : 1;
}

static whit_status open_work(bench_work *w, bench_facts *facts, whit_error *error)
{
    const bench_test *t = w->test;
    WHIT_TRY(whit_model_open(t->model->path, NULL, &w->model, error));
    const whit_model *drafter = NULL;
    if (t->draft) WHIT_TRY(bench_draft_open(t, w->model, &w->drafter, &drafter, error));
    WHIT_TRY(bench_steps_open(t, w->model, drafter, &w->steps, error));
    WHIT_TRY(
        bench_count_open(w->steps.session, measured_rows(t), measured_selected(t), !t->exact_head, &w->count, error));
    if (t->adapter_rank) WHIT_TRY(bench_adapter_mount(w->steps.session, t->adapter_rank, &w->adapter, error));
    w->count.pass_bytes += w->adapter.pass_bytes;
    WHIT_TRY(bench_steps_fill(&w->steps, error));
    WHIT_TRY(make_probes(w, error));
    /* This pass, which is not measured, warms up pages, caches and threads. */
    WHIT_TRY(bench_steps_pass(&w->steps, t->is_decode ? t->columns : 1, !t->model->no_head, error));
    warm_files(w);
    WHIT_TRY(bench_steps_forget(&w->steps, error));
    if (t->profile) {
        w->phase_ns = calloc(w->steps.session->plan.n_phases, sizeof *w->phase_ns);
        if (!w->phase_ns) return whit_fail_memory(error, "the profile", w->steps.session->plan.n_phases);
        w->steps.session->exec.phase_ns = w->phase_ns;
    }
    snprintf(facts->isa, sizeof facts->isa, "%s", whit_isa_name(w->count.isa));
    return WHIT_OK;
}

whit_status bench_work_round(bench_work *w, bench_sample *sample, whit_error *error)
{
    const bench_test *t = w->test;
    uint32_t per_step = t->is_decode ? 1 : t->n_batch_tokens, n_steps = (t->n_tokens + per_step - 1) / per_step;
    uint32_t n_probes = n_steps < PROBES_A_ROUND ? n_steps : PROBES_A_ROUND;
    w->read_bytes = w->read_s = w->int8_macs = w->int8_s = 0;
    if (t->draft) {
        probe(w);
        WHIT_TRY(bench_draft_round(w->steps.session, t, &w->count, bench_steps_id(&w->steps), sample, error));
        n_steps = 0;
    }
    for (uint32_t i = 0; i < n_steps; i++) {
        if ((uint64_t)i * n_probes / n_steps != (uint64_t)(i - 1) * n_probes / n_steps) probe(w);
        uint32_t done = i * per_step, n = t->n_tokens - done < per_step ? t->n_tokens - done : per_step;
        bool wants = !t->model->no_head && (t->is_decode || i + 1 == n_steps);
        uint32_t n_rows = t->is_decode ? t->columns : n;
        uint64_t from_ns = whit_now_ns();
        WHIT_TRY(bench_steps_pass(&w->steps, n_rows, wants, error));
        sample->seconds += (double)(whit_now_ns() - from_ns) * 1e-9;
        /* A pass over n rows reads the weights once (those of the head only if logits are wanted), and the cache of all
         * earlier positions. */
        double position = t->depth + done + 0.5 * (n + 1);
        uint64_t n_columns = t->is_decode ? t->columns : 1;
        sample->bytes += w->count.pass_bytes - (wants ? 0 : w->count.selected_bytes) + n_rows * w->count.row_bytes +
            n_columns * bench_cache_bytes(w->count.kv, position);
        if (w->count.survivor_bytes > 0 && wants)
            for (uint32_t r = 0; r < (t->is_decode ? n_rows : 1); r++)
                sample->bytes += w->steps.session->exec.n_rescored[r] * w->count.survivor_bytes;
        sample->macs += n_rows * w->count.layer_macs;
        sample->all_macs += n_rows * w->count.layer_macs + wants * (t->is_decode ? n_rows : 1) * w->count.head_macs;
        sample->tokens += n_rows;
    }
    probe(w);
    sample->read_bytes_per_s = w->read_bytes / w->read_s;
    sample->int8_macs_per_s = w->int8_macs / w->int8_s;
    sample->huge_share = bench_huge_share(w->model);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    sample->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    return bench_steps_forget(&w->steps, error);
}

/* Sums the phases of all layers by label. Only the schedules for the test's own numbers of rows are included. */
uint32_t bench_work_profile(const bench_work *w, bench_line lines[BENCH_LINES_MAX])
{
    uint32_t n = 0;
    if (!w->phase_ns) return 0;
    const bench_test *t = w->test;
    const uint32_t n_rows[WHIT_ROWS_COUNT] = {measured_rows(t), measured_selected(t)};
    const int mode[WHIT_ROWS_COUNT] = {t->adapter_rank ? WHIT_EXEC_ADAPTED : WHIT_EXEC_PLAIN,
                                       t->exact_head ? WHIT_EXEC_PLAIN : WHIT_EXEC_SCREENED};
    for (int rows = 0; rows < WHIT_ROWS_COUNT; rows++) {
        if (!n_rows[rows]) continue;
        const whit_exec_bound *schedule =
            whit_exec_bound_of(&w->steps.session->exec, (whit_row_set)rows, mode[rows], n_rows[rows]);
        for (uint32_t g = 0; g < schedule->n_phases; g++) {
            const whit_exec_phase *phase = &schedule->phases[g];
            char label[BENCH_LABEL_BYTES];
            bench_phase_label(w->steps.session, phase, label);
            uint32_t i = 0;
            while (i < n && strcmp(lines[i].label, label)) i++;
            if (i == BENCH_LINES_MAX) continue;
            if (i == n) memcpy(lines[n++].label, label, sizeof label);
            lines[i].n_phases++;
            lines[i].seconds += (double)w->phase_ns[phase->place] * 1e-9;
            for (uint32_t k = 0; k < phase->n_steps; k++)
                for (int part = 0; phase->steps[k].run_tiles && part < WHIT_PART_COUNT; part++) {
                    if (phase->steps[k].plan->op == WHIT_PLAN_SCREEN && part == WHIT_PART_LOW) continue;
                    lines[i].bytes += (double)phase->steps[k].tensor->part_bytes[part];
                    if (phase->steps[k].gated) lines[i].bytes += (double)phase->steps[k].gated->part_bytes[part];
                }
        }
    }
    return n;
}

whit_status bench_work_open(const bench_test *test, bench_work **work, bench_facts *facts, whit_error *error)
{
    bench_work *w = calloc(1, sizeof *w);
    *work = NULL;
    if (!w) return whit_fail_memory(error, "a test", sizeof *w);
    w->test = test;
    whit_status status = open_work(w, facts, error);
    if (status == WHIT_OK)
        *work = w;
    else
        bench_work_close(w);
    return status;
}

void bench_work_close(bench_work *w)
{
    if (!w) return;
    bench_steps_close(&w->steps);
    whit_model_close(w->drafter);
    bench_adapter_free(&w->adapter);
    whit_model_close(w->model);
    bench_count_close(&w->count);
    whit_free(NULL, w->int8_w, (size_t)w->test->n_threads * 2 * WHIT_PROBE_BYTES);
    free(w->pieces);
    free(w->phase_ns);
    free(w);
}
