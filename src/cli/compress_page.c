/* SPDX-License-Identifier: MIT */
#include "cli/compress_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/items.h"
#include "base/plain.h"
#include "runtime/model.h"

enum { WIDTH = 860, HEIGHT = 260, LEFT = 64, RIGHT = 16, TOP = 14, BOTTOM = 30, PROMPT = 24, WRITTEN = 64 };

/* ---- samples -------------------------------------------------------------------------------- */

static bool keep_text(void *user, const char *text, size_t n_bytes)
{
    return whit_buf_append(user, text, n_bytes);
}

/* Returns a copy of the text as UTF-8 in which control characters are replaced, and frees the buffer; NULL if memory
 * runs out. */
static char *own_text(whit_buf *text)
{
    char *plain = text->failed ? NULL : malloc(WHIT_PLAIN_ROOM(text->size_bytes));
    if (plain) {
        whit_plain state = {0};
        size_t n = text->size_bytes ? whit_plain_text(&state, whit_chars(text), text->size_bytes, plain) : 0;
        n += whit_plain_end(&state, plain + n);
        plain[n] = 0;
    }
    whit_buf_free(text);
    return plain;
}

static whit_status write_after(const whit_model *model, const int32_t *ids, size_t n_ids, char **text,
                               whit_error *error)
{
    whit_session *session = NULL;
    whit_sampler *sampler = NULL;
    whit_buf written = {0};
    whit_sampler_options sampling = whit_sampler_options_default();
    whit_generate_options options = whit_generate_options_default();
    sampling.temperature = 0;
    options.n_tokens = model->config.n_ctx - (uint32_t)n_ids;
    if (options.n_tokens > WRITTEN) options.n_tokens = WRITTEN;
    options.on_text = keep_text;
    options.user = &written;
    whit_status status = whit_session_open(model, NULL, &session, error);
    if (status == WHIT_OK) status = whit_sampler_open(model, &sampling, &sampler, error);
    if (status == WHIT_OK) status = whit_generate(session, sampler, ids, n_ids, &options, NULL, error);
    whit_sampler_close(sampler);
    whit_session_close(session);
    *text = own_text(&written);
    if (status == WHIT_OK && !*text) status = whit_fail_memory(error, "the sampled text", WRITTEN);
    return status;
}

static whit_status text_of(const whit_model *model, const int32_t *ids, size_t n, char **out, whit_error *error)
{
    whit_detokenizer *detokenizer = NULL;
    whit_buf text = {0};
    const char *piece;
    size_t n_bytes;
    whit_status status = whit_detokenizer_open(model, true, &detokenizer, error);
    for (size_t i = 0; status == WHIT_OK && i <= n; i++) {
        status = i < n ? whit_detokenizer_push(detokenizer, ids[i], &piece, &n_bytes, error)
                       : whit_detokenizer_flush(detokenizer, &piece, &n_bytes, error);
        if (status == WHIT_OK && n_bytes) whit_buf_append(&text, piece, n_bytes);
    }
    whit_detokenizer_close(detokenizer);
    *out = own_text(&text);
    return status == WHIT_OK && !*out ? whit_fail_memory(error, "the sampled text", n) : status;
}

whit_status cli_compress_page_sample(cli_compress_page *page, const whit_model *original, const whit_model *compressed,
                                     const int32_t *ids, size_t n_ids, whit_error *error)
{
    int32_t prompt[PROMPT + 1], bos = whit_model_bos(original);
    size_t n = PROMPT, begin = bos >= 0;
    if (n > original->config.n_ctx / 2) n = original->config.n_ctx / 2;
    if (begin) prompt[0] = bos;
    for (uint32_t i = 0; i < CLI_COMPRESS_SAMPLES && n_ids; i++) {
        if (n > n_ids) n = n_ids;
        memcpy(prompt + begin, ids + (n_ids - n) / (CLI_COMPRESS_SAMPLES + 1) * (i + 1), n * sizeof *prompt);
        cli_compress_sample *sample = &page->samples[page->n_samples++];
        WHIT_TRY(text_of(original, prompt + begin, n, &sample->prompt, error));
        WHIT_TRY(write_after(original, prompt, n + begin, &sample->before, error));
        WHIT_TRY(write_after(compressed, prompt, n + begin, &sample->after, error));
        if (n == n_ids) break; /* the text is only long enough for one sample */
    }
    return WHIT_OK;
}

void cli_compress_page_free(cli_compress_page *page)
{
    for (uint32_t i = 0; i < page->n_samples; i++) {
        free(page->samples[i].prompt);
        free(page->samples[i].before);
        free(page->samples[i].after);
    }
    whit_buf_free(&page->matrices);
}

