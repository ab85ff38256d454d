import type { NoticeKind } from '../store/people/notices.ts';
import type { Cause } from './failing-causes.ts';

/** Subject and text of the mail to an owner of an account. */
export interface NoticeText {
  subject: string;
  text: string;
}

export interface NoticeTextInput {
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

interface Words {
  kinds: Record<NoticeKind, string>;
  fails: (cause: string, account: string) => string;
  worksAgain: (cause: string, account: string) => string;
  several: (count: number, account: string) => string;
  since: (time: string) => string;
  consequence: Record<NoticeKind, string>;
  failing: string;
  again: string;
  more: (count: number) => string;
  why: (account: string, address: string) => string;
}

const WORDS: Readonly<Record<'en' | 'de' | 'fr', Words>> = {
  en: {
    kinds: { domain: 'Domain', webhook: 'Webhook' },
    fails: (cause, account) => `${cause} of ${account} fails`,
    worksAgain: (cause, account) => `${cause} of ${account} works again`,
    several: (count, account) => `${count} failures in ${account}`,
    since: (time) => `since ${time}`,
    consequence: {
      domain: 'Its records in DNS are missing or wrong. If they stay so, mail of the domain stops.',
      webhook: 'Every call fails. Events are tried again; after five days the webhook is disabled.',
    },
    failing: 'Failing:',
    again: 'Works again:',
    more: (count) => `and ${count} more`,
    why: (account, address) =>
      `You own the account ${account}. Turn this mail off in your profile: ${address}`,
  },
  de: {
    kinds: { domain: 'Domain', webhook: 'Webhook' },
    fails: (cause, account) => `${cause} von ${account} ist gestört`,
    worksAgain: (cause, account) => `${cause} von ${account} ist wieder in Ordnung`,
    several: (count, account) => `${count} Störungen in ${account}`,
    since: (time) => `seit ${time}`,
    consequence: {
      domain:
        'Ihre Einträge im DNS fehlen oder sind falsch. Bleibt es dabei, steht die Mail der Domain still.',
      webhook:
        'Jeder Aufruf scheitert. Ereignisse werden erneut versucht; nach fünf Tagen wird der Webhook deaktiviert.',
    },
    failing: 'Gestört:',
    again: 'Wieder in Ordnung:',
    more: (count) => `und ${count} weitere`,
    why: (account, address) =>
      `Sie sind Eigentümer des Kontos ${account}. Diese Mail lässt sich im Profil abschalten: ${address}`,
  },
  fr: {
    kinds: { domain: 'Domaine', webhook: 'Webhook' },
    fails: (cause, account) => `${cause} de ${account} est en échec`,
    worksAgain: (cause, account) => `${cause} de ${account} fonctionne à nouveau`,
    several: (count, account) => `${count} échecs dans ${account}`,
    since: (time) => `depuis ${time}`,
    consequence: {
      domain:
        'Ses enregistrements DNS manquent ou sont erronés. Si cela dure, les messages du domaine s’arrêtent.',
      webhook:
        'Chaque appel échoue. Les événements sont réessayés ; après cinq jours, le webhook est désactivé.',
    },
    failing: 'En échec :',
    again: 'Fonctionne à nouveau :',
    more: (count) => `et ${count} autres`,
    why: (account, address) =>
      `Vous êtes propriétaire du compte ${account}. Ce courrier se désactive dans votre profil : ${address}`,
  },
};

/** Pure. The mail about what began to fail in an account, and what works again. */
export function noticeText(input: NoticeTextInput): NoticeText {
  const { accountId, failing, worksAgain, language, consoleUrl } = input;
  const words = WORDS[language === 'de' || language === 'fr' ? language : 'en'];
  const account = input.accountName || accountId;
  const titleOf = ({ kind, name }: Cause) => `${words.kinds[kind]} ${name}`;
  const addressOf = (path: string) =>
    `${consoleUrl}/console/${path}?account=${encodeURIComponent(accountId)}`;
  const pageOf = ({ kind, id }: Cause) => addressOf(`${kind}s/${encodeURIComponent(id)}`);
  const section = (title: string, causes: readonly Cause[], linesOf: (cause: Cause) => string[]) =>
    causes.length === 0
      ? []
      : [
          title,
          '',
          ...causes.slice(0, MAX_NAMED).flatMap((cause) => [...linesOf(cause), pageOf(cause), '']),
          ...(causes.length > MAX_NAMED ? [words.more(causes.length - MAX_NAMED), ''] : []),
        ];
  const [failed] = failing;
  const [ended] = worksAgain;
  const subject =
    failed === undefined
      ? worksAgain.length === 1 && ended !== undefined
        ? words.worksAgain(titleOf(ended), account)
        : `${account}: ${words.again} ${worksAgain.map(titleOf).slice(0, MAX_NAMED).join(', ')}`
      : failing.length === 1
        ? words.fails(titleOf(failed), account)
        : words.several(failing.length, account);
  return {
    subject: `[Postrider] ${subject}`,
    text: [
      ...section(words.failing, failing, (cause) => [
        `${titleOf(cause)} (${words.since(utcMinute(cause.since))})`,
        words.consequence[cause.kind],
      ]),
      ...section(words.again, worksAgain, (cause) => [titleOf(cause)]),
      '-- ',
      words.why(account, addressOf('me')),
      '',
    ].join('\n'),
  };
}

/** `2026-01-31 12:00 UTC`. */
function utcMinute(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
