/* SPDX-License-Identifier: MIT
 * Chooses how many guesses to feed: compares the odds that guesses are right, learned from all guesses whether or not
 * they were fed, with the measured cost of more columns (step_costs.h).
 *
 * With odds p of each guess, k guesses give p + p^2 + ... + p^k more tokens for a step of 1 + k columns (Leviathan,
 * Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding", 2023, with measured costs in place of a
 * constant). Numbers of columns that were never measured are tried on credit, a time that grows by a 64th of the time
 * of steps without guesses and by a quarter of the time that guesses saved. Time that guesses lost is subtracted; while
 * the credit is negative, nothing is guessed. Losses are therefore bounded for every text and machine. */
#ifndef WHIT_RUNTIME_DRAFT_CHOICE_H
#define WHIT_RUNTIME_DRAFT_CHOICE_H

#include "runtime/draft.h"
#include "runtime/step_costs.h"
#include "whit/steps.h"

/* Maximum number of guesses per step that WHIT_DRAFT_BY_COST chooses: time per column is least up to eight columns, and
 * recurrent layers can undo seven tokens. */
#define WHIT_DRAFT_BY_COST_MAX 7

/* Counts of checked and of right tokens of guesses, by the number of tokens that matched before the guess; each new
 * guess reduces older counts. */
typedef struct whit_draft_odds {
    float n_right[WHIT_DRAFT_MATCH_MAX + 1], n_tried[WHIT_DRAFT_MATCH_MAX + 1];
    /* Guess (n tokens) that is being compared with the text, which has confirmed its first n_seen tokens; n 0: there is
     * no such guess. */
    int32_t ids[WHIT_DRAFT_BY_COST_MAX];
    uint32_t n, n_seen, n_matched;
} whit_draft_odds;

/* Value of n_matched for guesses by a draft model; n_matched of a lookup is larger. */
#define WHIT_DRAFT_MATCH_MODEL 0

/* Compares the next token of the text with the guess that is being compared. */
void whit_draft_odds_see(whit_draft_odds *odds, int32_t id);
/* Begins to compare a guess with the text, unless another guess is being compared. */
void whit_draft_odds_watch(whit_draft_odds *odds, const int32_t *ids, uint32_t n, uint32_t n_matched);
/* Returns the odds, 0 to 1, that a token guessed after n_matched matching tokens is right. */
float whit_draft_odds_of(const whit_draft_odds *odds, uint32_t n_matched);

/* Time that guesses of a session may cost (credit); all zero at first. */
typedef struct whit_draft_account {
    int64_t credit_ns;
    uint32_t n_plain; /* number of steps without guesses, counted up to the number that permits the first trial */
} whit_draft_account;

/* Returns the number of guesses to feed, at most n_most, in a step that contains only one sequence. guess_ns: predicted
 * time of making a guess; 0: guesses are free (lookups), and their odds are learned without feeding them. */
uint32_t whit_draft_choose(const whit_draft_account *account, const whit_step_costs *costs, float odds, uint32_t n_most,
                           uint64_t guess_ns);
/* Adds to the account a step of one sequence alone, whose time is already in `costs`: n_right of the n_guessed guesses
 * were right, and making them took made_ns. */
void whit_draft_book(whit_draft_account *account, const whit_step_costs *costs, uint32_t n_guessed, uint32_t n_right,
                     uint64_t made_ns);

#endif
