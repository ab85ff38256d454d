import { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import type { ReplyRule } from '../../../src/config/reply-rules.ts';
import { createLog } from '../../../src/core/log.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createSeal } from '../../../src/core/seal.ts';
import { DnsError } from '../../../src/dns/dns-error.ts';
import type { Reception } from '../../../src/inbound/reception.ts';
import { createTokens } from '../../../src/mail/tokens.ts';
import type { MxContext } from '../../../src/smtp/mx/intake.ts';
import { createMx, type MxOptions } from '../../../src/smtp/mx/mx.ts';
import { startParserThread } from '../../../src/smtp/parser/mail-parser.ts';
import type { MessageRow } from '../../../src/store/messages/messages.ts';
import { exampleEvent } from '../../support/events.ts';
import { type ClientOptions, smtpClient } from '../../support/smtp-client.ts';
import { enqueue, startStore } from '../../support/store.ts';

/** Threads without a job: starting one takes 0.1 s of CPU time. */
const idleThreads: Worker[] = [];

/** Starts a parser thread, or reuses one that was stopped without a job in progress. */
export function startParser(): Worker {
  const thread = idleThreads.pop() ?? startParserThread();
  let open = 0;
  thread.ref();
  thread.on('message', () => open--);
  thread.postMessage = (job: unknown) => {
    open++;
    Worker.prototype.postMessage.call(thread, job);
  };
  thread.terminate = async () => {
    if (open > 0) return Worker.prototype.terminate.call(thread);
    for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event);
    thread.unref();
    idleThreads.push(thread);
    return 0;
  };
  return thread;
}

export const HOST = 'mx.postrider.example';
/** Return host of the store's domain. */
export const RETURN = 'return-a.example.com';

/** Answers TXT queries from `records`; all other names do not exist. `asked` lists the queries. */
export function createTestResolver(records: Record<string, string>) {
  const asked: string[] = [];
  return {
    asked,
    txt: async (name: string) => {
      asked.push(name);
      const record = records[name];
      if (record === undefined) throw new DnsError('ENOTFOUND', `TXT ${name}`, 'no such name');
      return { records: [record.match(/.{1,255}/g) ?? []], ttl: 60, authenticated: false, name };
    },
  };
}

const NO_ROUTES: Reception = {
  routeOf: () => null,
  isInboundHost: () => false,
  obstacle: () => null,
  receive: () => Promise.reject(new Error('there is no route')),
  isStoring: () => false,
};

/** A real MX listener on a free port over a real database, with a clock that the test controls. */
export async function startMx(
  changes: {
    deps?: Partial<MxContext & MxOptions>;
    mx?: object;
    /** Settings of delivery, read at each use. Default: no rules for replies. */
    delivery?: { replies: ReplyRule[] };
    /** Default: HOST. */
    hostname?: string;
    clock?: ReturnType<typeof startStore>['clock'];
    /** Receives the mail of accounts. Default: no account has a route. */
    inbound?: (store: ReturnType<typeof startStore>) => Reception;
  } = {},
) {
  const store = startStore(changes.clock);
  const { clock, tables, writer, recorder } = store;
  const tokens = createTokens(createSeal(Buffer.alloc(32, 7), systemRandom));
  const config = loadConfig({ env: {}, cwd: store.dir });
  const optedOut: string[] = [];
  let parserThreads = 0;
  const context = {
    config: {
      hostname: changes.hostname ?? HOST,
      mx: { ...config.mx, listen: '127.0.0.1:0', ...changes.mx },
      delivery: changes.delivery ?? { replies: [] },
    },
    clock,
    monotonic: clock,
    log: createLog({ level: 'silent', hashAddresses: false }),
    tables,
    writer,
    ...changes.deps,
  };
  const mx = await createMx(context, {
    recorder,
    tokens,
    inbound: changes.inbound?.(store) ?? NO_ROUTES,
    isDiskLow: () => false,
    optOut: (_, message) => void optedOut.push(message.message_id),
    observe: () => {},
    resolver: createTestResolver({}),
    startParserThread: () => {
      parserThreads++;
      return startParser();
    },
    ...changes.deps,
  });
  onTestFinished(() => mx.close(0));
  await mx.listen();
  const port = mx.address()?.port ?? 0;

  return {
    ...store,
    mx,
    port,
    tokens,
    optedOut,
    /** Parser threads that were started: more than one when a mail ended one. */
    parserThreads: () => parserThreads,
    /** A client that is connected and has sent EHLO. */
    client: async (options: ClientOptions = {}) => {
      const client = await smtpClient(port, options);
      onTestFinished(() => client.destroy());
      await client.say('EHLO mta.example');
      return client;
    },
    /** A message that was sent and delivered. */
    delivered: (input: Partial<MessageRow> = {}) =>
      writer.run((tx) => {
        const message = enqueue(tx, clock.now(), { message_id: store.ids.make('msg'), ...input });
        for (const kind of ['email_sent', 'email_delivered'] as const)
          recorder.message(tx, tx.messages.bySeq(message.seq) ?? message, exampleEvent(kind));
        return tx.messages.bySeq(message.seq) ?? message;
      }),
    status: (message: MessageRow) => tables.messages.bySeq(message.seq)?.status,
    events: (message: MessageRow) => tables.events.ofMessage(message.seq).map(({ kind }) => kind),
    suppressed: (message: MessageRow) =>
      tables.suppressions.of('acct_one', message.recipient_hash).map(({ reason }) => reason),
    kept: () => tables.keptMail.list(null, 100).toReversed(),
  };
}
