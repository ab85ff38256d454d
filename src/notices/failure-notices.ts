import PQueue from 'p-queue';
import { readProgramFile } from '../config/program-file.ts';
import { DAY, HOUR, MINUTE } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { DirectMail } from '../delivery/direct-mail.ts';
import type { RateFigures } from '../events/event-types.ts';
import { needsSmtpUtf8 } from '../mail/address.ts';
import { headerBytes, platformMailHeader } from '../mail/compose.ts';
import { encodeText } from '../mail/encode.ts';
import { endedByItself, presentLimit } from '../reputation/monitor.ts';
import type { Context } from '../store/context.ts';
import type { DomainRow, Stream } from '../store/domains/domains.ts';
import type { FailureNoticeRow, NoticeKind, NoticeMailRow, NoticePeriod } from '../store/people/notices.ts';
import { NO_ACCOUNT, readQuery } from '../store/readers/reads.ts';
import type { LimitLevel, RateSignal, SendingLimitRow } from '../store/sending-limits.ts';
import type { Tables } from '../store/tables.ts';
import type { WebhookRow } from '../store/webhooks.ts';

const INTERVAL_MS = MINUTE;
/** A failure that is shorter causes no mail: most are, and are repaired by the next attempt. Limits are noticed immediately. */
const MIN_FAILING_MS = 15 * MINUTE;
/** What failed before, such as before this version, is known. */
const MAX_FAILING_MS = 2 * DAY;
/** A cause that fails again within this time causes no further mail until then. */
const QUIET_MS = DAY;
const MAX_NOTICES = 5000;
const MAX_MEMBERS = 500;
const MAX_OWNERS = 20;
/** Mail that waits for one person; more is not sent. */
const MAX_WAITING = 10;
const MAX_PER_RUN = 50;
const PARALLEL = 4;
const FIRST_RETRY_MS = 5 * MINUTE;
const MAX_RETRY_MS = 4 * HOUR;
const GIVE_UP_MS = DAY;

/** What an account is notified of together. */
interface Account {
  accountId: string;
  accountName: string;
  failing: Cause[];
  worksAgain: Cause[];
}

/**
 * Mail to the owners of an account when one of its domains or webhooks begins to fail, or mail is slowed or stopped
 * automatically, and when it works again. What they were notified of, and the mail that was not accepted yet, is in the
 * database: nothing is sent twice after a restart. `start` begins a loop with a first run after a minute. Nothing is noticed and sent while
 * `console.failureMail` is false or the console is off. A mail is sent from postmaster at the host name, at most for a
 * day; one whose result is not known, because the process ended meanwhile, is not sent again.
 */
