import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createTemplateThreads, type TemplateThreads } from '../../src/templates/thread/threads.ts';
import { READING } from './hostile-sources.ts';

const VARIABLES = { name: 'Ada', list: ['a', { b: 1 }], object: { a: 1 } };
/** Short limits: a busy machine fails no copy, but tries it again. */
const LIMITS = { quick: { render: 20, job: 1000 }, slow: { render: 40, job: 5000 } };

let threads: TemplateThreads;
beforeAll(() => {
  threads = createTemplateThreads(createLog({ level: 'silent', hashAddresses: false }), { limits: LIMITS });
});
afterAll(() => threads.stop());

const sourceOf = (html: string) => ({
  subject: 's',
  html,
  text: null,
  partials: { p: '{{ polluted }}' },
});

describe('hostile Liquid', () => {
  it.each(READING)('reads nothing: %s', async (html) => {
    const copies = [{ variables: VARIABLES, optional: [] }];
    const [copy] = await threads.render('acct_one', sourceOf(html), copies, { whole: true });
    if (copy === undefined || 'unrun' in copy) throw new Error('it was not rendered');
    if ('values' in copy) expect(copy.values.html?.[0]?.trim()).toMatch(/^(?:\{\})?$/);
    expect(JSON.stringify(copy)).not.toMatch(/root:|function|native code|\[object|NODE_|PATH=/);
  });

  it.each(READING)('reads nothing in a partial: %s', async (html) => {
    const source = {
      ...sourceOf('{% include "h" %};{% render "h" %}'),
      partials: { h: html, p: '{{ polluted }}' },
    };
    const [copy] = await threads.render('acct_one', source, [{ variables: VARIABLES, optional: [] }], {
      whole: true,
    });
    if (copy === undefined || 'unrun' in copy) throw new Error('it was not rendered');
    if ('values' in copy) expect(copy.values.html?.[0]?.trim()).toMatch(/^(?:\{\})?\s*;\s*(?:\{\})?$/);
    expect(JSON.stringify(copy)).not.toMatch(/root:|function|native code|\[object|NODE_|PATH=/);
  });

  it.each(['{% render "h" %}', '{% for i in (1..9999) %}{% include "p" %}{% include "h" %}{% endfor %}'])(
    'ends a partial that contains itself: %s',
    async (html) => {
      const source = { ...sourceOf('{% include "h" %}'), partials: { h: html, p: 'x' } };
      const [copy] = await threads.render('acct_one', source, [{ variables: VARIABLES, optional: [] }], {
        whole: true,
      });
      expect(copy).not.toHaveProperty('values');
    },
  );

  it('fails the copies that take too long, and no others', async () => {
    const html =
      '{% if slow %}{% for i in (1..9999) %}{% for j in (1..9999) %}{% endfor %}{% endfor %}{% endif %}.';
    const copies = [false, true, false].map((slow) => ({ variables: { slow }, optional: [] }));
    const results = [];
    while (results.length < copies.length)
      results.push(
        ...(await threads.render('acct_one', sourceOf(html), copies.slice(results.length), { whole: true })),
      );
    expect(results).toMatchObject([
      { values: { html: ['.'] } },
      { unrun: 'slow' },
      { values: { html: ['.'] } },
    ]);
  });
});
