import { expect } from 'vitest';
import type { Authentication } from '../../src/inbound/authentication.ts';
import { parseInbound } from '../../src/inbound/parse-mail.ts';
import type { ApiClient } from '../support/api-client.ts';
import { type InProcess, PLATFORM } from '../support/in-process-daemon.ts';

/** A route of an account; the daemon has its domain shop.test, `domain_1`. Returns its id. */
export async function createRoute(client: ApiClient, name: string, match: string): Promise<string> {
  const { status, text, data } = await client.post<{ route: { routeId: string } }>(
    '/web-setup/inbound-routes',
    { name, match, domainId: 'domain_1' },
  );
  expect(status, text).toBe(201);
  return data.route.routeId;
}

interface Received {
  inboundId: string;
  routeId: string;
  recipient: string;
  sender: string;
  raw: string;
  results: Partial<Authentication>;
  /** The message that it answers. */
  answers?: string;
}

let received = 0;

/** Stores a mail as if the MX listener had received it, with what the parser finds in it. */
export async function insertMail(
  { tables }: Pick<InProcess, 'tables'>,
  { accountId }: ApiClient,
  { inboundId, routeId, recipient, sender, raw, results, answers }: Received,
): Promise<void> {
  const bytes = Buffer.from(raw);
  const parsed = await parseInbound(bytes, PLATFORM);
  if ('unreadable' in parsed) throw new Error('the mail cannot be parsed');
  const source = tables.inbound.insertSource(accountId, bytes.length);
  tables.inbound.insertPart(source, 0, bytes);
  tables.inbound.setState(source, 'stored');
  const { headers, text, isTextCut, html, isHtmlCut, replyText, attachments } = parsed;
  tables.inbound.insert({
    inbound_id: inboundId,
    account_id: accountId,
    route_id: routeId,
    source_seq: source,
    status: 'parsed',
    sender,
    recipient,
    helo: 'mx.example.net',
    remote_address: '192.0.2.7',
    received_at: Date.now() - ++received * 60_000,
    from_address: parsed.from,
    subject: parsed.subject,
    answers: answers ?? null,
    automatic: parsed.automatic,
    is_loop: 0,
    attachments: attachments.length,
    parse_error: null,
    authentication: JSON.stringify({
      spf: 'pass',
      dkim: 'pass',
      dmarc: 'pass',
      arc: 'none',
      spfDomain: 'example.net',
      dkimDomains: ['example.net'],
      dmarcPolicy: 'reject',
      ...results,
    } satisfies Authentication),
    content: JSON.stringify({ headers, text, isTextCut, html, isHtmlCut, replyText, attachments }),
  });
}
