import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { isRefusal } from '../../../src/core/refusal.ts';
import { complianceVariables } from '../../../src/mail/compliance.ts';
import { parseTemplate } from '../../../src/mail/template.ts';
import type { PreparedTemplate } from '../../../src/sending/render/render.ts';
import {
  createRepeatedTemplates,
  NOT_REPEATED,
  renderRepeatedInSteps,
} from '../../../src/sending/render/render-shared.ts';
import { ENGLISH_FOOTER } from '../../support/footer.ts';

const SERVICE = complianceVariables({
  account: { companyName: null, companyAddress: null },
  from: 'shop@example.com',
  templates: ENGLISH_FOOTER,
});

/** A template with this many variables. */
function prepared(name: string, variables: number): PreparedTemplate {
  const slots = Array.from({ length: variables }, (_, index) => `{{${name}_${index}}}`);
  const html = parseTemplate(`<p>${'Text '.repeat(300)}</p>${slots.join(' ')}`);
  return { parts: [{ field: 'html', kind: 'html', template: html }], service: SERVICE, required: [] };
}

function start() {
  const repeated = createRepeatedTemplates();
  const isReady = (template: PreparedTemplate) => repeated.find(template, 'scope').ready !== null;
  /** Finds the template until its texts are prepared. */
  const prepare = async (template: PreparedTemplate) => {
    expect(repeated.find(template, 'scope')).toEqual(NOT_REPEATED);
    const { candidate } = repeated.find(template, 'scope');
    if (candidate === null) throw new Error('the template is no candidate');
    await repeated.prepare(candidate, 'acct_one');
  };
  return { repeated, isReady, prepare };
}

describe('repeated templates', () => {
  it('are found until others need their memory, of which each variable takes a part', async () => {
    const { isReady, prepare } = start();
    const [first, last] = [prepared('first', 2000), prepared('last', 2000)];
    await prepare(first);
    expect(isReady(first)).toBe(true);
    for (let n = 0; n < 20; n++) await prepare(prepared(`t${n}`, 2000));
    await prepare(last);
    expect(isReady(first)).toBe(false);
    expect(isReady(last)).toBe(true);
  });

  it('do not include one that takes most of the memory', async () => {
    const { repeated, isReady, prepare } = start();
    const large = prepared('large', 10_000);
    await prepare(large);
    expect(isReady(large)).toBe(false);
    // It is not prepared again.
    expect(repeated.find(large, 'scope')).toEqual(NOT_REPEATED);
    expect(repeated.find(large, 'scope')).toEqual(NOT_REPEATED);
  });

  it('return the size of the HTML in UTF-8', async () => {
    const { repeated, prepare } = start();
    const html = parseTemplate(`<p>Grüße, {{name}} und {{other}}, {{name}}</p>${'Text '.repeat(300)}`);
    const template: PreparedTemplate = {
      parts: [{ field: 'html', kind: 'html', template: html }],
      service: SERVICE,
      required: [],
    };
    await prepare(template);
    const { ready } = repeated.find(template, 'scope');
    if (ready === null) throw new Error('the template is not prepared');
    const variables = { name: 'Zoë 🙂', other: '' };
    const rendered = withoutPause(renderRepeatedInSteps(ready, template, variables));
    if (rendered === null || isRefusal(rendered)) throw new Error('the template was not rendered');
    expect(rendered.html).toContain('Grüße, Zoë 🙂 und , Zoë 🙂</p>');
    expect(rendered.htmlBytes).toBe(Buffer.byteLength(rendered.html));
  });

  it('are prepared once for sends that find them at the same time', async () => {
    const { repeated, isReady } = start();
    const template = prepared('a', 2);
    expect(repeated.find(template, 'scope')).toEqual(NOT_REPEATED);
    const candidate = () => {
      const found = repeated.find(template, 'scope').candidate;
      if (found === null) throw new Error('the template is no candidate');
      return found;
    };
    const preparing = [candidate(), candidate()].map((found) => repeated.prepare(found, 'acct_one'));
    // Meanwhile others are stored completely.
    expect(repeated.find(template, 'scope')).toEqual(NOT_REPEATED);
    await Promise.all(preparing);
    expect(isReady(template)).toBe(true);
    expect(repeated.find(template, 'another scope')).toEqual(NOT_REPEATED);
  });
});
