import type { IncomingMessage } from 'node:http';

/**
 * Form fields of a POST to a public page: URL-encoded, as browsers send them, or `multipart/form-data`, as mailbox
 * providers may (RFC 8058 §3.1). The size is limited; otherwise parsing is lenient, so that an opt-out does not fail
 * because of its format.
 */
export type Fields = ReadonlyMap<string, string>;

/** Larger than any form of these pages. */
const MAX_BYTES = 16 * 1024;

/** Reads the fields, names in lower case, the first of equal ones. 'too-large'; null when the client disconnected. */
export async function readFields(req: IncomingMessage): Promise<Fields | 'too-large' | null> {
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

/** RFC 7578; line ends may lack their CR. */
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
    // Also emitted after `end`, where it has no effect.
    req.on('close', () => resolve(null));
    req.on('error', () => resolve(null));
  });
}
