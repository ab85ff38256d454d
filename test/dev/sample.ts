import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { lockDaemon, openDatabase } from '../../src/store/database/database.ts';
import { addConsoleData } from '../bench/large/console-data.ts';
import { buildHistory, DAY_MS, HOUR_MS } from '../bench/large/history.ts';
import { prepareInstallation, readInstallation } from '../bench/large/installation.ts';

const SAMPLE = { messages: 20_000, people: 20_000 };
/** The share of the benchmark's data: some groups, templates, campaigns, webhooks and received mail. */
const SHARE = 0.05;

const ACCOUNTS = ['Northwind Coffee', 'Contoso Travel', 'Fabrikam Garden', 'Tailspin Toys', 'Wingtip Books'];
const CAMPAIGNS = [
  'Spring harvest',
  'New: cold brew',
  'Brewing course',
  'Summer sale',
  'Visit the farm',
  'Holiday hours',
  'Decaf returns',
  'Autumn blend',
  'Barista evening',
  'Loyalty points',
  'Gift boxes',
  'November newsletter',
  'Advent calendar',
];
const TEMPLATES = ['Order shipped', 'Order confirmed', 'Newsletter', 'Password reset', 'Welcome', 'Invoice'];
const LINKS = ['/coffee/autumn-blend', '/visit', '/recipes/flat-white', '/gift-boxes'];
const PROVIDERS = { google: 0.46, microsoft: 0.27, yahoo: 0.12, apple: 0.09, other: 0.06 };
const MAIL = `<div style="font-family:sans-serif;max-width:600px;margin:auto;padding:24px">
<p style="color:#8a5a2b;font-weight:bold">Northwind Coffee</p><h1>{{subject}}</h1>
<p>Dear {{firstName|friend}}, our roasters have something new for you.</p>
${LINKS.map((path) => `<p><a href="https://northwind.example${path}">${path.replace(/^.*\//, '').replaceAll('-', ' ')}</a></p>`).join('\n')}
<p>{{company_address_html}} {{unsubscribe_email_html}}</p></div>`;
/** Members of a campaign for each message of the history. */
const SCALE = 61;

/** Creates sample data in `directory` unless it is there; returns the data directory of its daemon. */
export async function sampleInstallation(directory: string): Promise<string> {
  const used = join(directory, 'installation');
  if (existsSync(used)) return used;
  mkdirSync(directory, { recursive: true });
  const prepared = join(directory, 'prepared');
  const now = Date.now();
  buildHistory(prepared, used, await prepareInstallation(prepared), { ...SAMPLE, now });
  addConsoleData(used, { now, share: SHARE });
  nameData(used, now);
  return used;
}

/** Gives the data of the benchmark names that people know, and its campaigns the reactions of readers. */
function nameData(dataDir: string, now: number): void {
  const lock = lockDaemon(dataDir);
  const { accounts, campaignIds, group } = readInstallation(dataDir);
  const db = openDatabase(dataDir, { lock });
  try {
    db.transaction(() => {
      const rename = db.prepare(
        'UPDATE accounts SET name = @name, company_name = @name WHERE account_id = @id',
      );
      for (const [index, { accountId }] of accounts.entries())
        rename.run({ name: ACCOUNTS[index % ACCOUNTS.length], id: accountId });
      const templates = db.prepare<[], { seq: number }>('SELECT seq FROM templates ORDER BY seq').all();
      for (const [index, { seq }] of templates.entries()) {
        const round = Math.floor(index / TEMPLATES.length);
        const name = `${TEMPLATES[index % TEMPLATES.length]}${round === 0 ? '' : ` ${round + 1}`}`;
        db.prepare('UPDATE templates SET name = ? WHERE seq = ?').run(name, seq);
      }
      for (const [index, id] of campaignIds.entries()) {
        const age = (campaignIds.length - index) * 9 * DAY_MS;
        const opened = 0.31 + 0.17 * ((index * 7) % 10) * 0.1;
        reactions(id, CAMPAIGNS[index % CAMPAIGNS.length] ?? '', now - age, { opened, clicked: opened / 5 });
      }
    })();
  } finally {
    db.close();
    lock.release();
  }

  function reactions(
    campaignId: string,
    name: string,
    at: number,
    { opened, clicked }: { opened: number; clicked: number },
  ): void {
    const values = { campaignId, name, at, opened, clicked, scale: SCALE, group: group.subscriptionGroupId };
    db.prepare(
      'UPDATE campaigns SET name = @name, created_at = @at, updated_at = @at WHERE campaign_id = @campaignId',
    ).run(values);
    const begins = Math.floor(at / HOUR_MS) * HOUR_MS;
    const rows = db
      .prepare<[string], { queued: number | null }>(
        'SELECT sum(queued) AS queued FROM campaign_counts WHERE campaign_id = ?',
      )
      .get(campaignId);
    // The last campaign is a draft.
    if (rows === undefined || rows.queued === null) return;
    db.prepare('DELETE FROM campaign_counts WHERE campaign_id = ?').run(campaignId);
    const members = rows.queued * SCALE;
    const insert = db.prepare(`
      INSERT INTO campaign_counts (campaign_id, hour, queued, sent, delivered, bounced, failed, complained, opened, unique_opened,
        clicked, unique_clicked, unsubscribed)
      VALUES (@campaignId, @hour, @sent, @sent, @delivered, @bounced, @bounced, @complained, @opens, @uniqueOpens, @clicks,
        @uniqueClicks, @unsubscribed)`);
    // Most people read a mail in its first hours.
    for (let hour = 0; hour < 72; hour++) {
      const sent = hour < 4 ? Math.round(members / 4) : 0;
      // A wave by day, below an exponential decay.
      const share = (Math.exp(-hour / 9) * (1 + 0.5 * Math.cos((hour / 12) * Math.PI))) / 10.5;
      const uniqueOpens = Math.round(members * opened * share);
      const uniqueClicks = Math.round(members * clicked * share);
      insert.run({
        campaignId,
        hour: begins + hour * HOUR_MS,
        sent,
        delivered: Math.round(sent * 0.985),
        bounced: Math.round(sent * 0.012),
        complained: hour === 5 ? 2 : 0,
        opens: Math.round(uniqueOpens * 1.3),
        uniqueOpens,
        clicks: Math.round(uniqueClicks * 1.2),
        uniqueClicks,
        unsubscribed: Math.round(uniqueClicks / 25),
      });
    }
    for (const [index, path] of LINKS.entries())
      db.prepare('INSERT INTO campaign_links (campaign_id, url, clicks) VALUES (?, ?, ?)').run(
        campaignId,
        `https://northwind.example${path}`,
        Math.round((members * clicked) / (index + 1.5)),
      );
    for (const [provider, share] of Object.entries(PROVIDERS))
      db.prepare(`
        INSERT INTO campaign_providers (campaign_id, provider, delivered, bounced, unique_opened, unique_clicked)
        VALUES (?, ?, ?, ?, ?, ?)`).run(
        campaignId,
        provider,
        ...[0.985, 0.012, opened, clicked].map((each) => Math.round(members * share * each)),
      );
    db.prepare(`
      INSERT INTO campaign_sends (campaign_seq, account_id, job_id, subscription_group_id, members, queued, next_at, open,
        started_at, finished_at, created_at)
      SELECT seq, account_id, 'job_sample_' || seq, @group, @members, @members, @at, 0, @at, @at + 14400000, @at
      FROM campaigns WHERE campaign_id = @campaignId`).run({ ...values, members });
    const mail = {
      from: 'Northwind Coffee <hello@news.example>',
      fromDomain: 'news.example',
      replyTo: null,
      variables: {},
      trackClicks: true,
      trackOpens: true,
      optional: [],
      wording: { subject: name, html: MAIL.replace('{{subject}}', name), text: null },
    };
    db.prepare(
      'INSERT INTO campaign_mails (campaign_seq, mail) SELECT seq, ? FROM campaigns WHERE campaign_id = ?',
    ).run(JSON.stringify(mail), campaignId);
  }
}