/* ---- charts --------------------------------------------------------------------------------- */

static size_t count(const cli_compress_page *page)
{
    return page->matrices.size_bytes / sizeof(cli_compressed_matrix);
}

static const cli_compressed_matrix *matrix_at(const cli_compress_page *page, size_t i)
{
    return WHIT_ITEMS(const cli_compressed_matrix, &page->matrices) + i;
}

static void put_escaped(whit_buf *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = NULL;
        if (*text == '<')
            entity = "&lt;";
        else if (*text == '>')
            entity = "&gt;";
        else if (*text == '&')
            entity = "&amp;";
        if (*text == '"') entity = "&quot;";
        if (entity)
            whit_buf_append_str(out, entity);
        else
            whit_buf_append(out, text, 1);
    }
}

static double error_of(const cli_compressed_matrix *m)
{
    return m->error;
}

static double gptq_error_of(const cli_compressed_matrix *m)
{
    return m->error_gptq;
}

static double bits_of(const cli_compressed_matrix *m)
{
    return m->bits;
}

typedef double measure_fn(const cli_compressed_matrix *m);

static double round_up(double x)
{
    double power = pow(10, floor(log10(x > 0 ? x : 1)));
    for (double step = 1; step <= 10; step += 1)
        if (x <= step * power) return step * power;
    return x;
}

static void put_bars(const cli_compress_page *page, whit_buf *out, measure_fn *of, const char *style, double most)
{
    size_t n = count(page);
    double wide = (double)(WIDTH - LEFT - RIGHT) / (double)(n ? n : 1), tall = HEIGHT - TOP - BOTTOM;
    for (size_t i = 0; i < n; i++) {
        const cli_compressed_matrix *m = matrix_at(page, i);
        double height = tall * of(m) / most;
        whit_buf_printf(out,
                        "<rect class=\"%s%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>%s: %.5g"
                        "</title></rect>\n",
                        style, m->layer % 2 ? " odd" : "", LEFT + (double)i * wide, HEIGHT - BOTTOM - height,
                        wide * 0.85, height, m->name, of(m));
    }
}

/* Draws a bar for each matrix, in order; the shade alternates from layer to layer. If `before` is not NULL, its bars
 * are drawn in the background. */
static void put_chart(const cli_compress_page *page, whit_buf *out, const char *title, measure_fn *of,
                      measure_fn *before)
{
    double most = 0;
    size_t n = count(page);
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, of(matrix_at(page, i)));
        if (before) most = fmax(most, before(matrix_at(page, i)));
    }
    most = round_up(most);
    whit_buf_printf(out, "<h2>%s</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", title, WIDTH,
                    HEIGHT, title);
    for (int i = 0; i <= 4; i++) {
        double y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * i / 4.0;
        whit_buf_printf(out,
                        "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"end\" x=\"%d\" y=\"%.1f\">%.3g</text>\n",
                        LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4, most * i / 4);
    }
    if (before) put_bars(page, out, before, "before", most);
    put_bars(page, out, of, "after", most);
    for (size_t i = 0, shown = SIZE_MAX; i < n; i++) {
        const cli_compressed_matrix *m = matrix_at(page, i);
        if (m->layer == shown) continue;
        shown = m->layer;
        uint32_t n_layers = matrix_at(page, n - 1)->layer + 1;
        if (n_layers <= 24 || m->layer % 4 == 0)
            whit_buf_printf(out, "<text x=\"%.1f\" y=\"%d\">%u</text>\n",
                            LEFT + (double)(WIDTH - LEFT - RIGHT) * (double)i / (double)n, HEIGHT - 10, m->layer);
    }
    whit_buf_append_str(out, "</svg>\n");
}

/* ---- the page ------------------------------------------------------------------------------- */

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    "<title>whit compress</title>\n<style>\n"
    ":root{color-scheme:light dark;--ink:#222;--paper:#fff;--line:#ddd;--one:#2a6fb0;--two:#5b94c9;--pale:#e3c9a8}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#181a1c;--line:#3a3d40;--one:#5a9fe0;--two:#3f78ad;"
    "--pale:#7a5c38}}\n"
    "body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem "
    "auto;padding:0 1rem}\n"
    "h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}svg{width:100%;height:auto}\n"
    "svg text{font-size:12px;fill:var(--ink)}.end{text-anchor:end}.grid{stroke:var(--line)}\n"
    ".before{fill:var(--pale)}.after{fill:var(--one)}.after.odd{fill:var(--two)}\n"
    "table{border-collapse:collapse;width:100%}th,td{padding:.2rem .6rem;border-bottom:1px solid "
    "var(--line);text-align:right}\n"
    "th:first-child,td:first-child,td.text,#samples th{text-align:left}td.text{vertical-align:top;white-space:pre-wrap}"
    "#samples td{width:33%}#facts td:first-child{width:30%}\n"
    ".scroll{overflow-x:auto}\n"
    "</style>\n</head>\n<body>\n";

