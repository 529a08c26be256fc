/* SPDX-License-Identifier: MIT
 * Stores the profile of this machine: choices that `whit doctor --tune` measured, in a file of the cache folder that is
 * named after the processor, its cores and the memory. Choices change the speed only; options that a user gives win. */
#ifndef WHIT_CLI_PROFILE_H
#define WHIT_CLI_PROFILE_H

#include "base/mem.h"
#include "format/conversion_cache.h"

/* Describes the machine and the program that a profile was measured with. */
typedef struct cli_machine {
    char cpu[64], isa[16], version[24]; /* `version` is whit's, whose kernels were measured */
    uint32_t n_cores, n_threads;        /* as whit_cpu; a quota of processor time changes n_threads */
    uint32_t memory_gb;
} cli_machine;

/* Lists the settings that can be tuned. */
typedef enum cli_tuned { CLI_TUNED_THREADS, CLI_TUNED_BATCH, CLI_TUNED_DRAFT, CLI_TUNED_COUNT } cli_tuned;

typedef struct cli_profile {
    uint32_t values[CLI_TUNED_COUNT]; /* 0: the default */
    double gains[CLI_TUNED_COUNT];    /* speed over the default's */
} cli_profile;

typedef enum cli_profile_state {
    CLI_PROFILE_ABSENT,
    CLI_PROFILE_READ,
    CLI_PROFILE_STALE, /* made by another version, or on another machine */
    CLI_PROFILE_DAMAGED
} cli_profile_state;

/* Returns the name of a setting in options and in the file, such as "threads". */
const char *cli_tuned_name(cli_tuned which);
void cli_machine_find(cli_machine *machine);
/* Names the profile of `machine` in the cache folder `cache_dir` (NULL: the user's); nothing is created. */
whit_status cli_profile_name(const char *cache_dir, const cli_machine *machine, char path[WHIT_CACHE_PATH_BYTES],
                             whit_error *error);
/* Reads a profile; it has all defaults unless the result is CLI_PROFILE_READ. The file is data from outside: values out
 * of range and a wrong checksum are damage. */
cli_profile_state cli_profile_read(const char *path, const cli_machine *machine, cli_profile *profile);
/* Returns the settings that this process uses, read once: all defaults without a profile, or if $WHIT_PROFILE is "off".
 * A stale profile is removed; a damaged one is reported in a line and ignored. */
const cli_profile *cli_profile_in_use(void);
bool cli_profile_is_off(void);
/* Writes the profile atomically. */
whit_status cli_profile_write(const char *path, const cli_machine *machine, const cli_profile *profile,
                              whit_error *error);

/* ---- choosing -------------------------------------------------------------------------------------- */

/* Functions of this type return the seconds that a piece of work takes with a setting's value (0: the default's), where
 * fewer are better; 0 or negative: it could not be measured. Every call measures anew. */
typedef double cli_tune_cost(void *user, cli_tuned which, uint32_t value);

typedef struct cli_tune_candidates {
    uint32_t values[8]; /* measured values other than the default */
    size_t n;
} cli_tune_candidates;

/* Compares the candidates of a setting with its default in n_rounds rounds, in each of which all are measured in turn.
 * A candidate that is at least 3 % faster in the median, and faster in three quarters of the rounds, replaces the
 * default; of several such candidates, the fastest does. Sets the setting's value and gain in `profile`. Returns
 * false, with the default, as soon as one measurement fails. */
bool cli_tune_choose(cli_tune_cost *cost, void *user, cli_tuned which, const cli_tune_candidates *candidates,
                     uint32_t n_rounds, cli_profile *profile);

#endif
