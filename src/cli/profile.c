/* SPDX-License-Identifier: MIT */
#include "cli/profile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/items.h"
#include "whit.h"

enum { ROUNDS_MAX = 64, CANDIDATES_MAX = 8, FILE_BYTES_MAX = 2048 };
static const double gain_min = 1.03;

static const struct {
    const char *name;
    uint32_t max;
} tuned[CLI_TUNED_COUNT] = {
    [CLI_TUNED_THREADS] = {"threads", 1024},
    [CLI_TUNED_BATCH] = {"ubatch", 65536},
    [CLI_TUNED_DRAFT] = {"guesses", 7},
};

const char *cli_tuned_name(cli_tuned which)
{
    return tuned[which].name;
}

/* ---- the machine ----------------------------------------------------------------------------------- */

void cli_machine_find(cli_machine *machine)
{
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    const double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    *machine = (cli_machine){
        .n_cores = cpu.n_cores, .n_threads = cpu.n_threads, .memory_gb = (uint32_t)(bytes / (1u << 30) + 0.5)};
    (void)whit_isa_cap(getenv("WHIT_CPU"), &cpu.isa);
    snprintf(machine->cpu, sizeof machine->cpu, "%.60s", cpu.model);
    snprintf(machine->isa, sizeof machine->isa, "%.15s", whit_isa_name(cpu.isa));
    snprintf(machine->version, sizeof machine->version, "%.23s", whit_version());
}

whit_status cli_profile_name(const char *cache_dir, const cli_machine *machine, char path[WHIT_CACHE_PATH_BYTES],
                             whit_error *error)
{
    char folder[WHIT_CACHE_PATH_BYTES], cpu[64];
    size_t n = 0;
    WHIT_TRY(whit_cache_name_folder(cache_dir, folder, error));
    for (const char *c = machine->cpu; *c; c++) {
        if (isalnum((unsigned char)*c))
            cpu[n++] = *c;
        else if (n && cpu[n - 1] != '-')
            cpu[n++] = '-';
    }
    cpu[n] = 0;
    int needed = snprintf(path, WHIT_CACHE_PATH_BYTES, "%s/profile-%s-%s-%u-%u-%ug.txt", folder, cpu, machine->isa,
                          machine->n_cores, machine->n_threads, machine->memory_gb);
    if (needed < 0 || needed >= WHIT_CACHE_PATH_BYTES)
        return whit_fail(
            error, WHIT_ERROR_LIMIT,
            "the cache folder's path is too long, over about 4,000 bytes: set XDG_CACHE_HOME to a shorter one");
    return WHIT_OK;
}

/* ---- the profile's file ---------------------------------------------------------------------------- */

/* Writes the lines that identify the machine and the program. A profile with other such lines is stale. */
static void write_head(const cli_machine *m, whit_buf *out)
{
    whit_buf_printf(out, "whit profile 1\nversion %s\nprocessor %s %s, %u cores, %u threads, %u GB\n", m->version,
                    m->cpu, m->isa, m->n_cores, m->n_threads, m->memory_gb);
}

static void append_check(whit_buf *out)
{
    whit_hash hash;
    uint8_t digest[WHIT_HASH_BYTES];
    char text[2 * WHIT_HASH_BYTES + 1];
    whit_hash_begin(&hash, "whit-profile");
    whit_hash_add(&hash, out->data, out->size_bytes);
    whit_hash_end(&hash, digest);
    whit_hash_hex(digest, text);
    whit_buf_printf(out, "check %s\n", text);
}

static void write_values(const cli_profile *profile, whit_buf *out)
{
    for (int i = 0; i < CLI_TUNED_COUNT; i++)
        whit_buf_printf(out, "%s %u %.3f\n", tuned[i].name, profile->values[i], profile->gains[i]);
}

whit_status cli_profile_write(const char *path, const cli_machine *machine, const cli_profile *profile,
                              whit_error *error)
{
    whit_buf out = {0};
    write_head(machine, &out);
    write_values(profile, &out);
    append_check(&out);
    whit_status status = out.failed ? whit_fail_memory(error, "the profile", FILE_BYTES_MAX)
                                    : whit_write_file(path, out.data, out.size_bytes, error);
    whit_buf_free(&out);
    return status;
}