static void put_fact(whit_buf *out, const char *what, const char *value)
{
    whit_buf_printf(out, "<tr><td>%s</td><td class=\"text\">", what);
    put_escaped(out, value);
    whit_buf_append_str(out, "</td></tr>\n");
}

static void put_facts(const cli_compress_page *page, whit_buf *out)
{
    char text[160];
    whit_buf_append_str(out, "<table id=\"facts\">\n");
    put_fact(out, "source", page->source);
    put_fact(out, "file", page->output);
    put_fact(out, "command", page->command);
    snprintf(text, sizeof text, "%.3f, scales and padding counted", page->layer_bits);
    put_fact(out, "bits per weight of the layers", text);
    snprintf(text, sizeof text, "%.2f MB, the source's %.2f MB", (double)page->bytes_after / 1e6,
             (double)page->bytes_before / 1e6);
    put_fact(out, "tensors in memory", text);
    put_fact(out, "tuned on", page->tuning ? page->tuning : "nothing");
    snprintf(text, sizeof text, "%.1f s", page->seconds);
    put_fact(out, "time", text);
    if (page->n_unreported) {
        snprintf(text, sizeof text, "%u, by the run that was resumed; their errors are not known here",
                 page->n_unreported);
        put_fact(out, "matrices finished before", text);
    }
    whit_buf_append_str(out, "</table>\n");
}

static void put_samples(const cli_compress_page *page, whit_buf *out)
{
    if (!page->n_samples) return;
    whit_buf_append_str(out,
                        "<h2>What both write, the likeliest token each time</h2>\n<div class=\"scroll\"><table "
                        "id=\"samples\">\n<tr><th>after</th><th>before</th><th>compressed</th></tr>\n");
    for (uint32_t i = 0; i < page->n_samples; i++) {
        const char *cells[] = {page->samples[i].prompt, page->samples[i].before, page->samples[i].after};
        whit_buf_append_str(out, "<tr>");
        for (int k = 0; k < 3; k++) {
            whit_buf_append_str(out, "<td class=\"text\">");
            put_escaped(out, cells[k]);
            whit_buf_append_str(out, "</td>");
        }
        whit_buf_append_str(out, "</tr>\n");
    }
    whit_buf_append_str(out, "</table></div>\n");
}

static void put_matrices(const cli_compress_page *page, whit_buf *out)
{
    whit_buf_append_str(out,
                        "<h2>Matrices</h2>\n<div class=\"scroll\"><table id=\"matrices\">\n<tr><th>name</th>"
                        "<th>codec</th><th>group</th><th>bits</th><th>error before descent</th><th>error</th>"
                        "<th>sweeps</th></tr>\n");
    for (size_t i = 0; i < count(page); i++) {
        const cli_compressed_matrix *m = matrix_at(page, i);
        whit_buf_printf(
            out, "<tr><td>%s</td><td>%s</td><td>%u</td><td>%.3f</td><td>%.5f</td><td>%.5f</td><td>%u</td></tr>\n",
            m->name, m->codec, m->group, m->bits, m->error_gptq, m->error, m->sweeps);
    }
    whit_buf_append_str(out, "</table></div>\n");
}

whit_status cli_compress_page_write(const cli_compress_page *page, const char *path, whit_error *error)
{
    whit_buf out = {0};
    whit_buf_append_str(&out, head);
    whit_buf_append_str(&out, "<h1>whit compress</h1>\n");
    put_facts(page, &out);
    if (count(page)) {
        put_chart(page, &out, "Error of each matrix's outputs, as a share (pale: before descent)", error_of,
                  gptq_error_of);
        put_chart(page, &out, "Bits per weight of each matrix", bits_of, NULL);
    }
    put_samples(page, &out);
    if (count(page)) put_matrices(page, &out);
    whit_buf_append_str(&out, "</body>\n</html>\n");
    whit_status status = out.failed || page->matrices.failed ? whit_fail_memory(error, "the report", out.size_bytes)
                                                             : whit_write_file(path, out.data, out.size_bytes, error);
    whit_buf_free(&out);
    return status;
}
