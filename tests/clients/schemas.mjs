// SPDX-License-Identifier: MIT
// JSON Schemas of the clients' own types, made anew at every run, and a validator for each.
import Ajv from "ajv";
import { createGenerator } from "ts-json-schema-generator";

const names = ["Chat", "ChatChunk", "Completion", "Embeddings", "Model", "Response", "ResponseEvent", "Message", "MessageEvent",
    "TokenCount", "OllamaChat", "OllamaPart", "OllamaGenerate", "OllamaEmbed"];

export function validators() {
    const generator = createGenerator({
        path: new URL("types.ts", import.meta.url).pathname, skipTypeCheck: true, additionalProperties: true,
        encodeRefs: false,
    });
    const ajv = new Ajv({ strict: false, allErrors: true, logger: false });
    const known = {};
    for (const name of names) known[name] = ajv.compile(generator.createSchema(`Wire${name}`));
    return known;
}
