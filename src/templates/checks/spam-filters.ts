import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Config } from '../../config/schema.ts';
import { parseListen } from '../../config/setting-types.ts';
import { type Clock, HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { createGate } from '../../core/concurrency/gate.ts';
import { inSlices } from '../../core/concurrency/slices.ts';
import { errorText } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { createExpiringCache } from '../../core/lru.ts';
import { createTokenBuckets } from '../../core/token-bucket.ts';
import { memberOf, parseUntrustedJson, stringMember } from '../../core/untrusted-json.ts';
import { type ConnectorOptions, createConnector } from '../../dns/connector.ts';
import { createHttpClient } from '../../dns/http-client.ts';
import { parseMailbox } from '../../mail/address.ts';
import { composeInSteps, messageBytes } from '../../mail/compose.ts';
import type { Mailbox, MailKind } from '../../mail/content.ts';
import type { Check } from '../../mail/content-checks.ts';

/*
 * What the spam filters of the operator say about content: SpamAssassin (spamd) and Rspamd. They receive a sample that is
 * composed as it would be sent, but not signed, and from no address; therefore they judge its content. Their addresses are
 * settings, so that they may be private. A filter that fails prevents nothing.
 */

const TIMEOUT_MS = 15 * SECOND;
const MAX_REPORT_BYTES = 256 * 1024;
/** Larger messages take filters long, and most do not judge them. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const CHECKS = { concurrency: 4, perKey: 1, maxWaiting: 16, maxWaitingPerKey: 2 };
/** Samples of an account. */
const RATE = { burst: 60, perSecond: 60 / (HOUR / SECOND) };
const MAX_ACCOUNTS = 10_000;
const CACHED_MS = 5 * MINUTE;
const MAX_CACHED = 500;
const MAX_RULES = 30;
const MAX_NAMED = 3;

/** Content to judge, as a recipient would see it. */
export interface JudgedMail {
  /** A mailbox; one that is not valid is replaced. */
  from: string;
  to: string;
  subject: string;
  html: string;
  text: string;
  kind: MailKind;
}

export interface SpamRule {
  name: string;
  points: number;
  description: string;
}

/** The result of one filter. */
interface Verdict {
  isSpam: boolean;
  score: number;
  /** The score from which SpamAssassin marks messages as spam, and Rspamd rejects them. */
  threshold: number;
  rules: SpamRule[];
}

export interface SpamFilterOptions extends Pick<ConnectorOptions, 'resolver'> {
  /** Read at each check: a reload changes it. */
  config: Pick<Config, 'checks'>;
  clock: Clock;
  /** Monotonic. */
  monotonic: Clock;
  log: Log;
  userAgent: string;
  /** For one filter. Default: 15 s. */
  timeoutMs?: number;
}

/** `close` ends the requests in progress. */
export function createSpamFilters(options: SpamFilterOptions) {
  const { resolver, config, clock, monotonic, log, userAgent, timeoutMs = TIMEOUT_MS } = options;
  const connect = createConnector({
    resolver,
    mayConnect: () => true,
    timeoutMs,
    maxResponseBytes: MAX_REPORT_BYTES,
  });
  const client = createHttpClient({ connect, timeoutMs, maxBodyBytes: MAX_REPORT_BYTES, userAgent });
  const closing = new AbortController();
  const gate = createGate(CHECKS);
  const buckets = createTokenBuckets(monotonic, RATE, MAX_ACCOUNTS);
  const cache = createExpiringCache<Check[]>(monotonic, MAX_CACHED);

  const socketTo = ({ host, port }: { host: string; port: number }) =>
    new Promise<Socket>((resolve, reject) => {
      connect({ hostname: host, protocol: 'http:', port: String(port) }, (error, socket) =>
        error === null ? resolve(socket) : reject(error),
      );
    });

  async function askSpamd(address: string, message: Buffer): Promise<Verdict> {
    const target = parseListen(address);
    if (target === null) throw new Error(`${address} is no address of a server`);
    const signal = abortAfter(timeoutMs, closing.signal);
    const socket = await socketTo(target);
    const end = () => void socket.destroy(new Error(`no response within ${timeoutMs / SECOND} s`));
    signal.addEventListener('abort', end, { once: true });
    try {
      if (signal.aborted) end();
      socket.write(`REPORT SPAMC/1.5\r\nContent-length: ${message.length}\r\n\r\n`);
      socket.end(message);
      const chunks: Buffer[] = [];
      // Sound: a socket without an encoding yields buffers.
      for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
      return readSpamdReport(Buffer.concat(chunks).toString('utf8'));
    } finally {
      signal.removeEventListener('abort', end);
      socket.destroy();
    }
  }

  async function askRspamd(url: string, message: Buffer, { from, to }: Sample): Promise<Verdict> {
    const text = await client.request(
      `${url.replace(/(?<!\/)\/+$/, '')}/checkv2`,
      {
        method: 'POST',
        // As mail of a user who has signed in: without a signature and an address, SPF, DKIM and DMARC cannot pass.
        headers: { from: from.address, rcpt: to.address, user: from.address },
        body: message,
        signal: closing.signal,
      },
      async (reply) => {
        if (reply.statusCode !== 200) throw new Error(`it responded with status ${reply.statusCode}`);
        return reply.body.text();
      },
    );
    return readRspamdResult(parseUntrustedJson(text));
  }

  async function judge(accountId: string, mail: JudgedMail): Promise<Check[]> {
    const { spamassassin, rspamd } = config.checks;
    const sample = sampleOf(mail, clock.now());
    const message = await inSlices(composeSample(sample, mail.kind), accountId);
    const isTooLarge = message.length > MAX_MESSAGE_BYTES;
    const ask = async (id: FilterId, asked: () => Promise<Verdict>): Promise<Check> => {
      if (isTooLarge) return unavailable(id);
      try {
        return present(id, await asked());
      } catch (error) {
        if (!closing.signal.aborted) log.warn({ filter: id, err: errorText(error) }, 'spam filter failed');
        return unavailable(id);
      }
    };
    return Promise.all([
      ...(spamassassin === undefined ? [] : [ask('spamassassin', () => askSpamd(spamassassin, message))]),
      ...(rspamd === undefined ? [] : [ask('rspamd', () => askRspamd(rspamd, message, sample))]),
    ]);
  }

  return {
    /** Empty when no filter is configured. Never rejects because of a filter: one without a result is named. */
    check: async (accountId: string, mail: JudgedMail): Promise<Check[]> => {
      const { spamassassin, rspamd } = config.checks;
      const asked = [
        ...(spamassassin === undefined ? [] : (['spamassassin'] as const)),
        ...(rspamd === undefined ? [] : (['rspamd'] as const)),
      ];
      if (asked.length === 0) return [];
      const key = createHash('sha256')
        .update(JSON.stringify([accountId, spamassassin, rspamd, mail]))
        .digest('base64');
      const known = cache.get(key);
      if (known !== undefined) return known;
      const checks = await gate.run(accountId, async () =>
        buckets.of(accountId).take().allowed ? judge(accountId, mail) : null,
      );
      if (checks === null) return asked.map(unavailable);
      if (checks.every(({ score }) => score !== undefined)) cache.set(key, checks, CACHED_MS);
      return checks;
    },
    close: async (): Promise<void> => {
      gate.close();
      closing.abort();
      await client.close();
    },
  };
}

export type SpamFilters = ReturnType<typeof createSpamFilters>;

type FilterId = 'spamassassin' | 'rspamd';

const NAMES: Record<FilterId, string> = { spamassassin: 'SpamAssassin', rspamd: 'Rspamd' };

function unavailable(id: FilterId): Check {
  return {
    id: 'spamUnavailable',
    level: 'warn',
    message: `${NAMES[id]} did not judge the content. Check again later; the operator finds the reason in the log.`,
    where: [NAMES[id]],
    count: 1,
  };
}

function present(id: FilterId, { isSpam, score, threshold, rules }: Verdict): Check {
  const shown = rules
    .filter(({ points }) => points !== 0)
    .toSorted((one, other) => other.points - one.points)
    .slice(0, MAX_RULES);
  const against = shown.filter(({ points }) => points > 0);
  const limit = id === 'rspamd' ? 'it rejects mail from' : 'spam begins with';
  const result = `${NAMES[id]} gives ${score} points; ${limit} ${threshold}.`;
  const named = against.slice(0, MAX_NAMED).map(({ name, points }) => `${name} (${points})`);
  return {
    id,
    level: isSpam ? 'bad' : 'ok',
    message: isSpam
      ? `${result} It is treated as spam: change what the rules name: ${named.join(', ')}.`
      : result,
    ...(isSpam ? { where: named } : {}),
    count: against.length,
    score,
    threshold,
    rules: shown,
  };
}

interface Sample {
  from: Mailbox;
  to: Mailbox;
  subject: string;
  html: string;
  text: string;
  date: number;
}

function sampleOf({ from, to, subject, html, text }: JudgedMail, date: number): Sample {
  const mailbox = (given: string, local: string): Mailbox => {
    const parsed = parseMailbox(given);
    return typeof parsed === 'string' ? { name: '', address: `${local}@example.com` } : parsed;
  };
  return { from: mailbox(from, 'sender'), to: mailbox(to, 'recipient'), subject, html, text, date };
}

/** The message in its transfer form, with links of examples, and without a signature. */
function* composeSample({ from, to, subject, html, text, date }: Sample, kind: MailKind) {
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1);
  const composed = yield* composeInSteps(
    {
      from,
      to: [to],
      cc: [],
      replyTo: null,
      subject,
      html,
      text,
      headers: [],
      attachments: [],
      ...(kind === 'marketing' ? { list: { id: 'sample', name: '' } } : {}),
      messageId: `sample.${date}@${domain}`,
      date,
    },
    {
      kind,
      recipient: to.address,
      unsubscribeUrl: `https://${domain}/unsubscribe`,
      reportAbuseUrl: `https://${domain}/report-abuse`,
      unsubscribeAddress: null,
      signedId: 'sample',
      feedbackAddress: null,
      feedbackId: 'sample:sample:sample:postrider',
    },
  );
  return messageBytes(composed);
}

