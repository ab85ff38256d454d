import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { startSink } from './smtp-sink.ts';

/**
 * The sink as a separate process, for benchmarks and for tests that kill the sender: its counts survive.
 *
 *     node --import tsx test/support/smtp-sink-process.ts --port 2500 --reply bounce@='550 5.1.1 nobody here'
 *
 * Prints `{"port":2500}` when it listens. A line `counts` on stdin, or SIGUSR2, prints a line of
 * `{"messages","ids","duplicates","recipients","open","peak"}`: `ids` are distinct X-Postrider-Id fields,
 * `duplicates` messages with the id of an earlier one. The end of stdin or SIGTERM ends the process.
 */
const { values } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '0' },
    /** `<recipient>=<reply>`, the recipient as in `recipients` of the sink. */
    reply: { type: 'string', multiple: true, default: [] },
    /** Milliseconds before the reply to a message, as a real server needs for its disk. */
    delay: { type: 'string', default: '0' },
  },
});

const ids = new Set<string>();
const recipients = new Set<string>();
let duplicates = 0;

const delayMs = Number(values.delay);
const sink = await startSink({
  host: values.host,
  port: Number(values.port),
  countOnly: true,
  recipients: Object.fromEntries(values.reply.map(parseReply)),
  script: delayMs > 0 ? { dot: { reply: '250 2.0.0 taken', delayMs } } : {},
  onMessage: ({ raw, to }) => {
    for (const recipient of to) recipients.add(recipient);
    const id = idOf(raw);
    if (id === null) return;
    if (ids.has(id)) duplicates++;
    ids.add(id);
  },
});

function parseReply(option: string): [recipient: string, reply: string] {
  const equals = option.indexOf('=');
  if (equals === -1) throw new Error(`--reply requires <recipient>=<reply>, not ${option}`);
  return [option.slice(0, equals), option.slice(equals + 1)];
}

/** The unfolded value of the field. */
function idOf(raw: string): string | null {
  const header = raw.slice(0, raw.indexOf('\r\n\r\n'));
  const value = /^X-Postrider-Id:((?:.|\r\n[ \t])*)/im.exec(header)?.[1];
  return value === undefined ? null : value.replace(/\s/g, '');
}

function printCounts(): void {
  const { count: messages, open, peak } = sink;
  const counts = { messages, ids: ids.size, duplicates, recipients: recipients.size, open, peak };
  console.log(JSON.stringify(counts));
}

const exit = () => process.exit(0);
process.on('SIGUSR2', printCounts);
process.on('SIGTERM', exit);
createInterface({ input: process.stdin })
  .on('line', (line) => {
    if (line.trim() === 'counts') printCounts();
  })
  .on('close', exit);
console.log(JSON.stringify({ port: sink.port }));
