import type { IncomingMessage } from 'node:http';

/*
 * Reads the fields of a POST to a public page, from a URL-encoded body, as browsers send it, or from
 * `multipart/form-data`, which mailbox providers may send (RFC 8058 §3.1). Limits the size and is otherwise lenient: an
 * unsubscribe request must not fail because of its format.
 */

/** Values by the names of the fields. */
export type FormFields = ReadonlyMap<string, string>;

/** More than any form of these pages sends. */
const MAX_BYTES = 16 * 1024;

/** Names in lower case; the first value of each. Null when the client disconnected. */
export async function readFormFields(req: IncomingMessage): Promise<FormFields | 'too-large' | null> {
  const bytes = await collect(req);
  if (!Buffer.isBuffer(bytes)) return bytes;
  const [, quoted, plain] =
    /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(req.headers['content-type'] ?? '') ?? [];
  const boundary = quoted ?? plain;
  const text = bytes.toString();
  const pairs = boundary === undefined ? [...new URLSearchParams(text.trim())] : multipart(text, boundary);
  const fields = new Map<string, string>();
  for (const [name, value] of pairs) {
    const key = name.toLowerCase();
    if (!fields.has(key)) fields.set(key, value.trim());
  }
  return fields;
}

/** RFC 7578; accepts line ends without CR. */
function multipart(text: string, boundary: string): [string, string][] {
  const parts = text.split(`--${boundary}`).slice(1);
  return parts.flatMap((part): [string, string][] => {
    const [head = '', ...rest] = part.replace(/^\r?\n/, '').split(/\r?\n\r?\n/);
    const [, quoted, plain] = /;\s*name=(?:"([^"]*)"|([^;\s]+))/i.exec(head) ?? [];
    const name = quoted ?? plain;
    return name === undefined ? [] : [[name, rest.join('\n\n')]];
  });
}

function collect(req: IncomingMessage): Promise<Buffer | 'too-large' | null> {
  if (Number(req.headers['content-length'] ?? 0) > MAX_BYTES) return Promise.resolve('too-large');
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_BYTES) resolve('too-large');
      else chunks.push(chunk);
    });
    req.on('end', () => resolve(Buffer.concat(chunks)));
    // Also emitted after `end`, without effect then.
    req.on('close', () => resolve(null));
    req.on('error', () => resolve(null));
  });
}
