import { onTestFinished } from 'vitest';
import { createAuthenticator } from '../../../src/accounts/authenticate.ts';
import { type ApiKeyInput, createKeys } from '../../../src/accounts/keys.ts';
import type { AccountLimitDefaults } from '../../../src/accounts/limits.ts';
import { createFailureLimits, createRateLimits } from '../../../src/accounts/rate-limits.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { DAY, HOUR } from '../../../src/core/clock.ts';
import { createExpiryClock } from '../../../src/core/expiry-clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { isRefusal } from '../../../src/core/refusal.ts';
import type { Rate } from '../../../src/core/token-bucket.ts';
import { createAcceptance } from '../../../src/sending/accept.ts';
import { createIdempotencyKeys } from '../../../src/sending/idempotency.ts';
import { createSubmission } from '../../../src/smtp/submission/submission.ts';
import { createTemplateThreads } from '../../../src/templates/thread/threads.ts';
import { type ClientOptions, type SmtpClient, smtpClient } from '../../support/smtp-client.ts';
import { contentOf, heldClock, startStore } from '../../support/store.ts';
import { startParser } from '../mx/setup.ts';

const HOSTNAME = 'mx.postrider.example';

/** A real submission listener over a real database, with an account that has a key for each stream. */
export async function startSubmission(
  changes: {
    submission?: object;
    sendRate?: Rate;
    limits?: object;
    account?: AccountLimitDefaults;
    /** Called with each line of the log. */
    log?: (line: string) => void;
  } = {},
) {
  const store = startStore(heldClock(), changes.account);
  const { clock, tables, writer, recorder, ids } = store;
  const config = loadConfig({ env: {}, cwd: store.dir });
  const keys = createKeys({ tables, writer, clock, ids });
  const acceptance = createAcceptance(store, {
    recorder,
    keys: createIdempotencyKeys({ tables, now: clock.now, lifetimeMs: 24 * HOUR }),
    pressure: { refusal: () => null },
    limits: store.limits,
    oneClick: { warnings: () => [], sent: () => undefined },
    simulatorDomain: 'simulator.mail.test',
    publicUrl: 'https://mail.test',
    expiry: createExpiryClock(clock, clock),
    expire: { tx: 2 * DAY, mk: 4 * DAY },
    leaseNow: (mail) => mail.map(() => null),
    accepted: () => {},
    announce: () => {},
    attachmentFiles: { use: () => Promise.reject(new Error('a file was fetched')) },
    threads: createTemplateThreads(createLog({ level: 'silent', hashAddresses: false })),
  });
  const context = {
    config: {
      ...config,
      hostname: HOSTNAME,
      submission: { ...config.submission, listen: '127.0.0.1:0', ...changes.submission },
      limits: { ...config.limits, ...changes.limits },
    },
    clock,
    monotonic: clock,
    log: createLog(
      { level: changes.log === undefined ? 'silent' : 'warn', hashAddresses: false },
      { write: (line) => changes.log?.(line) },
    ),
  };
  const submission = await createSubmission(context, {
    authenticator: createAuthenticator({ tables }, { failures: createFailureLimits(clock) }),
    rateLimits: createRateLimits(clock, {
      setup: { burst: 1, perSecond: 1 },
      send: changes.sendRate ?? null,
    }),
    acceptance,
    account: tables.accounts.get,
    startParserThread: startParser,
  });
  onTestFinished(() => submission.close(0));
  await submission.listen();
  const port = submission.address()?.port ?? 0;

  const key = async (input: Partial<ApiKeyInput> = {}) => {
    const made = await keys.create({ accountId: 'acct_one', name: 'k', scopes: ['transactional'], ...input });
    if (isRefusal(made)) throw new Error(made.message);
    return { secret: made.secret, keyId: made.key.keyId };
  };
  const connect = async (options: ClientOptions = {}) => {
    const client = await smtpClient(port, options);
    onTestFinished(() => client.destroy());
    return client;
  };
  return {
    ...store,
    port,
    close: () => submission.close(0),
    connections: () => submission.connections(),
    keys,
    key,
    connect,
    /** Connected and logged in. */
    loggedIn: async (input: Partial<ApiKeyInput> = {}): Promise<SmtpClient> => {
      const { secret } = await key(input);
      const client = await connect();
      await client.say('EHLO app.example');
      const answer = await client.say(plain('acct_one', secret));
      if (!answer.startsWith('235')) throw new Error(answer);
      return client;
    },
    stored: () =>
      tables.messages
        .list({ accountId: 'acct_one', limit: 200 })
        .rows.toReversed()
        .map((row) => ({ ...row, content: contentOf(tables, row) })),
  };
}

export function plain(user: string, password: string): string {
  return `AUTH PLAIN ${Buffer.from(`\0${user}\0${password}`).toString('base64')}`;
}

/** A mail that is accepted. */
export function mail(changes: { head?: string; from?: string; body?: string } = {}): string {
  const {
    head = '',
    from = 'Shop <shop@example.com>',
    body = '<p>Hello</p>{{company_address_html}}{{unsubscribe_email_html}}',
  } = changes;
  return `From: ${from}\r\nTo: Ada <ada@example.net>\r\nSubject: Hello\r\n${head}Content-Type: text/html\r\n\r\n${body}\r\n`;
}