/** A line of the table of a report: points, rule, description. */
const REPORT_LINE = /^[ *]{0,3}(-?\d{1,4}(?:\.\d{1,3})?) ([A-Z0-9_]{3,80}) {1,40}(\S[^\r\n]{0,200})?/;

/** The response of spamd to REPORT: its header has the score, its body the rules. Throws if it has none. */
function readSpamdReport(response: string): Verdict {
  const split = response.indexOf('\r\n\r\n');
  const header = split === -1 ? response : response.slice(0, split);
  const status = /^SPAMD\/[\d.]{1,8} (\d{1,4}) ([A-Z_]{1,40})/.exec(header);
  if (status === null) throw new Error('the response is not of spamd');
  if (status[1] !== '0') throw new Error(`it responded with ${status[2]}`);
  const spam =
    /^Spam:[ \t]{1,9}\w{1,9}[ \t]{1,9};[ \t]{1,9}(-?[\d.]{1,12})[ \t]{1,9}\/[ \t]{1,9}(-?[\d.]{1,12})/im.exec(
      header,
    );
  const score = Number(spam?.[1] ?? Number.NaN);
  const threshold = Number(spam?.[2] ?? Number.NaN);
  if (Number.isNaN(score) || Number.isNaN(threshold)) throw new Error('the response has no score');
  const rules = response
    .slice(split)
    .split('\n')
    .flatMap((line) => {
      const [, points, name, description = ''] = REPORT_LINE.exec(line) ?? [];
      return points === undefined || name === undefined
        ? []
        : [{ name, points: Number(points), description: description.trim() }];
    });
  return { isSpam: score >= threshold, score, threshold, rules };
}

/** What Rspamd does with spam; it also delays mail for other reasons. */
const SPAM_ACTIONS = new Set<unknown>(['add header', 'rewrite subject', 'reject']);

/** The response of Rspamd to /checkv2. Throws if it has no score. */
function readRspamdResult(result: unknown): Verdict {
  const score = memberOf(result, 'score');
  const required = memberOf(result, 'required_score');
  if (typeof score !== 'number' || typeof required !== 'number') throw new Error('the response has no score');
  const symbols = memberOf(result, 'symbols');
  const rules = Object.entries(typeof symbols === 'object' && symbols !== null ? symbols : {}).flatMap(
    ([name, symbol]) => {
      const points = memberOf(symbol, 'score');
      return typeof points === 'number'
        ? [
            {
              name: name.slice(0, 80),
              points: rounded(points),
              description: stringMember(symbol, 'description', 200),
            },
          ]
        : [];
    },
  );
  const isSpam = SPAM_ACTIONS.has(memberOf(result, 'action'));
  return { isSpam, score: rounded(score), threshold: rounded(required), rules };
}

function rounded(points: number): number {
  return Math.round(points * 100) / 100;
}
