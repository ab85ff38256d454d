import * as z from 'zod';
import { isoOrNull } from '../../core/clock.ts';
import { type AccountAttention, accountAttention } from '../../doctor/attention.ts';
import type { InstallationAttention, InstallationProblem } from '../../doctor/installation-attention.ts';
import { permissionsOf } from '../../people/roles.ts';
import type { Context } from '../../store/context.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/** What a person can have seen: at least as much as is listed. */
const MAX_SEEN = 300;
const seenKeys = z.array(z.string().max(500)).max(MAX_SEEN);
/** The installation, in place of an account. */
const INSTALLATION = '';

/**
 * `/console/attention`: what needs a person, as the Overview, the bell and the counts of the navigation show it, and what of
 * it the person has seen.
 */
export function attentionRoutes(
  { clock, reader, tables, writer }: Pick<Context, 'clock' | 'reader' | 'tables' | 'writer'>,
  { access, installation }: { access: ConsoleAccess; installation(): Promise<InstallationAttention> },
): ConsoleRoute[] {
  return [
    consoleRoute('GET /console/attention', {
      operationId: 'getAttention',
      summary: 'See what needs attention',
      access: 'read',
      accountOptional: true,
      handle: async ({ caller }): Promise<AttentionResponse> => {
        const { accountId, standing } = access.identityOf(caller);
        const { person } = access.sessionOf(caller);
        const [account, ofInstallation] = await Promise.all([
          accountId === null
            ? null
            : reader.query(accountId, accountAttention, {
                accountId,
                now: clock.now(),
                mayErase: standing !== null && permissionsOf(standing).includes('erase'),
              }),
          standing === 'operator' ? installation() : null,
        ]);
        const seen = new Set(
          [accountId, INSTALLATION].flatMap((id) =>
            id === null ? [] : tables.attentionSeen.get(person.id, id),
          ),
        );
        const marked = (key: string): Marked => ({ key, isNew: !seen.has(key) });
        return {
          items: (account?.items ?? []).map(({ since, ...item }) => ({
            ...item,
            since: isoOrNull(since),
            ...marked([item.kind, item.id, since].join(' ')),
          })),
          counts: account?.counts ?? { domains: 0, webhooks: 0, campaigns: 0 },
          installation: ofInstallation && {
            ...ofInstallation,
            problems: ofInstallation.problems.map((each) => ({ ...each, ...marked(keyOf(each)) })),
          },
        };
      },
    }),
    consoleRoute('PUT /console/attention/seen', {
      operationId: 'markAttentionSeen',
      summary: 'Mark what needs attention as seen',
      access: 'read',
      accountOptional: true,
      // The person changes nothing that others have.
      ownAudit: true,
      body: z.strictObject({ ofAccount: seenKeys, ofInstallation: seenKeys }),
      handle: async ({ caller, body }) => {
        const { accountId, standing } = access.identityOf(caller);
        const { person } = access.sessionOf(caller);
        await writer.run((tx) => {
          if (tx.people.get(person.id) === null) return;
          if (accountId !== null) tx.attentionSeen.put(person.id, accountId, body.ofAccount);
          if (standing === 'operator') tx.attentionSeen.put(person.id, INSTALLATION, body.ofInstallation);
        });
        return {};
      },
    }),
  ];
}

/** What stays the same while a problem lasts. */
function keyOf(problem: InstallationProblem): string {
  switch (problem.kind) {
    case 'certificate':
      return `certificate ${problem.host}`;
    case 'address':
      return `address ${problem.address} ${problem.provider} ${problem.since}`;
    case 'site':
      return `site ${problem.site} ${problem.pool} ${problem.state}`;
    default:
      return problem.kind;
  }
}

/** `isNew`: the person has not seen what has this key. */
interface Marked {
  key: string;
  isNew: boolean;
}

type Presented<Item> = Item extends AccountAttention
  ? Omit<Item, 'since'> & { since: string | null } & Marked
  : never;

/** An item of an account. `since` is ISO 8601. */
export type AttentionItem = Presented<AccountAttention>;

export interface AttentionResponse {
  items: AttentionItem[];
  counts: { domains: number; webhooks: number; campaigns: number };
  /** Null for people who are not operators. */
  installation:
    | (Omit<InstallationAttention, 'problems'> & { problems: (InstallationProblem & Marked)[] })
    | null;
}
