import { describe, expect, it } from 'vitest';
import { addPerson } from '../../../src/audience/people.ts';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { complianceVariables } from '../../../src/mail/compliance.ts';
import { composeInSteps, headerBytes } from '../../../src/mail/compose.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { parseTemplate, renderTemplate } from '../../../src/mail/template.ts';
import { ENGLISH_FOOTER } from '../../support/footer.ts';
import { granted } from '../../support/refusal.ts';
import { columnsByTable } from '../../support/schema.ts';
import { BROWSER, type PublicRig, startPublic } from './rig.ts';

/*
 * Programs that follow every link of a mail, and every link and form of the pages behind them, without submitting a form: the
 * gateways of companies, browsers that prefetch, and programs that preview links.
 */

const ADA = 'ada@example.net';
const METHODS = ['GET', 'HEAD', 'OPTIONS'];
const PROGRAMS: [name: string, headers: Record<string, string>][] = [
  ['a scanner', { 'User-Agent': 'Mozilla/5.0 (compatible; Proofpoint URL Defense)' }],
  ['a program without a name', { 'User-Agent': '' }],
  ['a prefetching browser', { 'Sec-Purpose': 'prefetch;prerender', Purpose: 'prefetch' }],
  ['an older one', { 'X-Moz': 'prefetch' }],
  ['a crawler with cookies', { 'User-Agent': 'Googlebot/2.1', Cookie: 'session=1; __Host-postrider=abc' }],
];
/** What visits add to; of a message, the time of its last event. */
const OF_VISITS = new Set([
  'events',
  'messages',
  'campaign_links',
  'contact_engagement',
  'hourly_counts',
  'reputation_counts',
  'stored_bytes',
  'webhook_deliveries',
]);

