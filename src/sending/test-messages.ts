import { type Clock, HOUR } from '../core/clock.ts';
import { createLru } from '../core/lru.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { parseMailbox } from '../mail/address.ts';
import type { Context } from '../store/context.ts';
import type { Stream } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import type { Acceptance, AcceptRequest } from './accept.ts';
import { checkSuppression, type Sender } from './checks.ts';
import type { MailRequest } from './request.ts';

/*
 * Test messages: mail to people who use the console for the account, which needs neither contact nor consent. The
 * recipients are members of the account, or the person who requests it; therefore nobody else can receive one. They belong to
 * no campaign and no group, so that they count in neither.
 */

/** Before the subject of a test message. */
export const TEST_PREFIX = '[Test] ';
export const MAX_TESTS_PER_HOUR = { caller: 20, account: 100 };
export const MAX_TEST_RECIPIENTS = 5;
const MAX_PEOPLE = 500;
const MAX_LISTS = 20_000;

/** A mail to try. */
export interface TestMail {
  stream: Stream;
  /** Its subject is without the prefix. */
  mail: MailRequest;
  /** Names of variables that are empty without a value. */
  isOptional?: AcceptRequest['isOptional'];
}

/** Who requests it. */
export interface Tester extends Pick<Sender, 'account' | 'allowFrom' | 'isSimulation'> {
  /** Of an API key or a person. */
  callerId: string;
}

export interface SentTests {
  messages: { messageId: string; recipient: string }[];
  warnings: string[];
}

export type TestMessages = ReturnType<typeof createTestMessages>;

/**
 * The active people who can receive test messages of an account: its members, and the caller, who may be an operator. Addresses by
 * their form in lower case.
 */
export function testPeople(
  { people, memberships }: Pick<Tables, 'people' | 'memberships'>,
  accountId: string,
  callerId: string,
): Map<string, string> {
  const caller = people.get(callerId);
  const found = [...(caller === null ? [] : [caller]), ...memberships.ofAccount(accountId, MAX_PEOPLE)];
  return new Map(
    found.filter(({ status }) => status === 'active').map(({ email, email_key }) => [email_key, email]),
  );
}

/** The limits are in memory: they begin at zero after a restart. */
export function createTestMessages(
  { clock, tables }: Pick<Context, 'clock' | 'tables'>,
  { accept }: Pick<Acceptance, 'accept'>,
) {
  const ofCallers = createHourlyLimit(clock, MAX_TESTS_PER_HOUR.caller);
  const ofAccounts = createHourlyLimit(clock, MAX_TESTS_PER_HOUR.account);

  return {
    /**
     * Sends a mail to each of these addresses, 1 to MAX_TEST_RECIPIENTS, of which only people of the account are accepted. One
     * that cannot be sent after others were is named in the warnings.
     */
    send: async (
      tester: Tester,
      to: readonly string[],
      { stream, mail, isOptional }: TestMail,
    ): Promise<SentTests | Refusal> => {
      const { account, allowFrom, callerId, isSimulation = false } = tester;
      const { account_id: accountId } = account;
      const recipients = recipientsOf(to, testPeople(tables, accountId, callerId));
      if (isRefusal(recipients)) return recipients;
      const sender: Sender = {
        account,
        useCase: stream,
        allowFrom,
        allowEssential: false,
        isTest: true,
        isSimulation,
      };
      const addressed = recipients.map((address) => ({
        mailbox: { name: '', address },
        role: 'to' as const,
      }));
      const suppressed = checkSuppression(tables, sender, {
        recipients: addressed,
        essential: stream === 'mk',
      });
      if (suppressed !== null) return suppressed;
      const slots = recipients.flatMap(() => [ofCallers.take(callerId), ofAccounts.take(accountId)]);
      const release = (unused: typeof slots) => {
        for (const slot of unused) slot?.release();
      };
      if (slots.includes(null)) {
        release(slots);
        return tooMany();
      }
      const sent: SentTests = { messages: [], warnings: [] };
      try {
        for (const recipient of recipients) {
          const accepted = await accept({
            sender,
            body: {
              ...mail,
              enableOpenTracking: false,
              enableClickTracking: false,
              to: recipient,
              subject: `${TEST_PREFIX}${mail.subject ?? ''}`,
              templateVariables: { ...mail.templateVariables, email: recipient },
            },
            idempotency: null,
            envelope: () => '',
            isOptional,
          });
          if (isRefusal(accepted)) {
            if (sent.messages.length === 0) return accepted;
            sent.warnings.push(`Not sent to ${recipient}: ${accepted.message}`);
            break;
          }
          if (accepted.kind === 'replayed') throw new Error('a test message has no key');
          if (sent.messages.length === 0) sent.warnings.push(...accepted.warnings);
          sent.messages.push({ messageId: accepted.data.recipients[0]?.messageId ?? '', recipient });
        }
      } finally {
        release(slots.slice(2 * sent.messages.length));
      }
      return sent;
    },
  };
}

/** The addresses as their people have them, each once. */
function recipientsOf(to: readonly string[], people: ReadonlyMap<string, string>): string[] | Refusal {
  const found = to.map((text) => {
    const mailbox = parseMailbox(text);
    return typeof mailbox === 'string' ? undefined : people.get(mailbox.address.toLowerCase());
  });
  const details = found.flatMap((address, index) =>
    address === undefined
      ? [
          {
            field: `to[${index}]`,
            message: 'is not the address of a person who uses the console of this account',
          },
        ]
      : [],
  );
  const [first] = details;
  if (first !== undefined) return refuse('VALIDATION_ERROR', `${first.field} ${first.message}`, { details });
  return [...new Set(found.filter((address) => address !== undefined))];
}

function tooMany(): Refusal {
  const { caller, account } = MAX_TESTS_PER_HOUR;
  return refuse(
    'RATE_LIMITED',
    `At most ${caller} test messages per hour of a person or a key, and ${account} of an account, are sent: try again later`,
  );
}

/** Limits how often something happens within any hour, by key. In memory: it begins at zero after a restart. */
function createHourlyLimit(clock: Clock, max: number) {
  const times = createLru<{ recent: number[] }>(MAX_LISTS);
  return {
    /** Null: the limit is reached. `release` returns what was taken. */
    take: (key: string): { release(): void } | null => {
      const now = clock.now();
      // The clock may have been set back.
      const recent = (times.get(key)?.recent ?? []).filter((at) => Math.abs(now - at) < HOUR);
      if (recent.length >= max) return null;
      times.set(key, { recent: [...recent, now] });
      return {
        release: () => {
          const { recent: last = [] } = times.get(key) ?? {};
          const at = last.indexOf(now);
          if (at !== -1) times.set(key, { recent: last.toSpliced(at, 1) });
        },
      };
    },
  };
}
