import { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createLog } from '../../../src/core/log.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createSeal } from '../../../src/core/seal.ts';
import { DnsError } from '../../../src/dns/dns-error.ts';
import { createTokens } from '../../../src/mail/tokens.ts';
import { createMx, type MxSettings } from '../../../src/smtp/mx/mx.ts';
import { READER_HEAP_MB } from '../../../src/smtp/mx/parse-pool.ts';
import type { MessageRow } from '../../../src/store/messages/messages.ts';
import { exampleEvent } from '../../support/events.ts';
import { type ClientOptions, smtpClient } from '../../support/smtp-client.ts';
import { enqueue, startStore } from '../../support/store.ts';

/** Node 20 gives threads no `--import`: the thread itself has to learn TypeScript first. */
const READER = `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then(({ register }) => {
  register();
  return import(${JSON.stringify(new URL('../../../src/smtp/mx/parse-worker.ts', import.meta.url).href)});
})`;

/** With the same bound on its memory as in the daemon. */
export function startReader(): Worker {
  return new Worker(READER, { eval: true, resourceLimits: { maxOldGenerationSizeMb: READER_HEAP_MB } });
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
      return { records: [record.match(/.{1,255}/g) ?? []], ttl: 60, authenticated: false };
    },
  };
}

/** A real MX listener on a port of its own over a real database, with a clock that the test moves. */
export async function startMx(
  changes: {
    settings?: Partial<MxSettings>;
    mx?: object;
    /** Default: HOST. */
    hostname?: string;
    clock?: ReturnType<typeof startStore>['clock'];
  } = {},
) {
  const store = startStore(changes.clock);
  const { clock, tables, writer, recorder } = store;
  const tokens = createTokens(createSeal(Buffer.alloc(32, 7), systemRandom));
  const config = loadConfig({ env: {}, cwd: store.dir });
  const optedOut: string[] = [];
  let readers = 0;
  const mx = await createMx({
    config: {
      hostname: changes.hostname ?? HOST,
      mx: { ...config.mx, listen: '127.0.0.1:0', ...changes.mx },
    },
    clock,
    log: createLog({ level: 'silent', hashAddresses: false }),
    tables,
    writer,
    recorder,
    tokens,
    isDiskLow: () => false,
    optOut: (_, message) => void optedOut.push(message.message_id),
    observe: () => {},
    resolver: createTestResolver({}),
    startReader: () => {
      readers++;
      return startReader();
    },
    ...changes.settings,
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
    /** Threads that were started to read mail: more than one when a mail was too much for one. */
    readers: () => readers,
    /** Connected, and introduced. */
    client: async (options: ClientOptions = {}) => {
      const client = await smtpClient(port, options);
      onTestFinished(() => client.destroy());
      await client.say('EHLO mta.example');
      return client;
    },
    /** A message that was sent and taken by its destination. */
    delivered: (wish: Partial<MessageRow> = {}) =>
      writer.run((all) => {
        const message = enqueue(all, clock.now(), { message_id: store.ids.make('msg'), ...wish });
        for (const kind of ['email_sent', 'email_delivered'] as const)
          recorder.message(all, all.messages.bySeq(message.seq) ?? message, exampleEvent(kind));
        return all.messages.bySeq(message.seq) ?? message;
      }),
    status: (message: MessageRow) => tables.messages.bySeq(message.seq)?.status,
    events: (message: MessageRow) => tables.events.ofMessage(message.seq).map(({ kind }) => kind),
    suppressed: (message: MessageRow) =>
      tables.suppressions.of('acct_one', message.recipient_hash).map(({ reason }) => reason),
    kept: () => tables.keptMail.list(null, 100).toReversed(),
  };
}
