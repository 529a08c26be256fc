// SPDX-License-Identifier: MIT
// whit serve as people's clients use it. BASE is its address, without a path; models: tales, tools and, where TEXTS
// names it, one more that has no chat template.
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { GoogleGenAI } from "@google/genai";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { OpenAI as LlamaIndex, OpenAIEmbedding } from "@llamaindex/openai";
import { generateText, jsonSchema, streamText, tool } from "ai";
import fs from "node:fs";
import http from "node:http";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { z } from "zod";
import { validators } from "./schemas.mjs";

const base = process.env.BASE, texts = process.env.TEXTS || "tales";
const valid = validators();
let failures = 0, n_tests = 0;

function check(ok, ...what) {
    if (ok) return;
    failures++;
    console.log("FAILED:", ...what.map((one) => typeof one === "string" ? one : JSON.stringify(one)?.slice(0, 600)));
}

// A reply as it came over the wire follows the type that the client declares for it.
function conforms(type, value) {
    check(valid[type](value), type, JSON.stringify(valid[type].errors?.slice(0, 4)), value);
}

async function test(name, body) {
    n_tests++;
    try {
        await body();
    } catch (error) {
        check(false, name, error?.stack ?? String(error));
    }
}

async function fails(status, promise, what) {
    try {
        await promise;
        check(false, what, "was not refused");
    } catch (error) {
        check(error.status === status, what, `gave ${error.status}`, String(error));
        return error;
    }
}

const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: "none" });
const user = [{ role: "user", content: "a cat and a dog" }];
const weather = {
    type: "function", function: {
        name: "weather", description: "The weather", strict: true, parameters: {
            type: "object", properties: { city: { enum: ["Bern", "Rome"] }, days: { type: "integer", minimum: 1, maximum: 9 } },
            required: ["city", "days"], additionalProperties: false,
        },
    },
};
const isWeather = (value) => ["Bern", "Rome"].includes(value.city) && value.days >= 1 && value.days <= 9;

// ---- openai ------------------------------------------------------------------------------------------

await test("openai: models", async () => {
    const list = await openai.models.list();
    check(list.data.some((model) => model.id === "tales") && list.data.some((model) => model.id === "tools"), list.data);
    list.data.forEach((model) => conforms("Model", model));
});

await test("openai: chat, whole and streamed, is the same text", async () => {
    const body = { model: "tales", messages: user, seed: 7, max_tokens: 40, temperature: 0.8 };
    const whole = await openai.chat.completions.create(body);
    conforms("Chat", whole);
    check(whole.choices[0].message.content.length > 20 && whole.usage.completion_tokens > 5, whole);
    let text = "", finish, usage;
    const stream = await openai.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } });
    for await (const chunk of stream) {
        conforms("ChatChunk", chunk);
        text += chunk.choices[0]?.delta.content ?? "";
        finish = chunk.choices[0]?.finish_reason ?? finish;
        usage = chunk.usage ?? usage;
    }
    check(text === whole.choices[0].message.content && finish === whole.choices[0].finish_reason, text, whole);
    check(usage.completion_tokens === whole.usage.completion_tokens, usage);
    const helped = await openai.chat.completions.stream(body).finalContent();
    check(helped === text, "the stream helper", helped);
});

await test("openai: log-probabilities, n, stop, bias", async () => {
    const body = { model: "tales", messages: user, seed: 1, max_tokens: 6 };
    const logged = await openai.chat.completions.create({ ...body, logprobs: true, top_logprobs: 3 });
    conforms("Chat", logged);
    const content = logged.choices[0].logprobs.content;
    check(content.length === logged.usage.completion_tokens && content.every((one) => one.top_logprobs.length === 3), content);
    check(content.map((one) => one.token).join("") === logged.choices[0].message.content, content);
    const several = await openai.chat.completions.create({ ...body, n: 3 });
    check(several.choices.map((one) => one.index).join() === "0,1,2", several.choices);
    const word = logged.choices[0].message.content.slice(4, 7);
    const stopped = await openai.chat.completions.create({ ...body, stop: [word] });
    check(stopped.choices[0].finish_reason === "stop" && !stopped.choices[0].message.content.includes(word), stopped);
    const banned = await openai.chat.completions.create({ ...body, logit_bias: { [content[0].id]: -100 } });
    check(banned.choices[0].message.content !== logged.choices[0].message.content, banned);
});

