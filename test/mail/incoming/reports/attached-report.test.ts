import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { INCOMING_LIMITS } from '../../../../src/mail/incoming/limits.ts';
import { parseFile, parseIncoming } from '../../../../src/mail/incoming/parse.ts';
import { zip } from '../../../support/zip.ts';

const folder = join(import.meta.dirname, '../../../data/dmarc-reports');
const sample = (name: string) => parseFile(readFileSync(join(folder, name)));

const XML = `<?xml version="1.0"?>
<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">
  <report_metadata><org_name>Receiver &amp; Co</org_name><email>d@r.example</email><report_id>r-1</report_id>
    <date_range><begin>1700000000</begin><end>1700086400</end></date_range></report_metadata>
  <policy_published><domain>Example.COM</domain><discovery_method>treewalk</discovery_method>
    <p>reject</p><sp>none</sp><np>reject</np><adkim>r</adkim><aspf>s</aspf><testing>n</testing></policy_published>
  <record>
    <row><source_ip>192.0.2.1</source_ip><count>3</count>
      <policy_evaluated><disposition>pass</disposition><dkim>pass</dkim><spf>fail</spf>
        <reason><type>local_policy</type><comment>arc=pass</comment></reason></policy_evaluated></row>
    <identifiers><header_from>example.com</header_from><envelope_from>b.example.com</envelope_from></identifiers>
    <auth_results><dkim><domain>example.com</domain><selector>s1</selector><result>pass</result></dkim>
      <spf><domain>b.example.com</domain><scope>mfrom</scope><result>softfail</result></spf></auth_results>
  </record>
</feedback>`;

/** With a file name in the header (RFC 1952 §2.3.1), and `after` appended. */
function named(packed: Buffer, after: string): Buffer {
  const header = Buffer.from(packed.subarray(0, 10));
  header[3] = 8;
  return Buffer.concat([header, Buffer.from('report.xml\0'), packed.subarray(10), Buffer.from(after)]);
}

function mailWith(
  type: string,
  filename: string,
  content: Buffer,
  header = 'Subject: Report Domain: example.com Submitter: r.example Report-ID: <r-1>',
): Buffer {
  return Buffer.from(`From: dmarc@r.example
${header}
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

A report.
--b
Content-Type: ${type}; name="${filename}"
Content-Transfer-Encoding: base64

${content.toString('base64')}
--b--`);
}

it('reads a report inside a wrapper without end tag', () => {
  const wrapped = Buffer.from(XML.replace('<feedback', '<wrap><feedback'));
  expect(parseIncoming(mailWith('text/xml', 'r.xml', wrapped)).aggregate).toMatchObject({
    organization: 'Receiver & Co',
    domain: 'example.com',
    begin: 1_700_000_000_000,
    end: 1_700_086_400_000,
  });
});

