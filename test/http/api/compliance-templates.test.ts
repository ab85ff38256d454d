import { afterAll, expect, it } from 'vitest';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const PATH = '/web-setup/compliance-templates';
const GOOD = { name: 'Footer', type: 'unsubscribe', htmlContent: '<a href="{{unsubscribe_url}}">Leave</a>' };

interface Answer {
  template: { templateId: string; isDefault: boolean; domain: string | null };
  warnings?: string[];
}
interface Page {
  templates: { name: string }[];
}

it('becomes the default if it is the first of its type and domain', async () => {
  const api = await daemon.account('A');
  const isDefault = async (input: object) =>
    (await api.post<Answer>(PATH, { ...GOOD, ...input })).data.template.isDefault;
  expect(await isDefault({})).toBe(true);
  expect(await isDefault({})).toBe(false);
  expect(await isDefault({ domain: 'shop.example.com' })).toBe(true);
  expect(await isDefault({ isDefault: true })).toBe(true);
  expect(
    await isDefault({ type: 'report_abuse', htmlContent: '{{report_abuse_url}}', isDefault: false }),
  ).toBe(false);
});

it('normalizes the domain, and warns if it is not registered', async () => {
  const api = await daemon.account('A');
  await api.put('/web-setup/domains', { domain: 'bücher.example.com', useCaseId: 'tx-local' });
  const { data } = await api.post<Answer>(PATH, { ...GOOD, domain: 'Bücher.Example.com.' });
  expect(data.template.domain).toBe('xn--bcher-kva.example.com');
  expect(data.warnings).toBeUndefined();
  const { data: other } = await api.post<Answer>(PATH, { ...GOOD, domain: 'shop.example.cmo' });
  expect(other.warnings).toEqual([
    'shop.example.cmo is not registered in this account: the template is not used until it is',
  ]);
});

it('is listed by type and domain', async () => {
  const api = await daemon.account('A');
  await api.post(PATH, { ...GOOD, name: 'one' });
  await api.post(PATH, { ...GOOD, name: 'two', domain: 'shop.example.com' });
  await api.post(PATH, {
    ...GOOD,
    name: 'three',
    type: 'company_address',
    htmlContent: '{{company_address}}',
  });
  const names = async (query: string) =>
    (await api.get<Page>(PATH + query)).data.templates.map(({ name }) => name);
  expect(await names('')).toEqual(['three', 'two', 'one']);
  expect(await names('?type=unsubscribe')).toEqual(['two', 'one']);
  expect(await names('?domain=Shop.example.com')).toEqual(['two']);
  expect(await names('?type=company_address&domain=shop.example.com')).toEqual([]);
});

it.each([
  ['no variable of its type', { htmlContent: '<p>Bye</p>' }, 'htmlContent'],
  ['a variable that is not known here', { htmlContent: `${GOOD.htmlContent}{{first_name}}` }, 'htmlContent'],
  ['more than 20,000 characters', { htmlContent: GOOD.htmlContent + 'x'.repeat(20_000) }, 'htmlContent'],
  ['a NUL', { htmlContent: `${GOOD.htmlContent}\u0000` }, 'htmlContent'],
  ['an unknown type', { type: 'footer' }, 'type'],
  ['an invalid domain', { domain: 'http://shop.example.com/' }, 'domain'],
  ['a public suffix', { domain: 'co.uk' }, 'domain'],
])('is refused for %s', async (_, changes, field) => {
  const api = await daemon.account('A');
  const { status, error } = await api.post(PATH, { ...GOOD, ...changes });
  expect([status, error.code, error.details?.[0]?.field]).toEqual([400, 'VALIDATION_ERROR', field]);
});
