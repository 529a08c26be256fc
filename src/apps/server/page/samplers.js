/* SPDX-License-Identifier: MIT
 * Lists the settings of sampling that the page offers: the server's names, and the values that the fields accept. */

const SAMPLERS = [
  ["temperature", "Temperature", 0, 5, 0.05], ["top_p", "Top p", 0, 1, 0.01], ["top_k", "Top k", 0, 1000, 1],
  ["min_p", "Min p", 0, 1, 0.01], ["seed", "Seed", 0, 9e15, 1], ["max_tokens", "Most tokens", 1, 1e6, 1],
  ["typical_p", "Typical p", 0, 1, 0.01], ["top_n_sigma", "Top n sigma", -1, 100, 0.1],
  ["repeat_penalty", "Repeat penalty", 0.5, 3, 0.01], ["repeat_last_n", "Repeat: last tokens", -1, 1e6, 1],
  ["presence_penalty", "Presence penalty", -2, 2, 0.05], ["frequency_penalty", "Frequency penalty", -2, 2, 0.05],
  ["dry_multiplier", "DRY multiplier", 0, 10, 0.05], ["dry_base", "DRY base", 1, 10, 0.05],
  ["dry_allowed_length", "DRY allowed length", 0, 1000, 1], ["dry_penalty_last_n", "DRY: last tokens", -1, 1e6, 1],
  ["xtc_probability", "XTC probability", 0, 1, 0.01], ["xtc_threshold", "XTC threshold", 0, 1, 0.01],
  ["dynatemp_range", "Temperature range", 0, 5, 0.05], ["dynatemp_exponent", "Temperature exponent", 0, 10, 0.05],
  ["mirostat", "Mirostat", 0, 2, 1], ["mirostat_tau", "Mirostat tau", 0, 20, 0.1], ["mirostat_eta", "Mirostat eta", 0, 1, 0.01],
].map(([name, label, min, max, step]) => ({name, label, min, max, step}));
const USUAL_SAMPLERS = 6; // number of settings that are shown at first; the others are folded
