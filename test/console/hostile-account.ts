import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import { DAY, systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import type { Design } from '../../src/mail/blocks/design.ts';
import type { ApiClient, CreatedDomain } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startGroup } from '../support/group.ts';
import { png } from '../support/images.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { startSink } from '../support/smtp-sink.ts';
import { HOSTILE } from './open-console.ts';
import { insertMail } from './received-mail.ts';

/**
 * An installation with an account that has markup in every text that others write: callers, recipients, their servers,
 * endpoints of webhooks, identity providers, senders of reports and of mail to postmaster@.
 */
export interface HostileAccount {
  daemon: InProcess;
  client: ApiClient;
  /** The fields, by names of their own, with the beginning of the text that a page must show. */
  fields: ReadonlyMap<string, string>;
  /** The text of a field that the test fills itself. */
  text(field: string): string;
  stop(): Promise<void>;
}

/** The beginning of all markup: a page that has it in its text shows it as text. */
const MARKUP = '<img src=x onerror=';
/** Without a slash, which names of files cannot have, and without quotation marks. */
const SHORT = `${MARKUP}document.title=1>`;
const QUOTED = HOSTILE.replaceAll('"', "'");
/** A link with code, which must never become one in a page of the console. */
const CODE_LINK = 'javascript:document.title=3';
const FOOTER = '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>';