describe('an expensive report', () => {
  const packed = (xml: string) => mailWith('application/gzip', 'r.xml.gz', gzipSync(Buffer.from(xml)));
  const SMALL = '<a></a>';

  it.each<[string, string]>([
    ['small elements', `<feedback>${SMALL.repeat(600_000)}`],
    ['empty elements', `<feedback>${'<a/>'.repeat(900_000)}`],
    ['end tags', `<feedback>${'</a>'.repeat(900_000)}`],
    ['comments', `<feedback>${'<!---->'.repeat(900_000)}`],
    ['attributes', `<feedback><a ${'b="c" '.repeat(1000)}></feedback>`],
  ])('is too large with many %s', (_, xml) => {
    const mail = mailWith('text/xml', 'r.xml', Buffer.from(xml));
    expect(parseIncoming(mail)).toMatchObject({
      kind: 'dmarc-report',
      aggregate: null,
      problem: 'too-large',
    });
  });

  it('is not decompressed beyond 200 times its size', () => {
    const bomb = `${XML}${' '.repeat(2_000_000)}`;
    expect(parseIncoming(packed(bomb))).toMatchObject({ aggregate: null, problem: 'too-large' });
    const inZip = mailWith('application/zip', 'r.zip', zip('r.xml', Buffer.from(bomb)));
    expect(parseIncoming(inZip)).toMatchObject({ aggregate: null, problem: 'too-large' });
  });

  it('is read whatever its ratio if it is small', () => {
    const { aggregate } = parseIncoming(packed(`${XML}${' '.repeat(500_000)}`));
    expect(aggregate?.sources).toHaveLength(1);
  });

  it('has the records before the limit', () => {
    const { aggregate, problem } = parseIncoming(packed(XML.replace('</feedback>', SMALL.repeat(120_000))), {
      limits: { ...INCOMING_LIMITS, xmlTags: 100_000 },
    });
    expect(aggregate).toMatchObject({ reportId: 'r-1', isTruncated: true, sources: [{ count: 3 }] });
    expect(problem).toBeNull();
  });

  it('of 10,000 records is read completely', () => {
    const many = XML.replace(/<record>.*<\/record>/s, (record) => record.repeat(10_000));
    const { aggregate } = parseIncoming(mailWith('text/xml', 'r.xml', Buffer.from(many)));
    expect(aggregate?.sources).toMatchObject([{ sourceIp: '192.0.2.1', count: 30_000 }]);
    expect(aggregate?.isTruncated).toBe(false);
  });

  it('of 9,999 sources has the 200 with the most messages, without fields that are not stored', () => {
    const results = '<dkim/>'.repeat(20) + '<spf/>'.repeat(20);
    const records = Array.from(
      { length: 9999 },
      (_, n) =>
        `<record><row><source_ip>10.0.${n >> 8}.${n & 255}</source_ip><count>${n}</count></row><auth_results>${results}</auth_results></record>`,
    );
    const many = XML.replace(/<record>.*<\/record>/s, () => records.join(''));
    const { aggregate } = parseIncoming(mailWith('text/xml', 'r.xml', Buffer.from(many)));
    expect(aggregate?.sources.map(({ count }) => count)).toEqual(
      Array.from({ length: 200 }, (_, n) => 9998 - n),
    );
    expect(aggregate?.isTruncated).toBe(true);
    expect(JSON.stringify(aggregate).length).toBeLessThan(25_000);
  });

  it('has no sum above the maximum of a count', () => {
    const many = XML.replace('>3<', '>9007199254740991<').replace(/<record>.*<\/record>/s, (record) =>
      record.repeat(3000),
    );
    const { aggregate } = parseIncoming(mailWith('text/xml', 'r.xml', Buffer.from(many)));
    expect(aggregate?.sources).toMatchObject([{ count: 1e12 }]);
  });

  it('is not opened when no report is expected', () => {
    const mail = packed(XML);
    expect(parseIncoming(mail, { opensReports: false })).toMatchObject({
      kind: 'dmarc-report',
      aggregate: null,
      problem: 'not-opened',
    });
    const unannounced = mailWith('application/gzip', 'r.gz', gzipSync(Buffer.from(XML)), 'Subject: Hello');
    expect(parseIncoming(unannounced, { opensReports: false })).toMatchObject({ kind: 'unknown' });
  });
});

