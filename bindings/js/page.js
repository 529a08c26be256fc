// The demo page: tells and chats with the built-in model, or one from a file or an address.
const find = (id) => document.getElementById(id);
const log = find("log");
let model, chat, running;
let loads = 0; // counts loads: one that ends after a newer one was begun is dropped

async function bytesOf(id, isPacked) {
  const response = await fetch("data:application/octet-stream;base64," + find(id).textContent.trim());
  const stream = isPacked ? response.body.pipeThrough(new DecompressionStream("gzip")) : response.body;
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function add(kind, text) {
  const line = document.createElement("p");
  line.className = kind;
  line.textContent = text;
  log.append(line);
  return line;
}

async function load(source) {
  const number = ++loads;
  const say = (text) => number === loads && (find("about").textContent = text);
  find("send").disabled = true;
  model?.close();
  model = chat = undefined;
  try {
    const opened = await Model.open(source, {
      onProgress: (done, total) => say(`Loading: ${(done / 1e6).toFixed(1)} MB` + (total ? ` of ${(total / 1e6).toFixed(1)} MB` : "")),
    });
    if (number !== loads) return opened.close();
    model = opened;
    say(`${source === "tales" ? "tales, the built-in model" : source.name ?? source}: ${model.architecture}, context ${model.contextSize}`);
    find("mode").querySelector("[value=chat]").disabled = !model.hasChat;
    if (!model.hasChat) find("mode").value = "tell";
    find("send").disabled = false;
  } catch (error) {
    say(error.message);
  }
}

async function answer(prompt, isChat) {
  if (isChat) add("asked", prompt);
  const line = add("answer", isChat ? "" : prompt);
  running = new AbortController();
  find("send").disabled = true;
  find("stop").hidden = false;
  try {
    if (isChat) chat ??= await model.chat();
    const options = { signal: running.signal, maxTokens: 300 };
    const stream = isChat ? chat.stream(prompt, options) : model.generate(prompt, options);
    for await (const piece of stream) line.textContent += piece;
    const { tokens, generateMs } = await stream.result;
    if (generateMs) add("counts", `${tokens} tokens, ${(tokens / generateMs * 1000).toFixed(0)} per second`);
  } catch (error) {
    if (error.name !== "AbortError") add("failed", error.message);
  }
  find("stop").hidden = true;
  find("send").disabled = !model;
  line.scrollIntoView({ block: "nearest" });
}

find("form").onsubmit = (event) => {
  event.preventDefault();
  if (find("send").disabled) return;
  answer(find("prompt").value, find("mode").value === "chat");
};
find("prompt").onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  find("form").requestSubmit();
};
find("stop").onclick = () => running.abort();
find("clear").onclick = () => {
  running?.abort();
  chat?.close();
  chat = undefined;
  log.replaceChildren();
};
find("file").onchange = () => load(find("file").files[0]);
find("load").onsubmit = (event) => {
  event.preventDefault();
  load(find("address").value);
};
find("forget").onclick = () => clearStored();

const [worker, wasm, tales] = await Promise.all([bytesOf("worker", true), bytesOf("core", true), bytesOf("tales", false)]);
const script = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
setHost({ startWorker: (onMessage, onFailure) => startWorker(onMessage, onFailure, script), isFile, wasm, tales });
load("tales");