await test("openai: completions with echo and the prompt's log-probabilities", async () => {
    const prompt = "Once upon a time there was";
    const echoed = await openai.completions.create({ model: texts, prompt, echo: true, max_tokens: 0, logprobs: 1 });
    const logs = echoed.choices[0].logprobs;
    check(echoed.choices[0].text === prompt && logs.token_logprobs[0] === null, echoed);
    // The first token follows nothing: null, as OpenAI's service has it and its client's type has not.
    const typed = structuredClone(echoed);
    Object.assign(typed.choices[0].logprobs, {
        token_logprobs: logs.token_logprobs.slice(1), top_logprobs: logs.top_logprobs.slice(1) });
    conforms("Completion", typed);
    check(logs.token_logprobs.slice(1).every((value) => value <= 0) && logs.tokens.length === logs.text_offset.length, logs);
    let streamed = "";
    const body = { model: texts, prompt, max_tokens: 12, temperature: 0 };
    for await (const chunk of await openai.completions.create({ ...body, stream: true })) streamed += chunk.choices[0].text;
    const whole = await openai.completions.create({ ...body, prompt: [prompt, "The"] });
    check(whole.choices.length === 2 && whole.choices[0].text === streamed, streamed, whole);
});

await test("openai: a schema holds the answer", async () => {
    const Pet = z.object({ kind: z.enum(["cat", "dog"]), age: z.number().int().min(0).max(30) });
    const { zodResponseFormat } = await import("openai/helpers/zod");
    for (let seed = 0; seed < 4; seed++) {
        const answer = await openai.chat.completions.parse({
            model: "tales", messages: user, seed, temperature: 1.5, response_format: zodResponseFormat(Pet, "pet"),
        });
        check(Pet.safeParse(answer.choices[0].message.parsed).success, answer.choices[0].message);
    }
});

await test("openai: tools, forced, whole and streamed", async () => {
    const body = { model: "tools", messages: user, tools: [weather], tool_choice: "required", temperature: 1.2, seed: 4,
        parallel_tool_calls: false, max_tokens: 200 };
    const whole = await openai.chat.completions.create(body);
    conforms("Chat", whole);
    const call = whole.choices[0].message.tool_calls[0];
    check(whole.choices[0].finish_reason === "tool_calls" && isWeather(JSON.parse(call.function.arguments)), whole);
    const final = await openai.chat.completions.stream(body).finalChatCompletion();
    check(final.choices[0].message.tool_calls[0].function.arguments === call.function.arguments, final);
    for await (const chunk of await openai.chat.completions.create({ ...body, stream: true })) conforms("ChatChunk", chunk);
    // The client calls the function itself and sends back what it gave.
    const runner = await openai.chat.completions.create({
        model: "tools", max_tokens: 5, messages: [...user, whole.choices[0].message,
            { role: "tool", tool_call_id: call.id, content: "sunny" }],
    });
    conforms("Chat", runner);
});

await test("openai: embeddings, base64 as it asks by itself and as numbers", async () => {
    const input = ["a cat", "a dog"], by_default = await openai.embeddings.create({ model: "tales", input });
    const floats = await openai.embeddings.create({ model: "tales", input, encoding_format: "float" });
    conforms("Embeddings", floats);
    check(by_default.data.length === 2 && by_default.data[1].embedding.length === floats.data[1].embedding.length, "sizes");
    check(floats.data[1].embedding.every((value, i) => Math.abs(value - by_default.data[1].embedding[i]) < 1e-6), "values");
});