/** A mail as it is sent, with the links of Postrider in its header and its body. */
async function start() {
  const rig = await startPublic();
  const { writer, ids, clock, tokens, base } = rig;
  const provenance = { by: 'key_one', ipAddress: null, userAgent: null, at: clock.now() };
  const groupId = rig.group('News', { from: 'news@example.com', subject: null, intro: null });
  await writer.run((tx) => {
    const context = {
      accountId: 'acct_one',
      source: 'api' as const,
      defaultMethod: 'double_opt_in' as const,
      provenance,
      mayAdd: () => null,
    };
    const seq = granted(addPerson(tx, ids, { email: ADA }, context));
    const group = tx.subscriptionGroups.get('acct_one', groupId) ?? expect.fail('no group');
    tx.subscriptions.insert({
      group_seq: group.seq,
      contact_seq: seq,
      is_active: 1,
      source: 'api',
      consent_method: 'double_opt_in',
      consent_details: null,
      joined_at: clock.now(),
      updated_at: clock.now(),
    });
    const contact = tx.contacts.bySeq(seq) ?? expect.fail('no contact');
    tx.contacts.update({ ...contact, paused_until: clock.now() + 1_000_000 });
  });
  const { message, mail } = rig.sent({
    use_case: 'mk',
    recipient: ADA,
    recipient_hash: emailIdentifier(ADA),
    subscription_group_id: groupId,
  });
  await rig.deliver(message);
  const signed = tokens.of('acct_one');
  const source =
    '<p>News</p>{{company_address_html}}{{unsubscribe_email_html}}{{report_abuse_email_html}}<a href="{{preferences_url}}">Choose</a>';
  const address = { line1: '1 High St', city: 'Ulm', postalCode: '89073', country: 'DE' };
  const service = complianceVariables({
    account: { companyName: 'Example Ltd', companyAddress: address },
    from: 'news@example.com',
    templates: ENGLISH_FOOTER,
  });
  const html = renderTemplate(parseTemplate(source), 'html', {}, service.html);
  if (typeof html !== 'string') throw new Error(JSON.stringify(html));
  const composed = withoutPause(
    composeInSteps(
      {
        subject: 'News',
        html: `${html}<a href="${base}${rig.clickUrl(message.message_id, 'https://shop.example/')}">Shop</a><img alt="" src="${base}/o/${signed.openUrl(message.message_id)}.gif">`,
        text: null,
        from: { name: '', address: 'news@example.com' },
        to: [{ name: '', address: ADA }],
        cc: [],
        replyTo: null,
        headers: [],
        attachments: [],
        list: { id: groupId, name: 'News' },
        messageId: `${message.message_id}@example.com`,
        date: clock.now(),
      },
      {
        kind: 'marketing',
        recipient: ADA,
        unsubscribeUrl: `${base}/u/${signed.unsubscribeUrl(mail)}`,
        reportAbuseUrl: `${base}/r/${signed.reportUrl(mail)}`,
        unsubscribeAddress: null,
        signedId: signed.signedId(message.message_id),
        feedbackAddress: null,
        feedbackId: 'a:b:mk:postrider',
      },
    ),
  );
  const raw = `${headerBytes(composed, []).toString()}\n${composed.body.toString()}`.replaceAll(
    /\r\n[ \t]/g,
    '',
  );
  const text = raw
    .replaceAll(/=\r?\n/g, '')
    .replaceAll(/=([\dA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  const signUp = {
    groupId,
    email: 'new@example.net',
    firstName: '',
    lastName: '',
    at: clock.now(),
    language: null,
  };
  const links = [...text.matchAll(/https?:\/\/127\.0\.0\.1:\d+(\/[^\s"'<>]+)/g)].map(([, path = '']) => path);
  return { rig, message, paths: [...new Set([...links, `/j/${groupId}`, `/k/${signed.signUp(signUp)}`])] };
}

/** The rows of each table, as JSON. */
function rowsByTable({ db }: PublicRig): Map<string, string> {
  const tables = [...columnsByTable().keys()].filter((name) => name !== 'contact_search');
  return new Map(
    tables.map((name) => [name, JSON.stringify(db.prepare(`SELECT * FROM "${name}"`).all(), asText)]),
  );
}

function asText(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

describe('a program that follows every link of a mail', () => {
  it('changes nothing, and its opens and clicks are known as those of a program', async () => {
    const { rig, message, paths } = await start();
    expect(new Set(paths.map((path) => path.slice(0, 3)))).toEqual(
      new Set(['/u/', '/r/', '/p/', '/c/', '/o/', '/j/', '/k/']),
    );
    const before = rowsByTable(rig);
    for (const [, headers] of PROGRAMS) {
      const waiting = [...paths];
      const seen = new Set(waiting);
      for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
        for (const method of METHODS) {
          const { status, body } = await rig.call(path, {
            method,
            headers: { 'User-Agent': BROWSER, ...headers },
          });
          expect(status, `${method} ${path}`).toBeLessThan(500);
          for (const [, target = ''] of body.matchAll(/(?:href|action|src)="([^"]+)"/g)) {
            const { pathname, origin } = new URL(target, rig.base);
            if (origin !== new URL(rig.base).origin || seen.has(pathname)) continue;
            seen.add(pathname);
            waiting.push(pathname);
          }
        }
      }
    }
    await rig.settle();
    const after = rowsByTable(rig);
    const changed = [...after].flatMap(([name, rows]) => (rows === before.get(name) ? [] : [name]));
    expect(changed.filter((name) => !OF_VISITS.has(name))).toEqual([]);
    expect(rig.tables.messages.byId(message.message_id)?.status).toBe('delivered');
    const events = rig.events();
    expect([...new Set(events.map(({ event }) => event))].toSorted()).toEqual([
      'email_clicked',
      'email_opened',
    ]);
    for (const event of events) expect(event).toMatchObject({ isBot: true });
    expect(events.filter(({ event }) => event === 'email_clicked').length).toBeGreaterThanOrEqual(
      PROGRAMS.length,
    );
  });
});
