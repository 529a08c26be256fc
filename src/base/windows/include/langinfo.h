/* SPDX-License-Identifier: MIT
 * Declares names of locale texts, which are only used with libedit. */