await test("openai: responses", async () => {
    const body = { model: "tales", input: "a cat and a dog", instructions: "Be brief.", max_output_tokens: 20 };
    const whole = await openai.responses.create(body);
    conforms("Response", whole);
    check(whole.output_text.length > 10 && whole.status === "incomplete", whole);
    let text = "", ended;
    for await (const event of await openai.responses.create({ ...body, stream: true })) {
        if (!event.response) conforms("ResponseEvent", event);
        if (event.type === "response.output_text.delta") text += event.delta;
        if (event.type === "response.incomplete" || event.type === "response.completed") ended = event.response;
    }
    conforms("Response", ended);
    check(text.length > 10 && ended.output_text !== undefined || ended.output[0].content[0].text === text, text);
    const called = await openai.responses.create({
        model: "tools", input: "a cat", tool_choice: "required", parallel_tool_calls: false, temperature: 1.2,
        tools: [{ type: "function", ...weather.function }],
    });
    conforms("Response", called);
    check(called.output[0].type === "function_call" && isWeather(JSON.parse(called.output[0].arguments)), called.output);
    const streamed = await openai.responses.create({
        model: "tools", input: "a cat", tool_choice: "required", parallel_tool_calls: false, temperature: 1.2, stream: true,
        tools: [{ type: "function", ...weather.function }],
    });
    for await (const event of streamed) if (!event.response) conforms("ResponseEvent", event);
});

await test("openai: errors are the client's own classes", async () => {
    const bad = await fails(400, openai.chat.completions.create({ model: "tales", messages: [] }), "no messages");
    check(bad instanceof OpenAI.BadRequestError && bad.param === "messages" && bad.type === "invalid_request_error", bad);
    const long = "word ".repeat(20000);
    const over = await fails(400, openai.completions.create({ model: "tales", prompt: long, max_tokens: 1 }), "too long");
    check(/maximum context length is \d+ tokens, and the prompt has \d+/.test(over.message), over.message);
    check((await fails(404, openai.chat.completions.create({ model: "nobody", messages: user }), "no such model"))
        instanceof OpenAI.NotFoundError, "404");
    const schema = { type: "object", properties: { a: { not: { uniqueItems: true } } } };
    const held = await fails(400, openai.chat.completions.create({ model: "tools", messages: user, tools: [{
        type: "function", function: { name: "f", strict: true, parameters: schema } }] }), "a schema that cannot be held");
    check(held.message.includes("#/properties/a/not"), held.message);
});

// A proxy that fails first: twice with 503 and Retry-After, then it lets through.
await test("openai: retries", async () => {
    let n = 0;
    const proxy = http.createServer((request, reply) => {
        if (n++ < 2) {
            reply.writeHead(503, { "retry-after-ms": "10" }).end('{"error": {"message": "busy"}}');
            return;
        }
        const onward = http.request(base + request.url, { method: request.method, headers: request.headers }, (answer) => {
            reply.writeHead(answer.statusCode, answer.headers);
            answer.pipe(reply);
        });
        request.pipe(onward);
    });
    await new Promise((ready) => proxy.listen(0, "127.0.0.1", ready));
    const other = new OpenAI({ baseURL: `http://127.0.0.1:${proxy.address().port}/v1`, apiKey: "none" });
    const answer = await other.chat.completions.create({ model: "tales", messages: user, max_tokens: 3 });
    check(n === 3 && answer.choices.length === 1, n);
    proxy.close();
    proxy.closeAllConnections();
});

const metric = async (name) => Number((await (await fetch(`${base}/metrics`)).text()).match(
    new RegExp(`^whit:${name}{model="tales"} (\\S+)`, "m"))[1]);

await test("openai: a stream that is left ends on the server", async () => {
    const before = await metric("requests_cancelled_total");
    const stream = await openai.completions.create({
        model: "tales", prompt: "Once", max_tokens: 100000, stream: true, ignore_eos: true });
    for await (const chunk of stream) {
        void chunk;
        break;
    }
    stream.controller.abort();
    for (let i = 0; i < 200 && await metric("requests_processing") > 0; i++) await new Promise((next) => setTimeout(next, 20));
    check(await metric("requests_processing") === 0 && await metric("requests_cancelled_total") > before, "it goes on");
});

