/* SPDX-License-Identifier: MIT
 * Stores the profile of this machine: settings that `whit doctor --tune` has measured. It is a file in the cache
 * folder, named after the processor, its cores and the memory. The settings only change the speed, and options that the
 * user gives take precedence. */
#ifndef WHIT_CLI_PROFILE_H
#define WHIT_CLI_PROFILE_H

#include "base/mem.h"
#include "format/conversion_cache.h"

/* Identifies the machine and the program for which a profile is valid. */
typedef struct cli_machine {
    char cpu[64], isa[16], version[24]; /* version: that of whit, since the profile depends on its kernels */
    uint32_t n_cores, n_threads;        /* as in whit_cpu; n_threads depends on a quota of processor time */
    uint32_t memory_gb;
} cli_machine;

/* Settings that can be tuned. */
typedef enum cli_tuned { CLI_TUNED_THREADS, CLI_TUNED_BATCH, CLI_TUNED_DRAFT, CLI_TUNED_COUNT } cli_tuned;

typedef struct cli_profile {
    uint32_t values[CLI_TUNED_COUNT]; /* 0: the default is used */
    double gains[CLI_TUNED_COUNT];    /* speed with this value divided by the speed with the default */
} cli_profile;

typedef enum cli_profile_state {
    CLI_PROFILE_ABSENT,
    CLI_PROFILE_READ,
    CLI_PROFILE_STALE, /* made by another version of whit or on another machine */
    CLI_PROFILE_DAMAGED
} cli_profile_state;

/* Returns the name of a setting in options and in the profile's file, such as "threads". */
const char *cli_tuned_name(cli_tuned which);
void cli_machine_find(cli_machine *machine);
/* Makes the path of the machine's profile in the cache folder `cache_dir` (NULL: the user's). Creates nothing. */
whit_status cli_profile_name(const char *cache_dir, const cli_machine *machine, char path[WHIT_CACHE_PATH_BYTES],
                             whit_error *error);
/* Reads a profile. All settings are defaults unless the result is CLI_PROFILE_READ. A file with values out of range or
 * a wrong checksum counts as damaged. */
cli_profile_state cli_profile_read(const char *path, const cli_machine *machine, cli_profile *profile);
/* Returns the profile that this process uses, which is read once. It has only defaults if there is no valid profile, or
 * if $WHIT_PROFILE is "off". A stale profile is removed; a damaged one is reported in one line and ignored. */
const cli_profile *cli_profile_in_use(void);
bool cli_profile_is_off(void);
/* Writes the profile to the file, atomically. */
whit_status cli_profile_write(const char *path, const cli_machine *machine, const cli_profile *profile,
                              whit_error *error);

/* ---- choosing -------------------------------------------------------------------------------------- */

/* Type of functions that measure a piece of work with a value of a setting (0: the default). They return seconds, or a
 * number <= 0 if it could not be measured. They must measure in every call. */
typedef double cli_tune_cost(void *user, cli_tuned which, uint32_t value);

typedef struct cli_tune_candidates {
    uint32_t values[8]; /* values to compare with the default */
    size_t n;
} cli_tune_candidates;

/* Compares the default of a setting with other values, in n_rounds rounds that each measure all of them in turn. A
 * value qualifies if it is at least 3 % faster than the default in the median, and faster in three quarters of the
 * rounds. The fastest value that qualifies, or else the default, becomes the setting in `profile`, with its gain. If a
 * measurement fails, returns false at once, with the default. */
bool cli_tune_choose(cli_tune_cost *cost, void *user, cli_tuned which, const cli_tune_candidates *candidates,
                     uint32_t n_rounds, cli_profile *profile);

#endif
