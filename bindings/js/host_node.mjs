// SPDX-License-Identifier: MIT
// Node: workers are threads, and files are read by their names.
import { openAsBlob, promises as files } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker, parentPort } from "node:worker_threads";

export function startWorker(onMessage, onFailure) {
  const worker = new Worker(new URL("./worker_node.mjs", import.meta.url));
  worker.unref(); // an idle model does not keep the program running
  worker.on("message", onMessage);
  worker.on("error", onFailure);
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    busy: (isBusy) => (isBusy ? worker.ref() : worker.unref()),
    end: () => worker.terminate(),
  };
}

export function listen(onMessage) {
  parentPort.on("message", onMessage);
  return (message, transfer) => parentPort.postMessage(message, transfer);
}

/** Whether a name is that of a file here, rather than an address. */
export function isFile(name) {
  return !/^(https?|data|blob):/.test(name);
}

export async function fileBytes(name) {
  return new Uint8Array(await files.readFile(/^file:/.test(name) ? fileURLToPath(name) : name));
}

export async function fileSource(name) {
  const path = /^file:/.test(name) ? fileURLToPath(name) : name;
  await files.access(path).catch((error) => {
    throw Object.assign(new Error(`${path}: cannot be read (${error.code})`), { status: "io" });
  });
  if (openAsBlob) return { blob: await openAsBlob(path), name: path };
  return { bytes: new Uint8Array(await files.readFile(path)), name: path };
}

/** Lets other messages of this thread in. */
export function pause() {
  return new Promise((resolve) => setImmediate(resolve));
}
