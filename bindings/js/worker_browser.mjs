// SPDX-License-Identifier: MIT
import * as host from "./host_browser.mjs";
import { serve } from "./worker.mjs";

serve(host);