describe('a DMARC aggregate report (RFC 9990)', () => {
  it('has all fields', () => {
    const { kind, aggregate, reports } = parseIncoming(mailWith('text/xml', 'r.xml', Buffer.from(XML)));
    expect({ kind, reports }).toEqual({ kind: 'dmarc-report', reports: [] });
    expect(aggregate).toEqual({
      organization: 'Receiver & Co',
      email: 'd@r.example',
      reportId: 'r-1',
      begin: 1_700_000_000_000,
      end: 1_700_086_400_000,
      domain: 'example.com',
      policy: { p: 'reject', sp: 'none', np: 'reject', adkim: 'r', aspf: 's', testing: 'n' },
      sources: [
        {
          sourceIp: '192.0.2.1',
          count: 3,
          disposition: 'pass',
          dkim: 'pass',
          spf: 'fail',
          headerFrom: 'example.com',
        },
      ],
      isTruncated: false,
    });
  });

  it.each([
    ['gzip', 'application/gzip', 'r.example!example.com!1700000000!1700086400.xml.gz', gzipSync(XML)],
    [
      'zip',
      'application/zip',
      'r.example!example.com!1700000000!1700086400.zip',
      zip('r.xml', Buffer.from(XML)),
    ],
    ['gzip with another declared type', 'application/octet-stream', 'report', gzipSync(XML)],
    ['truncated gzip', 'application/gzip', 'r.xml.gz', gzipSync(XML).subarray(0, -8)],
    [
      'gzip with a line end after it',
      'application/gzip',
      'r.xml.gz',
      Buffer.concat([gzipSync(XML), Buffer.from('\r\n')]),
    ],
    ['gzip with a file name in it', 'application/gzip', 'r.xml.gz', named(gzipSync(XML), '\r\n')],
    [
      'a wrapper without end tag',
      'text/xml',
      'r.xml',
      Buffer.from(XML.replace('<feedback', '<wrap><feedback')),
    ],
    ['a byte order mark', 'text/xml', 'r.xml', Buffer.from(`\ufeff${XML}`)],
    ['UTF-16', 'text/xml', 'r.xml', Buffer.from(`\ufeff${XML}`, 'utf16le')],
    ['bytes that are not UTF-8', 'text/xml', 'r.xml', Buffer.from(XML.replace('Co<', 'C\xf6<'), 'latin1')],
    ['namespace prefixes', 'text/xml', 'r.xml', Buffer.from(XML.replaceAll(/<(\/?)(\w)/g, '<$1d:$2'))],
    [
      'missing end tags',
      'text/xml',
      'r.xml',
      Buffer.from(XML.replace('</org_name>', '').replace('</selector>', '')),
    ],
    ['no end', 'text/xml', 'r.xml', Buffer.from(XML.slice(0, -30))],
  ])('is read from %s', (_, type, filename, content) => {
    const { kind, aggregate } = parseIncoming(mailWith(type, filename, content));
    expect(kind).toBe('dmarc-report');
    expect(aggregate?.sources).toMatchObject([{ sourceIp: '192.0.2.1', count: 3 }]);
  });

  it.each([
    ['too-large', gzipSync(Buffer.alloc(INCOMING_LIMITS.reportBytes + 1))],
    ['too-large', zip('r.xml', Buffer.alloc(INCOMING_LIMITS.reportBytes + 1))],
    ['unreadable', zip('r.xml', Buffer.from(XML), { encrypted: true })],
    ['unreadable', Buffer.from('\x1f\x8bnonsense', 'latin1')],
    ['unreadable', Buffer.from('PK\x03\x04nonsense')],
    ['unreadable', Buffer.from('<html>')],
  ] as const)('that is %s is recognized', (problem, content) => {
    expect(
      parseIncoming(mailWith('application/zip', 'r.example!example.com!1700000000!1700086400.zip', content)),
    ).toMatchObject({
      kind: 'dmarc-report',
      aggregate: null,
      problem,
    });
  });

  it('has at most the maximum number of records', () => {
    const many = XML.replace(/<record>.*<\/record>/s, (record) => record.repeat(20));
    const { aggregate } = parseIncoming(mailWith('text/xml', 'r.xml', Buffer.from(many)), {
      limits: { ...INCOMING_LIMITS, records: 10 },
    });
    expect(aggregate?.sources).toMatchObject([{ count: 30 }]);
    expect(aggregate?.isTruncated).toBe(true);
  });

  it.each([
    ['!example.com!1538204542!1538463818.xml', 'example.com:1538463741', 1],
    ['estadocuenta1.infonacot.gob.mx!example.com!1536853302!1536939702!2940.xml.zip', '2940', 1],
    ['fastmail.com!example.com!1516060800!1516147199!102675056.xml.gz', '102675056', 1],
    ['invalid_xml.xml', 'sonexushealth.com:1530233361', 1],
    ['twilight.eml', '1627703331531660819', 1],
  ])('is read from the real report %s', (name, reportId, sources) => {
    const { kind, aggregate } = sample(name);
    expect(kind).toBe('dmarc-report');
    expect(aggregate?.reportId).toBe(reportId);
    expect(aggregate?.sources).toHaveLength(sources);
  });
});

