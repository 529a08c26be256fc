/* SPDX-License-Identifier: MIT
 * Defines every operation, in words of 64 lanes. The identities are checked against plain arithmetic on the values, for
 * every pair of values, by tests/kernels/quat.c. */
#include "kernels/quat/declare.h"

#define EACH_WORD for (uint32_t i = 0; i < n_words; i++)

static uint64_t last_mask(uint32_t n_elems)
{
    return n_elems % 64 ? ((uint64_t)1 << n_elems % 64) - 1 : ~(uint64_t)0;
}

/* Adds elements. Equal signs give 2 or -2. Opposite signs give 1 or -1; -1 only for -2 and +1, that is if both extra
 * bits are 0. So the result's sign is the majority of the two signs and (extra a or extra b). */
void whit_quat_add_generic(whit_quat_planes out, whit_quat_view a, whit_quat_view b, uint32_t n_words)
{
    EACH_WORD
    {
        uint64_t t = a.extra[i] | b.extra[i], sa = a.sign[i], sb = b.sign[i];
        uint64_t s = (sa & sb) | (t & (sa | sb));
        out.extra[i] = s ^ sa ^ sb;
        out.sign[i] = s;
    }
}

void whit_quat_mul_generic(whit_quat_planes out, whit_quat_view a, whit_quat_view b, uint32_t n_words)
{
    EACH_WORD
    {
        uint64_t s = ~(a.sign[i] ^ b.sign[i]), small = (a.sign[i] ^ a.extra[i]) & (b.sign[i] ^ b.extra[i]);
        out.extra[i] = s ^ small;
        out.sign[i] = s;
    }
}

void whit_quat_swiglu_generic(whit_quat_planes out, whit_quat_view a, whit_quat_view b, uint32_t n_words)
{
    EACH_WORD
    {
        uint64_t s = ~(a.sign[i] ^ b.sign[i]), small = ~(a.sign[i] & a.extra[i]) & (b.sign[i] ^ b.extra[i]);
        out.extra[i] = s ^ small;
        out.sign[i] = s;
    }
}

void whit_quat_silu_generic(whit_quat_planes out, whit_quat_view a, uint32_t n_words)
{
    EACH_WORD
    {
        out.extra[i] = a.extra[i] | ~a.sign[i];
        out.sign[i] = a.sign[i];
    }
}

void whit_quat_negate_generic(whit_quat_planes out, whit_quat_view a, uint32_t n_words)
{
    EACH_WORD
    {
        out.extra[i] = ~a.extra[i];
        out.sign[i] = ~a.sign[i];
    }
}

void whit_quat_absolute_generic(whit_quat_planes out, whit_quat_view a, uint32_t n_words)
{
    EACH_WORD
    {
        out.extra[i] = ~(a.sign[i] ^ a.extra[i]);
        out.sign[i] = ~(uint64_t)0;
    }
}

void whit_quat_less_generic(uint64_t *mask, whit_quat_view a, whit_quat_view b, uint32_t n_words)
{
    EACH_WORD
    mask[i] = (~a.sign[i] & b.sign[i]) | (~(a.sign[i] ^ b.sign[i]) & ~a.extra[i] & b.extra[i]);
}

void whit_quat_equal_generic(uint64_t *mask, whit_quat_view a, whit_quat_view b, uint32_t n_words)
{
    EACH_WORD
    mask[i] = ~((a.sign[i] ^ b.sign[i]) | (a.extra[i] ^ b.extra[i]));
}

void whit_quat_select_generic(whit_quat_planes out, const uint64_t *mask, whit_quat_view a, whit_quat_view b,
                              uint32_t n_words)
{
    EACH_WORD
    {
        uint64_t m = mask[i];
        out.extra[i] = (a.extra[i] & m) | (b.extra[i] & ~m);
        out.sign[i] = (a.sign[i] & m) | (b.sign[i] & ~m);
    }
}

/* Returns in every lane the bit of `table` whose index is the lane's four bits b3 b2 b1 b0. */
static uint64_t look_up(uint16_t table, uint64_t b3, uint64_t b2, uint64_t b1, uint64_t b0)
{
    uint64_t result = 0;
    for (unsigned entry = 0; entry < 16; entry++)
        if (table >> entry & 1)
            result |= (entry & 8 ? b3 : ~b3) & (entry & 4 ? b2 : ~b2) & (entry & 2 ? b1 : ~b1) & (entry & 1 ? b0 : ~b0);
    return result;
}

