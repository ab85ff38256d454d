import { createHash } from 'node:crypto';
import { signUpFormOf } from '../../audience/groups.ts';
import type { Archive, ArchiveItem } from '../../campaigns/archive.ts';
import { inSlices } from '../../core/concurrency/slices.ts';
import { accountLinkBase } from '../../delivery/prepare.ts';
import type { SubscriptionGroupRow } from '../../store/contacts/subscription-groups.ts';
import type { Context } from '../../store/context.ts';
import { matchesTag } from '../static-page.ts';
import { empty, html } from './html.ts';
import { createLargeResponses } from './large-response.ts';
import { pageResponse } from './layout.ts';
import { accountLook, type Look, plainLook } from './look.ts';
import { MESSAGE_HEADERS, textPage, withoutReferrer } from './message-page.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { unknownLinkPage } from './plain-pages.ts';
import { COMMON_HEADERS, type PublicRequest, type PublicResponse, type PublicRoute } from './response.ts';

/*
 * The archive of a group: `/a/<key>` lists its campaigns, `/a/<key>.before.<campaign id>` those before one, `/a/<key>.rss` is the
 * feed (RSS 2.0), and `/a/<key>.<campaign id>` a campaign, in the sandbox of the web view. The key is the id of a public group, and a
 * random text of another one. Caches ask each time, so that an archive that is switched off ends immediately.
 */

/** The route of archives, and the part of their addresses after the host. */
export const ARCHIVE_ROUTE = 'a';

/** Group ids and campaign ids can have come from another installation, and have no dot. */
const TARGET = /^([\w-]{1,100})(?:\.(?:(rss)|(before\.)?([\w-]{4,100})))?$/;
const REVALIDATED = { 'Cache-Control': 'no-cache' } as const;

interface Shown {
  group: SubscriptionGroupRow;
  key: string;
  request: PublicRequest;
}

export function archiveRoute(
  { tables }: Pick<Context, 'tables'>,
  { archive, hosts }: { archive: Archive; hosts: PageHosts },
): PublicRoute {
  const largeResponse = createLargeResponses();

  async function list({ group, key, request }: Shown, before: string | null): Promise<PublicResponse> {
    const { acceptLanguage } = request;
    const page = await archive.list(group, before);
    if (page === null) return unknownLinkPage(plainLook(acceptLanguage));
    const look = accountLook(tables, group.account_id, null, acceptLanguage);
    const response = listPage(look, group, key, { ...page, isFirst: before === null });
    return tagged(request, { ...response, headers: { ...response.headers, ...REVALIDATED } });
  }

  async function feed({ group, key, request }: Shown): Promise<PublicResponse> {
    const page = await archive.list(group, null);
    // Feed readers send no language of a person.
    const look = accountLook(tables, group.account_id, null, '');
    const base = `${accountLinkBase(tables, hosts.publicUrl(), group.account_id)}/${ARCHIVE_ROUTE}/${key}`;
    const headers = {
      ...COMMON_HEADERS,
      ...REVALIDATED,
      'Content-Type': 'application/rss+xml; charset=utf-8',
      'Content-Security-Policy': "default-src 'none'; sandbox",
    };
    return tagged(request, { status: 200, headers, body: feedOf(look, group, base, page?.items ?? []) });
  }

  async function campaign({ group, request }: Shown, campaignId: string): Promise<PublicResponse | null> {
    const missing = () => unknownLinkPage(plainLook(request.acceptLanguage));
    const found = archive.find(group, campaignId);
    if (found === null) return missing();
    if (request.isHead) return { status: 200, headers: { ...MESSAGE_HEADERS, ...REVALIDATED }, body: null };
    return largeResponse(group.account_id, request, async () => {
      const mail = await archive.mail(group, found);
      if (mail === null) return missing();
      const headers = { ...MESSAGE_HEADERS, ...REVALIDATED, ETag: `"${mail.digest}"` };
      if (matchesTag(request.ifNoneMatch, headers.ETag)) return { status: 304, headers, body: '' };
      const body =
        mail.html === null
          ? textPage(mail.subject, mail.text)
          : await inSlices(withoutReferrer(mail.html), group.account_id);
      return { status: 200, headers, body };
    });
  }

  return {
    name: ARCHIVE_ROUTE,
    methods: ['GET'],
    handle: (request) => {
      const { token, host, acceptLanguage } = request;
      const [, key = '', isFeed, before, campaignId = null] = TARGET.exec(token) ?? [];
      const group = archive.group(key);
      if (group === null) return unknownLinkPage(plainLook(acceptLanguage));
      if (!isOwnHost(hosts, host, group.account_id))
        return redirectToPlatform(hosts, `/${ARCHIVE_ROUTE}/${token}`);
      const shown = { group, key, request };
      if (isFeed !== undefined) return feed(shown);
      return campaignId === null || before !== undefined
        ? list(shown, campaignId)
        : campaign(shown, campaignId);
    },
  };
}