// Whole replies and events by path. A chunk with a call of a custom tool is not among OpenAI's own types.
const declared = { "/v1/chat/completions": ["Chat", "ChatChunk"], "/v1/responses": ["Response", "ResponseEvent"],
    "/v1/messages": ["Message", "MessageEvent"], "/v1/embeddings": ["Embeddings"] };

await test("recorded requests: replies and events as the vendors declare them", async () => {
    let n_checked = 0;
    for (const file of fs.readdirSync(process.env.REQUESTS)) {
        const { requests } = JSON.parse(fs.readFileSync(`${process.env.REQUESTS}/${file}`));
        for (const request of requests) {
            const types = declared[request.path.split("?")[0]];
            if (!types || request.method || (request.status ?? 200) !== 200) continue;
            for (const model of request.models ?? ["tales"]) {
                const reply = await fetch(base + request.path, { method: "POST", headers: request.headers,
                    body: JSON.stringify({ model, seed: 7, ...request.body }) });
                const text = await reply.text();
                const events = request.body.stream ? text.split("\n").filter((line) => line.startsWith("data: {"))
                    .map((line) => JSON.parse(line.slice(6))) : [];
                if (!events.length) conforms(types[0], JSON.parse(text));
                for (const event of events) {
                    if (event.choices?.[0]?.delta.tool_calls?.[0].custom) continue;
                    if (event.response) conforms("Response", event.response);
                    else conforms(types[1], event);
                }
                n_checked += events.length || 1;
            }
        }
    }
    check(n_checked > 60, n_checked, "replies and events");
    console.log(n_checked, "replies and events of recorded requests");
});

// ---- the others --------------------------------------------------------------------------------------

await test("anthropic: messages, streams, tools, counts", async () => {
    const anthropic = new Anthropic({ baseURL: base, apiKey: "none" });
    const body = { model: "tales", max_tokens: 30, messages: user };
    const whole = await anthropic.messages.create(body);
    conforms("Message", whole);
    check(whole.content[0].text.length > 10 && whole.stop_reason === "max_tokens", whole);
    const stream = anthropic.messages.stream(body);
    stream.on("streamEvent", (event) => conforms("MessageEvent", event));
    const final = await stream.finalMessage();
    conforms("Message", final);
    check((await stream.finalText()).length > 10, final);
    conforms("TokenCount", await anthropic.messages.countTokens({ model: "tales", messages: user }));
    const called = await anthropic.messages.create({
        ...body, model: "tools", max_tokens: 200, temperature: 1, tool_choice: { type: "tool", name: "weather", disable_parallel_tool_use: true },
        tools: [{ name: "weather", description: "The weather", input_schema: weather.function.parameters }],
    });
    conforms("Message", called);
    check(called.stop_reason === "tool_use" && isWeather(called.content[0].input), called);
    const error = await fails(400, anthropic.messages.create({ ...body, max_tokens: 0 }), "max_tokens 0");
    check(error.error?.type === "error" && error.error.error.type === "invalid_request_error", error.error);
});

await test("ollama: chat, generate, embed, lists, errors", async () => {
    const wire = [];
    const fetching = async (...given) => {
        const reply = await fetch(...given);
        if (!String(given[0]).includes("/api/show")) wire.push(reply.clone().text());
        return reply;
    };
    const ollama = new Ollama({ host: base, fetch: fetching });
    const options = { temperature: 0, num_predict: 16 };
    const chat = await ollama.chat({ model: "tales", messages: user, options });
    conforms("OllamaChat", JSON.parse(await wire.pop()));
    let text = "";
    for await (const part of await ollama.chat({ model: "tales", messages: user, options, stream: true })) text += part.message.content;
    const lines = (await wire.pop()).trim().split("\n").map((line) => JSON.parse(line));
    lines.forEach((line) => conforms(line.done ? "OllamaChat" : "OllamaPart", line));
    check(lines.at(-1).done && lines.length > 1, lines);
    check(text === chat.message.content && text.length > 5, text, chat);
    const made = await ollama.generate({ model: "tales", prompt: "Once upon a time", options });
    conforms("OllamaGenerate", JSON.parse(await wire.pop()));
    check(made.done && made.response.length > 5, made);
    const form = await ollama.chat({ model: "tales", messages: user, options: { temperature: 1.4 }, format: {
        type: "object", properties: { pet: { enum: ["cat", "dog"] } }, required: ["pet"] } });
    check(["cat", "dog"].includes(JSON.parse(form.message.content).pet), form);
    wire.length = 0;
    const embedded = await ollama.embed({ model: "tales", input: ["a", "b"] });
    conforms("OllamaEmbed", JSON.parse(await wire.pop()));
    check(embedded.embeddings.length === 2, embedded);
    check((await ollama.list()).models.some((model) => model.name === "tools"), "list");
    check((await ollama.show({ model: "tales" })).capabilities.includes("completion"), "show");
    check((await ollama.ps()).models.length > 0 && (await ollama.version()).version, "ps, version");
    let refused;
    await ollama.chat({ model: "nobody", messages: user }).catch((error) => refused = error);
    check(refused?.status_code === 404, String(refused));
});

