import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';

let daemon: InProcess;
let client: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess({});
  client = await daemon.account('Shop');
});
afterAll(() => daemon?.stop());

it('responds to a large body with a large body without a warning of Node about listeners', async () => {
  const warnings: string[] = [];
  const note = (warning: Error) => warnings.push(warning.message);
  process.on('warning', note);
  try {
    const html = `<p>Hello</p>${'<p>a long letter</p>'.repeat(5000)}{{company_address_html}}{{unsubscribe_email_html}}`;
    const created = await client.post<{ template: { html: string } }>('/web-setup/templates', {
      name: 'Large',
      html,
    });
    expect(created.data.template.html).toBe(html);
    // Node emits warnings in a later turn.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('warning', note);
  }
  expect(warnings).toEqual([]);
});
