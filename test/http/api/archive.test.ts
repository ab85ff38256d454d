import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

/* The archive of a group: its campaigns as public pages, and their feed. */
let daemon: InProcess;
let client: ApiClient;

const GROUPS = '/web-setup/contacts/subscription-groups';
const FOOTER = '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>';
const ADA = `delivered+ada@simulator.${PLATFORM}`;

interface Group {
  subscriptionGroupId: string;
  archive: boolean;
  archiveUrl?: string;
}

beforeAll(async () => {
  daemon = await startInProcess({ 'public.url': 'http://127.0.0.1:0' });
  client = await daemon.account('Shop');
  const [domainGroup] = daemon.tables.domainGroups.list(client.accountId);
  const domain = {
    account_id: client.accountId,
    group_id: domainGroup?.group_id ?? '',
    domain_id: 'domain_1',
    name: 'news.test',
    use_case: 'mk' as const,
    next_check_at: Date.now() + DAY,
  };
  insertDomain(daemon.tables, domain, Date.now());
  await client.post('/web-setup/contacts', {
    email: ADA,
    firstName: 'Ada',
    customFields: { city: 'London' },
  });
});
afterAll(() => daemon?.stop());

/** A group with Ada as its member. */
async function groupWith(fields: object): Promise<Group & { archiveUrl: string }> {
  const { data } = await client.post<{ group: Group }>(GROUPS, { name: 'News', ...fields });
  const { group } = data;
  await client.post(`${GROUPS}/${group.subscriptionGroupId}/subscriptions`, { email: ADA, isActive: true });
  return { archiveUrl: '', ...group };
}

async function change(group: Group, fields: object): Promise<Group> {
  const path = `${GROUPS}/${group.subscriptionGroupId}`;
  return (await client.call<{ group: Group }>('PATCH', path, { body: fields })).data.group;
}

/** Sends a campaign; returns its id when it is sent. */
async function sendCampaign(mail: object): Promise<string> {
  const { data } = await client.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
    name: 'Hello',
  });
  const { campaignId } = data.campaign;
  const path = `/web-setup/campaigns/${campaignId}`;
  const sent = await client.call('POST', `${path}/send`, {
    body: {
      from: 'News <news@news.test>',
      subject: 'Hello',
      html: `<p>Hello</p>${FOOTER}`,
      trackClicks: true,
      trackOpens: true,
      ...mail,
    },
  });
  expect(sent.status, sent.text).toBe(202);
  await eventually('the campaign is sent', async () => {
    const { campaign } = (await client.get<{ campaign: { status: string } }>(path)).data;
    return campaign.status === 'sent';
  });
  return campaignId;
}

const statusOf = async (url: string) => (await fetch(url, { redirect: 'manual' })).status;

