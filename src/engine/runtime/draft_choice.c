/* SPDX-License-Identifier: MIT */
#include "runtime/draft_choice.h"

enum {
    FIRST_STEPS = 16,   /* number of steps without guesses before guesses are tried on credit */
    FIRST_CREDIT = 2,   /* credit after FIRST_STEPS, in times of a step */
    CREDIT_MAX = 32,    /* maximum credit, in times of a step */
    PLAIN_SHARE = 64,   /* a plain step adds a 64th of its time to the credit */
    GAIN_SHARE = 4,     /* a quarter of the time that guesses saved is added to the credit */
    SAMPLES_ENOUGH = 3, /* number of measured steps with a number of columns after which it is known, and tried on
                         * credit only if the credit is at its maximum */
};
static const float fading = 0.9f; /* factor by which each new guess reduces older counts */
/* Assumed odds of guesses by lookup and by a draft model before any guess was checked; later they count as one tried
 * token. */
static const float prior = 0.3f, prior_of_model = 0.7f;
static const float margin = 1.03f; /* guesses must increase tokens per time by this factor, because estimates are
                                    * uncertain */

/* ---- odds ------------------------------------------------------------------------------------------ */

void whit_draft_odds_see(whit_draft_odds *odds, int32_t id)
{
    if (!odds->n) return;
    bool is_right = odds->ids[odds->n_seen] == id;
    odds->n_seen += is_right;
    if (is_right && odds->n_seen < odds->n) return;
    float *n_right = &odds->n_right[odds->n_matched], *n_tried = &odds->n_tried[odds->n_matched];
    *n_right = *n_right * fading + (float)odds->n_seen;
    *n_tried = *n_tried * fading + (float)(odds->n_seen + !is_right);
    odds->n = 0;
}

void whit_draft_odds_watch(whit_draft_odds *odds, const int32_t *ids, uint32_t n, uint32_t n_matched)
{
    if (odds->n || !n || n_matched > WHIT_DRAFT_MATCH_MAX) return;
    if (n > WHIT_DRAFT_BY_COST_MAX) n = WHIT_DRAFT_BY_COST_MAX;
    memcpy(odds->ids, ids, n * sizeof *ids);
    odds->n = n;
    odds->n_seen = 0;
    odds->n_matched = n_matched;
}

float whit_draft_odds_of(const whit_draft_odds *odds, uint32_t n_matched)
{
    if (n_matched > WHIT_DRAFT_MATCH_MAX) return 0;
    const float before = n_matched == WHIT_DRAFT_MATCH_MODEL ? prior_of_model : prior;
    return (odds->n_right[n_matched] + before) / (odds->n_tried[n_matched] + 1);
}

/* ---- costs ----------------------------------------------------------------------------------------- */

/* Returns the expected number of tokens of a step with k guesses: 1 + odds + ... + odds^k. */
static double expect_tokens(float odds, uint32_t k)
{
    double n = 1, all_right = 1;
    for (uint32_t i = 0; i < k; i++) n += all_right *= odds;
    return n;
}

static bool is_measured(const whit_step_costs *costs, uint32_t n_columns)
{
    return n_columns < WHIT_COST_COLUMNS && costs->columns[n_columns].n >= SAMPLES_ENOUGH;
}

/* Returns whether k guesses may be tried on credit: FIRST_STEPS steps without guesses were run, the odds are at least
 * 0.5, steps of 1 + k columns were measured fewer than SAMPLES_ENOUGH times, and the credit covers the likely loss. The
 * loss is the time of making the guesses plus the additional time of the step. That is computed from measured steps of
 * 1 + k columns; without any it is half of the worst case, in which all guesses are wrong and the step takes as long as
 * 1 + k single steps. If the credit is at its maximum, measured numbers of columns are tried again, and draft models
 * with low odds too. */
static bool is_on_credit(const whit_draft_account *account, const whit_step_costs *costs, float odds, uint32_t k,
                         uint64_t guess_ns)
{
    const int64_t one_ns = (int64_t)whit_step_costs_columns(costs, 1);
    const bool is_full = account->credit_ns >= CREDIT_MAX * one_ns;
    if (account->n_plain < FIRST_STEPS || (odds < 0.5f && !(guess_ns && is_full))) return false;
    if (is_measured(costs, 1 + k)) return is_full;
    const uint64_t known_ns = costs->columns[1 + k].n ? whit_step_costs_columns(costs, 1 + k) : 0;
    /* Half of the worst case is assumed, because with odds of at least 0.5 the first guess is right at least every
     * other time. With a full credit it is also assumed for draft models with lower odds. */
    const int64_t loss_ns = (known_ns ? (int64_t)known_ns - one_ns : (int64_t)k * one_ns / 2) + (int64_t)(k * guess_ns);
    return account->credit_ns >= loss_ns;
}

uint32_t whit_draft_choose(const whit_draft_account *account, const whit_step_costs *costs, float odds, uint32_t n_most,
                           uint64_t guess_ns)
{
    const double one_ns = (double)whit_step_costs_columns(costs, 1);
    uint32_t best = 0;
    double best_rate = one_ns > 0 ? margin / one_ns : 0;
    if (one_ns <= 0 || !n_most || account->credit_ns < 0) return 0;
    for (uint32_t k = 1; k <= n_most; k++) {
        const double ns = (double)(whit_step_costs_columns(costs, 1 + k) + k * guess_ns);
        const double rate = expect_tokens(odds, k) / ns;
        if (rate <= best_rate) continue;
        best = k;
        best_rate = rate;
    }
    const uint32_t first = odds < 0.5f ? 1 : 3;
    const uint32_t wider = best ? 2 * best + 1 : first;
    const uint32_t tried = wider < n_most ? wider : n_most;
    return tried > best && is_on_credit(account, costs, odds, tried, guess_ns) ? tried : best;
}

void whit_draft_book(whit_draft_account *account, const whit_step_costs *costs, uint32_t n_guessed, uint32_t n_right,
                     uint64_t made_ns)
{
    const int64_t one_ns = (int64_t)whit_step_costs_columns(costs, 1), max_ns = CREDIT_MAX * one_ns;
    /* greatest loss that is booked: one step per guess, so that a single disturbed step causes no larger debt */
    const int64_t worst_ns = -(int64_t)n_guessed * one_ns;
    if (!n_guessed) {
        account->credit_ns += one_ns / PLAIN_SHARE;
        if (account->n_plain < FIRST_STEPS && ++account->n_plain == FIRST_STEPS)
            account->credit_ns = FIRST_CREDIT * one_ns;
    } else {
        const int64_t ns = (int64_t)(whit_step_costs_columns(costs, 1 + n_guessed) + made_ns);
        int64_t gain_ns = (1 + (int64_t)n_right) * one_ns - ns;
        if (gain_ns > 0) gain_ns /= GAIN_SHARE;
        account->credit_ns += gain_ns > worst_ns ? gain_ns : worst_ns;
    }
    if (account->credit_ns > max_ns) account->credit_ns = max_ns;
}
