/* SPDX-License-Identifier: MIT
 * Sends requests to the server, and receives the answers that this tab writes: one for each conversation at a time. An
 * answer continues while another conversation is shown. */

const answers = new Map(); // conversation id -> {abort, message}
let models = [], properties = {}; // replies of GET v1/models, and of GET props by model

const currentModel = () => models.find(m => m.id === $("model").value) || models[0] || {id: ""};
const contextTokens = (id = currentModel().id) => models.find(m => m.id === id)?.meta?.n_ctx || 0; // 0: not known

function requestHeaders() {
  const key = apiKey();
  return {"Content-Type": "application/json", ...(key ? {Authorization: "Bearer " + key} : {})};
}

/* Returns the error of a reply whose status is not 200, as a sentence. */
async function replyError(reply) {
  const why = await reply.json().catch(() => null);
  const error = new Error((why && why.error ? why.error.message : "the server answered " + reply.status) +
    (reply.status === 401 ? " (Settings has a field for it)" : ""));
  error.code = why && why.error && why.error.code;
  return error;
}

async function postJson(path, body, signal) {
  const reply = await fetch(path, {method: "POST", headers: requestHeaders(), signal, body: JSON.stringify(body)});
  if (!reply.ok) throw await replyError(reply);
  return reply;
}

/* Returns the members of a request that the conversation's settings ask for. */
function requestSettings(c) {
  const body = {model: currentModel().id, ...c.sampling};
  const adapters = models.filter(m => m.is_adapter && c.adapters[m.id] !== undefined).map(m => [m.id, c.adapters[m.id]]);
  if (adapters.length) body.adapters = Object.fromEntries(adapters);
  if (c.thinking) body.chat_template_kwargs = {enable_thinking: c.thinking === "on"};
  if (c.format === "json") body.response_format = {type: "json_object"};
  if (c.format === "schema") body.response_format = {type: "json_schema", json_schema: {name: "answer", schema: JSON.parse(c.schema)}};
  return body;
}

/* ---- a full context ------------------------------------------------------------------------------ */

/* Leaves out the oldest turns so that a quarter of the context remains for the answer. If turns must be left out,
 * enough are left out to make half of the context free, so that the next questions need not drop any. Returns the
 * messages, with the system message, and the id of the first message that is sent, "" if all are sent. `whit chat` does
 * the same. */
async function fitContext(body, messages, system, firstKept, signal) {
  const n_ctx = contextTokens(body.model), first = system ? [{role: "system", content: system}] : [];
  let from = Math.max(0, messages.findIndex(m => m.id === firstKept));
  const listed = () => [...first, ...messages.slice(from).map(({role, content}) => ({role, content}))];
  const size = () => listed().reduce((n, m) => n + m.content.length + 20, 0);
  const room = Math.min(n_ctx / 4, body.max_tokens || Infinity);
  // Nearly every token has at least one character.
  for (let limit = n_ctx - room; n_ctx && size() > limit; limit = n_ctx / 2) {
    const {n_tokens} = await (await postJson("v1/chat/completions/render", {...body, messages: listed()}, signal)).json();
    if (n_tokens <= limit) break;
    const next = firstToKeep(messages, from, n_tokens, n_ctx / 2);
    if (next === from && n_tokens >= n_ctx)
      throw new Error(`The message and what must stand around it are ${n_tokens} tokens, and the model reads ` +
        `${n_ctx} at most: make it shorter.`);
    if (next === from) break;
    from = next;
  }
  return {messages: listed(), firstKept: from ? messages[from].id : ""};
}

/* ---- an answer ----------------------------------------------------------------------------------- */

/* Yields the events of a stream as objects. */
async function* readEvents(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "";;) {
    const {value, done} = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}

/* Adds a question after the branch that is shown, and answers it. */
function sendMessage(c, content, files = [], parent) {
  if (answers.has(c.id) || !(content.trim() || files.length)) return;
  const path = shownPath(c);
  if (parent === undefined) parent = path.length ? path[path.length - 1].message.id : "";
  if (!c.title) c.title = (content.trim() || files[0].name).slice(0, 60);
  const message = readMessage({role: "user", content, parent, files, created: nextTime()}, c.id);
  chooseBranch(c, message);
  saveRecord(message);
  answerMessage(c, message.id);
}

function chooseBranch(c, message) {
  c.chosen[message.parent] = message.id;
  c.updated = Date.now();
  saveRecord(c);
}

