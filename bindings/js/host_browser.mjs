// SPDX-License-Identifier: MIT
// Browsers: workers are Workers, and every name is an address.

export function startWorker(onMessage, onFailure, script = new URL("./worker_browser.mjs", import.meta.url)) {
  const worker = new Worker(script, { type: "module" });
  worker.onmessage = (event) => onMessage(event.data);
  worker.onerror = (event) => onFailure(new Error(event.message || "the worker cannot be started"));
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    busy: () => {},
    end: () => worker.terminate(),
  };
}

export function listen(onMessage) {
  self.addEventListener("message", (event) => onMessage(event.data));
  return (message, transfer = []) => self.postMessage(message, transfer);
}

export function isFile() {
  return false;
}

export async function fileBytes(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: the server says ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

const channel = new MessageChannel();
const paused = [];
channel.port1.onmessage = () => paused.shift()();

/** Lets other messages of this thread in. */
export function pause() {
  return new Promise((resolve) => {
    paused.push(resolve);
    channel.port2.postMessage(0);
  });
}
