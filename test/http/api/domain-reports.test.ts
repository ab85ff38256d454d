import { describe, expect, it, onTestFinished } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { refuse } from '../../../src/core/refusal.ts';
import { domainReportRoutes } from '../../../src/http/api/domains/domain-reports.ts';
import { parseIncoming } from '../../../src/mail/incoming/parse.ts';
import { storeReports } from '../../../src/smtp/mx/reports.ts';
import { createLocalReader } from '../../../src/store/readers/reads.ts';
import { aggregateReport, tlsReport } from '../../smtp/mx/mails.ts';
import { heldClock, insertAccount, insertDomain, startStore } from '../../support/store.ts';
import { startApi } from '../harness.ts';

/** The end of the day that the reports in mails.ts are about. */
const DAY_AFTER = Date.UTC(2026, 0, 15);

async function start() {
  const store = startStore(heldClock(DAY_AFTER));
  const { tables, writer, clock } = store;
  const domains = {
    get: (accountId: string, domainId: string) =>
      tables.domains.get(accountId, domainId) ?? refuse('DOMAIN_NOT_FOUND', 'There is no such domain'),
  };
  const api = await startApi({
    routes: domainReportRoutes({ clock, reader: createLocalReader(tables) }, { domains }),
  });
  onTestFinished(() => api.stop());
  const { accountId } = api.account;
  insertAccount(tables, accountId, clock.now());
  const own = { account_id: accountId, name: 'kunde.example' };
  insertDomain(tables, { ...own, domain_id: 'domain_proven' }, clock.now());
  insertDomain(tables, { ...own, domain_id: 'domain_claimed', use_case: 'mk', dkim_enabled: 0 }, clock.now());

  const read = (mail: string) => parseIncoming(Buffer.from(mail));
  const origin = {
    hostname: 'mx.postrider.example',
    now: clock.now(),
    network: '192.0.2.0/24',
    signer: null,
  };
  for (const id of ['1', '2'])
    for (const mail of [aggregateReport('kunde.example', id), tlsReport('return-a.kunde.example', id)])
      expect(await storeReports(writer, origin, read(mail), ['kunde.example'])).toEqual(
        new Map([['kunde.example', 'stored']]),
      );
  return {
    clock,
    tables,
    storeSigned: async (id: string) => {
      const signer = { from: 'noreply-dmarc@receiver.example', organization: 'receiver.example' };
      for (const mail of [aggregateReport('kunde.example', id), tlsReport('return-a.kunde.example', id)])
        await storeReports(writer, { ...origin, signer }, read(mail), ['kunde.example']);
    },
    get: async (domainId: string, query = '') => {
      const response = await fetch(`${api.base}/web-setup/domains/${domainId}/reports${query}`, {
        headers: api.as('setup'),
      });
      const json = (await response.json()) as Answered;
      return { status: response.status, data: json.data, error: json.error };
    },
  };
}

interface Answered {
  data: {
    from: string;
    to: string;
    message?: string;
    dmarc: { messages: number; passed: number; sources: object[]; days: object[]; reports: object[] };
    tls: { successful: number; failed: number; failures: object[]; reports: object[] };
  };
  error?: { code: string; details?: { field: string }[] };
}

function source(dkim: 'pass' | 'fail', messages: number) {
  return {
    source_ip: '192.0.2.25',
    header_from: 'kunde.example',
    disposition: 'none',
    dkim,
    spf: 'fail',
    messages,
  } as const;
}