void whit_quat_map_generic(whit_quat_planes out, const whit_quat_map *map, whit_quat_view a, whit_quat_view b,
                           uint32_t n_words)
{
    EACH_WORD
    {
        uint64_t s = look_up(map->sign, a.sign[i], a.extra[i], b.sign[i], b.extra[i]);
        out.extra[i] = look_up(map->extra, a.sign[i], a.extra[i], b.sign[i], b.extra[i]);
        out.sign[i] = s;
    }
}

/* Computes a dot product. With s' and e' in {-1, 1} an element is (3 s' + e') / 2, so the dot product is a sum of four
 * dot products of planes, each n - 2 popcount(xor). With the popcounts ss, se, es and ee the result is 4 n - (9 ss + 3
 * (se + es) + ee) / 2. */
int64_t whit_quat_dot_generic(whit_quat_view a, whit_quat_view b, uint32_t n_elems)
{
    uint32_t n_words = whit_quat_words(n_elems);
    uint64_t ss = 0, mixed = 0, ee = 0;
    EACH_WORD
    {
        uint64_t mask = i + 1 == n_words ? last_mask(n_elems) : ~(uint64_t)0;
        ss += (unsigned)__builtin_popcountll((a.sign[i] ^ b.sign[i]) & mask);
        mixed += (unsigned)__builtin_popcountll((a.sign[i] ^ b.extra[i]) & mask);
        mixed += (unsigned)__builtin_popcountll((a.extra[i] ^ b.sign[i]) & mask);
        ee += (unsigned)__builtin_popcountll((a.extra[i] ^ b.extra[i]) & mask);
    }
    return 4 * (int64_t)n_elems - (int64_t)(9 * ss + 3 * mixed + ee) / 2;
}

/* Computes the dot product with eight popcounts per word: for every pair of planes, agreeing and differing lanes are
 * counted separately. */
int64_t whit_quat_dot8_generic(whit_quat_view a, whit_quat_view b, uint32_t n_elems)
{
    uint32_t n_words = whit_quat_words(n_elems);
    int64_t ss = 0, mixed = 0, ee = 0;
    EACH_WORD
    {
        uint64_t mask = i + 1 == n_words ? last_mask(n_elems) : ~(uint64_t)0;
        ss += __builtin_popcountll(~(a.sign[i] ^ b.sign[i]) & mask);
        ss -= __builtin_popcountll((a.sign[i] ^ b.sign[i]) & mask);
        mixed += __builtin_popcountll(~(a.sign[i] ^ b.extra[i]) & mask);
        mixed -= __builtin_popcountll((a.sign[i] ^ b.extra[i]) & mask);
        mixed += __builtin_popcountll(~(a.extra[i] ^ b.sign[i]) & mask);
        mixed -= __builtin_popcountll((a.extra[i] ^ b.sign[i]) & mask);
        ee += __builtin_popcountll(~(a.extra[i] ^ b.extra[i]) & mask);
        ee -= __builtin_popcountll((a.extra[i] ^ b.extra[i]) & mask);
    }
    return (9 * ss + 3 * mixed + ee) / 4;
}

int64_t whit_quat_sum_generic(whit_quat_view a, uint32_t n_elems)
{
    uint32_t n_words = whit_quat_words(n_elems);
    int64_t sum = -2 * (int64_t)n_elems;
    EACH_WORD
    {
        uint64_t mask = i + 1 == n_words ? last_mask(n_elems) : ~(uint64_t)0;
        sum += 3 * __builtin_popcountll(a.sign[i] & mask) + __builtin_popcountll(a.extra[i] & mask);
    }
    return sum;
}

int64_t whit_quat_sum_squares_generic(whit_quat_view a, uint32_t n_elems)
{
    uint32_t n_words = whit_quat_words(n_elems);
    int64_t sum = n_elems;
    EACH_WORD
    {
        uint64_t mask = i + 1 == n_words ? last_mask(n_elems) : ~(uint64_t)0;
        sum += 3 * __builtin_popcountll(~(a.sign[i] ^ a.extra[i]) & mask);
    }
    return sum;
}

uint64_t whit_quat_distance_generic(const uint64_t *a, const uint64_t *b, uint32_t n_words)
{
    uint64_t distance = 0;
    EACH_WORD
    distance += (unsigned)__builtin_popcountll(a[i] ^ b[i]);
    return distance;
}
