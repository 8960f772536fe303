// The file names of ids, as record/files.py makes them.

const LONGEST = 160;

/**
 * Return a file name for an id: the id itself if it is plain, else quoted.
 * @param {string} text
 */
export async function safeName(text) {
  let name = encodeURIComponent(text).replace(/%(2B|2C|3D|40)/g, (code) => decodeURIComponent(code));
  name = name.replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
  if (/^[.~-]/.test(name)) name = `%${name.charCodeAt(0).toString(16).toUpperCase()}${name.slice(1)}`;
  if (name.length > LONGEST) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
    const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
    name = `${name.slice(0, LONGEST)}%${hex.slice(0, 16)}`;
  }
  return name || "%";
}