export function createFailureNotices(
  {
    config,
    clock,
    log,
    ids,
    tables,
    reader,
    writer,
  }: Pick<Context, 'config' | 'clock' | 'log' | 'ids' | 'tables' | 'reader' | 'writer'>,
  { mail }: { mail: DirectMail },
) {
  const queue = new PQueue({ concurrency: PARALLEL });
  const isOn = () => config.console.failureMail && config.console.listen !== 'off';

  async function notice(): Promise<void> {
    const notices = tables.failureNotices.list(MAX_NOTICES);
    const now = clock.now();
    const { begun, ended } = await reader.query(NO_ACCOUNT, failingCauses, notices, now);
    const forgotten = notices.filter(
      ({ state, noticed_at }) => state === 'well' && now - noticed_at >= QUIET_MS,
    );
    if (begun.length + ended.length + forgotten.length === 0) return;
    const accounts = byAccount(
      begun,
      ended.flatMap(({ worksAgain }) => worksAgain ?? []),
    );
    await writer.run((tx) => {
      for (const row of forgotten) tx.failureNotices.remove(row);
      for (const { notice: row, worksAgain } of ended) {
        if (worksAgain === null) tx.failureNotices.remove(row);
        else tx.failureNotices.put({ ...row, state: 'well' });
      }
      for (const { accountId, kind, id } of begun) {
        // The account or its cause may have been deleted since they were read.
        if (tx.accounts.get(accountId) === null) continue;
        tx.failureNotices.put({
          account_id: accountId,
          kind,
          cause_id: id,
          state: 'failing',
          noticed_at: now,
        });
      }
      for (const account of accounts) queueMails(tx, account, now);
    });
    for (const { accountId, failing: causes, worksAgain } of accounts)
      log.info(
        { accountId, failing: causes.map(({ id }) => id), worksAgain: worksAgain.map(({ id }) => id) },
        'owners of an account are notified',
      );
  }

  function queueMails(tx: Tables, account: Account, now: number): void {
    const owners = tx.memberships
      .ofAccount(account.accountId, MAX_MEMBERS)
      .filter(
        ({ role, status, failure_mail }) => role === 'owner' && status === 'active' && failure_mail === 1,
      )
      .slice(0, MAX_OWNERS);
    for (const { person_id, language } of owners) {
      if (tx.noticeMails.countOf(person_id) >= MAX_WAITING) {
        log.warn({ personId: person_id }, 'too much mail about failures waits: further mail is dropped');
        continue;
      }
      tx.noticeMails.insert({
        mail_id: ids.uuid(),
        person_id,
        ...noticeText({ ...account, language, consoleUrl: config.console.url }),
        state: 'waiting',
        attempts: 0,
        due_at: now,
        created_at: now,
      });
    }
  }

  async function sendMail(row: NoticeMailRow): Promise<void> {
    const person = tables.people.get(row.person_id);
    if (person === null || person.status !== 'active') {
      await writer.run((tx) => tx.noticeMails.remove(row.mail_id));
      return;
    }
    const attempted = { ...row, attempts: row.attempts + 1 };
    await writer.run((tx) => tx.noticeMails.update({ ...attempted, state: 'sending' }));
    await writer.durable();
    const result = await mail.deliver(compose(row, person.email));
    // Deleted at the next start.
    if (result.kind === 'aborted') return;
    const now = clock.now();
    const fields = { mailId: row.mail_id, personId: row.person_id, attempts: attempted.attempts };
    if (result.kind === 'refused' && !result.isPermanent && now - row.created_at < GIVE_UP_MS) {
      log.info({ ...fields, reason: result.reason }, 'mail about a failure is tried again');
      const waitMs = Math.min(FIRST_RETRY_MS * 2 ** row.attempts, MAX_RETRY_MS);
      await writer.run((tx) =>
        tx.noticeMails.update({ ...attempted, state: 'waiting', due_at: now + waitMs }),
      );
      return;
    }
    if (result.kind === 'accepted') log.info(fields, 'mail about a failure sent');
    else log.warn({ ...fields, reason: result.reason }, 'mail about a failure could not be sent');
    await writer.run((tx) => tx.noticeMails.remove(row.mail_id));
  }

  function compose({ mail_id: id, subject, text, created_at: at }: NoticeMailRow, to: string) {
    const from = `postmaster@${config.hostname}`;
    const { encoding, chunks } = encodeText(text);
    const header = [
      ...platformMailHeader({
        from: { name: 'Postrider', address: from },
        to,
        subject,
        messageId: `<notice.${id}@${config.hostname}>`,
        at,
      }),
      'Content-Type: text/plain; charset=utf-8',
      `Content-Transfer-Encoding: ${encoding}`,
    ];
    return {
      from,
      to,
      header: headerBytes({ header }, []),
      body: Buffer.concat(chunks),
      utf8: needsSmtpUtf8(to),
    };
  }

  /** Notices what began or ended, and sends the mail that is due; `start` does so every minute. */
  async function run(): Promise<void> {
    if (!isOn()) return;
    await notice();
    const due = tables.noticeMails.due(clock.now(), MAX_PER_RUN);
    await queue.addAll(due.map((row) => () => sendMail(row)));
  }

  const loop = createLoop({
    name: 'failure-notices',
    run,
    intervalMs: INTERVAL_MS,
    firstMs: INTERVAL_MS,
    log,
  });
  return {
    run,
    start: (): void => {
      loop.start();
      writer
        .run((tx) => tx.noticeMails.removeSending())
        .then(
          (count) => {
            if (count > 0) log.warn({ count }, 'mail about failures was interrupted, and is not sent again');
          },
          (error: unknown) =>
            log.error({ err: error }, 'interrupted mail about failures could not be deleted'),
        );
    },
    stop: async (): Promise<void> => {
      await loop.stop();
    },
  };
}

function byAccount(failing: readonly Cause[], worksAgain: readonly Cause[]): Account[] {
  const accounts = new Map<string, Account>();
  const accountOf = ({ accountId, accountName }: Cause) => {
    const account = accounts.get(accountId) ?? { accountId, accountName, failing: [], worksAgain: [] };
    accounts.set(accountId, account);
    return account;
  };
  for (const cause of failing) accountOf(cause).failing.push(cause);
  for (const cause of worksAgain) accountOf(cause).worksAgain.push(cause);
  return [...accounts.values()];
}

