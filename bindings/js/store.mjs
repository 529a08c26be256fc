// SPDX-License-Identifier: MIT
// Downloaded models in the browser's private file system (OPFS); there is no such store elsewhere.
const storeName = "whit-models";

async function storedFile(address, mayCreate) {
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle(storeName, { create: true });
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(address));
  const name = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [folder, name, await folder.getFileHandle(name, { create: mayCreate })];
}

/** The stored copy of an address; null if there is none or no store (Node, an insecure page). */
export async function readStored(address) {
  try {
    const [, , handle] = await storedFile(address, false);
    return await handle.getFile();
  } catch {
    return null;
  }
}

/** Keeps a copy. It is complete or absent: a writable file takes the old one's place when it is closed. A full disk is no
 * failure; then the next visit downloads again. */
export async function writeStored(address, bytes) {
  try {
    const [folder, name, handle] = await storedFile(address, true);
    try {
      const writable = await handle.createWritable();
      await writable.write(bytes);
      await writable.close();
    } catch {
      await folder.removeEntry(name);
    }
  } catch {
    // No store here.
  }
}

/** Removes all stored copies. */
export async function clearStored() {
  try {
    await (await navigator.storage.getDirectory()).removeEntry(storeName, { recursive: true });
  } catch {
    // No store here, or nothing in it.
  }
}