describe('a TLS report (RFC 8460)', () => {
  it('is read from the RFC’s own example', () => {
    const { kind, tls } = sample('rfc8460.json');
    expect(kind).toBe('tls-report');
    expect(tls).toMatchObject({
      organization: 'Company-X',
      reportId: '5065427c-23d3-47ca-b6e0-946ea0e8c4be',
      begin: Date.UTC(2016, 3, 1),
      policies: [
        {
          type: 'sts',
          domain: 'company-y.example',
          successful: 5326,
          failed: 303,
          failures: [
            { type: 'starttls-not-supported', count: 200 },
            { type: 'certificate-expired', count: 100 },
            { type: 'validation-failure', count: 3, reason: 'X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED' },
          ],
        },
      ],
    });
  });

  it('is read from a real mail', () => {
    expect(sample('google.com_smtp_tls_report.eml')).toMatchObject({
      kind: 'tls-report',
      tls: {
        organization: 'Google Inc.',
        policies: [{ domain: 'cardinalhealth.ca', successful: 48, failed: 0 }],
      },
    });
  });

  it('has empty values for fields of the wrong type', () => {
    const json = {
      'report-id': 'r',
      policies: [
        null,
        { policy: 'x', summary: { 'total-successful-session-count': 'many' }, 'failure-details': {} },
      ],
    };
    expect(parseFile(Buffer.from(JSON.stringify(json))).tls?.policies).toEqual([
      { type: '', domain: '', successful: 0, failed: 0, failures: [] },
      { type: '', domain: '', successful: 0, failed: 0, failures: [] },
    ]);
  });

  it('has its first hundred policies, and the number of the others', () => {
    const policies = Array.from({ length: 10_000 }, (_, n) => ({ policy: { 'policy-type': `${n}` } }));
    const { tls } = parseFile(Buffer.from(JSON.stringify({ 'report-id': 'r', policies })));
    expect(tls?.policies.map(({ type }) => Number(type))).toEqual(Array.from({ length: 100 }, (_, n) => n));
    expect(tls?.omittedPolicies).toBe(9900);
  });

  it('has 200 failures, summed, those with the most sessions of each policy first', () => {
    const failure = (type: string, sessions: number) => ({
      'result-type': type,
      'failed-session-count': sessions,
    });
    const details = Array.from({ length: 150 }, (_, n) => [failure(`${n}`, n), failure(`${n}`, 1000)]).flat();
    const policies = [1, 2, 3].map(() => ({ policy: {}, 'failure-details': details }));
    const { tls } = parseFile(Buffer.from(JSON.stringify({ 'report-id': 'r', policies })));
    expect(tls?.policies.map(({ failures }) => failures.length)).toEqual([150, 50, 0]);
    expect(tls?.policies[1]?.failures[0]).toEqual({
      type: '149',
      count: 1149,
      receivingHost: '',
      reason: '',
    });
  });

  it('may have quoted numbers', () => {
    const policies = [{ policy: {}, summary: { 'total-failure-session-count': '7' } }];
    const { tls } = parseFile(Buffer.from(JSON.stringify({ 'report-id': 'r', policies })));
    expect(tls?.policies).toMatchObject([{ successful: 0, failed: 7 }]);
  });

  it.each([
    ['brackets in a text', { note: '[{'.repeat(1000) }, true],
    ['a quote and a backslash in a text', { note: `"\\${'['.repeat(30)}` }, true],
    ['twenty levels', { note: JSON.parse('['.repeat(18) + ']'.repeat(18)) }, true],
    ['more levels than any report has', { note: JSON.parse('['.repeat(30) + ']'.repeat(30)) }, false],
    ['more text than any report has', { note: 'x'.repeat(1024 * 1024) }, false],
  ])('with %s', (_, more, isRead) => {
    const json = { 'report-id': 'r', policies: [], ...more };
    expect(parseFile(Buffer.from(JSON.stringify(json))).tls !== null).toBe(isRead);
  });

  it('that cannot be read is recognized', () => {
    const mail = mailWith(
      'application/tlsrpt+gzip',
      'r.json.gz',
      Buffer.from('{'),
      'TLS-Report-Domain: example.com',
    );
    expect(parseIncoming(mail)).toMatchObject({ kind: 'tls-report', tls: null, problem: 'unreadable' });
  });
});