export async function startHostileAccount(): Promise<HostileAccount> {
  const fields = new Map<string, string>();
  const named = (field: string, markup: string): string => {
    if (fields.has(field)) throw new Error(`two fields have the name "${field}"`);
    fields.set(field, `${field} ${MARKUP}`);
    return `${field} ${markup}`;
  };
  const text = (field: string) => named(field, HOSTILE);
  const short = (field: string) => named(field, SHORT);
  /** In quotation marks. */
  const quoted = (field: string) => named(field, QUOTED);
  /** A local part with markup (RFC 5321 §4.1.2), at a domain. */
  const address = (field: string, domain: string) => `"${named(field, `${MARKUP}1>`)}"@${domain}`;

  const reply = text('reply');
  const sink = await startSink({
    recipients: { 'refused@': `550 5.1.1 ${reply}`, 'later@': `451 4.3.0 ${text('deferral')}` },
  });
  const body = text('webhook response');
  const endpoint = createServer((request, response) => {
    request.resume();
    response.writeHead(503).end(body);
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  const daemon = await startInProcess({
    'console.listen': '127.0.0.1:0',
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
    'webhooks.allowPrivateNetworks': true,
  });
  daemon.dns.set('recipient.test', 'MX', ['10 mx.recipient.test']);
  daemon.dns.set('mx.recipient.test', 'A', [sink.host]);
  // A label of a name can have any characters (RFC 2181 §11).
  const mailHost = '<img/src=x>.marked.test';
  fields.set('mail host', mailHost);
  daemon.dns.set('marked.test', 'MX', [`10 ${mailHost}`]);
  daemon.dns.set(mailHost, 'A', [sink.host]);
  const client = await daemon.account(text('account'));
  const { tables } = daemon;
  const now = Date.now();

  const done = async (sent: Promise<{ status: number; text: string }>): Promise<void> => {
    const { status, text: answer } = await sent;
    expect(status, answer).toBeLessThan(300);
  };

  await done(
    client.post('/web-setup/webhooks', {
      name: text('webhook'),
      // Sound: the server listens on a port.
      url: `http://localhost:${(endpoint.address() as AddressInfo).port}/`,
      events: ['email_bounced'],
    }),
  );
  const register = async (domain: string, useCaseId: string): Promise<CreatedDomain> => {
    const { data } = await client.put<CreatedDomain>('/web-setup/domains', { domain, useCaseId });
    return data;
  };
  const verify = ({ domainId }: CreatedDomain) => client.post(`/web-setup/domains/${domainId}/verify`);
  const shop = await register('shop.test', 'tx-local');
  const news = await register('news.test', 'mk-local');
  for (const { dnsRecords } of [shop, news])
    daemon.dns.publish(dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  await verify(shop);
  await verify(news);
  const found = await register('found.test', 'tx-local');
  daemon.dns.set('found.test', 'TXT', [`v=spf1 ${short('record in DNS')} -all`]);
  await verify(found);
  await messages();
  await contacts();
  await media();
  await campaigns();
  reports();
  await inbound();
  await installation();

  async function messages(): Promise<void> {
    const mail = {
      from: `"${quoted('sender')}" <orders@shop.test>`,
      html: `<p>Thank you <a href="${CODE_LINK}">link</a></p>${FOOTER}`,
    };
    await done(client.send({ ...mail, to: 'refused@marked.test', subject: 'Mail host' }));
    for (const name of ['refused', 'later', 'accepted'])
      await done(client.send({ ...mail, to: `${name}@recipient.test`, subject: text(name) }));
    await done(
      client.send({
        ...mail,
        to: address('recipient', 'recipient.test'),
        subject: text('subject'),
        text: text('text part'),
        headers: { 'X-Note': text('header') },
        attachments: [
          {
            name: short('attachment'),
            contentType: `text/plain; name="${short('media type')}"`,
            content: 'eA==',
          },
        ],
      }),
    );
    await eventually('the first attempt of each message', async () => {
      const sent = await client.allMessages();
      return sent.length === 5 && sent.every(({ status }) => status !== 'queued' && status !== 'sending');
    });
    const accepted = (await client.allMessages()).find(({ recipient }) => recipient.startsWith('accepted'));
    const { seq = 0, domain_id = null } = tables.messages.byId(accepted?.messageId ?? '') ?? {};
    const visit = { ip: '192.0.2.1', isBot: false };
    const bounce = { classification: 'unknown_user', smtpCode: 550, enhancedCode: '5.1.1', source: 'dsn' };
    for (const [kind, event] of [
      ['email_opened', { ...visit, userAgent: text('opened with') }],
      [
        'email_clicked',
        { ...visit, userAgent: text('clicked with'), url: `${CODE_LINK}/${text('clicked')}` },
      ],
      ['email_bounced', { ...bounce, diagnostic: text('diagnostic'), remoteMta: text('remote MTA') }],
      ['email_complained', { source: 'arf', feedbackType: text('feedback type') }],
      ['email_unsubscribed', { ...visit, method: text('opt-out'), userAgent: text('opted out with') }],
    ] as const)
      tables.events.insert({
        event_id: createIds(systemClock, systemRandom).make('evt'),
        account_id: client.accountId,
        kind,
        at: now,
        message_seq: seq,
        domain_id,
        data: JSON.stringify(event),
      });
    const target = { email: 'accepted@recipient.test', reason: 'hard_bounce' };
    for (const email of [target.email, 'grace@example.net', address('suppressed', 'example.net')])
      await done(client.post('/web-setup/suppressions', { ...target, email }));
    await done(client.call('DELETE', '/web-setup/suppressions', { body: { ...target, note: text('note') } }));
    await done(client.post('/web-setup/suppressions', target));
    const { data: queued } = await client.get<{ deliveries?: object[]; webhooks: { webhookId: string }[] }>(
      '/web-setup/webhooks',
    );
    await eventually('the call of the webhook', async () => {
      const { data: calls } = await client.get<{ deliveries: { attempts: number }[] }>(
        `/web-setup/webhooks/${queued.webhooks[0]?.webhookId}/deliveries`,
      );
      return calls.deliveries.some(({ attempts }) => attempts > 0);
    });
  }

  async function contacts(): Promise<void> {
    await done(
      client.post('/web-setup/contacts', {
        email: address('contact', 'example.net'),
        firstName: text('first name'),
        lastName: text('last name'),
        customFields: { [text('custom field')]: text('custom value'), website: CODE_LINK },
        consentMethod: 'web_form',
        consentDetails: text('consent'),
        consentUserAgent: text('consented with'),
      }),
    );
    const { data: created } = await client.post<{ group: { subscriptionGroupId: string } }>(
      '/web-setup/contacts/subscription-groups',
      { name: text('group'), description: text('group description') },
    );
    await done(
      client.call('PATCH', `/web-setup/contacts/subscription-groups/${created.group.subscriptionGroupId}`, {
        body: {
          archive: true,
          signUp: {
            from: `"${quoted('sign-up sender')}" <orders@shop.test>`,
            subject: text('sign-up subject'),
            intro: text('sign-up text'),
          },
        },
      }),
    );
    const query = new URLSearchParams({ background: 'true', fileName: text('file name') });
    const rows = [`email,${short('ignored column')},phone`, `bo@example.net,x,${SHORT}`, 'cy@x,,'];
    await done(
      client.call('POST', `/web-setup/contacts/import?${query.toString()}`, {
        rawBody: rows.join('\n'),
        headers: { 'Content-Type': 'text/csv' },
      }),
    );
  }

  /** An image whose fields, name and stated type have markup, and a partial with code. */
  async function media(): Promise<void> {
    const form = new FormData();
    // Pages show it as the text of an image.
    form.append('alt', HOSTILE);
    const file = new Blob([new Uint8Array(png())], { type: 'text/html' });
    form.append('file', file, `C:\\files\\${short('name of an image')}`);
    const { status } = await fetch(`${daemon.url}/web-setup/media`, {
      method: 'POST',
      headers: { 'X-Api-Key': client.keys.setup, 'X-Id': client.accountId },
      body: form,
    });
    expect(status).toBe(201);
    await done(
      client.post('/web-setup/partials', { name: 'hostile', html: `${HOSTILE}<a href="${CODE_LINK}">x</a>` }),
    );
  }

  async function campaigns(): Promise<void> {
    const member = { email: `delivered@simulator.${PLATFORM}`, consentMethod: 'web_form' };
    const { subscriptionGroupId } = await startGroup(client, [member]);
    const { data: stored } = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: text('template'),
      subject: text('template subject'),
      html: `${text('template content')}${FOOTER}`,
    });
    const { templateId } = stored.template;
    daemon.tables.templates.insert({
      account_id: client.accountId,
      template_id: 'template_design',
      name: 'Design',
      syntax: 'simple',
      mjml: null,
      type: null,
      subject: null,
      html: FOOTER,
      text: null,
      variables: null,
      design: JSON.stringify(hostileDesign(text)),
      created_at: Date.now(),
      updated_at: Date.now(),
    });
    const campaign = async (name: string): Promise<string> => {
      const { data: created } = await client.post<{ campaign: { campaignId: string } }>(
        '/web-setup/campaigns',
        {
          name: text(name),
        },
      );
      return `/web-setup/campaigns/${created.campaign.campaignId}`;
    };
    const from = `"${quoted('campaign sender')}" <a@news.test>`;
    const prepared = { subscriptionGroupId, templateId, from, subject: text('prepared subject') };
    await done(client.put(await campaign('draft'), { prepared }));
    const sent = await campaign('campaign');
    const link = `https://example.com/?q=${short('link')}`;
    await done(
      client.post(`${sent}/send`, {
        subject: HOSTILE,
        html: `<p><a href="${link}">First ${HOSTILE}</a> <a href="${CODE_LINK}">Second</a></p>${FOOTER}`,
        subscriptionGroupId,
        from: 'a@news.test',
        scheduledAt: new Date(now + DAY).toISOString(),
      }),
    );
    await done(client.post(`${sent}/cancel`));
    const campaignId = sent.split('/').at(-1) ?? '';
    // Clicks store addresses encoded.
    for (const url of [link, CODE_LINK]) tables.campaignCounts.addClick(campaignId, url);
    tables.campaignCounts.addOfProvider(campaignId, text('provider'), 'delivered');
    tables.campaignCounts.endUnit(true);
    tables.campaignCounts.write();
  }

  function reports(): void {
    const begin = Math.floor(now / DAY) * DAY - 2 * DAY;
    const received = { received_at: now, network: '192.0.2.0/24', signer: QUOTED, verified: 0 } as const;
    const period = { begin_at: begin, end_at: begin + DAY - 1 };
    const row = { header_from: 'shop.test', messages: 3, dkim: 'pass', spf: 'pass' };
    tables.dmarcReports.insert(
      {
        ...received,
        ...period,
        domain: 'shop.test',
        policy_domain: text('policy domain'),
        organization: text('DMARC organization'),
        report_id: text('DMARC report'),
        policy: JSON.stringify({ p: text('policy') }),
        truncated: 0,
      },
      [{ ...row, disposition: 'none', source_ip: text('source') }],
    );
    tables.tlsReports.insert(
      {
        ...received,
        ...period,
        host: 'return-a.shop.test',
        organization: text('TLS organization'),
        report_id: text('TLS report'),
      },
      [
        {
          policy_type: text('policy type'),
          successful: 9,
          failed: 1,
          failures: [
            {
              type: text('TLS failure'),
              receiving_host: text('receiving host'),
              reason: text('TLS reason'),
              sessions: 1,
            },
          ],
        },
      ],
    );
  }

  /** A mail to an inbound route; its HTML loads nothing from elsewhere, which the browser would list as requested. */
  async function inbound(): Promise<void> {
    const { data: created } = await client.post<{ route: { routeId: string } }>('/web-setup/inbound-routes', {
      name: text('inbound route'),
      match: '*@in.shop.test',
      domainId: shop.domainId,
    });
    const file = short('inbound attachment');
    await insertMail(daemon, client, {
      inboundId: 'inb_hostile',
      routeId: created.route.routeId,
      recipient: address('inbound recipient', 'in.shop.test'),
      sender: address('inbound envelope sender', 'example.net'),
      raw: [
        `Subject: ${text('inbound subject')}`,
        `From: "${quoted('inbound from')}" <eve@example.net>`,
        `X-Note: ${text('inbound header')}`,
        'Content-Type: multipart/mixed; boundary=a',
        '',
        '--a',
        'Content-Type: multipart/alternative; boundary=b',
        '',
        '--b',
        'Content-Type: text/plain',
        '',
        text('inbound text'),
        '',
        '--b',
        'Content-Type: text/html',
        '',
        `<p>${text('inbound HTML')}<a href="${CODE_LINK}" target="_top">link</a></p>`,
        '',
        '--b--',
        '--a',
        `Content-Type: image/svg+xml; name="${file}"`,
        `Content-Disposition: attachment; filename="${file}"`,
        '',
        `<svg xmlns="http://www.w3.org/2000/svg"><script>document.title=4</script></svg>`,
        '--a--',
        '',
      ].join('\r\n'),
      results: {
        dmarc: 'fail',
        spfDomain: text('SPF domain'),
        dkimDomains: [text('DKIM domain')],
      },
    });
  }

  async function installation(): Promise<void> {
    await done(client.put('/web-setup/account', { companyName: text('company') }));
    const attachment = short('received attachment');
    const received = [
      `Subject: ${text('received subject')}`,
      `From: "${quoted('received from')}" <eve@example.net>`,
      `X-Note: ${text('received header')}`,
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: text/plain',
      '',
      text('received text'),
      '--b',
      `Content-Type: text/html; name="${attachment}"`,
      `Content-Disposition: attachment; filename="${attachment}"`,
      '',
      HOSTILE,
      '--b--',
    ];
    tables.keptMail.insert({
      box: 'postmaster',
      kind: 'unknown',
      recipient: text('received by'),
      sender: text('envelope sender'),
      remote_address: '192.0.2.1',
      network: '192.0.2.0/24',
      message_seq: null,
      received_at: now,
      raw: Buffer.from(received.join('\r\n')),
    });
    await done(
      client.post('/web-setup/queue/controls', {
        action: 'pause',
        scope: 'destination',
        target: 'paused.test',
        reason: text('pause'),
      }),
    );
    tables.egressHealth.put({
      entry: 'main',
      provider: text('refusing provider'),
      since: now,
      probe_at: now + DAY,
      failures: 1,
      passed: 0,
      blocked: 0,
      reply: text('refusal'),
    });
    await done(client.post('/web-setup/keys', { name: text('key'), scopes: ['setup'] }));
    tables.certificates.put({
      host: 'track.shop.test',
      private_key: null,
      chain: null,
      not_after: null,
      due_at: now + DAY,
      tried_at: now,
      failures: 1,
      last_error: text('certificate'),
    });
    const invited = await daemon.people.invite(
      client.accountId,
      { email: address('person', 'example.net'), name: text('name of person'), role: 'viewer' },
      'operator',
    );
    if (isRefusal(invited)) throw new Error(invited.message);
  }

  return {
    daemon,
    client,
    fields,
    text,
    stop: async () => {
      await daemon.stop();
      await sink.close();
      endpoint.close();
      endpoint.closeAllConnections();
    },
  };
}

/** A design with markup in every text; requests with it would be refused, but it may come from a later version. */
function hostileDesign(text: (field: string) => string): Design {
  const linked = (part: string) => ({
    type: 'text' as const,
    text: part,
    marks: [{ type: 'link' as const, attrs: { href: CODE_LINK } }],
  });
  const name = text('variable of a design');
  const variable = { type: 'variable' as const, attrs: { name, default: text('default of a variable') } };
  const content = [linked(text('text of a design')), variable];
  return {
    version: 1,
    preheader: text('preheader'),
    theme: { accent: '#2454d6', background: '#f1f3f7', text: '#1d2433', width: 600, font: 'system' },
    blocks: [
      { id: 'h', type: 'heading', level: 1, content: [linked(text('heading of a design'))] },
      { id: 't', type: 'text', content: { type: 'doc', content: [{ type: 'paragraph', content }] } },
      { id: 'b', type: 'button', text: text('button of a design'), href: CODE_LINK },
      { id: 'i', type: 'image', src: CODE_LINK, alt: text('image of a design'), width: 100, height: 50 },
      { id: 's', type: 'social', links: [{ network: 'x', href: CODE_LINK, label: text('social link') }] },
      { id: 'f', type: 'footer', content: [linked(text('footer of a design'))] },
    ],
  };
}
