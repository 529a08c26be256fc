/* SPDX-License-Identifier: MIT
 * Draws docs/pictures/recall.svg: the share of items in a bundle of hypervectors that are nearer to the bundle than 999
 * random hypervectors, measured and predicted.
 *
 *     recall OUT.svg */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "kernels/quat/quat.h"
#include "memory/encode.h"
#include "memory/hyper.h"

enum { WIDTH = 760, HEIGHT = 420, LEFT = 64, RIGHT = 24, TOP = 56, BOTTOM = 52, STRANGERS = 999, TRIALS = 30000 };
enum { N_SIZES = 11, N_WIDTHS = 2, MOST = 301 };
static const uint32_t sizes[N_SIZES] = {3, 5, 11, 21, 31, 51, 75, 101, 151, 201, 301};
static const uint32_t widths[N_WIDTHS] = {16, 128}; /* in words of 64 bits: 1,024 and 8,192 bits */
static const char *const colours[N_WIDTHS] = {"#c2410c", "#1d4ed8"};

static double normal_below(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* Returns the predicted share for a bundle of m items (m odd) of `bits` bits. Each bit of an item equals the majority
 * with probability p = 1/2 + C(m - 1, (m - 1) / 2) / 2^m, and the number of equal bits is nearly normally
 * distributed. */
static double theory(double m, double bits)
{
    double p = 0.5 + exp(lgamma(m) - 2 * lgamma((m + 1) / 2) - m * log(2)), chance = 0;
    double mean = bits * p, deviation = sqrt(bits * p * (1 - p));
    for (double z = -8; z < 8; z += 0.01) {
        double below = normal_below((mean + z * deviation - bits / 2) / sqrt(bits / 4));
        chance += exp(-z * z / 2) / sqrt(2 * M_PI) * 0.01 * pow(below, STRANGERS);
    }
    return chance;
}

static double measured(const whit_quat_kernels *kernels, uint32_t m, uint32_t words, whit_rng *rng)
{
    static uint64_t strangers[STRANGERS][WHIT_MEMORY_WORDS], items[MOST][WHIT_MEMORY_WORDS];
    whit_hyper_bundle bundle;
    whit_error error;
    uint32_t n_found = 0, n_tried = 0;
    if (whit_hyper_bundle_open(words, NULL, &bundle, &error) != WHIT_OK) exit(1);
    while (n_tried < TRIALS) {
        uint64_t sum[WHIT_MEMORY_WORDS], nearest = UINT64_MAX;
        whit_hyper_bundle_clear(&bundle);
        for (uint32_t i = 0; i < m; i++) {
            whit_hyper_random(whit_rng_next(rng), items[i], words);
            if (!whit_hyper_bundle_add(&bundle, items[i])) exit(1);
        }
        whit_hyper_bundle_majority(&bundle, items[0], sum);
        for (uint32_t i = 0; i < STRANGERS; i++) {
            whit_hyper_random(whit_rng_next(rng), strangers[i], words);
            uint64_t distance = kernels->distance(sum, strangers[i], words);
            if (distance < nearest) nearest = distance;
        }
        for (uint32_t i = 0; i < m && i < 30; i++, n_tried++)
            n_found += kernels->distance(sum, items[i], words) < nearest;
    }
    whit_hyper_bundle_close(&bundle);
    return (double)n_found / n_tried;
}

static double x_of(double m)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * log(m / 3) / log(MOST / 3.0);
}
static double y_of(double share)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share);
}

static void draw_axes(FILE *out)
{
    static const int ticks[] = {3, 10, 30, 100, 300};
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"%d\" y=\"24\" font-size=\"16\">Recall of an item from a bundle, among 1,000 candidates</text>\n",
            WIDTH, HEIGHT, LEFT);
    for (int i = 0; i <= 4; i++)
        fprintf(out,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d %%</text>\n",
                LEFT, WIDTH - RIGHT, y_of(i / 4.0), y_of(i / 4.0), LEFT - 8, y_of(i / 4.0) + 4, 25 * i);
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x_of(ticks[i]),
                HEIGHT - BOTTOM + 20, ticks[i]);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">items in the bundle</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12);
}

int main(int argc, char **argv)
{
    whit_cpu cpu;
    whit_quat_kernels kernels;
    whit_cpu_detect(&cpu);
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out || whit_quat_select(&cpu, NULL, &kernels, NULL) != WHIT_OK) return 2;
    whit_rng rng = {2026};
    draw_axes(out);
    for (int w = 0; w < N_WIDTHS; w++) {
        double bits = 64.0 * widths[w], worst = 0;
        fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colours[w]);
        for (int i = 0; i <= 100; i++) {
            double m = 3 * pow(MOST / 3.0, i / 100.0);
            fprintf(out, "%.1f,%.1f ", x_of(m), y_of(theory(m, bits)));
        }
        fprintf(out, "\"/>\n");
        for (int i = 0; i < N_SIZES; i++) {
            double found = measured(&kernels, sizes[i], widths[w], &rng), wanted = theory(sizes[i], bits);
            if (fabs(found - wanted) > worst) worst = fabs(found - wanted);
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x_of(sizes[i]), y_of(found),
                    colours[w]);
        }
        fprintf(out,
                "<text x=\"%d\" y=\"%d\" fill=\"%s\">%.0f bits: line theory, dots measured, at most %.1f points "
                "apart</text>\n",
                LEFT + 12, HEIGHT - BOTTOM - 34 + 18 * w, colours[w], bits, 100 * worst);
    }
    fprintf(out, "</svg>\n");
    return fclose(out) != 0;
}