describe('the archive of a group', () => {
  it('is off by default, begins with its switch, and ends with it', async () => {
    const group = await groupWith({ isPublic: true });
    const base = (await groupWith({ archive: true, isPublic: true })).archiveUrl.replace(/\/[^/]*$/, '');
    expect(group).toMatchObject({ archive: false, archiveUrl: '' });
    const campaignId = await sendCampaign({ subscriptionGroupId: group.subscriptionGroupId });
    const url = `${base}/${group.subscriptionGroupId}`;
    const all = [url, `${url}.rss`, `${url}.${campaignId}`];
    for (const each of all) expect(await statusOf(each)).toBe(404);
    const on = await change(group, { archive: true });
    expect(on).toMatchObject({ archive: true, archiveUrl: url });
    for (const each of all) expect(await statusOf(each)).toBe(200);
    expect((await change(group, { name: 'Other' })).archiveUrl).toBe(url);
    await change(group, { archive: false });
    for (const each of all) expect(await statusOf(each)).toBe(404);
    await change(group, { archive: true });
    await client.call('DELETE', `/web-setup/campaigns/${campaignId}`);
    expect(await statusOf(`${url}.${campaignId}`)).toBe(404);
    expect(await (await fetch(url)).text()).toContain('Nothing has been sent');
    await client.call('DELETE', `${GROUPS}/${group.subscriptionGroupId}`);
    for (const each of all) expect(await statusOf(each)).toBe(404);
  });

  it('of a private group has an address that nobody can guess, and a new one when it is switched on again', async () => {
    const group = await groupWith({ archive: true });
    expect(group.archiveUrl).toMatch(/\/a\/[A-Za-z0-9]{43}$/);
    const byId = group.archiveUrl.replace(/[^/]*$/, group.subscriptionGroupId);
    expect([await statusOf(group.archiveUrl), await statusOf(byId)]).toEqual([200, 404]);
    const open = await change(group, { isPublic: true });
    expect([open.archiveUrl, await statusOf(byId)]).toEqual([byId, 200]);
    expect((await change(group, { isPublic: false })).archiveUrl).toBe(group.archiveUrl);
    expect(await statusOf(byId)).toBe(404);
    await change(group, { archive: false });
    const { archiveUrl } = await change(group, { archive: true });
    expect(archiveUrl).not.toBe(group.archiveUrl);
    expect(await statusOf(group.archiveUrl)).toBe(404);
  });

  it('shows the winner of an A/B test in the list, the feed and the page', async () => {
    const group = await groupWith({ archive: true, isPublic: true });
    const { data } = await client.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
      name: 'Tested',
    });
    const path = `/web-setup/campaigns/${data.campaign.campaignId}`;
    const sent = await client.call('POST', `${path}/send`, {
      body: {
        subscriptionGroupId: group.subscriptionGroupId,
        from: 'news@news.test',
        subject: 'First subject',
        html: `<p>First content</p>${FOOTER}`,
        enableOpenTracking: true,
        variants: [
          {},
          { subject: 'Second subject' },
          { subject: 'Third subject', html: `<p>Third</p>${FOOTER}` },
        ],
        test: { share: 50, winner: 'opens', waitHours: 1 },
      },
    });
    expect(sent.status, sent.text).toBe(202);
    expect((await client.call('POST', `${path}/winner`, { body: { variant: 'C' } })).status).toBe(200);
    await eventually('the campaign is sent', async () => {
      const { campaign } = (await client.get<{ campaign: { status: string } }>(path)).data;
      return campaign.status === 'sent';
    });
    for (const url of [group.archiveUrl, `${group.archiveUrl}.rss`]) {
      const text = await (await fetch(url)).text();
      expect(text).toContain('Third subject');
      expect(text).not.toMatch(/First subject|Second subject/);
    }
    const text = await (await fetch(`${group.archiveUrl}.${data.campaign.campaignId}`)).text();
    expect(text).toContain('<p>Third</p>');
    expect(text).not.toContain('First content');
  });

  it('shows campaigns without values, links and tracking of a recipient, in a sandbox', async () => {
    const group = await groupWith({ archive: true, isPublic: true });
    const html = `<script>alert(1)</script><p>Dear {{firstName|friend}} of {{customFields.city}}, {{email}} {{code}}</p>
<a href="https://shop.test/a"><b>Shop</b></a> <a href="{{view_url}}">View <i>online</i></a>
<A HREF='{{preferences_url}}'>Change</A> <a href="{{unsubscribe_url}}"><td>Open</p>
<p>Write to {{unsubscribe_url}}</p><img src="{{view_url}}"> {{report_abuse_email_html}}${FOOTER}`;
    const campaignId = await sendCampaign({
      subscriptionGroupId: group.subscriptionGroupId,
      subject: 'News for {{firstName|friends}}',
      html,
      templateVariables: { code: '<X>' },
    });
    const page = await fetch(`${group.archiveUrl}.${campaignId}`);
    const text = await page.text();
    expect(text).toContain('<p>Dear friend of ,  &lt;X&gt;</p>');
    expect(text).toContain('<a href="https://shop.test/a"><b>Shop</b></a>');
    expect(text).toContain('<a href="#"><td>Open</p>');
    expect(text).toContain('Shop Ltd');
    expect(text).not.toMatch(/\0|\/[uprvco]\/|View|Change|nsubscribe|Report abuse|Ada|London|delivered/);
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/^default-src 'none';.* sandbox /);
    expect(policy).not.toMatch(/allow-scripts|allow-same-origin|allow-forms|script-src/);
    expect(page.headers.get('cache-control')).toBe('no-cache');
    const etag = page.headers.get('etag') ?? '';
    const again = await fetch(page.url, { headers: { 'If-None-Match': etag } });
    expect([again.status, await again.text()]).toEqual([304, '']);
    expect((await fetch(page.url, { method: 'HEAD' })).status).toBe(200);
    await client.put('/web-setup/account', { companyName: 'New Ltd' });
    const changed = await fetch(page.url, { headers: { 'If-None-Match': etag } });
    expect(await changed.text()).toContain('New Ltd');
    await client.put('/web-setup/account', { companyName: 'Shop Ltd' });
    expect(await (await fetch(group.archiveUrl)).text()).toContain('News for friends');
  });

  it('shows campaigns in Liquid, and of text only', async () => {
    const group = await groupWith({ archive: true, isPublic: true });
    const { subscriptionGroupId } = group;
    const { data } = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'Liquid',
      syntax: 'liquid',
      subject: '{% if firstName %}{{ firstName }}{% else %}Everyone{% endif %}',
      html: `<p>{{ firstName | default: "friend" | upcase }}</p><a href="{{ view_url }}">View</a>${FOOTER}`,
    });
    const liquid = await sendCampaign({
      subscriptionGroupId,
      subject: undefined,
      html: undefined,
      templateId: data.template.templateId,
    });
    const page = await (await fetch(`${group.archiveUrl}.${liquid}`)).text();
    expect(page).toContain('<p>FRIEND</p>');
    expect(page).not.toMatch(/\0|View|nsubscribe|Ada/);
    const text = await sendCampaign({
      subscriptionGroupId,
      html: undefined,
      text: 'Hi {{firstName|you}} <b>\n{{company_address_text}} {{unsubscribe_url}}',
    });
    const plain = await (await fetch(`${group.archiveUrl}.${text}`)).text();
    expect(plain).toMatch(/<pre [^>]*>Hi you &lt;b&gt;\nShop Ltd[^<]*<\/pre>$/);
    expect(plain).not.toContain('/u/');
    const feed = await (await fetch(`${group.archiveUrl}.rss`)).text();
    expect(feed).toContain('<title>Everyone</title>');
  });

  it('has campaigns to all members of the group, and none to some of them', async () => {
    const group = await groupWith({ archive: true, isPublic: true });
    const other = await groupWith({ name: 'Other', archive: true, isPublic: true });
    const { data } = await client.post<{ segment: { segmentId: string } }>('/web-setup/segments', {
      name: `Ada ${group.subscriptionGroupId}`,
      filter: { field: 'firstName', op: 'is', value: 'Ada' },
    });
    const { subscriptionGroupId } = group;
    const first = await sendCampaign({ subscriptionGroupId });
    const both = await sendCampaign({
      subscriptionGroupIds: [subscriptionGroupId, other.subscriptionGroupId],
    });
    const some = [
      await sendCampaign({ subscriptionGroupId, segmentId: data.segment.segmentId }),
      await sendCampaign({ subscriptionGroupId: other.subscriptionGroupId }),
    ];
    const page = await (await fetch(group.archiveUrl)).text();
    for (const id of [first, both]) expect(page).toContain(`.${id}"`);
    for (const id of some) {
      expect(page).not.toContain(id);
      expect(await statusOf(`${group.archiveUrl}.${id}`)).toBe(404);
    }
    expect(page.indexOf(both)).toBeLessThan(page.indexOf(first));
    expect(await (await fetch(other.archiveUrl)).text()).toContain(both);
  });

  it('is listed in pages, in the language of the reader, and as a feed', async () => {
    const group = await groupWith({
      name: 'A & <b>"B"</b>',
      archive: true,
      isPublic: true,
      description: ']]> & <i>',
    });
    const ids: string[] = [];
    for (let n = 0; n < 22; n++)
      ids.unshift(
        await sendCampaign({
          subscriptionGroupId: group.subscriptionGroupId,
          subject: n === 21 ? '<img src=x onerror=alert(1)> & \u{1f600}' : `Number ${n}`,
        }),
      );
    const page = await fetch(group.archiveUrl, { headers: { 'Accept-Language': 'de' } });
    const text = await page.text();
    expect(text).toContain('A &amp; &lt;b&gt;&quot;B&quot;&lt;/b&gt;: Archiv');
    expect(text).toContain('&lt;img src=x onerror=alert(1)&gt; &amp; \u{1f600}');
    expect([...text.matchAll(/\.(campaign_\w+)"><bdi>/g)].map(([, id]) => id)).toEqual(ids.slice(0, 20));
    const [, older = ''] = /<a href="(\/a\/[^"]*\.before\.[^"]*)"/.exec(text) ?? [];
    const second = await (await fetch(new URL(older, group.archiveUrl))).text();
    expect([...second.matchAll(/\.(campaign_\w+)"><bdi>/g)].map(([, id]) => id)).toEqual(ids.slice(20));
    expect(second).not.toContain('.before.');
    expect(await statusOf(`${group.archiveUrl}.before.campaign_1`)).toBe(404);
    const etag = page.headers.get('etag') ?? '';
    const same = { 'Accept-Language': 'de', 'If-None-Match': etag };
    expect((await fetch(group.archiveUrl, { headers: same })).status).toBe(304);

    const response = await fetch(`${group.archiveUrl}.rss`, { headers: { 'Accept-Language': 'de' } });
    const feed = await response.text();
    expect(response.headers.get('content-type')).toBe('application/rss+xml; charset=utf-8');
    expect(response.headers.get('etag')).toMatch(/^"/);
    expect(feed.match(/<item>/g)).toHaveLength(20);
    const [, item = ''] = /<item>\n([^]*?)<\/item>/.exec(feed) ?? [];
    expect(item).toMatch(/^<title>&lt;img src=x onerror=alert\(1\)&gt; &amp; \u{1f600}<\/title>\n/u);
    expect(item).toContain(
      `<link>${group.archiveUrl}.${ids[0]}</link>\n<guid isPermaLink="false">${ids[0]}</guid>`,
    );
    const [, date = ''] = /<pubDate>(\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT)<\/pubDate>/.exec(item) ?? [];
    expect(Math.abs(Date.parse(date) - Date.now())).toBeLessThan(DAY);
    expect(feed).toContain('<description>]]&gt; &amp; &lt;i&gt;</description>\n<language>en</language>');
    expect((await fetch(`${group.archiveUrl}.rss`, { method: 'POST' })).status).toBe(405);
  });
});