/* Answers the question `parent` with a new message, or continues the answer `continued`. */
async function answerMessage(c, parent, continued) {
  if (answers.has(c.id)) return;
  const message = continued || readMessage({role: "assistant", parent, created: nextTime()}, c.id);
  const before = continued ? {...message} : null, mine = {abort: new AbortController(), message};
  Object.assign(message, {state: "writing", error: "", note: ""});
  answers.set(c.id, mine);
  saveRecord(message);
  chooseBranch(c, message);
  showConversation(c.id);
  say("Answering");
  try {
    message.state = await writeAnswer(c, message, !!continued, mine.abort.signal);
    say("Answer complete");
  } catch (e) {
    message.state = "cut";
    if (e.name === "AbortError") { message.state = "stopped"; message.note = "stopped"; say("Stopped") }
    else { message.error = e instanceof TypeError ? "The server does not answer: " + e.message : e.message; say(message.error) }
    if (before && !message.error && message.content === before.content) message.state = before.state;
  }
  answers.delete(c.id);
  if (!library.conversations.has(c.id)) return; // the conversation was deleted for good meanwhile
  saveRecord(c, true);
  saveRecord(message);
  showConversation(c.id);
}

/* Receives an answer into its message. Returns how it ended: "done" or "full". */
async function writeAnswer(c, message, isContinued, signal) {
  const path = shownPath(c), end = path.findIndex(p => p.message === message), body = requestSettings(c);
  const sent = path.slice(0, end + (isContinued ? 1 : 0)).map(p => p.message), n_ctx = contextTokens(body.model);
  const last = sent.findLast(m => m.firstKept && m.keptTokens === n_ctx);
  c.model = body.model; // another model may be chosen while this one answers
  if (isContinued) Object.assign(body, {continue_final_message: true, add_generation_prompt: false});
  const system = c.system || globalSettings().system;
  const fit = await fitContext(body, requestMessages(sent), system, last ? last.firstKept : "", signal);
  if (isContinued && message.thinking) fit.messages[fit.messages.length - 1].reasoning_content = message.thinking;
  Object.assign(message, {firstKept: fit.firstKept, keptTokens: n_ctx});
  const begun = performance.now();
  let first = 0, tokens = 0, finish = "";
  const reply = await postJson("v1/chat/completions",
    {...body, messages: fit.messages, stream: true, stream_options: {include_usage: true}}, signal);
  for await (const event of readEvents(reply)) {
    if (event.usage) { c.used = event.usage.total_tokens; tokens = event.usage.completion_tokens }
    const choice = event.choices && event.choices[0] || {}, delta = choice.delta || {};
    finish = choice.finish_reason || finish;
    if (!delta.content && !delta.reasoning_content) continue;
    first = first || performance.now();
    message.content += delta.content || "";
    message.thinking += delta.reasoning_content || "";
    saveRecord(message, true);
    drawLater(message);
  }
  if (!finish) throw new Error("The answer was cut off: the connection ended.");
  const now = performance.now(); // a short answer comes all at once, and then the time of the whole request counts
  const seconds = (now - (now - first > 50 ? first : begun)) / 1000;
  if (first && tokens > 1 && seconds > 0) {
    $("speed").textContent = ((tokens - 1) / seconds).toFixed(1) + " tokens/s";
    message.note = tokens + " tokens, " + $("speed").textContent;
  }
  if (finish !== "length") return "done";
  const isFull = c.used + 1 >= n_ctx;
  message.note += (message.note ? ", " : "") + (isFull ? "the context is full" : "the most tokens that the settings allow");
  return "full";
}

function stopAnswer(c) { answers.get(c.id)?.abort.abort() }

/* ---- the server ---------------------------------------------------------------------------------- */

async function loadModels() {
  try {
    const reply = await fetch("v1/models", {headers: requestHeaders()});
    if (!reply.ok) throw await replyError(reply);
    models = (await reply.json()).data;
    const chosen = $("model").value || globalSettings().model;
    $("model").replaceChildren(...models.filter(m => !m.is_adapter).map(m => make("option", m.id, {value: m.id})));
    if (models.some(m => m.id === chosen && !m.is_adapter)) $("model").value = chosen;
    await loadProperties();
  } catch (e) { report("The server does not answer: " + e.message) }
  showAll();
}

/* Reads the properties of the current model, or of another that is open: reading the properties of a closed
 * model would open it before its first question. */
async function loadProperties() {
  const open = models.filter(m => m.meta?.is_open), model = open.find(m => m.id === currentModel().id) || open[0];
  if (!model || properties[model.id]) return;
  const reply = await fetch("props?model=" + encodeURIComponent(model.id), {headers: requestHeaders()});
  if (reply.ok) properties[model.id] = await reply.json();
}
