import { X509Certificate } from 'node:crypto';
import { Parser } from 'htmlparser2';
import { errorText } from '../../../core/errors.ts';
import { organizationalDomain } from '../../../mail/address.ts';
import type { FetchedFile } from '../../platform/brand-files.ts';
import { type CheckContext, type CheckResult, fail, type Judgment, pass } from './check.ts';
import { type Discovery, discoverPolicy, policyTag } from './dmarc-record.ts';

/*
 * BIMI (draft-brand-indicators-for-message-identification): the logo that receivers show next to mail of the domain. Only
 * a published record is examined, because the record without a logo has no use. Whether a receiver trusts the authority
 * of the certificate is not examined: each has its own list.
 */

const BIMI_SELECTOR = 'default';

/** What the guidelines for logos permit. */
const MAX_LOGO_BYTES = 32 * 1024;
const MAX_CERTIFICATES = 10;
/** id-kp-BrandIndicatorforMessageIdentification */
const BIMI_KEY_USAGE = '1.3.6.1.5.5.7.3.31';

const EXPECTED = 'v=BIMI1; l=https://… (logo, SVG Tiny PS); a=https://… (certificate, PEM)';
const NO_CERTIFICATE =
  'Without a certificate (a=) Gmail and Apple show no logo; others may show it nevertheless.';

/**
 * Examines the record, the files that it names and the DMARC policy. Omitted from the report without a record, without an
 * answer of DNS, and in scheduled verifications, which fetch nothing. Never needed for SUCCESS.
 */
export async function checkBimi({ view, domain: { name }, files }: CheckContext): Promise<CheckResult> {
  const omitted: CheckResult = { ...pass(null), expected: EXPECTED, isOmitted: true };
  if (files === null) return omitted;
  const answer = await view.txt(bimiHost(name));
  if (answer.kind !== 'records') return omitted;
  const found = answer.records.filter((text) => /^\s*v\s*=\s*BIMI1/i.test(text));
  const [text] = found;
  if (text === undefined) return omitted;
  if (found.length > 1) {
    const several = `There are ${found.length} BIMI records at ${bimiHost(name)}, so receivers ignore all of them: keep one.`;
    return { ...fail(found.join('\n'), several), expected: EXPECTED };
  }
  const record = parseBimi(text);
  if (typeof record === 'string')
    return { ...fail(text, `The record is not valid: ${record}.`), expected: EXPECTED };
  const { logo, certificate } = record;
  if (logo === null) return { ...pass(text, 'The record declines BIMI (l= is empty).'), expected: text };
  const [logoFile, certificateFile, policy] = await Promise.all([
    files.fetch(logo),
    certificate === null ? null : files.fetch(certificate),
    discoverPolicy(view, name),
  ]);
  return {
    ...judge(
      text,
      [
        ...policyProblems(policy),
        ...problemsOf('logo', logoFile, logoProblems),
        ...(certificateFile === null
          ? []
          : problemsOf('certificate', certificateFile, ({ bytes }) =>
              certificateProblems(bytes.toString('latin1'), name, files.now),
            )),
      ],
      certificate === null ? NO_CERTIFICATE : '',
    ),
    expected: text,
  };
}

function bimiHost(domain: string): string {
  return `${BIMI_SELECTOR}._bimi.${domain}`;
}

function judge(text: string, problems: readonly string[], advice: string): Judgment {
  const hint = [...problems, advice].filter((sentence) => sentence !== '').join(' ');
  return problems.length === 0 ? pass(text, hint) : fail(text, hint);
}

function problemsOf(
  what: string,
  file: FetchedFile,
  examine: (file: Extract<FetchedFile, { kind: 'file' }>) => string[],
): string[] {
  return file.kind === 'failed'
    ? [`The ${what} could not be fetched: ${file.reason}.`]
    : examine(file).map((problem) => `The ${what} ${problem}.`);
}

export interface BimiRecord {
  /** Null: the owner declines. */
  logo: URL | null;
  certificate: URL | null;
}

