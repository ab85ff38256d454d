import type { ApiClient, CreatedDomain } from './api-client.ts';

/** A received mail as the list has it. */
export interface InboundEntry {
  inboundId: string;
  status: 'received' | 'parsed';
  subject: string;
  from: string;
  to: string[];
  size: number;
  attachmentCount: number;
  parseError: string | null;
  authentication: Record<string, unknown> | null;
}

/** Creates an inbound route below the domain; returns its address. `local`: `*` for every address. */
export async function inboundAddress(
  api: ApiClient,
  { domain, domainId }: Pick<CreatedDomain, 'domain' | 'domainId'>,
  local: string,
): Promise<string> {
  const match = `${local}@in.${domain}`;
  const { status, text } = await api.post('/web-setup/inbound-routes', { name: local, match, domainId });
  if (status >= 300) throw new Error(`the route ${match} was not created: ${text}`);
  return match;
}

/** All mail that the account received, newest first. */
export async function receivedMails(api: ApiClient): Promise<InboundEntry[]> {
  const all: InboundEntry[] = [];
  for (let lastKey: string | undefined; ; ) {
    const after = lastKey === undefined ? '' : `&lastKey=${encodeURIComponent(lastKey)}`;
    const { data } = await api.get<{ mails: InboundEntry[]; nextKey?: string }>(
      `/web-setup/inbound?limit=200${after}`,
    );
    all.push(...data.mails);
    if (data.nextKey === undefined) return all;
    lastKey = data.nextKey;
  }
}
