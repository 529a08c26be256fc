/* SPDX-License-Identifier: MIT */
#include "cli/plot.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/items.h"

enum { WIDTH = 800, HEIGHT = 460, LEFT = 76, RIGHT = 24, TOP = 56, BOTTOM = 52, LOG_BYTES_MAX = 64 << 20 };

/* ---- points --------------------------------------------------------------------------------- */

void cli_plot_free(cli_plot *plot)
{
    whit_buf_free(&plot->points);
}

static size_t count(const cli_plot *plot)
{
    return plot->points.size_bytes / sizeof(cli_plot_point);
}

static const cli_plot_point *point_at(const cli_plot *plot, size_t i)
{
    return WHIT_ITEMS(const cli_plot_point, &plot->points) + i;
}

/* Adds a point. A resumed run repeats the steps after its checkpoint: the new point replaces those of this and later
 * steps. */
void cli_plot_add(cli_plot *plot, cli_plot_point point)
{
    while (count(plot) && point_at(plot, count(plot) - 1)->step >= point.step) plot->points.size_bytes -= sizeof point;
    whit_buf_append(&plot->points, &point, sizeof point);
}

static void read_line(cli_plot *plot, const char *line, size_t n_bytes, const char *field)
{
    char held[64];
    snprintf(held, sizeof held, "held_%s", field);
    json_t *object = json_loadb(line, n_bytes, 0, NULL);
    const json_t *run = json_object_get(object, "run");
    /* A run that was not resumed replaces all points; a resumed one replaces only those after its checkpoint
     * (cli_plot_add). */
    if (run && !json_is_true(json_object_get(run, "resumed"))) plot->points.size_bytes = 0;
    const json_t *step = json_object_get(object, "step"), *loss = json_object_get(object, field),
                 *measured = json_object_get(object, held);
    if (json_is_number(step) && json_is_number(loss)) {
        cli_plot_point point = {json_number_value(step), json_number_value(loss),
                                json_is_number(measured) ? json_number_value(measured) : NAN};
        cli_plot_add(plot, point);
    }
    json_decref(object);
}

void cli_plot_read_log(cli_plot *plot, const char *path, const char *field)
{
    whit_buf text = {0};
    if (whit_read_file(path, LOG_BYTES_MAX, &text, NULL) == WHIT_OK)
        for (size_t at = 0; at < text.size_bytes;) {
            const char *line = whit_chars(&text) + at, *end = memchr(line, '\n', text.size_bytes - at);
            size_t n = end ? (size_t)(end - line) : text.size_bytes - at;
            read_line(plot, line, n, field);
            at += n + 1;
        }
    whit_buf_free(&text);
}

/* ---- axes ----------------------------------------------------------------------------------- */

typedef struct axis {
    double low, high, step; /* step: distance between ticks; not used for a logarithmic axis */
    bool logarithmic;
} axis;

static double share_of(const axis *a, double value)
{
    double low = a->low, high = a->high;
    if (a->logarithmic) value = log10(value), low = log10(low), high = log10(high);
    return (value - low) / (high - low);
}

/* Returns a distance between ticks, 1, 2 or 5 times a power of ten, so that `span` has about n ticks. */
static double tick_step(double span, int n)
{
    double power = pow(10, floor(log10(span / n))), rest = span / n / power;
    double digit = 1;
    if (rest > 5)
        digit = 10;
    else if (rest > 2)
        digit = 5;
    else if (rest > 1)
        digit = 2;
    return power * digit;
}

static void widen(axis *a, double value)
{
    if (!isfinite(value)) return;
    if (value < a->low) a->low = value;
    if (value > a->high) a->high = value;
}

static axis loss_axis(const cli_plot *plot)
{
    axis a = {.low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < count(plot); i++) {
        widen(&a, point_at(plot, i)->loss);
        widen(&a, point_at(plot, i)->held);
    }
    if (!(a.low <= a.high)) a = (axis){.low = 0, .high = 1};
    a.logarithmic = a.low > 0 && a.high > 10 * a.low;
    if (a.logarithmic) {
        a.low /= 1.1;
        a.high *= 1.1;
        return a;
    }
    a.step = tick_step(a.high > a.low ? a.high - a.low : fmax(fabs(a.high), 1e-6), 5);
    a.low = floor(a.low / a.step) * a.step;
    a.high = ceil(a.high / a.step) * a.step;
    if (!(a.high > a.low)) a.high = a.low + a.step;
    return a;
}

static double x_of(const axis *a, double value)
{
    return LEFT + share_of(a, value) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const axis *a, double value)
{
    return HEIGHT - BOTTOM - share_of(a, value) * (HEIGHT - TOP - BOTTOM);
}

/* ---- the picture ---------------------------------------------------------------------------- */

static void put_escaped(whit_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<' || *text == '&')
            whit_buf_append_str(out, *text == '<' ? "&lt;" : "&amp;");
        else
            whit_buf_append(out, text, 1);
    }
}

static void put_text(whit_buf *out, double x, double y, const char *anchor, const char *text)
{
    whit_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    put_escaped(out, text);
    whit_buf_append_str(out, "</text>\n");
}