await test("langchain: invoke, stream, tools, structured output, embeddings", async () => {
    const configuration = { baseURL: `${base}/v1` };
    const chat = new ChatOpenAI({ model: "tales", apiKey: "none", maxTokens: 20, temperature: 0, configuration });
    const whole = await chat.invoke("a cat");
    let text = "";
    for await (const chunk of await chat.stream("a cat")) text += chunk.content;
    check(text === whole.content && text.length > 5, text, whole.content);
    const tools = new ChatOpenAI({ model: "tools", apiKey: "none", maxTokens: 300, temperature: 1, configuration });
    const called = await tools.bindTools([weather], { tool_choice: "weather", parallel_tool_calls: false }).invoke("a cat");
    check(called.tool_calls.length === 1 && isWeather(called.tool_calls[0].args), called.tool_calls);
    const Pet = z.object({ kind: z.enum(["cat", "dog"]) });
    const formed = await tools.withStructuredOutput(Pet, { method: "jsonSchema" }).invoke("a cat");
    check(Pet.safeParse(formed).success, formed);
    const by_call = await tools.withStructuredOutput(Pet, { method: "functionCalling" }).invoke("a cat");
    check(Pet.safeParse(by_call).success, by_call);
    const vectors = await new OpenAIEmbeddings({ model: "tales", apiKey: "none", configuration }).embedDocuments(["a", "b"]);
    check(vectors.length === 2 && vectors[0].length > 8, vectors.length);
});

await test("ai-sdk: text, stream, tools, objects", async () => {
    const provider = createOpenAICompatible({ name: "whit", baseURL: `${base}/v1`, supportsStructuredOutputs: true });
    const whole = await generateText({ model: provider("tales"), prompt: "a cat", maxOutputTokens: 20, temperature: 0 });
    check(whole.text.length > 5 && whole.usage.outputTokens > 5, whole.text, whole.usage);
    let text = "";
    for await (const part of streamText({ model: provider("tales"), prompt: "a cat", maxOutputTokens: 20, temperature: 0 }).textStream)
        text += part;
    check(text === whole.text, text, whole.text);
    const called = await generateText({
        model: provider("tools"), prompt: "a cat", toolChoice: "required", maxOutputTokens: 300, temperature: 1,
        tools: { weather: tool({ description: "The weather", inputSchema: jsonSchema(weather.function.parameters) }) },
    });
    check(called.toolCalls.length > 0 && called.toolCalls.slice(0, 1).every((call) => isWeather(call.input)), called.toolCalls);
    const controller = new AbortController();
    const left = streamText({ model: provider("tales"), prompt: "a cat", maxOutputTokens: 3000, abortSignal: controller.signal });
    for await (const part of left.textStream) {
        void part;
        controller.abort();
        break;
    }
});