/** The addresses in a record, or what is wrong with it as a clause. */
export function parseBimi(text: string): BimiRecord | string {
  const [version, ...parts] = text.split(';').map((part) => part.trim());
  if (!/^v\s*=\s*BIMI1$/.test(version ?? '')) return 'it must begin with v=BIMI1;';
  const tags = new Map<string, string>();
  for (const part of parts.filter((each) => each !== '')) {
    const at = part.indexOf('=');
    const tag = part.slice(0, Math.max(at, 0)).trim().toLowerCase();
    if (tag === '') return `"${part.slice(0, 80)}" is no tag with a value`;
    if (tags.has(tag)) return `it has the tag ${tag} twice`;
    tags.set(tag, part.slice(at + 1).trim());
  }
  const l = tags.get('l');
  if (l === undefined) return 'the tag l (address of the logo) is missing';
  const a = tags.get('a') ?? '';
  const [logo, certificate] = [l, a].map((value) => (value === '' ? null : httpsUrl(value)));
  if (logo === undefined) return 'l must be an https address';
  if (certificate === undefined) return 'a must be an https address';
  return { logo, certificate };
}

function httpsUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url?.protocol === 'https:' && url.username === '' && url.password === '' ? url : undefined;
}

/** BIMI needs an enforced policy for all mail of the domain. */
export function policyProblems({ found, unknown }: Discovery): string[] {
  if (unknown !== null) return [];
  if (found === null) return ['There is no DMARC policy, without which receivers show no logo.'];
  const { record, policy, tag } = found;
  const pct = record.tags.get('pct');
  return [
    ...(policy === 'none' ? [`The DMARC policy is ${tag}=none: receivers need quarantine or reject.`] : []),
    ...(tag === 'p' && policyTag(record, 'sp') === 'none'
      ? ['The DMARC policy of subdomains is sp=none: receivers need quarantine or reject.']
      : []),
    ...(pct !== undefined && pct !== '100'
      ? [`The DMARC record has pct=${pct.slice(0, 20)}: receivers need 100.`]
      : []),
    ...(record.tags.get('t')?.toLowerCase() === 'y'
      ? ['The DMARC record has t=y (testing): remove it.']
      : []),
  ];
}

/** Elements around an element of a logo: drawing programs need ten or so. */
const MAX_LOGO_DEPTH = 256;
/** Elements that SVG Tiny PS does not have: scripts, animation, links and embedded content. */
const FORBIDDEN_ELEMENTS =
  /^(?:script|handler|listener|animate|animatecolor|animatemotion|animatetransform|set|discard|a|image|video|audio|animation|foreignobject|iframe)$/;

/** What receivers object to in the logo, as predicates. */
export function logoProblems({ bytes, mediaType }: { bytes: Buffer; mediaType: string }): string[] {
  if (bytes.length > MAX_LOGO_BYTES) return [`has ${Math.ceil(bytes.length / 1024)} KiB, and may have 32`];
  const { root, hasTitle, problems } = readSvg(bytes.toString('utf8'));
  if (root === null) return ['is not an SVG document'];
  return [
    ...(/^image\/svg\+xml\s*(?:;|$)/i.test(mediaType)
      ? []
      : [`is sent as ${mediaType.slice(0, 80) || 'no media type'} instead of image/svg+xml`]),
    ...(root['version'] === '1.2' ? [] : ['has no version="1.2"']),
    ...(root['baseProfile'] === 'tiny-ps' ? [] : ['has no baseProfile="tiny-ps"']),
    ...(hasTitle ? [] : ['has no <title>']),
    ...problems,
  ];
}

interface Svg {
  /** The attributes of the root; null: it is not `svg`. */
  root: Record<string, string> | null;
  hasTitle: boolean;
  problems: Set<string>;
}