/* Reads the line "NAME VALUE GAIN" of a setting; returns false if it is malformed or a number is out of range. */
static bool read_value(const char **at, int which, cli_profile *profile)
{
    char name[16];
    int n = 0;
    double gain;
    unsigned value;
    if (sscanf(*at, "%15s %u %lf%n", name, &value, &gain, &n) != 3 || (*at)[n] != '\n') return false;
    if (strcmp(name, tuned[which].name) != 0 || value > tuned[which].max || !(gain > 0 && gain < 1000)) return false;
    profile->values[which] = value;
    profile->gains[which] = gain;
    *at += n + 1;
    return true;
}

/* Returns whether the last line is the checksum of all lines before it. *end: beginning of the last line. */
static bool is_whole(const char *text, const char **end)
{
    whit_buf same = {0};
    const char *at = text;
    *end = NULL;
    for (; (at = strstr(at, "\ncheck ")); at++) *end = at + 1;
    if (!*end) return false;
    whit_buf_append(&same, text, (size_t)(*end - text));
    append_check(&same);
    bool whole = !same.failed && same.size_bytes == strlen(text) && !memcmp(text, same.data, same.size_bytes);
    whit_buf_free(&same);
    return whole;
}

static cli_profile_state parse_profile(const char *text, const cli_machine *machine, cli_profile *profile)
{
    whit_buf head = {0};
    cli_profile parsed = {0};
    const char *at = text, *end;
    if (!is_whole(text, &end)) return CLI_PROFILE_DAMAGED;
    write_head(machine, &head);
    bool is_current = !head.failed && !strncmp(text, whit_chars(&head), head.size_bytes);
    at += head.size_bytes;
    whit_buf_free(&head);
    if (!is_current) return CLI_PROFILE_STALE;
    for (int i = 0; i < CLI_TUNED_COUNT; i++)
        if (!read_value(&at, i, &parsed)) return CLI_PROFILE_DAMAGED;
    if (at != end) return CLI_PROFILE_DAMAGED;
    *profile = parsed;
    return CLI_PROFILE_READ;
}

cli_profile_state cli_profile_read(const char *path, const cli_machine *machine, cli_profile *profile)
{
    char text[FILE_BYTES_MAX];
    *profile = (cli_profile){0};
    FILE *file = fopen(path, "r");
    if (!file) return CLI_PROFILE_ABSENT;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    return parse_profile(text, machine, profile);
}

bool cli_profile_is_off(void)
{
    const char *wanted = getenv("WHIT_PROFILE");
    return wanted && !strcmp(wanted, "off");
}

/* ---- choosing values ------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool cli_tune_choose(cli_tune_cost *cost, void *user, cli_tuned which, const cli_tune_candidates *candidates,
                     uint32_t n_rounds, cli_profile *profile)
{
    double gains[CANDIDATES_MAX][ROUNDS_MAX];
    size_t n = candidates->n < CANDIDATES_MAX ? candidates->n : CANDIDATES_MAX;
    if (n_rounds > ROUNDS_MAX) n_rounds = ROUNDS_MAX;
    profile->values[which] = 0;
    profile->gains[which] = 1;
    for (uint32_t round = 0; round < n_rounds; round++) {
        double usual = cost(user, which, 0);
        if (usual <= 0) return false;
        for (size_t i = 0; i < n; i++) {
            double taken = cost(user, which, candidates->values[i]);
            if (taken <= 0) return false;
            gains[i][round] = usual / taken;
        }
    }
    for (size_t i = 0; n_rounds && i < n; i++) {
        qsort(gains[i], n_rounds, sizeof **gains, compare_doubles);
        double median = gains[i][n_rounds / 2];
        if (median < gain_min || gains[i][n_rounds / 4] < 1 || median <= profile->gains[which]) continue;
        profile->values[which] = candidates->values[i];
        profile->gains[which] = median;
    }
    return true;
}
