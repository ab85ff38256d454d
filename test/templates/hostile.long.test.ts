import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createTemplateThreads } from '../../src/templates/thread/threads.ts';
import { EXPENSIVE, HOSTILE_MJML } from './hostile-sources.ts';

const COPIES = [{ variables: { name: 'Ada' }, optional: [] }];
/** Short limits, so that the corpus ends soon; on a busy machine more sources are refused, which is allowed. */
const LIMITS = { quick: { render: 20, job: 300 }, slow: { render: 40, job: 600 } };

function start(limits = LIMITS) {
  const threads = createTemplateThreads(createLog({ level: 'silent', hashAddresses: false }), { limits });
  onTestFinished(() => threads.stop());
  return threads;
}

const sourceOf = (html: string) => ({
  subject: 's',
  html,
  text: null,
  partials: { p: '{{ name }}' },
});

describe('hostile Liquid', () => {
  it('does not stop a template of another account', async () => {
    const threads = start();
    for (const [index, html] of EXPENSIVE.entries()) {
      const [copy] = await threads.render(`acct_${index % 3}`, sourceOf(html), COPIES, { whole: true });
      if (copy !== undefined && 'values' in copy)
        expect(copy.values.html?.[0]?.length, html.slice(0, 80)).toBeLessThanOrEqual(2 * 1024 * 1024);
    }
    const patient = start({ quick: { render: 10_000, job: 60_000 }, slow: { render: 10_000, job: 60_000 } });
    expect(
      await patient.render('acct_other', sourceOf('<p>{{ name }}</p>'), COPIES, { whole: true }),
    ).toMatchObject([{ values: { html: ['<p>Ada</p>'] } }]);
  });
});

/** A thread with all of them in memory would have no memory left. */
const MANY_CONTENTS = 12_000;

it('reads any number of small contents in one thread', async () => {
  const log = createLog({ level: 'silent', hashAddresses: false });
  const failed = vi.spyOn(log, 'warn');
  const limits = { quick: { render: 10_000, job: 60_000 }, slow: { render: 10_000, job: 60_000 } };
  const threads = createTemplateThreads(log, { limits });
  onTestFinished(() => threads.stop());
  for (let first = 0; first < MANY_CONTENTS; first += 100) {
    const contents = Array.from({ length: 100 }, (_, index) => `{{ name }} {{ v${first + index} }}`);
    await Promise.all(
      contents.map((text) =>
        threads.read(`acct_${first}`, { subject: text, html: text, text, partials: {} }),
      ),
    );
  }
  expect(failed).not.toHaveBeenCalled();
});

describe('hostile MJML', () => {
  it('is refused or compiled within the limits, and the next source is compiled', async () => {
    const threads = start({ ...LIMITS, slow: { render: 40, job: 3000 } });
    for (const source of HOSTILE_MJML) {
      const compiled = await threads.compile('acct_hostile', source);
      expect(JSON.stringify(compiled)).not.toContain('root:');
      if ('html' in compiled) expect(compiled.html.length).toBeLessThanOrEqual(1024 * 1024);
    }
    const good =
      '<mjml><mj-body><mj-section><mj-column><mj-text>Hello</mj-text></mj-column></mj-section></mj-body></mjml>';
    expect(await threads.compile('acct_other', good)).toMatchObject({
      html: expect.stringContaining('Hello'),
    });
  });
});
