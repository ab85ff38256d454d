import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { createExpiryClock } from '../../src/core/expiry-clock.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createDelivery, type DeliveryDeps } from '../../src/delivery/delivery.ts';
import { createPrepare } from '../../src/delivery/prepare.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import type { MessageContent } from '../../src/mail/content.ts';
import { packContent } from '../../src/mail/stored-content.ts';
import { createTokens } from '../../src/mail/tokens.ts';
import { openSeal } from '../../src/store/master-key.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import { builtThread } from '../support/built-thread.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { publishMailHost } from '../support/recipients.ts';
import { RSA_KEY } from '../support/rsa-keys.ts';
import { type Sink, type SinkOptions, startSink } from '../support/smtp-sink.ts';
import { enqueue, insertDomain, startStore } from '../support/store.ts';

export interface TestDeliveryOptions {
  /** Configuration keys with their values. */
  config?: Record<string, string | number>;
  sink?: SinkOptions;
  deps?: Partial<DeliveryDeps>;
}

export const GOOD = 'empfang.example';

/** Delivery with real threads and sockets, over a store in a temporary directory and a clock that can be set. */
export async function createTestDelivery(options: TestDeliveryOptions = {}) {
  const time = { ahead: 0 };
  const clock = { now: () => Date.now() + time.ahead, advance: (ms: number) => void (time.ahead += ms) };
  const monotonic = { now: () => performance.now() + time.ahead };
  const store = startStore(clock);
  const { dir, db, tables, writer, recorder } = store;
  const dns = await startDnsServer();
  onTestFinished(() => dns.close());
  const sink = await newSink(options.sink);
  const settings = {
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
    'delivery.workers': 1,
    'mx.listen': 'off',
    ...options.config,
  };
  const env = Object.entries(settings).map(([path, value]) => [
    `POSTRIDER_${path.replaceAll('.', '__').toUpperCase()}`,
    JSON.stringify(value),
  ]);
  const config = loadConfig({ cwd: dir, env: Object.fromEntries(env) });
  const seal = await openSeal({ random: systemRandom, tables, writer }, { file: `${dir}/master.key` });
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: PATIENCE_MS,
    monotonic: clock,
    random: systemRandom,
  });
  onTestFinished(() => resolver.close());
  const lines: Record<string, unknown>[] = [];
  const delivery = createDelivery({
    config,
    clock,
    monotonic,
    expiry: createExpiryClock(clock, monotonic),
    random: systemRandom,
    log: createLog(
      { level: 'warn', hashAddresses: true },
      { write: (line) => void lines.push(JSON.parse(line)) },
    ),
    tables,
    writer,
    recorder,
    resolver,
    prepare: createPrepare({ config, tokens: createTokens(seal), publicUrl: 'https://track.example' }),
    signersOf: (domain) => [{ domain: domain.name, selector: 's', key: RSA_KEY }],
    sendingObstacle: () => null,
    generation: 1,
    observe: () => {},
    workerScript: builtThread('delivery/worker/main.ts'),
    graceMs: 5000,
    ...options.deps,
  });
  let stopped: Promise<number> | null = null;
  const stop = () => (stopped ??= delivery.stop());
  onTestFinished(async () => void (await stop()));
  publishMailHost(dns, GOOD, sink.host);

  /** Puts messages into the queue in one commit. */
  const put = (
    recipients: readonly string[],
    options: Partial<MessageRow> & { bytes?: number; body?: string } = {},
  ) => {
    const { bytes = 0, body, ...columns } = options;
    return db.transaction(() =>
      recipients.map((recipient) => {
        const content = tables.messages.insertContent(
          packContent(body ?? contentFor(recipient, bytes)),
          clock.now(),
        );
        const { insertContent } = tables.messages;
        tables.messages.insertContent = () => content;
        try {
          return enqueue(tables, clock.now(), { recipient, ...columns });
        } finally {
          tables.messages.insertContent = insertContent;
        }
      }),
    )();
  };
  const status = ({ seq }: Pick<MessageRow, 'seq'>) => tables.messages.bySeq(seq)?.status;
  const leases = () => db.prepare('SELECT count(*) FROM queue WHERE lease IS NOT NULL').pluck().get();
  const addDomain = (id: string, accountId = 'acct_one') =>
    insertDomain(tables, { account_id: accountId, domain_id: id, name: `${id}.example` }, clock.now());
  return { ...store, clock, dns, sink, delivery, stop, put, status, leases, addDomain, lines, config };
}

export async function newSink(options: SinkOptions = {}): Promise<Sink> {
  const sink = await startSink(options);
  onTestFinished(() => sink.close());
  return sink;
}

export const users = (count: number, domain = GOOD) =>
  Array.from({ length: count }, (_, n) => `u${n}@${domain}`);

function contentFor(recipient: string, bytes: number): string {
  const content: MessageContent = {
    from: { name: 'Shop', address: 'shop@example.com' },
    to: [{ name: '', address: recipient }],
    cc: [],
    replyTo: null,
    subject: 'Hello',
    html: '<p>Hello</p>',
    text: 'Hello',
    headers: [],
    attachments:
      bytes === 0
        ? []
        : [
            {
              name: 'a.bin',
              contentType: 'application/octet-stream',
              content: 'A'.repeat(bytes),
            },
          ],
    messageId: `${recipient}@example.com`,
    date: 0,
  };
  return JSON.stringify(content);
}
