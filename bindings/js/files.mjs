// SPDX-License-Identifier: MIT
// Bytes of models: from a file, an address or memory into the module's memory.
import { WhitError } from "./engine.mjs";
import { readStored, writeStored } from "./store.mjs";

/** Reads a stream whose length is known or not into memory of the library; returns [address, bytes]. */
async function readStream(library, stream, length, name, progress) {
  let capacity = length || 1 << 20, at = library.allocate(capacity), size = 0;
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (size + value.length > capacity) {
        capacity = Math.max(2 * capacity, size + value.length);
        const larger = library.allocate(capacity);
        library.bytes.copyWithin(larger, at, at + size);
        library.free(at);
        at = larger;
      }
      library.bytes.set(value, at + size);
      size += value.length;
      progress(size, length);
    }
    if (length && size !== length) throw new WhitError(`${name}: ended after ${size} of ${length} bytes`, "io");
    return [at, size];
  } catch (error) {
    library.free(at);
    throw error;
  }
}

/** Reads what `source` names: {address}, {blob} or {bytes}. Returns [address in memory, bytes]. */
export async function readSource(library, source, { cache, signal, progress }) {
  if (source.bytes) {
    const at = library.allocate(source.bytes.length);
    library.bytes.set(source.bytes, at);
    return [at, source.bytes.length];
  }
  if (source.blob) return readStream(library, source.blob.stream(), source.blob.size, source.name, progress);
  const stored = cache ? await readStored(source.address) : null;
  if (stored) return readStream(library, stored.stream(), stored.size, source.name, progress);
  const response = await fetch(source.address, { signal }).catch((error) => {
    throw error.name === "AbortError" ? error : new WhitError(`${source.address}: cannot be fetched: ${error.message}`, "io");
  });
  if (!response.ok) throw new WhitError(`${source.address}: the server says ${response.status} ${response.statusText}`, "io");
  // A compressed answer's length is not that of its content.
  const length = response.headers.get("content-encoding") ? 0 : Number(response.headers.get("content-length")) || 0;
  const [at, size] = await readStream(library, response.body, length, source.name, progress);
  if (cache) await writeStored(source.address, library.bytes.slice(at, at + size));
  return [at, size];
}
