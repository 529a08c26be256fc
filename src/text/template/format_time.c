/* SPDX-License-Identifier: MIT
 * Formats times like strftime of Python's datetime on Linux, but independently of the machine's locale and time
 * zone. */
#include "template/format.h"

#include <stdio.h>

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

/* Returns the number of days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days_since_epoch(int64_t year, int month, int day)
{
    year -= month <= 2; /* in this calculation a year begins in March, so that the leap day is its last */
    int64_t era = year / 400, year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static int week_day(const whit_template_time *t) /* 0 is Sunday */
{
    return (int)((days_since_epoch(t->year, t->month, t->day) % 7 + 11) % 7);
}

static int day_of_year(const whit_template_time *t) /* 1 to 366 */
{
    return (int)(days_since_epoch(t->year, t->month, t->day) - days_since_epoch(t->year, 1, 1)) + 1;
}

static int iso_weeks(int year)
{
    whit_template_time first = {.year = year, .month = 1, .day = 1}, last = {.year = year, .month = 12, .day = 31};
    return week_day(&first) == 4 || week_day(&last) == 4 ? 53 : 52;
}

/* Returns the number of the week by ISO 8601, in which week 1 contains the year's first Thursday. *year is the year
 * that the week belongs to. */
static int iso_week(const whit_template_time *t, int *year)
{
    int week = (day_of_year(t) - (week_day(t) + 6) % 7 + 9) / 7;
    *year = t->year;
    if (week < 1) return iso_weeks(--*year);
    if (week > iso_weeks(t->year)) {
        ++*year;
        return 1;
    }
    return week;
}

/* Writes a number with at least `width` digits. The flag '-' turns padding off, '_' pads with spaces, '0' with
 * zeros. */
static void put_number(whit_builder *b, long long number, int width, char flag, char pad)
{
    if (flag == '-') width = 1;
    if (flag == '_') pad = ' ';
    if (flag == '0') pad = '0';
    whit_builder_format(b, pad == ' ' ? "%*lld" : "%0*lld", width, number);
}

static void put_name(whit_builder *b, const char *name, size_t n, char flag)
{
    for (size_t i = 0; name[i] && i < n; i++) {
        char c = flag == '^' && name[i] >= 'a' ? (char)(name[i] - 32) : name[i];
        whit_builder_bytes(b, &c, 1, false);
    }
}

static bool put_field(whit_builder *b, const whit_template_time *t, char c, char flag);

static bool put_fields(whit_builder *b, const whit_template_time *t, const char *format)
{
    for (; *format; format++) {
        if (*format != '%')
            whit_builder_bytes(b, format, 1, false);
        else if (!put_field(b, t, *++format, 0))
            return false;
    }
    return true;
}

/* Writes the field of conversion `c`. Returns false if there is no such conversion. */
static bool put_field(whit_builder *b, const whit_template_time *t, char c, char flag)
{
    int hour12 = t->hour % 12 ? t->hour % 12 : 12, year, day = week_day(t);
    switch (c) {
    case 'Y': put_number(b, t->year, 1, flag, '0'); break;
    case 'C': put_number(b, t->year / 100, 2, flag, '0'); break;
    case 'y': put_number(b, t->year % 100, 2, flag, '0'); break;
    case 'm': put_number(b, t->month, 2, flag, '0'); break;
    case 'd': put_number(b, t->day, 2, flag, '0'); break;
    case 'e': put_number(b, t->day, 2, flag, ' '); break;
    case 'H': put_number(b, t->hour, 2, flag, '0'); break;
    case 'I': put_number(b, hour12, 2, flag, '0'); break;
    case 'k': put_number(b, t->hour, 2, flag, ' '); break;
    case 'l': put_number(b, hour12, 2, flag, ' '); break;
    case 'M': put_number(b, t->minute, 2, flag, '0'); break;
    case 'S': put_number(b, t->second, 2, flag, '0'); break;
    case 'f': put_number(b, 0, 6, 0, '0'); break; /* a template time has no microseconds */
    case 'j': put_number(b, day_of_year(t), 3, flag, '0'); break;
    case 'u': put_number(b, day ? day : 7, 1, flag, '0'); break;
    case 'w': put_number(b, day, 1, flag, '0'); break;
    case 'U': put_number(b, (day_of_year(t) + 6 - day) / 7, 2, flag, '0'); break;
    case 'W': put_number(b, (day_of_year(t) + 6 - (day + 6) % 7) / 7, 2, flag, '0'); break;
    case 'V': put_number(b, iso_week(t, &year), 2, flag, '0'); break;
    case 'G':
        iso_week(t, &year);
        put_number(b, year, 4, flag, '0');
        break;
    case 'g':
        iso_week(t, &year);
        put_number(b, year % 100, 2, flag, '0');
        break;
    case 's':
        put_number(b, days_since_epoch(t->year, t->month, t->day) * 86400 + t->hour * 3600 + t->minute * 60 + t->second,
                   1, flag, '0');
        break;
    case 'B': put_name(b, months[t->month - 1], SIZE_MAX, flag); break;
    case 'b':
    case 'h': put_name(b, months[t->month - 1], 3, flag); break;
    case 'A': put_name(b, days[day], SIZE_MAX, flag); break;
    case 'a': put_name(b, days[day], 3, flag); break;
    case 'p': whit_builder_str(b, t->hour < 12 ? "AM" : "PM"); break;
    case 'P': whit_builder_str(b, t->hour < 12 ? "am" : "pm"); break;
    case 'n': whit_builder_str(b, "\n"); break;
    case 't': whit_builder_str(b, "\t"); break;
    case '%': whit_builder_str(b, "%"); break;
    case 'z':
    case 'Z': break; /* a datetime without a time zone writes nothing */
    case 'D':
    case 'x': return put_fields(b, t, "%m/%d/%y");
    case 'F': return put_fields(b, t, "%Y-%m-%d");
    case 'T':
    case 'X': return put_fields(b, t, "%H:%M:%S");
    case 'R': return put_fields(b, t, "%H:%M");
    case 'r': return put_fields(b, t, "%I:%M:%S %p");
    case 'c': return put_fields(b, t, "%a %b %e %H:%M:%S %Y");
    default: return false;
    }
    return true;
}

whit_status whit_print_time(whit_machine *m, const whit_template_time *t, const whit_text *format, whit_datum *result)
{
    whit_builder b = whit_machine_build(m);
    for (size_t at = 0; at < format->n_bytes && !b.failed;) {
        size_t begin = at;
        if (format->bytes[at++] == '%' && at < format->n_bytes) {
            char flag = 0;
            if (strchr("-_0^#", format->bytes[at]) && format->bytes[at] && at + 1 < format->n_bytes)
                flag = format->bytes[at++];
            if (put_field(&b, t, format->bytes[at], flag)) {
                at++;
                continue;
            }
            at = begin + 1; /* an unknown conversion is written unchanged */
        }
        whit_builder_slice(&b, format, begin, at);
    }
    return whit_machine_build_end(m, &b, result);
}
