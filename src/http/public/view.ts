import { inSlices, type Work } from '../../core/concurrency/slices.ts';
import type { DescribeCopy } from '../../delivery/prepare.ts';
import { isErased } from '../../events/erased.ts';
import { readableParts } from '../../mail/compose.ts';
import type { Attachment, CopyDetails, MessageContent } from '../../mail/content.ts';
import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tokens } from '../../mail/tokens.ts';
import { sentContent } from '../../sending/sent-content.ts';
import type { Context } from '../../store/context.ts';
import { html } from './html.ts';
import { createLargeResponses } from './large-response.ts';
import { pageResponse } from './layout.ts';
import { plainLook } from './look.ts';
import { MESSAGE_HEADERS, textPage, withoutReferrer } from './message-page.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { partiesOf } from './parties.ts';
import { unknownLinkPage } from './plain-pages.ts';
import type { PublicRequest, PublicResponse, PublicRoute } from './response.ts';

/*
 * `/v/<token>`: a message as it was sent, for mail programs that do not show it well. Its links lead directly to their
 * addresses, and opening it counts as nothing.
 */

/** Images in the mail that are shown: those that no browser runs. */
const INLINE_IMAGE = /^image\/(?:png|jpeg|gif|webp)$/i;
const CID_URL = /cid:([^\s"'<>()]{1,300})/gi;
/** Characters of all inline images of a page: the HTML may refer to an image thousands of times. */
const MAX_INLINE = 16 * 1024 * 1024;
/** References that are replaced between two yields. */
const REFERENCES_PER_STEP = 1000;

export function viewRoute(
  { reader, tables }: Pick<Context, 'reader' | 'tables'>,
  {
    tokens,
    hosts,
    describeCopy,
  }: { tokens: Pick<Tokens, 'viewUrl'>; hosts: PageHosts; describeCopy: DescribeCopy },
): PublicRoute {
  const largeResponse = createLargeResponses();

  async function show(mail: SentMail, request: PublicRequest): Promise<PublicResponse> {
    const { accountId, messageId } = mail;
    const found = await reader.query(accountId, sentContent, { accountId, messageId });
    const { message, domain, content } = found ?? { message: null, domain: null, content: null };
    if (message === null || domain === null || content === null || isErased(message)) {
      const { look, sender } = partiesOf(tables, mail, request.acceptLanguage);
      return pageResponse(look, 410, 'view.gone', html`<p>${look.text('view.goneText', { sender })}</p>`);
    }
    if (request.isHead) return { status: 200, headers: { ...MESSAGE_HEADERS }, body: null };
    const { tracking: _, ...copy } = describeCopy(message, domain);
    const body = await inSlices(messagePage(content, copy), accountId);
    return { status: 200, headers: { ...MESSAGE_HEADERS }, body };
  }

  return {
    name: 'v',
    methods: ['GET'],
    handle: async (request) => {
      const { token, host, acceptLanguage } = request;
      const mail = tokens.viewUrl(token);
      if (mail === null) return unknownLinkPage(plainLook(acceptLanguage));
      if (!isOwnHost(hosts, host, mail.accountId)) return redirectToPlatform(hosts, `/v/${token}`);
      return largeResponse(mail.accountId, request, () => show(mail, request));
    },
  };
}

/** The HTML of a copy with its inline images, else its text. */
function* messagePage(content: MessageContent, copy: CopyDetails): Work<string> {
  const parts = yield* readableParts(content, copy);
  if (parts.html === null) return textPage(content.subject, parts.text ?? '');
  return yield* withInlineImages(yield* withoutReferrer(parts.html), content.attachments);
}

/** With `data:` in place of `cid:` for images, up to MAX_INLINE; other references stay. */
function* withInlineImages(source: string, attachments: readonly Attachment[]): Work<string> {
  // One id may be the beginning of another.
  const inline = attachments
    .flatMap(({ contentId: id, ...file }) => (id === undefined ? [] : [{ id, ...file }]))
    .sort((a, b) => b.id.length - a.id.length);
  if (inline.length === 0) return source;
  let out = '';
  let at = 0;
  let left = MAX_INLINE;
  let references = 0;
  for (const { index, 1: reference = '' } of source.matchAll(CID_URL)) {
    if (++references % REFERENCES_PER_STEP === 0) yield;
    const file = inline.find(({ id }) => reference.startsWith(id));
    if (file === undefined || !INLINE_IMAGE.test(file.contentType) || file.content.length > left) continue;
    left -= file.content.length;
    out += `${source.slice(at, index)}data:${file.contentType};base64,${file.content}`;
    at = index + 'cid:'.length + file.id.length;
  }
  return out + source.slice(at);
}
