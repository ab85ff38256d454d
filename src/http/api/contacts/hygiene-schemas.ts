import * as z from 'zod';
import type { HygieneCounts } from '../../../audience/hygiene/checks.ts';
import { NO_SERVICE_REASONS } from '../../../audience/hygiene/mail-service.ts';
import type { ImportHygiene } from '../../../audience/import/import.ts';
import { HYGIENE_KINDS, type HygieneKind } from '../../../store/contacts/hygiene.ts';

/* What is found about addresses, in the results of imports and of examinations. */

export const hygieneKind = z.enum(HYGIENE_KINDS).meta({
  id: 'HygieneKind',
  description:
    '`syntax`: the address is not valid; `no_mail_service`: its domain has a null MX, does not exist, or has neither MX nor address; `disposable`: addresses of its domain exist for minutes; `typo`: the domain looks like a mistyped one of a large provider; `role`: a function rather than a person, such as `info`; `duplicate`: another spelling of a mailbox, by the rules of its provider.',
});

const counts = z
  .object({
    examined: z.int(),
    unchecked: z.int().describe('Of them, those whose domain did not answer in time, and is not judged.'),
    syntax: z.int(),
    no_mail_service: z.int(),
    disposable: z.int(),
    typo: z.int(),
    role: z.int(),
    duplicate: z.int(),
  })
  .meta({ id: 'HygieneCounts' });

const DETAIL = `The provider that a typo stands for, or why there is no mail service: ${NO_SERVICE_REASONS.map((reason) => `\`${reason}\``).join(', ')}.`;

export const importHygiene = z
  .object({
    counts,
    warnings: z.array(z.string()).describe('What was found, a sentence for each kind.'),
    findings: z
      .array(
        z.object({
          line: z.int(),
          kind: hygieneKind,
          detail: z.string().optional().describe(`${DETAIL} Of a duplicate: the line of the first address.`),
        }),
      )
      .describe('The first 100.'),
  })
  .meta({ id: 'ImportHygiene' });

export function presentHygiene({ counts: found, findings }: ImportHygiene): z.output<typeof importHygiene> {
  return {
    counts: found,
    warnings: warningsOf(found),
    findings: findings.map(({ line, kind, detail }) => ({
      line,
      kind,
      ...(detail === null ? {} : { detail }),
    })),
  };
}

export const hygieneRun = z
  .object({
    hygieneId: z.string(),
    status: z.enum(['waiting', 'running', 'completed', 'cancelled']),
    subscriptionGroupId: z.string().nullable().describe('`null`: all contacts.'),
    counts: counts.describe('Until now.'),
    createdAt: z.iso.datetime(),
    finishedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'HygieneRun' });

export const hygieneFinding = z
  .object({
    kind: hygieneKind,
    contactIdentifier: z.string(),
    email: z.string(),
    detail: z.string().optional().describe(DETAIL),
    duplicateOf: z.string().optional().describe('The first address of the same mailbox.'),
  })
  .meta({ id: 'HygieneFinding' });

const WORDS: Record<HygieneKind, readonly [one: string, many: string]> = {
  syntax: ['address is not valid', 'addresses are not valid'],
  no_mail_service: [
    'address has a domain without mail service',
    'addresses have a domain without mail service',
  ],
  disposable: ['address is disposable', 'addresses are disposable'],
  typo: [
    'address has a domain that is probably mistyped',
    'addresses have a domain that is probably mistyped',
  ],
  role: ['address belongs to a function, not a person', 'addresses belong to functions, not to people'],
  duplicate: ['address is another spelling of a mailbox', 'addresses are other spellings of mailboxes'],
};

/** What was found, as sentences. */
function warningsOf(found: HygieneCounts): string[] {
  return HYGIENE_KINDS.filter((kind) => found[kind] > 0).map(
    (kind) => `${found[kind]} ${WORDS[kind][found[kind] === 1 ? 0 : 1]}`,
  );
}

const COUNTS: z.output<typeof counts> = {
  examined: 1,
  unchecked: 0,
  syntax: 0,
  no_mail_service: 0,
  disposable: 0,
  typo: 0,
  role: 0,
  duplicate: 0,
};

export const HYGIENE_EXAMPLES = {
  imported: { counts: COUNTS, warnings: [], findings: [] } satisfies z.output<typeof importHygiene>,
  run: {
    hygieneId: 'hygiene_1769860800000_4k2m9x7q1zab',
    status: 'completed',
    subscriptionGroupId: null,
    counts: { ...COUNTS, examined: 48_210, no_mail_service: 31, typo: 12, role: 320, disposable: 9 },
    createdAt: '2026-01-31T12:00:00.000Z',
    finishedAt: '2026-01-31T12:00:41.000Z',
  } satisfies z.output<typeof hygieneRun>,
  finding: {
    kind: 'typo',
    contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910',
    email: 'ada@gmial.com',
    detail: 'gmail.com',
  } satisfies z.output<typeof hygieneFinding>,
};
