import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { LOOPBACK } from './names.ts';

/**
 * The account's own program, which wants to know what becomes of its mail: it takes webhook calls, believes
 * those alone whose signature is right, and takes no event twice (https://www.standardwebhooks.com).
 */
export interface Shop {
  /** Where it takes webhook calls. */
  url: string;
  /** Before it knows its webhook's secret, it believes nothing. */
  trust(secret: string): void;
  /** Resolves when it has been told of all these kinds; each call is handed out once, in the order of arrival. */
  told(...kinds: string[]): Promise<WebhookCall[]>;
  /** The ids of all events that it has been told of. */
  known(): ReadonlySet<string>;
  /** From now on every call is told of as it comes. */
  onCall(listener: (call: WebhookCall) => void): void;
  close(): Promise<void>;
}

/** What it reads of a call: an event is about a mail to somebody, or about a domain. */
export interface WebhookCall {
  id: string;
  type: string;
  data: { object: { recipient?: string; domain?: string } };
}

const PATIENCE_MS = 10_000;
/** A call that is older was kept by somebody, to be made again. */
const MAX_AGE_S = 5 * 60;

export async function startShop(): Promise<Shop> {
  const known = new Set<string>();
  const arrived: WebhookCall[] = [];
  let key: Buffer | null = null;
  let listener: ((call: WebhookCall) => void) | null = null;
  let look = () => {};

  function take(call: WebhookCall): void {
    if (known.has(call.id)) return;
    known.add(call.id);
    if (listener) return listener(call);
    arrived.push(call);
    look();
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      if (key === null || !isSigned(key, request.headers, body)) return response.writeHead(401).end();
      take(JSON.parse(body) as WebhookCall);
      return response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, LOOPBACK, resolve);
  });
  const bound = server.address();
  return {
    url: `http://${LOOPBACK}:${typeof bound === 'object' && bound !== null ? bound.port : 0}/webhook`,
    trust: (secret) => {
      key = Buffer.from(secret.replace('whsec_', ''), 'base64');
    },
    told: (...kinds) =>
      new Promise((resolve, reject) => {
        const tooLong = setTimeout(
          () => reject(new Error(`the shop was not told of ${kinds.join(', ')}`)),
          PATIENCE_MS,
        );
        look = () => {
          const calls = pick(arrived, kinds);
          if (calls === null) return;
          look = () => {};
          clearTimeout(tooLong);
          for (const call of calls) arrived.splice(arrived.indexOf(call), 1);
          resolve(calls);
        };
        look();
      }),
    known: () => known,
    onCall: (tell) => {
      listener = tell;
      for (const call of arrived.splice(0)) tell(call);
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Any of the signatures will do: while a secret is being changed, there are several. */
function isSigned(key: Buffer, headers: IncomingHttpHeaders, body: string): boolean {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    String(headers[`webhook-${name}`]),
  );
  const ageInS = Date.now() / 1000 - Number(timestamp);
  if (!(Math.abs(ageInS) < MAX_AGE_S)) return false;
  const right = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
  return (signatures ?? '').split(' ').some((signature) => {
    const given = Buffer.from(signature.replace('v1,', ''), 'base64');
    return given.length === right.length && timingSafeEqual(given, right);
  });
}

/** One call of each kind, in the order of arrival; null while one is missing. */
function pick(calls: readonly WebhookCall[], kinds: readonly string[]): WebhookCall[] | null {
  const missing = [...kinds];
  const found = calls.filter(({ type }) => {
    const at = missing.indexOf(type);
    return at !== -1 && missing.splice(at, 1).length === 1;
  });
  return missing.length === 0 ? found : null;
}
