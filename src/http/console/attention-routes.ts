import type { Clock } from '../../core/clock.ts';
import { iso } from '../../core/clock.ts';
import { type AccountAttention, accountAttention } from '../../doctor/attention.ts';
import type { InstallationAttention } from '../../doctor/installation-attention.ts';
import type { Reader } from '../../store/readers/reads.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

export interface AttentionRouteDeps {
  access: ConsoleAccess;
  reader: Reader;
  clock: Clock;
  installation(): Promise<InstallationAttention>;
}

/** `/console/attention`: what needs a person, as the Overview and the counts of the navigation show it. */
export function attentionRoutes({ access, reader, clock, installation }: AttentionRouteDeps): ConsoleRoute[] {
  return [
    consoleRoute({
      method: 'GET',
      path: '/attention',
      operationId: 'getAttention',
      access: 'read',
      accountOptional: true,
      handle: async ({ caller }): Promise<{ status: number; data: AttentionResponse }> => {
        const { accountId, standing } = access.identityOf(caller);
        const [account, ofInstallation] = await Promise.all([
          accountId === null
            ? null
            : reader.query(accountId, accountAttention, { accountId, now: clock.now() }),
          standing === 'operator' ? installation() : null,
        ]);
        return {
          status: 200,
          data: {
            items: (account?.items ?? []).map(({ since, ...item }) => ({
              ...item,
              since: since === null ? null : iso(since),
            })),
            counts: account?.counts ?? { domains: 0, webhooks: 0, campaigns: 0 },
            installation: ofInstallation,
          },
        };
      },
    }),
  ];
}

type Presented<Item> = Item extends AccountAttention ? Omit<Item, 'since'> & { since: string | null } : never;

/** An item of an account. `since` is ISO 8601. */
export type AttentionItem = Presented<AccountAttention>;

export interface AttentionResponse {
  items: AttentionItem[];
  counts: { domains: number; webhooks: number; campaigns: number };
  /** Null for people who are not operators. */
  installation: InstallationAttention | null;
}