describe('the reports on a domain', () => {
  it('are totaled by source and by failure, and listed', async () => {
    const { get } = await start();
    const { status, data } = await get('domain_proven');
    expect(status).toBe(200);
    expect(data).toMatchObject({
      domain: 'kunde.example',
      from: '2025-12-16T00:00:00.001Z',
      dmarc: {
        messages: 30,
        passed: 20,
        sources: [
          { sourceIp: '192.0.2.25', messages: 20, passed: 20, dkimPassed: 20, spfPassed: 20, rejected: 0 },
          { sourceIp: '203.0.113.9', messages: 10, passed: 0, rejected: 10 },
        ],
        days: [{ date: '2026-01-14', messages: 30, passed: 20, dkimPassed: 20, spfPassed: 20 }],
        reports: [
          {
            organization: 'Receiver',
            policyDomain: 'kunde.example',
            policy: 'reject',
            messages: 15,
            truncated: false,
            begin: '2026-01-14T00:00:00.000Z',
            end: '2026-01-14T23:59:59.000Z',
          },
          { messages: 15 },
        ],
      },
      tls: {
        successful: 180,
        failed: 8,
        failures: [
          { type: 'certificate-expired', receivingHost: 'mx.postrider.example', reason: '', sessions: 8 },
        ],
        days: [{ date: '2026-01-14', successful: 180, failed: 8 }],
        reports: [{ organization: 'Sender', policyType: 'no-policy-found', successful: 90, failed: 4 }, {}],
      },
    });
    expect(data.message).toBeUndefined();
  });

  it('state whether the reporting organization signed them, and can be filtered by it', async () => {
    const { get, storeSigned } = await start();
    await storeSigned('3');
    const all = (await get('domain_proven')).data;
    const signers = (reports: object[]) =>
      reports.map((each) => [Reflect.get(each, 'verified'), Reflect.get(each, 'signer')]);
    for (const { reports } of [all.dmarc, all.tls])
      expect(signers(reports)).toEqual(
        expect.arrayContaining([
          [true, 'receiver.example'],
          [false, null],
        ]),
      );
    const verified = (await get('domain_proven', '?verified=true')).data;
    expect([verified.dmarc.messages, verified.dmarc.reports.length]).toEqual([15, 1]);
    expect([verified.tls.successful, verified.tls.reports.length]).toEqual([90, 1]);
    const others = (await get('domain_proven', '?verified=false')).data;
    expect([others.dmarc.messages, others.dmarc.reports.length]).toEqual([30, 2]);
    expect([others.tls.successful, others.tls.failures]).toMatchObject([180, [{ sessions: 8 }]]);
    expect((await get('domain_proven', '?verified=maybe')).status).toBe(400);
  });

  it('are shown only after verification of the DKIM record', async () => {
    const { get } = await start();
    const { status, data } = await get('domain_claimed');
    expect(status).toBe(200);
    expect(data.message).toContain('DKIM');
    expect(data.dmarc).toEqual({ messages: 0, passed: 0, sources: [], days: [], reports: [] });
    expect(data.tls).toEqual({ successful: 0, failed: 0, failures: [], days: [], reports: [] });
  });

  it.each([
    ['before', '?to=2026-01-14T23:59:59Z', 0],
    ['on', '?from=2026-01-14T23:59:59Z&to=2026-01-15T00:00:00Z', 30],
    ['after', '?from=2026-01-15T00:00:00Z', 0],
  ])('are those that ended in the requested period: %s', async (_, query, messages) => {
    const { get } = await start();
    expect((await get('domain_proven', query)).data.dmarc.messages).toBe(messages);
  });

  it('are totaled over more days than are listed', async () => {
    const { tables, get } = await start();
    for (let day = 1; day <= 401; day++) {
      const end_at = DAY_AFTER - day * DAY - 1;
      tables.dmarcReports.insert(
        {
          domain: 'kunde.example',
          policy_domain: 'kunde.example',
          organization: 'Daily',
          report_id: `day ${day}`,
          begin_at: end_at - DAY,
          end_at,
          policy: '{"p":"none"}',
          truncated: 0,
          received_at: DAY_AFTER,
          network: '192.0.2.0/24',
          signer: '',
          verified: 0,
        },
        [source('pass', 2), source('fail', 1)],
      );
    }
    const { data } = await get('domain_proven', '?from=2024-01-01T00:00:00Z');
    expect(data.dmarc.days).toHaveLength(400);
    expect(data.dmarc).toMatchObject({ messages: 30 + 401 * 3, passed: 20 + 401 * 2 });
  });

  it('are those of the last 30 days by default', async () => {
    const { clock, get } = await start();
    clock.advance(29 * DAY);
    expect((await get('domain_proven')).data.dmarc.messages).toBe(30);
    clock.advance(2 * DAY);
    expect((await get('domain_proven')).data.dmarc.messages).toBe(0);
  });

  it.each([
    ['?from=yesterday', 'from'],
    ['?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z', 'from'],
  ])('refuses %s', async (query, field) => {
    const { get } = await start();
    const { status, error } = await get('domain_proven', query);
    expect(status).toBe(400);
    expect(error).toMatchObject({ code: 'VALIDATION_ERROR', details: [{ field }] });
  });

  it.each(['domain_unknown', 'domain_one'])(
    'do not exist for %s, unknown or of another account',
    async (id) => {
      const { get } = await start();
      const { status, error } = await get(id);
      expect([status, error?.code]).toEqual([404, 'DOMAIN_NOT_FOUND']);
    },
  );
});
