import { request } from '../../api.ts';

/** Stores HTML as a document for a frame; returns its id. */
export async function storeHtml(html: string, account: string, signal: AbortSignal): Promise<string> {
  const body = { html };
  const { id } = await request<{ id: string }>('/console/previews', {
    method: 'POST',
    account,
    body,
    signal,
  });
  return id;
}

/** The address of stored HTML. */
export function frameAddress(id: string): string {
  return `/console/previews/${encodeURIComponent(id)}`;
}