await test("ai-sdk: Anthropic's and OpenAI's own providers", async () => {
    const anthropic = createAnthropic({ baseURL: `${base}/v1`, apiKey: "none" });
    const responses = createOpenAI({ baseURL: `${base}/v1`, apiKey: "none" });
    const tools = { weather: tool({ description: "The weather", inputSchema: jsonSchema(weather.function.parameters) }) };
    for (const provider of [anthropic, responses, responses.chat]) {
        const asked = { prompt: "a cat", maxOutputTokens: 20, temperature: 0 };
        const whole = await generateText({ ...asked, model: provider("tales") });
        let text = "";
        for await (const part of streamText({ ...asked, model: provider("tales") }).textStream) text += part;
        check(text === whole.text && text.length > 5, text, whole.text);
        const called = await generateText({
            model: provider("tools"), prompt: "a cat", toolChoice: { type: "tool", toolName: "weather" }, tools,
            maxOutputTokens: 300, temperature: 1,
        });
        check(called.toolCalls.length > 0 && isWeather(called.toolCalls[0].input), called.toolCalls);
    }
});

await test("google: content, streams, calls, schemas, counts, vectors, errors", async () => {
    const google = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: base } });
    const body = { model: "tales", contents: "a cat", config: { maxOutputTokens: 20, temperature: 0, systemInstruction: "Be brief." } };
    const whole = await google.models.generateContent(body);
    let text = "";
    for await (const part of await google.models.generateContentStream(body)) text += part.text ?? "";
    check(text === whole.text && text.length > 5, text, whole.text);
    const called = await google.models.generateContent({ model: "tools", contents: "a cat", config: {
        maxOutputTokens: 400, tools: [{ functionDeclarations: [{ name: "weather", description: "The weather",
            parametersJsonSchema: weather.function.parameters }] }],
        toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["weather"] } } } });
    check(called.functionCalls?.length > 0 && isWeather(called.functionCalls[0].args), called);
    const formed = await google.models.generateContent({ model: "tales", contents: "a cat", config: {
        responseMimeType: "application/json", responseSchema: { type: "OBJECT", required: ["pet"], properties: {
            pet: { anyOf: [{ type: "STRING", enum: ["cat", "dog"] }] } } } } });
    check(["cat", "dog"].includes(JSON.parse(formed.text).pet), formed.text);
    check((await google.models.countTokens({ model: "tales", contents: "a cat" })).totalTokens > 1, "tokens");
    const vectors = await google.models.embedContent({ model: "tales", contents: ["a", "b"], config: { outputDimensionality: 4 } });
    check(vectors.embeddings.length === 2 && vectors.embeddings[1].values.length === 4, vectors);
    await fails(404, google.models.generateContent({ ...body, model: "nobody" }), "no such model");
    const names = [];
    for await (const model of await google.models.list()) names.push(model.name);
    check(names.includes("models/tales"), names);
});

await test("llamaindex: chat, stream, calls, vectors", async () => {
    const own = { apiKey: "none", baseURL: `${base}/v1`, maxTokens: 20, temperature: 0 };
    const chat = new LlamaIndex({ ...own, model: "tales" });
    const whole = await chat.chat({ messages: user });
    let text = "";
    for await (const part of await chat.chat({ messages: user, stream: true })) text += part.delta;
    check(text === whole.message.content && text.length > 5, text, whole.message);
    const caller = new LlamaIndex({ ...own, model: "tools", maxTokens: 300, temperature: 1, additionalChatOptions: {
        tool_choice: "required", parallel_tool_calls: false }, supportToolCall: true });
    const called = await caller.chat({ messages: user, tools: [{ call: () => "sunny", metadata: {
        name: "weather", description: "The weather", parameters: weather.function.parameters } }] });
    const calls = called.message.options?.toolCall ?? [];
    check(calls.length === 1 && isWeather(typeof calls[0].input === "string" ? JSON.parse(calls[0].input) : calls[0].input), called);
    const vectors = await new OpenAIEmbedding({ ...own, model: "tales" }).getTextEmbeddings(["a", "b"]);
    check(vectors.length === 2 && vectors[0].length > 8, vectors.length);
});