/** With the entity tag of its body (RFC 9110 §8.8.3), or 304. */
function tagged({ ifNoneMatch }: PublicRequest, response: PublicResponse): PublicResponse {
  const digest = createHash('sha256')
    .update(response.body ?? '')
    .digest('base64url')
    .slice(0, 22);
  const headers = { ...response.headers, ETag: `"${digest}"` };
  return matchesTag(ifNoneMatch, headers.ETag)
    ? { status: 304, headers, body: '' }
    : { ...response, headers };
}

/** Addresses on the page are relative: they work under each host of the account. */
function listPage(
  look: Look,
  group: SubscriptionGroupRow,
  key: string,
  { items, hasMore, isFirst }: { items: readonly ArchiveItem[]; hasMore: boolean; isFirst: boolean },
): PublicResponse {
  const sender = look.brand?.name ?? look.plain('sender');
  const path = `/${ARCHIVE_ROUTE}/${key}`;
  const last = items.at(-1);
  const rows = items.map(
    ({ campaignId, subject, sentAt }) =>
      html`<li><a href="${path}.${campaignId}"><bdi>${subject === '' ? look.text('archive.untitled') : subject}</bdi></a> <time datetime="${new Date(sentAt).toISOString()}">${look.date(sentAt)}</time></li>
`,
  );
  const older =
    hasMore && last !== undefined
      ? html`<a href="${path}.before.${last.campaignId}" rel="next">${look.text('archive.older')}</a>
`
      : empty;
  const newest = isFirst
    ? empty
    : html`<a href="${path}">${look.text('archive.newest')}</a>
`;
  const isOpen = signUpFormOf(group) !== null;
  const about =
    group.description === null
      ? empty
      : html`<p>${group.description}</p>
`;
  return pageResponse(
    look,
    200,
    'archive.title',
    html`${about}<p class="soft">${look.text('archive.about', { sender })}</p>
${
  rows.length === 0
    ? html`<p>${look.text('archive.empty')}</p>`
    : html`<ul class="archive">
${rows}</ul>`
}
${
  hasMore || !isFirst
    ? html`<p class="buttons">${newest}${older}</p>
`
    : empty
}<section>
<p class="buttons">${
      isOpen
        ? html`<a href="/j/${group.subscription_group_id}">${look.text('signUp.send')}</a>
`
        : empty
    }<a href="${path}.rss" type="application/rss+xml">${look.text('archive.feed')}</a></p>
</section>`,
    { group: group.name },
  );
}

/** RSS 2.0, with absolute addresses. `base`: that of the archive. */
function feedOf(
  look: Look,
  group: SubscriptionGroupRow,
  base: string,
  items: readonly ArchiveItem[],
): string {
  const sender = look.brand?.name ?? look.plain('sender');
  const entries = items.map(
    ({ campaignId, subject, sentAt }) => html`<item>
<title>${xmlText(subject === '' ? look.plain('archive.untitled') : subject)}</title>
<link>${`${base}.${campaignId}`}</link>
<guid isPermaLink="false">${campaignId}</guid>
<pubDate>${new Date(sentAt).toUTCString()}</pubDate>
</item>
`,
  );
  const newest = items[0];
  const built =
    newest === undefined
      ? empty
      : html`<lastBuildDate>${new Date(newest.sentAt).toUTCString()}</lastBuildDate>
`;
  return html`<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">
<channel>
<title>${xmlText(`${group.name} – ${sender}`)}</title>
<link>${base}</link>
<description>${xmlText(group.description ?? look.plain('archive.about', { sender }))}</description>
<language>${look.language}</language>
<atom:link href="${`${base}.rss`}" rel="self" type="application/rss+xml"/>
${built}${entries}</channel>
</rss>
`.html;
}

/** Without characters that XML 1.0 does not have (§2.2). */
function xmlText(text: string): string {
  return text.toWellFormed().replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '');
}