/** Subject and text of the mail to an owner of an account. */
interface NoticeText {
  subject: string;
  text: string;
}

interface NoticeTextInput {
  accountId: string;
  accountName: string;
  failing: readonly Cause[];
  worksAgain: readonly Cause[];
  /** Of the person; null: English. */
  language: string | null;
  /** `console.url`. */
  consoleUrl: string;
}

/** Causes that a mail names. */
const MAX_NAMED = 20;

/** A text of each language in `config/failure-notices.toml`, in which `{name}` is replaced. */
type Texts = Record<
  FailingKind | 'fails' | 'worksAgain' | 'several' | 'since' | 'failing' | 'again' | 'more' | 'why',
  string
> &
  Record<'limited' | 'unlimited', string> & {
    consequence: Record<FailingKind, string>;
    limit: Record<Stream, string>;
    level: Record<NoticedLevel, string>;
    reason: Record<RateSignal, string>;
  };

/** Sound: the file is a part of the program, and a test checks its form. */
const TEXTS = readProgramFile('failure-notices.toml') as Record<'en' | 'de' | 'fr', Texts>;

function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''));
}

/** Pure. The mail about what began to fail or is limited in an account, and what works again. */
function noticeText(input: NoticeTextInput): NoticeText {
  const { accountId, failing, worksAgain, language, consoleUrl } = input;
  const texts = TEXTS[language === 'de' || language === 'fr' ? language : 'en'];
  const account = input.accountName || accountId;
  const titleOf = (cause: Cause) =>
    cause.kind === 'limit'
      ? fill(texts.limit[cause.stream], { name: cause.name || account })
      : `${texts[cause.kind]} ${cause.name}`;
  const addressOf = (path: string) =>
    `${consoleUrl}/console/${path}?account=${encodeURIComponent(accountId)}`;
  const pageOf = ({ kind, id }: Cause) =>
    addressOf(kind === 'limit' ? 'reputation' : `${kind}s/${encodeURIComponent(id)}`);
  const headingOf = (cause: Cause) =>
    fill(cause.kind === 'limit' ? texts.level[cause.level] : texts.fails, { cause: titleOf(cause), account });
  const endOf = (cause: Cause) =>
    fill(cause.kind === 'limit' ? texts.unlimited : texts.worksAgain, { cause: titleOf(cause), account });
  const linesOf = (cause: Cause) => {
    const since = fill(texts.since, { time: utcMinute(cause.since) });
    return cause.kind === 'limit'
      ? [`${headingOf(cause)} (${since})`, fill(texts.reason[cause.reason], { ...cause.figures })]
      : [`${titleOf(cause)} (${since})`, texts.consequence[cause.kind]];
  };
  const section = (title: string, causes: readonly Cause[], lines: (cause: Cause) => string[]) =>
    causes.length === 0
      ? []
      : [
          title,
          '',
          ...causes.slice(0, MAX_NAMED).flatMap((cause) => [...lines(cause), pageOf(cause), '']),
          ...(causes.length > MAX_NAMED ? [fill(texts.more, { count: causes.length - MAX_NAMED }), ''] : []),
        ];
  const [failed] = failing;
  const [ended] = worksAgain;
  const subject =
    failed === undefined
      ? worksAgain.length === 1 && ended !== undefined
        ? endOf(ended)
        : `${account}: ${texts.again} ${worksAgain.map(titleOf).slice(0, MAX_NAMED).join(', ')}`
      : failing.length === 1
        ? headingOf(failed)
        : fill(texts.several, { count: failing.length, account });
  const isLimit = ({ kind }: Cause) => kind === 'limit';
  return {
    subject: `[Postrider] ${subject}`,
    text: [
      ...section(
        texts.failing,
        failing.filter((cause) => !isLimit(cause)),
        linesOf,
      ),
      ...section(texts.limited, failing.filter(isLimit), linesOf),
      ...section(texts.again, worksAgain, (cause) => [titleOf(cause)]),
      '-- ',
      fill(texts.why, { account, address: addressOf('me') }),
      '',
    ].join('\n'),
  };
}

