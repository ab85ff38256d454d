import * as z from 'zod';
import { type HygieneRuns, hygieneCountsOf, MAX_STORED_FINDINGS } from '../../../audience/hygiene/runs.ts';
import { iso, isoOrNull } from '../../../core/clock.ts';
import { withoutNulls } from '../../../core/without-nulls.ts';
import {
  type FindingPosition,
  type HygieneRunRow,
  type ListedFinding,
  MAX_KEPT_HYGIENE_RUNS,
} from '../../../store/contacts/hygiene.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';
import { endOf, pageOf, paging } from '../paging.ts';
import { HYGIENE_EXAMPLES, hygieneFinding, hygieneKind, hygieneRun } from './hygiene-schemas.ts';

/* `/web-setup/contacts/hygiene`: examinations of the addresses of contacts, in the background. */

const route = routesOf({ tag: 'Contacts', scope: 'setup', permissions: ['read', 'contacts'] });
const ONE = '/web-setup/contacts/hygiene/{hygieneId}';
const params = { hygieneId: z.string().max(100) };
const input = z
  .object({
    subscriptionGroupId: z
      .string()
      .max(100)
      .nullable()
      .optional()
      .describe('Members of this group only; default: all contacts.'),
  })
  .meta({ id: 'HygieneInput' });
const one = {
  description: 'The examination.',
  data: z.object({ hygiene: hygieneRun }).meta({ id: 'HygieneRunResult' }),
  example: { hygiene: HYGIENE_EXAMPLES.run },
};

export function hygieneRoutes({ hygiene }: { hygiene: HygieneRuns }): Route[] {
  return [
    route('POST /web-setup/contacts/hygiene', {
      operationId: 'examineContacts',
      summary: 'Examine the addresses of contacts',
      description:
        'Looks for invalid addresses, domains without mail service, disposable domains, likely typos, addresses of functions and several addresses of one mailbox, in the background. Changes no contact. One examination of an account at a time.',
      body: input,
      example: {},
      response: { ...one, status: 202 },
      refusals: ['SUBSCRIPTION_GROUP_NOT_FOUND', 'LIMIT_REACHED'],
      handle: async ({ caller, body }) =>
        mapResult(await hygiene.add(caller.accountId, body.subscriptionGroupId ?? null), present),
    }),
    route('GET /web-setup/contacts/hygiene', {
      operationId: 'listHygieneRuns',
      summary: 'List examinations of contacts, newest first',
      description: `The newest ${MAX_KEPT_HYGIENE_RUNS} are stored.`,
      response: {
        description: 'The examinations.',
        data: z.object({ runs: z.array(hygieneRun), count: z.int() }).meta({ id: 'HygieneRunList' }),
        example: { runs: [HYGIENE_EXAMPLES.run], count: 1 },
      },
      handle: ({ caller }) => {
        const runs = hygiene.list(caller.accountId).map(presentHygieneRun);
        return { runs, count: runs.length };
      },
    }),
    route(`GET ${ONE}`, {
      operationId: 'getHygieneRun',
      summary: 'Get an examination of contacts with its counts',
      params,
      response: one,
      refusals: ['NOT_FOUND'],
      handle: ({ caller, params: { hygieneId } }) =>
        mapResult(hygiene.get(caller.accountId, hygieneId), present),
    }),
    route(`GET ${ONE}/findings`, {
      operationId: 'listHygieneFindings',
      summary: 'List the contacts that an examination found',
      description: `By kind, oldest contacts first. The first ${MAX_STORED_FINDINGS.toLocaleString('en')} findings of an examination are stored; a contact that is erased is not listed any more.`,
      params,
      query: z.object({ kind: hygieneKind.optional(), ...paging }),
      page: { list: 'hygiene-findings', parse: parsePosition },
      response: pageOf('findings', hygieneFinding, HYGIENE_EXAMPLES.finding),
      refusals: ['NOT_FOUND'],
      narrowBy: ['kind', 'limit'],
      handle: async ({ caller, params: { hygieneId }, query: { kind, limit }, after }) => {
        const found = await hygiene.findings(caller.accountId, hygieneId, {
          kind: kind ?? null,
          after,
          limit,
        });
        return mapResult(found, ({ rows, more }) => {
          const last = more ? rows.at(-1) : undefined;
          const next = last === undefined ? null : `${last.kind}:${last.contact_seq}`;
          return { findings: rows.map(presentFinding), ...endOf(rows, next) };
        });
      },
    }),
    route(`POST ${ONE}/cancel`, {
      operationId: 'cancelHygieneRun',
      stores: () => false,
      summary: 'Cancel an examination of contacts',
      description: 'What it found before remains.',
      params,
      response: one,
      refusals: ['NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params: { hygieneId } }) =>
        mapResult(await hygiene.cancel(caller.accountId, hygieneId), present),
    }),
  ];
}

/** Parses `<kind>:<contact>`. */
function parsePosition(text: string): FindingPosition | null {
  const [, kind, contactSeq] = /^([a-z_]{1,30}):(\d{1,15})$/.exec(text) ?? [];
  return kind === undefined ? null : { kind, contactSeq: Number(contactSeq) };
}

function present(row: HygieneRunRow) {
  return { hygiene: presentHygieneRun(row) };
}

/** The examination as the API returns it. */
export function presentHygieneRun(row: HygieneRunRow): z.output<typeof hygieneRun> {
  return {
    hygieneId: row.hygiene_id,
    status: row.status,
    subscriptionGroupId: row.group_id,
    counts: hygieneCountsOf(row),
    createdAt: iso(row.created_at),
    finishedAt: isoOrNull(row.finished_at),
  };
}

function presentFinding(row: ListedFinding): z.output<typeof hygieneFinding> {
  return {
    kind: row.kind,
    contactIdentifier: row.identifier ?? '',
    email: row.email ?? '',
    ...withoutNulls({ detail: row.detail, duplicateOf: row.first_email }),
  };
}
