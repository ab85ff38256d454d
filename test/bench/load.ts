import { connect, type Socket } from 'node:net';
import { answerParent, epochNow } from './benchmark-process.ts';

/**
 * The benchmark's caller as a process of its own: send requests over HTTP connections that are kept alive, one
 * request at a time on each, every message to a recipient of its own. The request is written once and only the
 * recipient's digits change in it, and of the answer only status and length are read: a client library would
 * cost more than the service.
 */
export interface LoadJob {
  kind: 'run';
  port: number;
  path: string;
  headers: Record<string, string>;
  /** The JSON body, everything but `to`. */
  body: Record<string, unknown>;
  /** Recipients are spread over these; names of equal length. */
  domains: string[];
  connections: number;
  /** Number of the first message; no recipient comes twice while runs do not overlap. */
  first: number;
  count: number;
  /** Waits after so many messages until it is told a new bound; null: never. */
  bound: number | null;
}

/** Ends the run after the answers under way. */
export interface LoadStop {
  kind: 'stop';
}

/** Lets the load go on up to so many messages of the run. */
export interface LoadBound {
  kind: 'bound';
  upTo: number;
}

export interface LoadReport {
  accepted: number;
  /** Answers other than 200, by status. */
  refused: Record<string, number>;
  /** The first of those, as it came. */
  firstRefusal: string;
  /** Epoch ms of the first request and the last answer. */
  startedAt: number;
  endedAt: number;
  /** Of an answer, in ms. */
  p50: number;
  p99: number;
}

const DIGITS = 9;

let bound = Number.POSITIVE_INFINITY;
let goOn = () => {};
let stop = () => {};

answerParent((question): Promise<LoadReport> | null => {
  const message = question as LoadJob | LoadBound | LoadStop;
  if (message.kind === 'run') return run(message);
  if (message.kind === 'stop') stop();
  else {
    bound = message.upTo;
    goOn();
  }
  return null;
});

async function run(job: LoadJob): Promise<LoadReport> {
  const report = { accepted: 0, refused: {} as Record<string, number>, firstRefusal: '' };
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
      let waits = false;
      let sentAt = 0;
      const next = () => {
        if (started >= count) return;
        if (started >= bound) {
          idle.add(next);
          return;
        }
        const number = job.first + started++;
        waits = true;
        sentAt = performance.now();
        socket.write(request(number));
      };
      onAnswers(socket, (status, answer) => {
        waits = false;
        times[answered++] = performance.now() - sentAt;
        if (status === '200') report.accepted++;
        else {
          report.refused[status] = (report.refused[status] ?? 0) + 1;
          report.firstRefusal ||= answer();
        }
        if (answered < count) next();
        else resolve();
      });
      socket.once('error', reject);
      socket.once('close', () => {
        sockets.delete(socket);
        if (waits) reject(new Error('the service closed a connection instead of answering'));
        // One that had nothing to do for long; another takes its place when there is work again.
        else if (idle.delete(next)) idle.add(open);
      });
      socket.once('connect', next);
    };
    goOn = () => {
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
  const percentile = (part: number) => sorted[Math.min(count - 1, Math.floor(count * part))] ?? 0;
  return { ...report, startedAt, endedAt, p50: percentile(0.5), p99: percentile(0.99) };
}

/** Makes the request for a message by number, in the one buffer: good until its answer is there. */
function requestOf({ path, headers, body, domains }: LoadJob): (number: number) => Buffer {
  const mark = '0'.repeat(DIGITS);
  const recipient = (index: number) => `r${mark}@${domains[index]}`;
  const payload = JSON.stringify({ to: recipient(0), ...body });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines.join('')}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(payload)}\r\n\r\n`;
  const request = Buffer.from(head + payload);
  const at = request.indexOf(recipient(0)) + 1;
  return (number) => {
    request.write(String(number).padStart(DIGITS, '0'), at, 'latin1');
    request.write(domains[number % domains.length] ?? '', at + DIGITS + 1, 'latin1');
    return request;
  };
}

/** Calls back once for every whole answer. */
function onAnswers(socket: Socket, call: (status: string, answer: () => string) => void): void {
  let seen = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    seen += chunk;
    const headEnd = seen.indexOf('\r\n\r\n');
    if (headEnd === -1) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(seen)?.[1];
    if (length === undefined) throw new Error(`an answer without Content-Length: ${seen}`);
    const end = headEnd + 4 + Number(length);
    if (seen.length < end) return;
    const answer = seen;
    seen = seen.slice(end);
    call(answer.slice(9, 12), () => answer);
  });
}
