/* SPDX-License-Identifier: MIT
 * Runs ranks as threads of one process, for tests of what several machines compute together. */
#ifndef WHIT_TESTS_LOOPBACK_RANKS_H
#define WHIT_TESTS_LOOPBACK_RANKS_H

#include <pthread.h>
#include <string.h>

#include "base/ranks.h"

/* A transport between ranks in one process. In each call, every rank posts its data, waits until all have posted,
 * copies the data that it needs, and returns when all have copied. After loopback_cut() every call fails. */
typedef struct loopback {
    uint32_t n_ranks;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        void *data;
        const void *sent[WHIT_RANKS_MAX]; /* message being sent to each receiver, or NULL */
        size_t sent_bytes[WHIT_RANKS_MAX];
    } posts[WHIT_RANKS_MAX];
    uint32_t n_in, n_out;
    uint64_t round;
    bool is_cut, fails_gathers;
    uint64_t n_messages, n_bytes; /* numbers of messages and bytes sent from rank to rank */
} loopback;

typedef struct loopback_rank {
    loopback *all;
    uint32_t rank;
} loopback_rank;

/* Waits until all ranks have reached this call. Returns false if the transport is cut before. A rank that has returned
 * may cut the transport before the others wake: their calls were complete too, and return true. */
static inline bool loopback_meet(loopback *all)
{
    const uint64_t round = all->round;
    if (all->is_cut) return false;
    if (++all->n_in == all->n_ranks) {
        all->n_in = 0;
        all->round++;
        pthread_cond_broadcast(&all->changed);
    }
    while (all->round == round && !all->is_cut) pthread_cond_wait(&all->changed, &all->lock);
    return all->round != round;
}

static inline bool loopback_gather(void *user, void *data, const size_t *offsets, bool to_first)
{
    const loopback_rank *own = user;
    loopback *all = own->all;
    pthread_mutex_lock(&all->lock);
    all->posts[own->rank].data = data;
    bool ok = loopback_meet(all) && !all->is_cut && !all->fails_gathers; /* after a cut the data of others are gone */
    for (uint32_t r = 0; ok && r < all->n_ranks; r++) {
        const size_t n = offsets[r + 1] - offsets[r];
        if (r == own->rank || !n || (to_first && own->rank)) continue;
        memcpy((char *)data + offsets[r], (const char *)all->posts[r].data + offsets[r], n);
        all->n_messages++;
        all->n_bytes += n;
    }
    ok = ok && loopback_meet(all);
    pthread_mutex_unlock(&all->lock);
    return ok;
}

static inline bool loopback_broadcast(void *user, void *data, size_t n_bytes)
{
    const loopback_rank *own = user;
    loopback *all = own->all;
    pthread_mutex_lock(&all->lock);
    all->posts[own->rank].data = data;
    bool ok = loopback_meet(all) && !all->is_cut;
    if (ok && own->rank) {
        memcpy(data, all->posts[0].data, n_bytes);
        all->n_messages++;
        all->n_bytes += n_bytes;
    }
    ok = ok && loopback_meet(all);
    pthread_mutex_unlock(&all->lock);
    return ok;
}

static inline bool loopback_send(void *user, uint32_t to, const void *data, size_t n_bytes)
{
    const loopback_rank *own = user;
    loopback *all = own->all;
    pthread_mutex_lock(&all->lock);
    all->posts[own->rank].sent[to] = data;
    all->posts[own->rank].sent_bytes[to] = n_bytes;
    pthread_cond_broadcast(&all->changed);
    while (all->posts[own->rank].sent[to] && !all->is_cut) pthread_cond_wait(&all->changed, &all->lock);
    const bool ok = !all->posts[own->rank].sent[to]; /* also if the receiver has cut the transport since */
    pthread_mutex_unlock(&all->lock);
    return ok;
}

static inline bool loopback_receive(void *user, uint32_t from, void *data, size_t n_bytes)
{
    const loopback_rank *own = user;
    loopback *all = own->all;
    pthread_mutex_lock(&all->lock);
    while (!all->posts[from].sent[own->rank] && !all->is_cut) pthread_cond_wait(&all->changed, &all->lock);
    const bool ok = !all->is_cut && all->posts[from].sent_bytes[own->rank] == n_bytes;
    if (ok) {
        memcpy(data, all->posts[from].sent[own->rank], n_bytes);
        all->posts[from].sent[own->rank] = NULL;
        all->n_messages++;
        all->n_bytes += n_bytes;
        pthread_cond_broadcast(&all->changed);
    }
    pthread_mutex_unlock(&all->lock);
    return ok;
}

static inline void loopback_open(loopback *all, uint32_t n_ranks)
{
    *all = (loopback){.n_ranks = n_ranks};
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
}

static inline void loopback_close(loopback *all)
{
    pthread_mutex_destroy(&all->lock);
    pthread_cond_destroy(&all->changed);
}

/* Makes all later calls fail, as if a rank had died. */
static inline void loopback_cut(loopback *all)
{
    pthread_mutex_lock(&all->lock);
    all->is_cut = true;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

/* Returns the transport of one rank; `own` must outlive it. */
static inline whit_ranks loopback_ranks(loopback *all, uint32_t rank, loopback_rank *own)
{
    *own = (loopback_rank){all, rank};
    return (whit_ranks){.rank = rank,
                        .n_ranks = all->n_ranks,
                        .send = loopback_send,
                        .receive = loopback_receive,
                        .broadcast = loopback_broadcast,
                        .gather = loopback_gather,
                        .user = own};
}

#endif
