import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lookupsOf } from '../../../../src/dns/resolver.ts';
import { createFileFetcher } from '../../../../src/domains/platform/brand-files.ts';
import {
  certificateProblems,
  logoProblems,
  parseBimi,
  policyProblems,
} from '../../../../src/domains/verification/checks/bimi.ts';
import { parseDmarc, policyTag } from '../../../../src/domains/verification/checks/dmarc-record.ts';
import { createAuthority } from '../../../support/certificates.ts';
import { type PolicyHost, startPolicyHost } from '../../../support/policy-host.ts';
import { type DomainsSetup, startDomains } from '../../setup.ts';

const LOGO =
  '<?xml version="1.0"?><svg version="1.2" baseProfile="tiny-ps" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><title>Example</title><defs><path id="p" d="M0 0"/></defs><use href="#p" fill="url(#p)"/></svg>';

describe('the record', () => {
  it.each([
    ['v=BIMI1; l=https://a.example/l.svg', 'https://a.example/l.svg', null],
    ['v=BIMI1;l=https://a.example/l.svg;a=;', 'https://a.example/l.svg', null],
    [
      'v=BIMI1; l=https://a.example/l.svg; a=https://a.example/c.pem; avp=brand',
      'https://a.example/l.svg',
      'https://a.example/c.pem',
    ],
    ['v=BIMI1; l=; a=;', null, null],
  ])('is read: %s', (text, logo, certificate) => {
    const record = parseBimi(text);
    expect(record).toEqual({
      logo: logo === null ? null : new URL(logo),
      certificate: certificate === null ? null : new URL(certificate),
    });
  });

  it.each([
    ['l=https://a.example/l.svg; v=BIMI1', 'must begin with'],
    ['v=BIMI1', 'tag l (address of the logo) is missing'],
    ['v=BIMI1; l=http://a.example/l.svg', 'l must be an https address'],
    ['v=BIMI1; l=https://user:secret@a.example/l.svg', 'l must be an https address'],
    ['v=BIMI1; l=https://a.example/l.svg; a=file:///etc/passwd', 'a must be an https address'],
    ['v=BIMI1; l=https://a.example/1; l=https://a.example/2', 'tag l twice'],
    ['v=BIMI1; https://a.example/1', 'is no tag'],
  ])('is refused: %s', (text, reason) => {
    expect(parseBimi(text)).toContain(reason);
  });
});

describe('the DMARC policy', () => {
  it.each([
    ['v=DMARC1; p=reject', null],
    ['v=DMARC1; p=quarantine; pct=100', null],
    ['v=DMARC1; p=none', 'p=none'],
    ['v=DMARC1; p=reject; sp=none', 'sp=none'],
    ['v=DMARC1; p=reject; pct=50', 'pct=50'],
    ['v=DMARC1; p=reject; t=y', 't=y'],
  ])('%s', (text, problem) => {
    const record = parseDmarc(text);
    const policy = policyTag(record, 'p') ?? 'none';
    const found = { record, at: 'example.org', policy, tag: 'p' as const };
    const problems = policyProblems({ found, own: [text], fault: null, unknown: null });
    expect(problems).toEqual(problem === null ? [] : [expect.stringContaining(problem)]);
  });

  it('is needed', () => {
    const none = { found: null, own: [], fault: null };
    expect(policyProblems({ ...none, unknown: null })).toEqual([expect.stringContaining('no DMARC policy')]);
    expect(policyProblems({ ...none, unknown: 'no answer' })).toEqual([]);
  });
});

describe('the logo', () => {
  const problemsOf = (svg: string, mediaType = 'image/svg+xml') =>
    logoProblems({ bytes: Buffer.from(svg), mediaType });
  const within = (content: string) => LOGO.replace('<use', `${content}<use`);

  it.each([
    ['as receivers want it', LOGO, null],
    ['of another version', LOGO.replace('1.2', '1.1'), 'version="1.2"'],
    ['of another profile', LOGO.replace('tiny-ps', 'tiny'), 'baseProfile="tiny-ps"'],
    ['without a title', LOGO.replace('Example', ''), '<title>'],
    ['with a title elsewhere', LOGO.replace(/<title>.*<.title>/, '<g><title>x</title></g>'), '<title>'],
    ['with a script', within('<script>1</script>'), '<script>'],
    ['with a prefixed script', within('<svg:script/>'), '<script>'],
    ['with animation', within('<animate attributeName="x"/>'), '<animate>'],
    ['with an image', within('<image href="#p"/>'), '<image>'],
    ['with a handler', within('<g onclick="1"/>'), 'event handler onclick'],
    ['with a reference', within('<use xlink:href="https://a.example/x"/>'), 'refers to other files'],
    ['with a reference in style', within('<style>p{fill:url("x.svg")}</style>'), 'refers to other files'],
    ['with a reference in an attribute', within('<g fill="url(//a.example)"/>'), 'refers to other files'],
    ['with entities', `<!DOCTYPE svg [<!ENTITY a "b">]>${LOGO}`, 'entities'],
    ['with elements inside too many others', within('<g>'.repeat(300)), 'inside more than 256 others'],
    ['that is HTML', '<html><svg/></html>', 'not an SVG'],
    ['that is empty', '', 'not an SVG'],
    ['of 33 KiB', LOGO + ' '.repeat(33 * 1024), 'may have 32'],
  ])('%s', (_, svg, problem) => {
    expect(problemsOf(svg)).toEqual(problem === null ? [] : [expect.stringContaining(problem)]);
  });

  it('has the media type of SVG', () => {
    expect(problemsOf(LOGO, 'text/plain')).toEqual([expect.stringContaining('sent as text/plain')]);
  });
});

