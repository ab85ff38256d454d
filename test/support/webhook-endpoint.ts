import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A call that the endpoint received. */
export interface Received {
  headers: IncomingHttpHeaders;
  path: string;
  body: string;
  /** The payload. */
  json: { id: string; type: string; livemode: boolean; data: { object: Record<string, unknown> } };
}

/** The response to a call: a status, more of the response, or `nothing` when the test writes it. */
export type Answering = (
  received: Received,
  response: ServerResponse,
) =>
  | number
  | { status: number; headers?: Record<string, string>; body?: string }
  | 'nothing'
  | Promise<number>;

/** A receiver of webhooks on 127.0.0.1 whose responses a test sets. */
export interface Endpoint {
  url: string;
  port: number;
  /** All calls in order of arrival. */
  received: Received[];
  /** `webhook-id`s of the calls that were answered with 2xx. */
  taken(): string[];
  /** Sets the response to further calls. */
  answer(answering: Answering | number): void;
}

export async function startEndpoint(
  answering: Answering | number = 200,
  tls?: { key: string; cert: string },
) {
  const received: Received[] = [];
  const taken: string[] = [];
  let current = answering;

  const listener: Parameters<typeof createServer>[1] = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const call = { headers: request.headers, path: request.url ?? '', body, json: JSON.parse(body) };
      received.push(call);
      void respond(call, response);
    });
  };
  const respond = async (call: Received, response: ServerResponse) => {
    const reply = typeof current === 'number' ? current : await current(call, response);
    if (reply === 'nothing') return;
    const { status, headers = {}, body = '' } = typeof reply === 'number' ? { status: reply } : reply;
    if (status >= 200 && status < 300) taken.push(call.json.id);
    response.writeHead(status, headers).end(body);
  };

  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  // Bound to an address, not to a path.
  const { port } = server.address() as AddressInfo;
  const endpoint: Endpoint = {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/hooks?of=test`,
    port,
    received,
    taken: () => [...taken],
    answer: (next) => {
      current = next;
    },
  };
  return endpoint;
}
