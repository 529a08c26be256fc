/* SPDX-License-Identifier: MIT */
#include "runtime/split.h"

#include "base/flag.h"
#include "base/options.h"

/* Message by which rank 0 sends a call to the other ranks. The message contains the options of WHIT_SPLIT_OPEN, or the
 * tokens of a step of at most TOKENS_INSIDE tokens; other data (n elements of elem_bytes) follow it. */
enum { TOKENS_INSIDE = 8 };
struct order {
    uint32_t call, session, n, elem_bytes;
    uint32_t numbers[3];
    union {
        whit_session_options options;
        whit_step_token tokens[TOKENS_INSIDE];
    } with;
};

/* Result of a call on one rank; `error` is set if the call failed. */
struct outcome {
    int32_t status;
    whit_error error;
};

static whit_status lose(whit_model_ranks *split, whit_error *error)
{
    split->is_lost = true;
    return whit_fail(error, WHIT_ERROR_IO,
                     "rank %u: the process of another rank has ended, and its machine's output says why",
                     split->ranks->rank);
}

static whit_status broadcast(whit_model_ranks *split, void *data, size_t n_bytes, whit_error *error)
{
    const whit_ranks *ranks = split->ranks;
    if (split->is_lost || !ranks->broadcast(ranks->user, data, n_bytes)) return lose(split, error);
    if (ranks->rank) return WHIT_OK;
    split->n_messages += ranks->n_ranks - 1;
    split->sent_bytes += n_bytes * (ranks->n_ranks - 1);
    return WHIT_OK;
}

whit_status whit_split_join(const whit_model *model, whit_status status, whit_error *error)
{
    whit_model_ranks *split = model->split;
    const whit_ranks *ranks = split->ranks;
    struct outcome outcomes[WHIT_RANKS_MAX];
    size_t offsets[WHIT_RANKS_MAX + 1];
    for (uint32_t r = 0; r <= ranks->n_ranks; r++) offsets[r] = r * sizeof *outcomes;
    struct outcome *own = &outcomes[ranks->rank];
    *own = (struct outcome){.status = status};
    if (status != WHIT_OK && error) own->error = *error;
    if (split->is_lost || !ranks->gather(ranks->user, outcomes, offsets, false)) return lose(split, error);
    for (uint32_t r = 0; r < ranks->n_ranks; r++) {
        if (outcomes[r].status != WHIT_OK && r != ranks->rank && status == WHIT_OK)
            return whit_fail(error, (whit_status)outcomes[r].status, "rank %u: %.400s", r, outcomes[r].error.message);
    }
    return status;
}

whit_status whit_model_split(whit_model *model, const whit_ranks *ranks, whit_error *error)
{
    whit_model_ranks *split = whit_zalloc(model->allocator, sizeof *split);
    if (!split) return whit_fail_memory(error, "the list of machines", sizeof *split);
    split->ranks = ranks;
    model->split = split;
    uint8_t identity[WHIT_HASH_BYTES];
    memcpy(identity, whit_model_identity(model), sizeof identity);
    WHIT_TRY(broadcast(split, identity, sizeof identity, error));
    whit_status status = WHIT_OK;
    if (memcmp(identity, whit_model_identity(model), sizeof identity) != 0)
        status = whit_fail(error, WHIT_ERROR_ARGUMENT,
                           "%s: this machine's model differs from that of rank 0: use the same file on all machines",
                           model->path);
    return whit_split_join(model, status, error);
}

/* ---- rank 0 ---------------------------------------------------------------------------------- */

static struct order order_of(const whit_session *session, whit_split_call call)
{
    struct order order;
    memset(&order, 0, sizeof order); /* sets all bytes, because padding is sent too */
    order.call = call;
    order.session = session ? session->split_number : 0;
    return order;
}

whit_status whit_split_tell(const whit_session *session, whit_split_call call, const uint32_t numbers[3],
                            const void *data, size_t n, size_t elem_bytes, whit_error *error)
{
    if (!whit_split_leads(session->model)) return WHIT_OK;
    whit_model_ranks *split = session->model->split;
    struct order order = order_of(session, call);
    memcpy(order.numbers, numbers, sizeof order.numbers);
    order.n = (uint32_t)n;
    order.elem_bytes = (uint32_t)elem_bytes;
    const bool is_inside = call == WHIT_SPLIT_STEP && n <= TOKENS_INSIDE;
    if (is_inside) memcpy(order.with.tokens, data, n * elem_bytes);
    WHIT_TRY(broadcast(split, &order, sizeof order, error));
    return is_inside || !n ? WHIT_OK : broadcast(split, (void *)(uintptr_t)data, n * elem_bytes, error);
}

void whit_split_tell_close(const whit_session *session)
{
    whit_model_ranks *split = session->model->split;
    whit_error ignored;
    if (split->sessions[session->split_number] != session) return; /* the session is not open on every rank */
    split->sessions[session->split_number] = NULL;
    if (!split->is_lost) whit_split_tell(session, WHIT_SPLIT_CLOSE, (uint32_t[3]){0}, NULL, 0, 0, &ignored);
}

whit_status whit_split_refuse(const whit_session *session, const char *what, whit_error *error)
{
    if (!session->model->split) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: %s not supported for a model that several machines run: start whit without mpirun",
                     session->model->path, what);
}

whit_status whit_split_lose(const whit_session *session, whit_error *error)
{
    return lose(session->model->split, error);
}

