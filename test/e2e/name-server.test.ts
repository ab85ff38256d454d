import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CreatedDomain } from '../support/api-client.ts';
import { HOSTNAME, PUBLIC_ADDRESS, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { createKnotSecondary, type KnotSecondary, kdig, kdigOutput } from '../support/knot-secondary.ts';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * The daemon as name server of the platform's zone, with Knot as its secondary and kdig as its client.
 *
 *   kdig ──▶ postrider (dns.server) ──NOTIFY, AXFR──▶ Knot ◀── kdig
 */
const required = requirePrograms('knot', 'kdig');

describe.skipIf(required.missing)(`the name server of the platform's zone${required.reason}`, () => {
  let daemon: RunningDaemon;
  let knot: KnotSecondary;
  let own: { host: string; port: number };

  beforeAll(async () => {
    own = { host: '127.0.0.1', port: await freePort() };
    const port = await freePort();
    knot = await createKnotSecondary({ zone: HOSTNAME, port, primary: own });
    knot.start();
    daemon = await startDaemon({
      'dns.server.listen': `${own.host}:${own.port}`,
      'dns.server.secondaries': [`${knot.host}:${knot.port}`],
      'dns.server.nameServers': [
        { name: `ns1.${HOSTNAME}`, addresses: [PUBLIC_ADDRESS] },
        { name: 'ns2.secondary.example', addresses: [] },
      ],
      'domains.ed25519': true,
    });
  });
  afterAll(async () => {
    await daemon?.stop();
    await knot?.stop();
  });

  const serial = async (server: { host: string; port: number }) => {
    const [line] = await kdig(server, HOSTNAME, 'SOA');
    return line === undefined ? null : Number(line.split(' ')[6]);
  };

  const untilTransferred = (what: string) =>
    eventually(what, async () => {
      const served = await serial(own);
      return served !== null && served === (await serial(knot)) ? served : null;
    });

  /** The records that `postrider zone` prints, in kdig's format. */
  const printed = async () =>
    (await daemon.cli('zone'))
      .split('\n')
      .filter((line) => !line.startsWith(';') && line !== '')
      .map((line) => line.replace(/\s+/g, ' '));

  const sorted = (lines: readonly string[]) => [...new Set(lines)].toSorted();

  it('serves what "postrider zone" prints', async () => {
    // The daemon creates the key of TLS reports after its start, and then serves it.
    await eventually(
      'the key of TLS reports',
      async () => (await kdig(own, `tlsrpt._domainkey.${HOSTNAME}`, 'TXT')).length > 0,
    );
    expect(sorted(await kdig(own, HOSTNAME, 'AXFR'))).toEqual(sorted(await printed()));
    expect(await daemon.cli('zone')).toContain(`; ${HOSTNAME}.\t3600\tIN\tNS\tns1.${HOSTNAME}.`);
  });

  it('transfers the zone to a secondary', async () => {
    await untilTransferred('the first transfer');
    expect(await kdig(knot, HOSTNAME, 'MX')).toEqual([`${HOSTNAME}. 3600 IN MX 10 ${HOSTNAME}.`]);
    expect(await kdig(knot, `example.org._report._dmarc.${HOSTNAME}`, 'TXT')).toHaveLength(1);
    // Knot checks the zone that it receives.
    expect(knot.log()).toContain('AXFR, incoming');
    expect(knot.log()).not.toMatch(/AXFR.*failed|check, |malformed/);
  });

  it('notifies the secondary of the key of a new domain', async () => {
    const before = await serial(own);
    const { data } = await daemon.api.put<CreatedDomain>('/web-setup/domains', {
      domain: 'kunde.example',
      useCaseId: 'tx-local',
    });
    const name = `${data.altDomainId}.dkim.${HOSTNAME}`;
    const [key] = await eventually('the key at the secondary', async () => {
      const found = await kdig(knot, name, 'TXT');
      return found.length === 0 ? null : found;
    });
    expect(key).toMatch(/TXT "v=DKIM1; k=rsa; p=/);
    expect(await kdig(own, name, 'TXT')).toEqual([key]);
    expect(await untilTransferred('the transfer of the key')).toBeGreaterThan(before ?? 0);
    expect(sorted(await kdig(own, HOSTNAME, 'AXFR'))).toEqual(sorted(await printed()));
  });

  it('continues with the same serial number after a kill, and with a greater one after a change', async () => {
    const before = await serial(own);
    await daemon.kill('SIGKILL');
    await daemon.restart();
    expect(await serial(own)).toBe(before);
    await daemon.api.put<CreatedDomain>('/web-setup/domains', {
      domain: 'zwei.example',
      useCaseId: 'tx-local',
    });
    await eventually('a greater serial number', async () => ((await serial(own)) ?? 0) > (before ?? 0));
    await untilTransferred('the transfer after the restart');
  });

  it.each([
    ['ANY with HINFO', [HOSTNAME, 'ANY'], /HINFO "RFC8482"/, /status: NOERROR/],
    ['another zone with REFUSED', ['example.com', 'A'], null, /status: REFUSED/],
    ['CHAOS with REFUSED', ['version.bind', 'TXT', 'CH'], null, /status: REFUSED/],
    ['a name that does not exist with NXDOMAIN', [`nothing.${HOSTNAME}`, 'A'], null, /status: NXDOMAIN/],
    [
      'an empty non-terminal with NOERROR and no records',
      [`dkim.${HOSTNAME}`, 'TXT'],
      null,
      /status: NOERROR.*qr aa rd;/s,
    ],
    ['an unknown EDNS version with BADVERS', [HOSTNAME, 'SOA', '+edns=1'], null, /BADVERS/],
  ])('answers %s', async (_, args, record, header) => {
    const lines = await kdig(own, ...args);
    const all = await kdigOutput(own, ...args);
    expect(all).toMatch(header);
    if (record === null) expect(lines).toEqual([]);
    else expect(lines.join('\n')).toMatch(record);
  });

  it('answers the same over TCP, and several queries on one connection', async () => {
    const names = [HOSTNAME, `spf.${HOSTNAME}`, `track.${HOSTNAME}`];
    const udp = await Promise.all(names.map((name) => kdig(own, name, 'TXT')));
    const tcp = await kdig(own, '+tcp', '+keepopen', ...names.flatMap((name) => [name, 'TXT']));
    expect(tcp).toEqual(udp.flat());
  });

  it('counts queries', async () => {
    expect(await daemon.metric('postrider_dns_server_zone_serial')).toBe(await serial(own));
    const text = await (await fetch(`${daemon.baseUrl}/metrics`)).text();
    expect(text).toMatch(/postrider_dns_server_queries_total\{transport="tcp",result="transfer"\} [1-9]/);
    expect(text).toMatch(/postrider_dns_server_notifications_total\{result="acknowledged"\} [1-9]/);
  });
});
