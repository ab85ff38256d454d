import { connect, type Socket } from 'node:net';
import { epochNow, serveParent } from './benchmark-process.ts';
import { NUMBER_MARK } from './message.ts';
import { percentile } from './result.ts';

/**
 * The load generator of benchmarks, a separate process: sends requests over persistent HTTP connections, one at a time
 * on each, every message to another recipient. The request is encoded once and only the recipient and the numbers in place of
 * NUMBER_MARK change in it; of the
 * response only status and length are parsed: an HTTP client library would need more CPU time than the server.
 */
export interface LoadJob {
  kind: 'run';
  port: number;
  path: string;
  headers: Record<string, string>;
  /** The JSON body without `to`. */
  body: Record<string, unknown>;
  /** Domains of the recipients; names of equal length. */
  domains: string[];
  connections: number;
  /** Number of the first message; recipients are unique when the numbers of runs do not overlap. */
  first: number;
  count: number;
  /** Pauses after this number of messages until a LoadBound raises it; null: unbounded. */
  bound: number | null;
}

/** Ends the run after the pending responses. */
export interface LoadStop {
  kind: 'stop';
}

/** Raises the number of messages of the run that may be sent. */
export interface LoadBound {
  kind: 'bound';
  upTo: number;
}

export interface LoadReport {
  accepted: number;
  /** Number of responses other than 200, by status. */
  failed: Record<string, number>;
  /** The text of the first of those. */
  firstFailure: string;
  /** Epoch ms of the first request and the last response. */
  startedAt: number;
  endedAt: number;
  /** Response times, in ms. */
  p50: number;
  p99: number;
}

const DIGITS = 9;

let bound = Number.POSITIVE_INFINITY;
let resume = () => {};
let stop = () => {};

serveParent((received): Promise<LoadReport> | null => {
  // Sound: the benchmarks send these types.
  const message = received as LoadJob | LoadBound | LoadStop;
  if (message.kind === 'run') return run(message);
  if (message.kind === 'stop') stop();
  else {
    bound = message.upTo;
    resume();
  }
  return null;
});

async function run(job: LoadJob): Promise<LoadReport> {
  const failed: Record<string, number> = {};
  const report = { accepted: 0, failed, firstFailure: '' };
  const times = new Float64Array(job.count);
  const startedAt = epochNow();
  let started = 0;
  let answered = 0;
  const idle = new Set<() => void>();
  const sockets = new Set<Socket>();
  bound = job.bound ?? Number.POSITIVE_INFINITY;
  let count = job.count;

  const finished = new Promise<void>((resolve, reject) => {
    const open = () => {
      const request = requestOf(job);
      const socket = connect({ port: job.port, host: '127.0.0.1', noDelay: true });
      sockets.add(socket);
      let pending = false;
      let sentAt = 0;
      const next = () => {
        if (started >= count) return;
        if (started >= bound) {
          idle.add(next);
          return;
        }
        const number = job.first + started++;
        pending = true;
        sentAt = performance.now();
        socket.write(request(number));
      };
      onResponses(socket, (status, response) => {
        pending = false;
        times[answered++] = performance.now() - sentAt;
        if (status === '200') report.accepted++;
        else {
          report.failed[status] = (report.failed[status] ?? 0) + 1;
          report.firstFailure ||= response;
        }
        if (answered < count) next();
        else resolve();
      });
      socket.once('error', reject);
      socket.once('close', () => {
        sockets.delete(socket);
        if (pending) reject(new Error('the server closed a connection without a response'));
        // The server closed an idle connection: a new one is opened with the next message.
        else if (idle.delete(next)) idle.add(open);
      });
      socket.once('connect', next);
    };
    resume = () => {
      const waiting = [...idle];
      idle.clear();
      for (const start of waiting) start();
    };
    stop = () => {
      count = started;
      if (answered === count) resolve();
    };
    for (let n = 0; n < job.connections; n++) open();
  });
  await finished;
  const endedAt = epochNow();
  for (const socket of sockets) socket.destroy();
  const sorted = times.subarray(0, count).sort();
  return { ...report, startedAt, endedAt, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
}

/** Encodes requests by message number in one buffer, which is valid until the response. */
function requestOf({ path, headers, body, domains }: LoadJob): (number: number) => Buffer {
  const mark = '0'.repeat(DIGITS);
  const recipient = (index: number) => `r${mark}@${domains[index]}`;
  const payload = JSON.stringify({ to: recipient(0), ...body });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines.join('')}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(payload)}\r\n\r\n`;
  const request = Buffer.from(head + payload);
  const at = request.indexOf(recipient(0)) + 1;
  const marks: number[] = [];
  for (let mark = request.indexOf(NUMBER_MARK); mark !== -1; mark = request.indexOf(NUMBER_MARK, mark + 1))
    marks.push(mark);
  return (number) => {
    const digits = String(number).padStart(DIGITS, '0');
    for (const offset of [at, ...marks]) request.write(digits, offset, 'latin1');
    request.write(domains[number % domains.length] ?? '', at + DIGITS + 1, 'latin1');
    return request;
  };
}

/** Calls `call` with each complete response. */
function onResponses(socket: Socket, call: (status: string, response: string) => void): void {
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk;
    const headEnd = received.indexOf('\r\n\r\n');
    if (headEnd === -1) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(received)?.[1];
    if (length === undefined) throw new Error(`a response without Content-Length: ${received}`);
    const end = headEnd + 4 + Number(length);
    if (received.length < end) return;
    const response = received;
    received = received.slice(end);
    call(response.slice(9, 12), response);
  });
}
