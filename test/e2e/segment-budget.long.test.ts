// Long: evaluates segments that take seconds.
import { afterAll, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomain } from '../support/store.ts';

/*
 * The largest filter with the slowest conditions, over contacts with long custom fields: its reads end with their budget, and
 * another account reads and sends meanwhile.
 */
const daemon = await startInProcess({ 'readers.budget': '100ms' });
afterAll(() => daemon.stop());

const CONTACTS = 3000;
const NOTE = 'é'.repeat(4200);
/** As many conditions as a filter may have, none of which matches, negated twice. */
const FILTER = {
  any: Array.from({ length: 49 }, (_, n) => ({
    not: { not: { field: `customFields.note${n % 5}`, op: 'contains', value: `absent ${n}` } },
  })),
};
const BODY = { subject: 'Hello', html: '<p>Hello {{company_address_html}}{{unsubscribe_email_html}}</p>' };

interface Campaign {
  campaign: { status: string; progress: { pausedReason: string | null } };
}

async function account(name: string, members: number, customFields: Record<string, string>) {
  const api = await daemon.account(name);
  const [group] = daemon.tables.domainGroups.list(api.accountId);
  const domain = `${name}.test`;
  insertDomain(
    daemon.tables,
    {
      account_id: api.accountId,
      group_id: group?.group_id ?? '',
      domain_id: `domain_${name}`,
      name: domain,
      use_case: 'mk',
      next_check_at: Date.now() + DAY,
    },
    Date.now(),
  );
  const started = await startGroup(
    api,
    Array.from({ length: members }, (_, n) => ({
      email: `delivered+${n}@simulator.${PLATFORM}`,
      customFields,
    })),
  );
  const state = async () =>
    (await api.get<Campaign>(`/web-setup/campaigns/${started.campaignId}`)).data.campaign;
  const send = async (audience: object) => {
    const path = `/web-setup/campaigns/${started.campaignId}/send`;
    const sent = await api.post(path, { ...BODY, from: `a@${domain}`, ...audience });
    expect(sent.status, sent.text).toBe(202);
  };
  return { api, ...started, state, send };
}

it('is cut by the budget of reads, while another account reads and sends', async () => {
  const notes = Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`note${n}`, NOTE.slice(0, 840)]));
  const slow = await account('slow', CONTACTS, notes);
  const other = await account('other', 20, { plan: 'gold' });
  const created = await slow.api.post<{ segment: { segmentId: string; count: number | null } }>(
    '/web-setup/segments',
    { name: 'Slow', filter: FILTER },
  );
  expect([created.status, created.data.segment.count]).toEqual([201, null]);
  await slow.send({ segmentId: created.data.segment.segmentId });
  const progress = { isSent: false };
  const abuse = Array.from({ length: 4 }, async () => {
    const codes = new Set<string>();
    do {
      const { error } = await slow.api.post('/web-setup/segments/preview', { filter: FILTER });
      codes.add(error.code);
    } while (!progress.isSent);
    return [...codes];
  });
  try {
    await other.send({ subscriptionGroupId: other.subscriptionGroupId });
    await eventually('the campaign of the other account to be sent', async () => {
      expect((await other.api.get('/web-setup/contacts?limit=1')).status).toBe(200);
      const counted = await other.api.post<{ count: number }>('/web-setup/segments/preview', {
        filter: { field: 'customFields.plan', op: 'is', value: 'gold' },
      });
      expect(counted.data.count).toBe(20);
      return (await other.state()).status === 'sent';
    });
  } finally {
    progress.isSent = true;
  }
  for (const codes of await Promise.all(abuse)) expect(codes).toEqual(['QUERY_TOO_BROAD']);
  const paused = await eventually('the campaign to the slow segment to be paused', async () => {
    const campaign = await slow.state();
    return campaign.status === 'paused' ? campaign : null;
  });
  expect(paused.progress.pausedReason).toMatch(/^QUERY_TOO_BROAD: /);
});
