// SPDX-License-Identifier: MIT
import * as host from "./host_node.mjs";
import { serve } from "./worker.mjs";

serve(host);