function readSvg(svg: string): Svg {
  const result: Svg = { root: null, hasTitle: false, problems: new Set() };
  const { problems } = result;
  /** The open elements, the root first. */
  const open: string[] = [];
  let isFirst = true;
  let isInCdata = false;

  const examineValue = (text: string) => {
    const references = [...text.matchAll(/url\(([^)]*)/gi)].map(([, to = '']) =>
      to.replaceAll(/['"\s]/g, ''),
    );
    if (references.some((to) => !to.startsWith('#')) || /@import/i.test(text))
      problems.add('refers to other files');
  };
  const parser = new Parser(
    {
      onattribute: (attribute, value) => {
        const name = localName(attribute);
        if (name.startsWith('on')) problems.add(`contains the event handler ${name.slice(0, 40)}`);
        if (name === 'href' && !value.trim().startsWith('#')) problems.add('refers to other files');
        examineValue(value);
      },
      onopentag: (name, attributes) => {
        const element = localName(name);
        if (FORBIDDEN_ELEMENTS.test(element))
          problems.add(`contains <${element}>, which SVG Tiny PS does not permit`);
        if (isFirst && element === 'svg') result.root = attributes;
        isFirst = false;
        open.push(element);
        // The parser searches all open elements for the one that ends.
        if (open.length <= MAX_LOGO_DEPTH) return;
        problems.add(`has elements inside more than ${MAX_LOGO_DEPTH} others`);
        parser.pause();
      },
      onclosetag: () => void open.pop(),
      ontext: (text) => {
        const isInTitle = open.length === 2 && open[1] === 'title';
        if (isInTitle && text.trim() !== '') result.hasTitle = true;
        if (isInCdata || open.at(-1) === 'style') examineValue(text);
      },
      oncdatastart: () => void (isInCdata = true),
      oncdataend: () => void (isInCdata = false),
      onprocessinginstruction: (name, data) => {
        if (name.toLowerCase() === '?xml-stylesheet') problems.add('refers to other files');
        if (/<!ENTITY/i.test(data)) problems.add('declares entities');
      },
    },
    { xmlMode: true },
  );
  parser.end(svg);
  return result;
}

/** In lower case, without the prefix of a namespace. */
function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1).toLowerCase();
}

/** What receivers object to in the certificate (VMC or CMC) and its chain, as predicates. */
export function certificateProblems(pem: string, domain: string, now: number): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) return ['is not a PEM file with certificates'];
  if (blocks.length > MAX_CERTIFICATES) return [`is a file with more than ${MAX_CERTIFICATES} certificates`];
  let chain: X509Certificate[];
  try {
    chain = blocks.map((block) => new X509Certificate(block));
  } catch (error) {
    return [`cannot be read (${errorText(error).slice(0, 100)})`];
  }
  const [leaf] = chain;
  if (leaf === undefined) return [];
  const names = [domain, organizationalDomain(domain)].flatMap((name) => [name, bimiHost(name)]);
  const isNamed = names.some((name) => leaf.checkHost(name, { subject: 'never', wildcards: false }));
  return [
    ...chain.flatMap((each, index) => validityProblems(each, index, now)),
    ...(isNamed ? [] : [`does not name ${domain}`]),
    ...((leaf.keyUsage ?? []).includes(BIMI_KEY_USAGE)
      ? []
      : [`is not issued for BIMI (no extended key usage ${BIMI_KEY_USAGE})`]),
    ...chainProblems(chain),
  ];
}

function validityProblems({ validFrom, validTo }: X509Certificate, index: number, now: number): string[] {
  const which = index === 0 ? '' : `file contains an issuer (certificate ${index + 1}) that `;
  if (Date.parse(validTo) <= now) return [`${which}expired on ${validTo}`];
  return Date.parse(validFrom) > now ? [`${which}is valid only from ${validFrom}`] : [];
}

/** The certificate comes first, each followed by that of its issuer; the root may be absent. */
function chainProblems(chain: readonly X509Certificate[]): string[] {
  if (chain.length === 1) return ['file contains no certificate of its issuer: append the chain'];
  const isBroken = chain.some((each, index) => {
    const issuer = chain[index + 1];
    return issuer !== undefined && !(each.checkIssued(issuer) && each.verify(issuer.publicKey));
  });
  return isBroken ? ['file is not a chain: each certificate must be followed by that of its issuer'] : [];
}
