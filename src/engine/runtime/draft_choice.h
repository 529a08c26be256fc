/* SPDX-License-Identifier: MIT
 * How many guesses pay: the odds that they are right, learned from guesses whether or not they were fed, against the
 * measured cost of more columns (step_costs.h).
 *
 * With odds p of each guess, k guesses give p + p^2 + ... + p^k more tokens for a step of 1 + k columns (Leviathan,
 * Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding", 2023, with measured costs in place of
 * a constant). Widths that were never measured are tried on credit: a 64th of the time of plain steps, and a quarter of
 * what guesses gained. In debt nothing is guessed. Losses are therefore bounded whatever the text and the machine. */
#ifndef WHIT_RUNTIME_DRAFT_CHOICE_H
#define WHIT_RUNTIME_DRAFT_CHOICE_H

#include "runtime/draft.h"
#include "runtime/step_costs.h"
#include "whit/steps.h"

/* Guesses at once, by WHIT_DRAFT_BY_COST: kernels compute up to eight columns best, and recurrent layers can take back
 * seven tokens. */
#define WHIT_DRAFT_BY_COST_MAX 7

/* Counts of right guesses, by how many tokens had agreed; older ones fade. */
typedef struct whit_draft_odds {
    float n_right[WHIT_DRAFT_MATCH_MAX + 1], n_tried[WHIT_DRAFT_MATCH_MAX + 1];
    /* A guess of which the text has confirmed the first n_seen tokens; n 0: no guess. */
    int32_t ids[WHIT_DRAFT_BY_COST_MAX];
    uint32_t n, n_seen, n_matched;
} whit_draft_odds;

/* n_matched of guesses that a draft model makes: fewer tokens than a lookup needs. */
#define WHIT_DRAFT_MATCH_MODEL 0

/* Compares a token of the text with the guess that is watched. */
void whit_draft_odds_see(whit_draft_odds *odds, int32_t id);
/* Observes a guess, unless another one is being observed. */
void whit_draft_odds_watch(whit_draft_odds *odds, const int32_t *ids, uint32_t n, uint32_t n_matched);
/* Odds, 0 to 1, that a guess after n_matched agreeing tokens is right. */
float whit_draft_odds_of(const whit_draft_odds *odds, uint32_t n_matched);

/* A session's account; all zero at first. */
typedef struct whit_draft_account {
    int64_t credit_ns;
    uint32_t n_plain; /* plain steps counted, until there are enough for the first trial */
} whit_draft_account;

/* Returns the number of guesses to feed, at most n_most, in a step whose only column is this sequence's. guess_ns:
 * predicted time per guess; 0: guesses are free, and their odds are learned without feeding them. */
uint32_t whit_draft_choose(const whit_draft_account *account, const whit_step_costs *costs, float odds, uint32_t n_most,
                           uint64_t guess_ns);
/* Books a step of a sequence alone, whose time is in `costs`: n_right of the n_guessed guesses were right, and making
 * them took made_ns. */
void whit_draft_book(whit_draft_account *account, const whit_step_costs *costs, uint32_t n_guessed, uint32_t n_right,
                     uint64_t made_ns);

#endif
