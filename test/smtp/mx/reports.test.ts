import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { insertDomain } from '../../support/store.ts';
import { zip } from '../../support/zip.ts';
import { startMx } from './setup.ts';

/*
 * Real reports on domains as mail contains them: each is stored once, with sums by source for its domain.
 */
const ALWAYS = { from: 0, to: Date.UTC(2100, 0), limit: 100 };
const folder = join(import.meta.dirname, '../../data/dmarc-reports');
const sample = (name: string) => readFileSync(join(folder, name));

function mailOf(type: string, filename: string, content: Buffer): string {
  return `From: reports@receiver.example\r
Subject: Report Domain: x Submitter: receiver.example Report-ID: <1>\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=b\r
\r
--b\r
Content-Type: text/plain\r
\r
A report.\r
--b\r
Content-Type: ${type}; name="${filename}"\r
Content-Disposition: attachment; filename="${filename}"\r
Content-Transfer-Encoding: base64\r
\r
${content.toString('base64').replaceAll(/.{76}/g, '$&\r\n')}\r
--b--\r
`;
}

/** RFC 9990: its namespace and elements, and one source in several records. */
const NEW_FORM = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>
<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0"><version>2.0</version>
<report_metadata><org_name>Receiver</org_name><email>d@receiver.example</email><report_id>new-1</report_id>
<date_range><begin>1700000000</begin><end>1700086399</end></date_range><generator>R 1</generator></report_metadata>
<policy_published><discovery_method>treewalk</discovery_method><domain>example.com</domain><p>reject</p><sp>reject</sp>
<np>reject</np><fo>1</fo><testing>n</testing></policy_published>
${['pass', 'fail']
  .map(
    (dkim) => `<record><row><source_ip>2001:db8::25</source_ip><count>2</count><policy_evaluated>
<disposition>${dkim === 'pass' ? 'pass' : 'reject'}</disposition><dkim>${dkim}</dkim><spf>fail</spf></policy_evaluated></row>
<identifiers><header_from>example.com</header_from><envelope_to>r.example</envelope_to></identifiers>
<auth_results><dkim><domain>example.com</domain><selector>s</selector><result>${dkim}</result></dkim></auth_results></record>`,
  )
  .join('\n')}