describe('a report without a listed type and name', () => {
  const xml = Buffer.from(XML);
  const HELLO = 'Subject: Hello';
  const TLS = Buffer.from(
    '{"organization-name":"r.example","report-id":1339,"policies":[{"policy":{"policy-type":"sts","policy-domain":"example.com"}}]}',
  );
  const kindIn = (type: string, content: Buffer) => {
    const { kind, problem } = parseIncoming(mailWith(type, 'data', content, HELLO));
    return { kind, problem };
  };

  it.each([
    ['XML as text', 'text/plain', xml],
    ['XML below a greeting', 'text/plain', Buffer.concat([Buffer.from('Dear admin,\n\n'), xml])],
    ['XML of an unknown type', 'application/x-report', xml],
    ['gzip of an unknown type', 'application/x-report', gzipSync(xml)],
    ['zip of an unknown type', 'application/x-report', zip('r.xml', xml)],
    ['gzip in gzip', 'application/x-report', gzipSync(gzipSync(xml))],
    ['zip in gzip', 'application/x-report', gzipSync(zip('r.xml', xml))],
    ['gzip in zip', 'application/x-report', zip('r.xml.gz', gzipSync(xml))],
    [
      'XML with a schema in front',
      'application/x-report',
      Buffer.from(
        XML.replace(
          '<feedback',
          `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">${'<xs:element name="record"/>'.repeat(1000)}</xs:schema><feedback`,
        ),
      ),
    ],
  ])('is found in %s', (_, type, content) => {
    expect(kindIn(type, content)).toEqual({ kind: 'dmarc-report', problem: null });
  });

  it.each([
    ['JSON as text', TLS],
    ['gzip in gzip', gzipSync(gzipSync(TLS))],
  ])('is found in %s with a TLS report of a numeric id', (_, content) => {
    expect(kindIn('text/plain', content)).toEqual({ kind: 'tls-report', problem: null });
  });

  it('is found in a forwarded message, but not in one below three others', () => {
    const forwarded = (levels: number): string =>
      levels === 0
        ? mailWith('application/gzip', 'data', gzipSync(xml), HELLO).toString()
        : `Subject: Fwd\nContent-Type: message/rfc822\n\n${forwarded(levels - 1)}`;
    const kinds = [1, 3, 4].map((levels) => parseIncoming(Buffer.from(forwarded(levels))).kind);
    expect(kinds).toEqual(['dmarc-report', 'dmarc-report', 'unknown']);
  });

  it.each([
    ['a letter with a tag', '<b>Hello</b>\n<?php echo 1;'],
    ['JSON', '{"policies": []}'],
    ['other XML', '<?xml version="1.0"?><invoice/>'],
  ])('is not found in %s', (_, text) => {
    expect(kindIn('text/plain', Buffer.from(text)).kind).toBe('unknown');
  });

  it('is too large when the second layer is', () => {
    const bomb = gzipSync(gzipSync(Buffer.alloc(2 * INCOMING_LIMITS.reportBytes)));
    expect(parseFile(bomb)).toMatchObject({ kind: 'unknown' });
    expect(parseIncoming(mailWith('application/gzip', 'r.xml.gz', bomb))).toMatchObject({
      kind: 'dmarc-report',
      problem: 'too-large',
    });
  });
});
