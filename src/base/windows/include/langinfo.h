/* SPDX-License-Identifier: MIT
 * Names of locale texts, which are only used with libedit. */
