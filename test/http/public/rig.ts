import { request } from 'node:http';
import { Registry } from 'prom-client';
import { onTestFinished } from 'vitest';
import type { SignUpForm } from '../../../src/audience/groups.ts';
import { createSignUps } from '../../../src/audience/sign-ups.ts';
import { createStatusFollower } from '../../../src/audience/standing.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { createLog } from '../../../src/core/log.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createSeal } from '../../../src/core/seal.ts';
import { createDescribeCopy } from '../../../src/delivery/prepare.ts';
import { presentEvent } from '../../../src/events/feed.ts';
import { createPublicPages, type PublicServices } from '../../../src/http/public/public.ts';
import { type SentMail, sentMailOf } from '../../../src/mail/sent-mail.ts';
import { clickTokens, createTokens } from '../../../src/mail/tokens.ts';
import { createMediaFiles } from '../../../src/media/files.ts';
import type { MessageRow } from '../../../src/store/messages/messages.ts';
import { createLocalReader } from '../../../src/store/readers/reads.ts';
import { createUnsubscribing } from '../../../src/suppression/unsubscribe.ts';
import { enqueue, startStore } from '../../support/store.ts';

/** Link hosts of the verified domains of two customers. */
export const CUSTOMER_HOSTS = ['link.example.com', 'link.example.org'];

/** The only host with an MTA-STS policy. */
export const STS_HOST = 'mta-sts.return-a.example.com';

/** The public pages on a free port with a real database, and functions that read the recorded data. */
export async function startPublic(
  settings: Record<string, string> = {},
  certificates: PublicServices['certificates'] = null,
) {
  const store = startStore();
  const { tables, writer, recorder, clock } = store;
  const registry = new Registry();
  const tokens = createTokens(createSeal(Buffer.alloc(32, 1), systemRandom));
  const onSuppressionChange = createStatusFollower(clock);
  const unsubscribing = createUnsubscribing({ clock }, { recorder, onSuppressionChange });
  const context = {
    config: loadConfig({ env: { POSTRIDER_PUBLIC__LISTEN: '127.0.0.1:0', ...settings } }),
    clock,
    log: createLog({ level: 'silent', hashAddresses: true }),
    registry,
    tables,
    reader: createLocalReader(tables),
    writer,
  };
  const side = createPublicPages(context, {
    recorder,
    tokens,
    describeCopy: (message, domain) =>
      createDescribeCopy({ config: context.config, tokens, publicUrl: side.url() })(message, domain),
    inboundFile: () => null,
    mediaFiles: createMediaFiles({ tables, reader: createLocalReader(tables) }),
    unsubscribing,
    audience: { signUps: createSignUps(store, { recorder, mayAdd: () => null }) },
    accept: () => null,
    templateThreads: () => null,
    storageRefusal: () => null,
    onSuppressionChange,
    isCustomerHost: (host) => CUSTOMER_HOSTS.includes(host),
    stsPolicyOf: (host) => (host === STS_HOST ? 'version: STSv1\r\n' : null),
    ownerOfHost: (host) => ['acct_one', 'acct_two'][CUSTOMER_HOSTS.indexOf(host)] ?? null,
    certificates,
  });
  await side.listen();
  let closed: Promise<void> | null = null;
  const close = () => (closed ??= side.close(0));
  onTestFinished(close);

  return {
    ...store,
    tokens,
    registry,
    unsubscribing,
    side,
    base: side.url(),
    /** A queued message, and the data in its links. */
    sent: (fields: Partial<MessageRow> = {}): { message: MessageRow; mail: SentMail } => {
      const message = enqueue(tables, clock.now(), { priority: fields.use_case === 'mk' ? 1 : 0, ...fields });
      return { message, mail: sentMailOf(message) };
    },
    /** Marks a message as delivered. */
    deliver: (message: MessageRow) =>
      writer.run((tx) => {
        const now = clock.now();
        tx.messages.setState(message.seq, 'delivered', now, now, now);
        tx.queue.remove(message.seq);
      }),
    /** A subscription group of the first account; returns its id. `signUp`: its sign-up form. */
    group: (name: string, signUp: SignUpForm | null = null): string => {
      const id = store.ids.make('sgroup');
      tables.subscriptionGroups.insert({
        subscription_group_id: id,
        account_id: 'acct_one',
        name,
        description: null,
        is_active: 1,
        tags: '[]',
        unsubscribe_template_id: null,
        report_abuse_template_id: null,
        company_address_template_id: null,
        sign_up: signUp === null ? null : JSON.stringify(signUp),
        is_public: null,
        archive_key: null,
        created_at: clock.now(),
        updated_at: clock.now(),
      });
      return id;
    },
    clickUrl: (messageId: string, url: string, host = '127.0.0.1') =>
      `/c/${clickTokens(tokens.of('acct_one').click, messageId, host)(url)}`,
    /** Recorded events of an account, oldest first. */
    events: (accountId = 'acct_one') =>
      tables.events.feed({ accountId, afterSeq: 0, limit: 1000 }).rows.map(presentEvent),
    suppressions: (mail: SentMail) =>
      tables.suppressions
        .of(mail.accountId, mail.recipientHash)
        .map(({ reason, stream }) => `${reason} ${stream}`),
    /** Closes the listener, so that all visits are recorded. */
    settle: close,
    call: (path: string, options: CallOptions = {}) =>
      callAt(`http://127.0.0.1:${side.address()?.port}`, path, options),
  };
}

export type PublicRig = Awaited<ReturnType<typeof startPublic>>;

export interface CallOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

export interface Called {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
  bytes: Buffer;
}

export const BROWSER =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

/** A request that follows no redirect and has no header but the User-Agent of a browser. */
export function callAt(
  base: string,
  path: string,
  { method = 'GET', headers = {}, body }: CallOptions,
): Promise<Called> {
  return new Promise((resolve, reject) => {
    const sent = request(`${base}${path}`, {
      method,
      headers: { 'User-Agent': BROWSER, ...headers },
      agent: false,
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: bytes.toString(),
          bytes,
        });
      });
    });
    sent.end(body);
  });
}

export const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
export const ONE_CLICK = { method: 'POST', headers: FORM, body: 'List-Unsubscribe=One-Click' };