whit_status whit_split_agree(whit_session *session, bool *is_damaged, whit_error *error)
{
    const uint32_t n = session->options.n_sequences;
    bool *verdict = session->is_damaged; /* (n + 1): whether each sequence is damaged, and last, whether the step is
                                          * cancelled */
    if (whit_split_leads(session->model)) verdict[n] = whit_flag_is_set(session->options.cancel);
    WHIT_TRY(broadcast(session->model->split, verdict, (n + 1) * sizeof *verdict, error));
    session->model->split->n_passes++;
    *is_damaged = false;
    for (uint32_t i = 0; i < n; i++) *is_damaged |= verdict[i];
    return verdict[n] ? whit_fail(error, WHIT_ERROR_CANCELLED, "cancelled") : WHIT_OK;
}

whit_status whit_split_tell_open(const whit_model *model, const whit_session_options *options, uint32_t *number,
                                 whit_error *error)
{
    whit_model_ranks *split = model->split;
    struct order order = order_of(NULL, WHIT_SPLIT_OPEN);
    whit_session_options told = whit_session_options_default();
    WHIT_TRY(whit_options_read(&told, sizeof told, options, "whit_session_options", error));
    told.cpu = NULL;
    told.cancel = NULL;
    for (*number = 0; *number < WHIT_SPLIT_SESSIONS_MAX && split->sessions[*number];) ++*number;
    if (*number == WHIT_SPLIT_SESSIONS_MAX)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: a model that several machines run has at most %d sessions: close one", model->path,
                         WHIT_SPLIT_SESSIONS_MAX);
    order.session = *number;
    memcpy(&order.with.options, &told, sizeof told);
    return broadcast(split, &order, sizeof order, error);
}

/* ---- other ranks ----------------------------------------------------------------------------- */

static whit_status open_told(whit_model *model, const struct order *order, whit_error *error)
{
    whit_session *session;
    whit_status status = whit_session_open_here(model, &order->with.options, &session, error);
    const whit_status joined = whit_split_join(model, status, error);
    if (joined != WHIT_OK) {
        whit_session_close(session);
        return model->split->is_lost ? joined : WHIT_OK; /* rank 0 reports the error, and this rank continues to
                                                          * follow */
    }
    session->split_number = order->session;
    model->split->sessions[order->session] = session;
    return WHIT_OK;
}

/* Executes a call that rank 0 sent. Errors are ignored, because the call also fails on rank 0, which reports them. */
static void make_call(whit_session *session, const struct order *order, const void *data)
{
    whit_error ignored;
    uint32_t n_present;
    const uint32_t *at = order->numbers;
    whit_status status = WHIT_OK;
    switch (order->call) {
    case WHIT_SPLIT_STEP:
        if (at[0])
            status = whit_session_step_each(session, data, order->n, &ignored);
        else
            status = whit_session_step(session, data, order->n, &ignored);
        break;
    case WHIT_SPLIT_TRUNCATE: status = whit_session_truncate(session, at[0], at[1], &ignored); break;
    case WHIT_SPLIT_SHARE: status = whit_session_share(session, at[0], at[1], at[2], &ignored); break;
    case WHIT_SPLIT_REUSE: status = whit_session_reuse(session, at[0], data, order->n, &n_present, &ignored); break;
    case WHIT_SPLIT_MARK: status = whit_session_mark(session, at[0], &ignored); break;
    default: break;
    }
    whit_ignore(status);
}

static whit_status follow_order(whit_model *model, const struct order *order, whit_buf *data, whit_error *error)
{
    whit_model_ranks *split = model->split;
    if (order->session >= WHIT_SPLIT_SESSIONS_MAX ||
        (order->call != WHIT_SPLIT_OPEN) != (split->sessions[order->session] != NULL))
        return whit_fail(error, WHIT_ERROR_IO,
                         "rank %u: rank 0 runs another version of the program: install the same one on all machines",
                         split->ranks->rank);
    if (order->call == WHIT_SPLIT_OPEN) return open_told(model, order, error);
    if (order->call == WHIT_SPLIT_CLOSE) {
        whit_session_close(split->sessions[order->session]);
        split->sessions[order->session] = NULL;
        return WHIT_OK;
    }
    const bool is_inside = order->call == WHIT_SPLIT_STEP && order->n <= TOKENS_INSIDE;
    const size_t n_bytes = (size_t)order->n * order->elem_bytes;
    const void *given = order->with.tokens;
    if (!is_inside) {
        data->size_bytes = 0;
        if (!whit_buf_reserve(data, n_bytes)) return whit_fail_memory(error, "a step", n_bytes);
        if (n_bytes) WHIT_TRY(broadcast(split, data->data, n_bytes, error));
        given = data->data;
    }
    make_call(split->sessions[order->session], order, given);
    return split->is_lost ? lose(split, error) : WHIT_OK;
}

whit_status whit_model_follow(whit_model *model, whit_error *error)
{
    whit_model_ranks *split = model->split;
    whit_buf data = {.allocator = model->allocator};
    struct order order;
    whit_status status;
    do {
        status = broadcast(split, &order, sizeof order, error);
        if (status == WHIT_OK && order.call != WHIT_SPLIT_END) status = follow_order(model, &order, &data, error);
    } while (status == WHIT_OK && order.call != WHIT_SPLIT_END);
    for (uint32_t i = 0; i < WHIT_SPLIT_SESSIONS_MAX; i++) {
        whit_session_close(split->sessions[i]);
        split->sessions[i] = NULL;
    }
    whit_buf_free(&data);
    return status;
}

void whit_split_close(whit_model *model)
{
    if (!model->split) return;
    whit_error ignored;
    struct order order = order_of(NULL, WHIT_SPLIT_END);
    if (whit_split_leads(model) && !model->split->is_lost) broadcast(model->split, &order, sizeof order, &ignored);
    whit_free(model->allocator, model->split, sizeof *model->split);
    model->split = NULL;
}
