import { onTestFinished } from 'vitest';
import type { AccountLimitDefaults } from '../../src/accounts/limits.ts';
import { DAY, HOUR } from '../../src/core/clock.ts';
import { createExpiryClock } from '../../src/core/expiry-clock.ts';
import { createLog } from '../../src/core/log.ts';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import type { MessageContent } from '../../src/mail/content.ts';
import {
  type AcceptanceParts,
  type Accepted,
  type AcceptRequest,
  createAcceptance,
} from '../../src/sending/accept.ts';
import type { TransactionalResult } from '../../src/sending/draft.ts';
import { createIdempotencyKeys } from '../../src/sending/idempotency.ts';
import { createOneClickNotice } from '../../src/sending/one-click.ts';
import type { SendRequest } from '../../src/sending/request.ts';
import type { QueueKey } from '../../src/store/messages/queue.ts';
import { createTemplateThreads } from '../../src/templates/thread/threads.ts';
import { contentOf, heldClock, startStore } from '../support/store.ts';

export const HTML = '<p>Hello {{name}}</p>{{company_address_html}}{{unsubscribe_email_html}}';
export const BODY: SendRequest = {
  to: 'Ada <ada@example.net>',
  from: 'Shop <shop@example.com>',
  subject: 'Order {{order.number}}',
  html: HTML,
  templateVariables: { name: '<Ada>', order: { number: 7 } },
};

/** The acceptance of transactional mail over a real database, with the announcements to delivery. */
export function startAcceptance(
  defaults: AccountLimitDefaults = {},
  publicUrl = 'https://track.mail.test',
  replaced: Partial<Pick<AcceptanceParts, 'leaseNow' | 'accepted' | 'threads'>> = {},
) {
  const store = startStore(heldClock(), defaults);
  const { tables, recorder, clock } = store;
  const announced: QueueKey[] = [];
  let pressure: Refusal | null = null;
  const logged: string[] = [];
  const log = createLog(
    { level: 'warn', hashAddresses: false },
    { write: (line) => logged.push(JSON.parse(line).msg) },
  );
  const threads = createTemplateThreads(log);
  onTestFinished(() => threads.stop());
  const parts: AcceptanceParts = {
    recorder,
    keys: createIdempotencyKeys({ tables, now: clock.now, lifetimeMs: 24 * HOUR }),
    pressure: { refusal: () => pressure },
    limits: store.limits,
    oneClick: createOneClickNotice({ publicUrl, log }),
    simulatorDomain: 'simulator.mail.test',
    publicUrl: 'https://mail.test',
    expire: { tx: 2 * DAY, mk: 4 * DAY },
    expiry: createExpiryClock(clock, clock),
    leaseNow: (mail) => mail.map(() => null),
    accepted: () => {},
    threads,
    attachmentFiles: { use: () => Promise.reject(new Error('a file was fetched')) },
    ...replaced,
    announce: (key) => announced.push(key),
  };
  let acceptance = createAcceptance(store, parts);
  /** Replaces the acceptance by one with empty caches. */
  const restart = () => {
    acceptance = createAcceptance(store, parts);
  };
  const send = (
    changes: Partial<SendRequest> = {},
    options: Partial<Omit<AcceptRequest, 'body'>> & { accountId?: string } = {},
  ) => {
    const account = tables.accounts.get(options.accountId ?? 'acct_one');
    if (account === null) throw new Error('no such account');
    return acceptance.accept({
      sender: { account, useCase: 'tx', allowFrom: [], allowEssential: true },
      idempotency: null,
      envelope: (data, warnings) =>
        JSON.stringify({ success: true, data: warnings.length === 0 ? data : { ...data, warnings } }),
      ...options,
      body: { ...BODY, ...changes },
    });
  };
  const stored = () => tables.messages.list({ accountId: 'acct_one', limit: 200 }).rows;
  const setPressure = (refusal: Refusal | null) => {
    pressure = refusal;
  };
  /** Messages' contents, newest message first. */
  const contents = (): MessageContent[] => stored().map((message) => contentOf(tables, message));
  return { ...store, announced, send, stored, contents, setPressure, logged, restart };
}

/** The acceptance of a transactional send. */
export function accepted(result: Accepted | Refusal): { data: TransactionalResult; body: string } {
  if (isRefusal(result)) throw new Error(`refused: ${result.code} ${result.message}`);
  if (result.kind !== 'accepted') throw new Error('replayed');
  if (!('messageId' in result.data)) throw new Error('a marketing job');
  return { data: result.data, body: result.body };
}