describe('the certificate', () => {
  const authority = createAuthority();
  const other = createAuthority('Another authority');
  const chain = (...names: string[]) => authority.issueForLogo(names) + authority.cert;

  it.each([
    ['of the domain', chain('example.org'), null],
    ['of the record', chain('default._bimi.example.org'), null],
    ['of another domain', chain('example.net'), 'does not name example.org'],
    ['of no names', chain(), 'does not name example.org'],
    ['for servers', authority.issue(['example.org']).cert + authority.cert, '1.3.6.1.5.5.7.3.31'],
    [
      'that has expired',
      authority.issueForLogo(['example.org'], new Date('2020-01-01')) + authority.cert,
      'expired on Jan  1',
    ],
    ['without its chain', authority.issueForLogo(['example.org']), 'append the chain'],
    ['with the chain of another', authority.issueForLogo(['example.org']) + other.cert, 'not a chain'],
    ['that is no PEM', 'nothing', 'not a PEM file'],
    ['that is damaged', chain('example.org').replace('MII', 'AAA'), 'cannot be read'],
    ['of too many', authority.cert.repeat(11), 'more than 10'],
  ])('%s', (_, pem, problem) => {
    const problems = certificateProblems(pem, 'example.org', Date.now());
    expect(problems).toEqual(problem === null ? [] : [expect.stringContaining(problem)]);
  });

  it('may be that of the organizational domain', () => {
    expect(certificateProblems(chain('example.org'), 'shop.example.org', Date.now())).toEqual([]);
  });
});

describe('the check', () => {
  const authority = createAuthority();
  let host: PolicyHost;
  beforeAll(async () => {
    host = await startPolicyHost();
    host.handle('logo.example', authority.issue(['logo.example']), ({ url }, response) => {
      if (url === '/logo.svg') response.writeHead(200, { 'content-type': 'image/svg+xml' }).end(LOGO);
      else if (url === '/logo.pem')
        response.writeHead(200).end(authority.issueForLogo(['example.org']) + authority.cert);
      else if (url === '/large.svg') response.writeHead(200).end(Buffer.alloc(2 * 1024 * 1024));
      else response.writeHead(302, { location: '/logo.svg' }).end();
    });
  });
  afterAll(() => host.close());

  /** A domain whose required records pass, verified with a BIMI record. */
  async function verified(record: string | null, mayConnect?: (address: string) => boolean) {
    const setup: DomainsSetup = await startDomains({
      fetchFile: (url, signal) =>
        createFileFetcher({
          resolver: lookupsOf(setup.resolver, 'test'),
          trusted: authority.cert,
          ...(mayConnect === undefined ? {} : { mayConnect }),
        })(url, signal),
    });
    setup.dns.set('logo.example', 'A', ['127.0.0.1']);
    // Certificates are valid from a day ago.
    setup.clock.advance(Date.now() - setup.clock.now());
    const domain = await setup.register('example.org');
    await setup.publishPlatform();
    setup.publish(domain);
    if (record !== null)
      setup.dns.publish([{ name: 'default._bimi.example.org', type: 'TXT', value: record }]);
    const { domain: row, checks } = await setup.verify(domain);
    expect(row.status).toBe('SUCCESS');
    return checks.find(({ check }) => check === 'bimi');
  }
  const at = (path: string) => `https://logo.example:${host.port}${path}`;
  const any = () => true;

  it('is not reported without a record', async () => {
    expect(await verified(null, any)).toBeUndefined();
  });

  it('passes with the logo and the certificate', async () => {
    const record = `v=BIMI1; l=${at('/logo.svg')}; a=${at('/logo.pem')}`;
    expect(await verified(record, any)).toMatchObject({ result: 'ok', found: record, hint: '' });
    expect(host.requests).toContain('logo.example /logo.pem');
  });

  it('states where a logo without a certificate is not shown', async () => {
    const report = await verified(`v=BIMI1; l=${at('/logo.svg')}`, any);
    expect(report).toMatchObject({ result: 'ok', hint: expect.stringContaining('Gmail and Apple') });
  });

  it.each([
    ['follows no redirect', '/moved.svg', 'status 302'],
    ['reads at most 1 MiB', '/large.svg', 'larger than 1024 KiB'],
  ])('%s, and changes no status', async (_, path, reason) => {
    const report = await verified(`v=BIMI1; l=${at(path)}`, any);
    expect(report).toMatchObject({ result: 'wrong', hint: expect.stringContaining(reason) });
  });

  it('connects to public addresses only', async () => {
    const before = host.requests.length;
    const report = await verified(`v=BIMI1; l=${at('/logo.svg')}`);
    expect(report?.hint).toContain('logo.example has no public address');
    expect(report?.hint).not.toContain('127.0.0.1');
    expect(host.requests.length).toBe(before);
  });
});
