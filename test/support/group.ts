import type { ApiClient } from './api-client.ts';

export interface Member {
  email: string;
  firstName?: string;
  customFields?: Record<string, string>;
  [field: string]: string | Record<string, string> | undefined;
}

/** Members in one import: a request of a million takes longer than clients wait. */
const IMPORT_SIZE = 50_000;

/** Creates a subscription group with these members, who all gave consent, and a campaign that is not sent yet. */
export async function startGroup(
  api: ApiClient,
  members: readonly Member[],
): Promise<{ subscriptionGroupId: string; campaignId: string }> {
  const group = await api.post<{ group: { subscriptionGroupId: string } }>(
    '/web-setup/contacts/subscription-groups',
    { name: 'News' },
  );
  const { subscriptionGroupId } = group.data.group;
  for (let at = 0; at < members.length; at += IMPORT_SIZE) {
    const part = members.slice(at, at + IMPORT_SIZE);
    const imported = await api.call<{ subscribed: number }>(
      'POST',
      `/web-setup/contacts/import?subscriptionGroupId=${subscriptionGroupId}`,
      {
        rawBody: part.map((member) => JSON.stringify(member)).join('\n'),
        headers: { 'Content-Type': 'application/x-ndjson' },
      },
    );
    if (imported.data.subscribed !== part.length) throw new Error(`not all were imported: ${imported.text}`);
  }
  const campaign = await api.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
    name: 'Spring',
  });
  return { subscriptionGroupId, campaignId: campaign.data.campaign.campaignId };
}
