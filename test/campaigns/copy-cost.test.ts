import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, CreatedDomain, VerifiedDomain } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { countExecutions } from '../support/executions.ts';
import { startGroup } from '../support/group.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { publishMailHost } from '../support/recipients.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';

/*
 * What one copy of a campaign costs from its place in the audience to the recorded delivery, in statements on the main thread:
 * those that are executed at least once for each copy. What a batch, a commit or a second costs is shared by many copies.
 */
const MEMBERS = 200;
/** Those of the units of work included. The consent and the suppressions are read again when a copy leaves the queue. */
const MAX_STATEMENTS = 26;
/** By which the caches notice other processes: it is read by turn of the event loop. */
const CACHE_CHECK = 'PRAGMA data_version';

interface Sent {
  campaignId: string;
  /** Executions by statement. */
  all: ReadonlyMap<string, number>;
  /** Those for each copy. */
  perCopy: ReadonlyMap<string, number>;
}

describe('the cost of a copy of a campaign', () => {
  const executions = new Map<string, number>();
  let restore = () => {};
  let daemon: InProcess;
  let sink: Sink;
  let api: ApiClient;

  beforeAll(async () => {
    restore = countExecutions((sql) => {
      if (sql !== CACHE_CHECK) executions.set(sql, (executions.get(sql) ?? 0) + 1);
    });
    sink = await startSink();
    daemon = await startInProcess({
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
      // The campaign would ask for its first results many times.
      'reputation.limits': 'off',
    });
    publishMailHost(daemon.dns, 'recipient.example', sink.host);
    api = await daemon.account('Sender');
    const registration = { domain: 'news.example', useCaseId: 'mk-local' };
    const { data } = await api.put<CreatedDomain>('/web-setup/domains', registration);
    daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
    await daemon.publishPlatform();
    const verified = await api.post<VerifiedDomain>(`/web-setup/domains/${data.domainId}/verify`);
    expect(verified.data.status).toBe('SUCCESS');
  });

  afterAll(async () => {
    restore();
    await daemon.stop();
    await sink.close();
  });

  /** Sends a campaign to a new group of people with addresses of their own. */
  async function send(name: string, more: object = {}): Promise<Sent> {
    const people = Array.from({ length: MEMBERS }, (_, n) => ({
      email: `${name}${n}@recipient.example`,
      firstName: `Reader ${n}`,
    }));
    const { campaignId, subscriptionGroupId } = await startGroup(api, people);
    executions.clear();
    const sent = await api.post(`/web-setup/campaigns/${campaignId}/send`, {
      from: 'News <news@news.example>',
      subject: 'News for {{firstName}}',
      html: '<p>Hello {{firstName}}</p>{{company_address_html}}{{unsubscribe_email_html}}',
      subscriptionGroupId,
      ...more,
    });
    expect(sent.status, sent.text).toBe(202);
    await eventually(
      'all copies to be delivered',
      () =>
        daemon.tables.campaignCounts.totals({ campaignId, from: 0, to: Number.MAX_SAFE_INTEGER })
          .delivered === MEMBERS,
      { everyMs: 250 },
    );
    const perCopy = [...executions].map(([sql, count]) => [sql, Math.floor(count / MEMBERS)] as const);
    return {
      campaignId,
      all: new Map(executions),
      perCopy: new Map(perCopy.filter(([, count]) => count > 0)),
    };
  }

  async function segmentOfAll(): Promise<string> {
    const filter = { all: [{ field: 'email', op: 'exists' }, { not: { opened: { withinDays: 30 } } }] };
    const created = await api.post<{ segment: { segmentId: string } }>('/web-setup/segments', {
      name: 'All',
      filter,
    });
    return created.data.segment.segmentId;
  }

  let toGroup: Sent;

  it('is a bounded number of statements', async () => {
    toGroup = await send('first');
    const list = [...toGroup.perCopy].map(([sql, count]) => `${count} ${sql}`).join('\n');
    const sum = [...toGroup.perCopy.values()].reduce((total, count) => total + count, 0);
    expect(sum, list).toBeLessThanOrEqual(MAX_STATEMENTS);
    const inserted = [...toGroup.perCopy].filter(([sql]) => sql.startsWith('INSERT INTO messages '));
    expect(inserted.map(([, count]) => count)).toEqual([1]);
  });

  it('is no other statement for an audience with a segment and exclusions', async () => {
    const excludeCampaignIds = [toGroup.campaignId];
    const { perCopy } = await send('second', { segmentId: await segmentOfAll(), excludeCampaignIds });
    expect([...perCopy.keys()].filter((sql) => !toGroup.all.has(sql))).toEqual([]);
  });
});