/** `2026-01-31 12:00 UTC`. */
function utcMinute(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

type FailingKind = Exclude<NoticeKind, 'limit'>;
type NoticedLevel = Exclude<LimitLevel, 'notice'>;

/** A domain or a webhook of an account that fails, mail that is limited, or what works again. */
type Cause = {
  accountId: string;
  accountName: string;
  id: string;
  /** Of a limit: the domain and the provider; '': all mail of the account. */
  name: string;
  /** Epoch ms: since when it fails. */
  since: number;
} & (
  | { kind: FailingKind }
  | { kind: 'limit'; stream: Stream; level: NoticedLevel; reason: RateSignal; figures: RateFigures }
);

/** What became of a failure of which owners were notified. `handled`: a person has changed or removed its cause. */
interface EndedFailure {
  notice: FailureNoticeRow;
  /** Null: handled. */
  worksAgain: Cause | null;
}

interface FailingCauses {
  begun: Cause[];
  ended: EndedFailure[];
}

/** Causes of one kind, of all accounts; the next run reads further ones. */
const MAX_BEGUN = 1000;

/** Reads what began to fail in all accounts, and which of the noticed failures have ended. */
export const failingCauses = readQuery(
  'failingCauses',
  (tables: Tables, notices: FailureNoticeRow[], now: number): FailingCauses => {
    const period: NoticePeriod = {
      from: now - MAX_FAILING_MS,
      to: now - MIN_FAILING_MS,
      quietFrom: now - QUIET_MS,
      limit: MAX_BEGUN,
    };
    const accountNames = new Map<string, string>();
    const nameOf = (accountId: string) => {
      const known = accountNames.get(accountId) ?? tables.accounts.get(accountId)?.name ?? '';
      accountNames.set(accountId, known);
      return known;
    };
    const ofDomain = (row: DomainRow): Cause => ({
      accountId: row.account_id,
      accountName: nameOf(row.account_id),
      kind: 'domain',
      id: row.domain_id,
      name: row.name,
      since: row.failing_since ?? 0,
    });
    const ofWebhook = (row: WebhookRow): Cause => ({
      accountId: row.account_id,
      accountName: nameOf(row.account_id),
      kind: 'webhook',
      id: row.webhook_id,
      // The path of the address may have a secret.
      name: row.name || new URL(row.url).host,
      since: row.failing_since ?? row.updated_at,
    });
    const ofLimit = (row: SendingLimitRow): Cause => {
      const { domain, provider, reason, figures } = presentLimit(tables, row, row.level ?? 'notice');
      return {
        accountId: row.account_id,
        accountName: nameOf(row.account_id),
        kind: 'limit',
        id: row.limit_id,
        name: [domain, provider].filter((part) => part !== null).join(' → '),
        since: row.since,
        stream: row.stream,
        level: row.level === 'pause' ? 'pause' : 'slow',
        reason,
        figures,
      };
    };
    const endOf = (notice: FailureNoticeRow): EndedFailure[] => {
      if (notice.state !== 'failing') return [];
      if (notice.kind === 'limit') {
        const row = tables.sendingLimits.get(notice.cause_id);
        if (row?.level === 'slow' || row?.level === 'pause') return [];
        return [{ notice, worksAgain: row !== null && endedByItself(row) ? ofLimit(row) : null }];
      }
      if (notice.kind === 'domain') {
        const row = tables.domains.get(notice.account_id, notice.cause_id);
        if (row !== null && isDomainFailing(row)) return [];
        return [{ notice, worksAgain: row?.status === 'SUCCESS' ? ofDomain(row) : null }];
      }
      const row = tables.webhooks.get(notice.account_id, notice.cause_id);
      if (row !== null && isWebhookFailing(row)) return [];
      // Another address, or enabled again: whether its endpoint responds is not known.
      const isHandled = row === null || row.is_active === 0 || row.updated_at > notice.noticed_at;
      return [{ notice, worksAgain: isHandled ? null : ofWebhook(row) }];
    };
    return {
      begun: [
        ...tables.domains.toNotice(period).map(ofDomain),
        ...tables.webhooks.toNotice(period).map(ofWebhook),
        ...tables.sendingLimits.toNotice({ ...period, to: now }).map(ofLimit),
      ],
      ended: notices.flatMap(endOf),
    };
  },
);

/** One that was verified before. */
function isDomainFailing({ status, failing_since }: DomainRow): boolean {
  return failing_since !== null && (status === 'TEMPORARY_FAILURE' || status === 'FAILED');
}

/** One that its account disabled needs nobody. */
function isWebhookFailing({ is_active, failing_since, off_reason }: WebhookRow): boolean {
  return is_active === 1 ? failing_since !== null : off_reason !== null;
}
