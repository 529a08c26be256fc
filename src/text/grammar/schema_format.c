/* SPDX-License-Identifier: MIT
 * Lists the string formats of JSON Schema. Other formats are annotations (JSON Schema 2020-12 validation, 7.2.1).
 *
 * `written` is the form that is generated without other constraints: plain and short. `strict` accepts every string of
 * the format that is recognised when a value is checked. `beside` is used if a pattern accompanies the format: the
 * pattern is more specific, and libraries write patterns for times that have no offset or seconds. */
#include "grammar/schema_parts.h"

#define HOUR        "([01][0-9]|2[0-3])"
#define MINUTE      "[0-5][0-9]"
#define SECOND      MINUTE ":" MINUTE
#define LONG_MONTHS "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
#define MONTHS      "(" LONG_MONTHS "|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#define LEAP        "([0-9]{2}([2468][048]|[13579][26]|0[48])|([02468][048]|[13579][26])00)-02-29"
#define DATE        "[0-9]{4}-" MONTHS
#define DAY         "(" DATE "|" LEAP ")"
#define OFFSET      "(Z|[+-]" HOUR ":" MINUTE ")"
#define TIME        HOUR ":" SECOND "(\\.[0-9]{1,6})?" OFFSET
#define ANY_TIME    HOUR ":" SECOND "(\\.[0-9]+)?" OFFSET
#define LOOSE_TIME  HOUR ":" MINUTE "(:" MINUTE "(\\.[0-9]+)?)?" OFFSET "?"
#define OCTET       "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LABEL       "[a-z0-9](-?[a-z0-9]){0,20}" /* excludes "xn--" labels, which follow other rules */
#define HOST        LABEL "(\\." LABEL "){0,3}"
#define ANY_LABEL   "[A-Za-z0-9](-?[A-Za-z0-9]){0,31}"
#define H           "[0-9a-fA-F]{1,4}"
#define MAIL        "^[a-z0-9_+-]{1,32}(\\.[a-z0-9_+-]{1,16}){0,2}@" LABEL "(\\." LABEL "){1,2}$"
#define ATEXT       "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define ANY_MAIL                                                                                                       \
    "^" ATEXT "(\\." ATEXT ")*@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\\.)+[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$"
#define PATH     "(/[A-Za-z0-9._~-]{0,64}){0,8}"
#define URI      "^https?://" HOST PATH "$"
#define PCHAR    "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
#define QUERY    "([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*"
#define ANY_PATH "(//[A-Za-z0-9._~-]+(:[0-9]{1,5})?(/" PCHAR "*)*|/?" PCHAR "+(/" PCHAR "*)*)"
#define ANY_URI  "^[A-Za-z][A-Za-z0-9+.-]*:" ANY_PATH "(\\?" QUERY ")?(#" QUERY ")?$"
#define POINTER  "(/[A-Za-z0-9_ -]{0,64}){0,16}"
#define REGEX_ATOM                                                                                                     \
    "([A-Za-z0-9_ ,:;=@!%&#<>~'\"-]|\\.|\\\\[dwsDWS.+*?()\\[\\]{}|^$/\\\\]|\\[\\^?(a-z|A-Z|0-9|[A-Za-z0-9_.])+\\])"

static const struct {
    const char *name, *written, *strict, *beside; /* NULL: the form in the column to the left */
} formats[] = {
    {"date", "^" DATE "$", "^" DAY "$", NULL},
    {"time", "^" TIME "$", "^" ANY_TIME "$", "^" LOOSE_TIME "$"},
    {"date-time", "^" DATE "T" TIME "$", "^" DAY "T" ANY_TIME "$", "^" DAY "[Tt ]" LOOSE_TIME "$"},
    {"duration", "^P([0-9]{1,4}D|([0-9]{1,4}D)?T([0-9]{1,4}H)?[0-9]{1,4}M|[0-9]{1,4}W)$",
     "^P([0-9]+W|([0-9]+Y([0-9]+M)?([0-9]+D)?|[0-9]+M([0-9]+D)?|[0-9]+D)|([0-9]+Y)?([0-9]+M)?([0-9]+D)?"
     "T([0-9]+H([0-9]+M)?([0-9]+S)?|[0-9]+M([0-9]+S)?|[0-9]+S))$",
     NULL},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
     "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", NULL},
    {"ipv4", "^" OCTET "(\\." OCTET "){3}$", NULL, NULL},
    {"ipv6", "^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}$",
     "^((" H ":){7}" H "|(" H ":){1,7}:|(" H ":){1,6}:" H "|(" H ":){1,5}(:" H "){1,2}|(" H ":){1,4}(:" H "){1,3}|(" H
     ":){1,3}(:" H "){1,4}|(" H ":){1,2}(:" H "){1,5}|" H ":(:" H "){1,6}|:((:" H "){1,7}|:))$",
     NULL},
    {"email", MAIL, ANY_MAIL, NULL},
    {"idn-email", MAIL, ANY_MAIL, NULL},
    {"hostname", "^" HOST "$", "^" ANY_LABEL "(\\." ANY_LABEL ")*$", NULL},
    {"idn-hostname", "^" HOST "$", "^" ANY_LABEL "(\\." ANY_LABEL ")*$", NULL},
    {"uri", URI, ANY_URI, NULL},
    {"iri", URI, ANY_URI, NULL},
    {"uri-reference", "^(https?://" HOST ")?" PATH "$", NULL, NULL},
    {"iri-reference", "^(https?://" HOST ")?" PATH "$", NULL, NULL},
    {"uri-template", "^https?://" HOST "(/([A-Za-z0-9._~-]{0,64}|\\{[A-Za-z0-9_]{1,32}\\})){0,8}$", NULL, NULL},
    {"json-pointer", "^" POINTER "$", "^(/([^~/]|~[01])*)*$", NULL},
    {"relative-json-pointer", "^(0|[1-9][0-9]{0,3})(#|" POINTER ")$", NULL, NULL},
    {"regex", "^\\^?(" REGEX_ATOM "[*+?]?){0,64}\\$?$", NULL, NULL},
    {"byte", "^([A-Za-z0-9+/]{4}){0,4096}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
     "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$", NULL},
};

const char *whit_json_schema_format(whit_json_schema_compiler *c, uint32_t node, whit_json_schema_use use)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!whit_json_is(&c->json, node, formats[i].name)) continue;
        const char *text = formats[i].written;
        if (use != WHIT_JSON_SCHEMA_WRITTEN && formats[i].strict) text = formats[i].strict;
        if (use == WHIT_JSON_SCHEMA_BESIDE && formats[i].beside) text = formats[i].beside;
        return text;
    }
    return NULL;
}