await test("mastra: an agent, streamed, with a tool", async () => {
    const { Agent } = await import("@mastra/core/agent");
    const { createTool } = await import("@mastra/core/tools");
    const provider = (name) => ({ id: `whit/${name}`, url: `${base}/v1`, apiKey: "none" });
    const settings = { modelSettings: { maxOutputTokens: 20, temperature: 0 } };
    const agent = new Agent({ id: "teller", name: "teller", instructions: "Be brief.", model: provider("tales") });
    const whole = await agent.generate("a cat", settings);
    let text = "";
    for await (const part of (await agent.stream("a cat", settings)).textStream) text += part;
    check(text === whole.text && text.length > 5, text, whole.text);
    const ran = [];
    const acting = new Agent({ id: "actor", name: "actor", instructions: "Be brief.", model: provider("tools"), tools: {
        weather: createTool({ id: "weather", description: "The weather",
            inputSchema: z.object({ city: z.enum(["Bern", "Rome"]), days: z.number().int().min(1).max(9) }),
            execute: async (input) => { ran.push(input.context ?? input); return { sky: "clear" }; } }) } });
    await acting.generate("a cat", { maxSteps: 1, toolChoice: "required", modelSettings: { maxOutputTokens: 300, temperature: 1 } });
    check(ran.length > 0 && isWeather(ran[0]), ran);
});

await test("zod: every kind of schema is taken, and held where the answer ends", async () => {
    const Node = z.object({ value: z.number().int(), get next() { return Node.nullable(); } });
    const kinds = {
        string: z.string().max(20), email: z.email(), uuid: z.uuid(), url: z.url(), datetime: z.iso.datetime(), date: z.iso.date(),
        time: z.iso.time(), duration: z.iso.duration(), ipv4: z.ipv4(), ipv6: z.ipv6(), cidrv4: z.cidrv4(), cidrv6: z.cidrv6(),
        base64: z.base64(), base64url: z.base64url(), e164: z.e164(), cuid: z.cuid(), cuid2: z.cuid2(), ulid: z.ulid(),
        nanoid: z.nanoid(), ksuid: z.ksuid(), xid: z.xid(), starts: z.string().startsWith("ab"), ends: z.string().endsWith("yz"),
        includes: z.string().includes("mn"), regex: z.string().regex(/^[a-f]{2,4}$/), integer: z.number().int().min(-5).max(70),
        real: z.number().min(0).max(1), multiple: z.number().int().multipleOf(5), boolean: z.boolean(), null: z.null(),
        literal: z.literal("only"), enum: z.enum(["a", "b"]), nullable: z.enum(["a"]).nullable(),
        optional: z.object({ a: z.boolean().optional() }), array: z.array(z.boolean()).min(1).max(3),
        tuple: z.tuple([z.boolean(), z.enum(["a"])]), record: z.record(z.string(), z.boolean()),
        union: z.union([z.boolean(), z.literal(7)]),
        discriminated: z.discriminatedUnion("kind", [z.object({ kind: z.literal("a") }), z.object({ kind: z.literal("b"), n: z.boolean() })]),
        intersection: z.intersection(z.object({ a: z.boolean() }), z.object({ b: z.boolean() })), recursive: Node,
        default: z.object({ a: z.boolean().default(true) }), unknown: z.object({ a: z.unknown() }),
        strict: z.strictObject({ a: z.boolean() }), described: z.boolean().describe("a switch").meta({ title: "T", examples: [true] }),
    };
    let n_held = 0;
    for (const [name, kind] of Object.entries(kinds)) {
        const schema = z.toJSONSchema(z.object({ value: kind }));
        const answer = await openai.chat.completions.create({
            model: "tales", messages: user, seed: 3, temperature: 1, max_tokens: 80,
            response_format: { type: "json_schema", json_schema: { name: "one", strict: true, schema } },
        }).catch((error) => check(false, "zod", name, String(error)));
        if (answer?.choices[0].finish_reason !== "stop") continue;
        const value = JSON.parse(answer.choices[0].message.content);
        check(z.object({ value: kind }).safeParse(value).success, "zod", name, value);
        n_held++;
    }
    check(Object.keys(kinds).length >= 30 && n_held >= 30, n_held, "answers ended");
});

console.log(`${n_tests} tests of clients, ${failures} failures`);
process.exit(failures ? 1 : 0);