/* Draws as many words of the title as fit. The whole title is also stored, and browsers show it under the pointer. */
static void put_title(whit_buf *out, const char *title)
{
    enum { TITLE_BYTES = 96 };
    char shown[TITLE_BYTES + 8];
    size_t n = strlen(title);
    whit_buf_append_str(out, "<title>");
    put_escaped(out, title);
    whit_buf_append_str(out, "</title>\n");
    const char *rest = n > TITLE_BYTES ? " ..." : "";
    if (n > TITLE_BYTES)
        for (n = TITLE_BYTES; n && title[n] != ' '; n--) continue;
    snprintf(shown, sizeof shown, "%.*s%s", (int)n, title, rest);
    put_text(out, LEFT, 24, "start", shown);
}

static void put_tick_y(whit_buf *out, const axis *y, double value)
{
    char label[32];
    double at = y_of(y, value);
    whit_buf_printf(out, "<path d=\"M%d %.1fH%d\" class=\"grid\"/>\n", LEFT, at, WIDTH - RIGHT);
    snprintf(label, sizeof label, "%.4g", fabs(value) < 1e-12 ? 0 : value);
    put_text(out, LEFT - 8, at + 4, "end", label);
}

static void put_axes(whit_buf *out, const axis *x, const axis *y)
{
    if (y->logarithmic) {
        static const double ones[] = {1, 2, 5};
        for (int power = (int)floor(log10(y->low)); power <= (int)floor(log10(y->high)); power++)
            for (int i = 0; i < 3; i++) {
                double value = ones[i] * pow(10, power);
                if (value >= y->low && value <= y->high) put_tick_y(out, y, value);
            }
    } else {
        for (int i = 0; y->low + i * y->step <= y->high + y->step / 2; i++) put_tick_y(out, y, y->low + i * y->step);
    }
    for (double value = ceil(x->low / x->step) * x->step; value <= x->high; value += x->step) {
        char label[32];
        double at = x_of(x, value);
        whit_buf_printf(out, "<path d=\"M%.1f %dv5\" class=\"axis\"/>\n", at, HEIGHT - BOTTOM);
        snprintf(label, sizeof label, "%.7g", value);
        put_text(out, at, HEIGHT - BOTTOM + 20, "middle", label);
    }
    whit_buf_printf(out, "<path d=\"M%d %dH%d\" class=\"axis\"/>\n", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT);
    put_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 12, "middle", "step");
}

/* Draws the losses as a line, or the held-out losses as a line with dots. */
static void put_curve(whit_buf *out, const cli_plot *plot, const axis *x, const axis *y, bool held)
{
    bool begun = false;
    for (size_t i = 0; i < count(plot); i++) {
        const cli_plot_point *p = point_at(plot, i);
        double value = held ? p->held : p->loss;
        if (!isfinite(value)) continue;
        whit_buf_printf(out, "%s%.1f,%.1f", begun ? " " : "<polyline points=\"", x_of(x, p->step), y_of(y, value));
        begun = true;
    }
    if (begun) whit_buf_printf(out, "\" class=\"%s\"/>\n", held ? "held" : "loss");
    for (size_t i = 0; held && i < count(plot); i++) {
        const cli_plot_point *p = point_at(plot, i);
        if (isfinite(p->held))
            whit_buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" class=\"dot\"/>\n", x_of(x, p->step),
                            y_of(y, p->held));
    }
}

static bool has_held(const cli_plot *plot)
{
    for (size_t i = 0; i < count(plot); i++)
        if (isfinite(point_at(plot, i)->held)) return true;
    return false;
}

static void put_legend(whit_buf *out, const cli_plot *plot)
{
    whit_buf_printf(out, "<path d=\"M%d 44h24\" class=\"loss\"/>\n", LEFT);
    put_text(out, LEFT + 32, 48, "start", plot->measure);
    if (!has_held(plot)) return;
    double x = WIDTH - RIGHT;
    put_text(out, x, 48, "end", "on held-out text");
    whit_buf_printf(out, "<path d=\"M%.0f 44h24\" class=\"held\"/>\n", x - 140);
}

whit_status cli_plot_write(const cli_plot *plot, const char *path, whit_error *error)
{
    size_t n = count(plot);
    if (!n) return WHIT_OK;
    whit_buf out = {0};
    axis x = {.low = point_at(plot, 0)->step, .high = point_at(plot, n - 1)->step}, y = loss_axis(plot);
    if (!(x.high > x.low)) x.high = x.low + 1;
    x.step = tick_step(x.high - x.low, 8);
    whit_buf_printf(
        &out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<style>.grid{stroke:#ddd}.axis{stroke:#555}.grid,.axis,.loss,.held{fill:none}"
        ".loss{stroke:#2a6fb0;stroke-width:1.5}.held{stroke:#d2691e;stroke-width:1.5}.dot{fill:#d2691e}"
        "text{fill:#333}</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_title(&out, plot->title);
    put_legend(&out, plot);
    put_axes(&out, &x, &y);
    put_curve(&out, plot, &x, &y, false);
    put_curve(&out, plot, &x, &y, true);
    whit_buf_append_str(&out, "</svg>\n");
    whit_status status = out.failed || plot->points.failed ? whit_fail_memory(error, "the plot", out.size_bytes)
                                                           : whit_write_file(path, out.data, out.size_bytes, error);
    whit_buf_free(&out);
    return status;
}
