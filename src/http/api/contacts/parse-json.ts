/** The value of JSON that a client sent; undefined when it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller refuses it with the name of its field.
    return undefined;
  }
}
