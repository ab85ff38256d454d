import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { LOOPBACK } from './names.ts';

/**
 * The application of the account: accepts webhook calls with a valid signature (https://www.standardwebhooks.com), and
 * each event once.
 */
export interface WebhookReceiver {
  /** URL for webhook calls. */
  url: string;
  /** Sets the webhook's secret; all calls are rejected before. */
  trust(secret: string): void;
  /** Resolves with one call of each type, in order of arrival; each call is returned once. */
  received(...types: string[]): Promise<ReceivedCall[]>;
  /** Ids of all received events. */
  eventIds(): ReadonlySet<string>;
  /** Calls `listener` with every further call. */
  onCall(listener: (call: ReceivedCall) => void): void;
  close(): Promise<void>;
}

/** The fields of a call that the demo reads; `object` is a message or a domain. */
export interface ReceivedCall {
  id: string;
  type: string;
  data: { object: { recipient?: string; domain?: string } };
}

const CALL_TIMEOUT_MS = 10_000;
/** Older calls are rejected as replays. */
const MAX_AGE_S = 5 * 60;

/**
 * Listens on a free port of the loopback address until `close`; rejects when it cannot bind. Responds with 401 without
 * a valid signature, else with 204. `received` rejects after 10 s, and only one call of it may wait at a time.
 */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const eventIds = new Set<string>();
  const arrived: ReceivedCall[] = [];
  let key: Buffer | null = null;
  let listener: ((call: ReceivedCall) => void) | null = null;
  let check = () => {};

  function accept(call: ReceivedCall): void {
    if (eventIds.has(call.id)) return;
    eventIds.add(call.id);
    if (listener) return listener(call);
    arrived.push(call);
    check();
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      if (key === null || !isSigned(key, request.headers, body)) return response.writeHead(401).end();
      accept(JSON.parse(body) as ReceivedCall);
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
    received: (...types) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`no webhook call for ${types.join(', ')}`)),
          CALL_TIMEOUT_MS,
        );
        check = () => {
          const calls = pick(arrived, types);
          if (calls === null) return;
          check = () => {};
          clearTimeout(timer);
          for (const call of calls) arrived.splice(arrived.indexOf(call), 1);
          resolve(calls);
        };
        check();
      }),
    eventIds: () => eventIds,
    onCall: (callback) => {
      listener = callback;
      for (const call of arrived.splice(0)) callback(call);
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Whether one of the signatures is valid: during a rotation of the secret there are several. */
function isSigned(key: Buffer, headers: IncomingHttpHeaders, body: string): boolean {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    String(headers[`webhook-${name}`]),
  );
  const ageInS = Date.now() / 1000 - Number(timestamp);
  if (!(Math.abs(ageInS) < MAX_AGE_S)) return false;
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
  return (signatures ?? '').split(' ').some((signature) => {
    const actual = Buffer.from(signature.replace('v1,', ''), 'base64');
    return actual.length === expected.length && timingSafeEqual(actual, expected);
  });
}

/** One call of each type, in order of arrival; null while one is missing. */
function pick(calls: readonly ReceivedCall[], types: readonly string[]): ReceivedCall[] | null {
  const missing = [...types];
  const found = calls.filter(({ type }) => {
    const at = missing.indexOf(type);
    return at !== -1 && missing.splice(at, 1).length === 1;
  });
  return missing.length === 0 ? found : null;
}