</feedback>`);

/** The older form, with bytes that are not UTF-8 in the name of the reporter. */
const LATIN_1 = Buffer.from(
  sample('!example.com!1538204542!1538463818.xml')
    .toString('latin1')
    .replace(/<org_name>[^<]*/, '<org_name>Empf\xe4nger'),
  'latin1',
);

describe('a real DMARC report', () => {
  it.each<[string, string, string | Buffer, string, messages: number]>([
    [
      'plain',
      'example.com',
      mailOf('text/xml', 'r.xml', sample('!example.com!1538204542!1538463818.xml')),
      '12.20.127.122',
      1,
    ],
    [
      'zip',
      'example.com',
      mailOf(
        'application/zip',
        'estadocuenta1.infonacot.gob.mx!example.com!1536853302!1536939702!2940.xml.zip',
        sample('estadocuenta1.infonacot.gob.mx!example.com!1536853302!1536939702!2940.xml.zip'),
      ),
      '148.243.137.254',
      1,
    ],
    [
      'gzip',
      'indemed.com',
      mailOf(
        'application/gzip',
        'fastmail.com!example.com!1516060800!1516147199!102675056.xml.gz',
        sample('fastmail.com!example.com!1516060800!1516147199!102675056.xml.gz'),
      ),
      '104.195.80.20',
      1,
    ],
    [
      'broken XML',
      'example.com',
      mailOf('text/xml', 'r.xml', sample('invalid_xml.xml')),
      '199.230.200.36',
      1,
    ],
    ['a whole mail', 'twlnet.com', sample('twilight.eml'), '87.106.127.28', 1],
    ['bytes that are not UTF-8', 'example.com', mailOf('text/xml', 'r.xml', LATIN_1), '12.20.127.122', 1],
    ['RFC 9990', 'example.com', mailOf('text/xml', 'r.xml', NEW_FORM), '2001:db8::25', 4],
    [
      'RFC 9990 in gzip',
      'example.com',
      mailOf('application/octet-stream', 'r.xml.gz', gzipSync(NEW_FORM)),
      '2001:db8::25',
      4,
    ],
    [
      'RFC 9990 in zip',
      'example.com',
      mailOf('application/x-zip-compressed', 'r.zip', zip('r.xml', NEW_FORM)),
      '2001:db8::25',
      4,
    ],
    [
      'a zip as the whole body',
      'example.com',
      `From: d@r.example\r\nSubject: Report domain: example.com\r\nContent-Type: application/zip; name=r.zip\r\nContent-Transfer-Encoding: base64\r\n\r\n${zip('r.xml', NEW_FORM).toString('base64')}\r\n`,
      '2001:db8::25',
      4,
    ],
  ])('is stored once: %s', async (_, domain, mail, source, messages) => {
    const setup = await startMx();
    if (domain !== 'example.com')
      insertDomain(
        setup.tables,
        { account_id: 'acct_one', domain_id: 'domain_two', name: domain },
        setup.clock.now(),
      );
    const client = await setup.client();
    for (let n = 0; n < 2; n++)
      expect(await client.mail('reports@receiver.example', `dmarc@return-a.${domain}`, mail)).toMatch(
        /^250 /,
      );
    expect(setup.kept()).toEqual([]);
    expect(setup.tables.dmarcReports.list(domain, ALWAYS)).toHaveLength(1);
    expect(setup.tables.dmarcReports.sources(domain, ALWAYS)).toMatchObject([
      { source_ip: source, messages },
    ]);
  });
});

describe('a real TLS report', () => {
  it.each([
    [
      'the example of RFC 8460',
      'company-y.example',
      mailOf('application/tlsrpt+json', 'r.json', sample('rfc8460.json')),
    ],
    [
      'packed',
      'company-y.example',
      mailOf('application/tlsrpt+gzip', 'r.json.gz', gzipSync(sample('rfc8460.json'))),
    ],
    ['a whole mail', 'cardinalhealth.ca', sample('google.com_smtp_tls_report.eml').toString('latin1')],
  ])('is stored once: %s', async (_, domain, mail) => {
    // The host names of the policies are our own here.
    const setup = await startMx({ hostname: domain });
    const client = await setup.client();
    for (let n = 0; n < 2; n++) expect(await client.mail('', `tlsrpt@${domain}`, mail)).toMatch(/^250 /);
    expect(setup.tables.tlsReports.list(domain, ALWAYS)).toHaveLength(1);
    expect(setup.kept()).toEqual([]);
  });

  it.each(['tlsrpt@return-a.company-y.example', 'tlsrpt@mx.example.net'])(
    'on the domain itself is stored when it is sent to %s',
    async (address) => {
      const setup = await startMx({ hostname: 'mx.example.net' });
      const fields = { account_id: 'acct_one', domain_id: 'domain_two', name: 'company-y.example' };
      insertDomain(setup.tables, fields, setup.clock.now());
      const client = await setup.client();
      const mail = mailOf('application/tlsrpt+json', 'r.json', sample('rfc8460.json'));
      expect(await client.mail('', address, mail)).toMatch(/^250 /);
      expect(setup.tables.tlsReports.total('return-a.company-y.example', ALWAYS)).toEqual({
        successful: 5326,
        failed: 303,
      });
      expect(setup.kept()).toEqual([]);
    },
  );

  it('on another domain is kept', async () => {
    const setup = await startMx({ hostname: 'mx.example.net' });
    const client = await setup.client();
    const mail = mailOf('application/tlsrpt+json', 'r.json', sample('rfc8460.json'));
    expect(await client.mail('', 'tlsrpt@return-a.example.com', mail)).toMatch(/^250 /);
    expect(setup.tables.tlsReports.list('return-a.company-y.example', ALWAYS)).toEqual([]);
    expect(setup.kept()).toHaveLength(1);
  });
});
