import { describe, expect, it } from 'vitest';
import type { SendRequest } from '../../src/sending/request.ts';
import { createTemplates } from '../../src/templates/templates.ts';
import { granted, refused } from '../support/refusal.ts';
import { templateThreads } from '../support/template-threads.ts';
import { accepted, HTML, startAcceptance } from './acceptance.ts';

/** Text in double braces whose name is none that a variable can have. */
const warning = (leftover: string, field: string) =>
  `${leftover} in ${field} is not a variable and is sent unchanged`;

const warningsOf = (body: string): unknown => JSON.parse(body).data.warnings;

describe('text in braces that is not a variable', () => {
  it('causes a warning for each part, and is sent unchanged', async () => {
    const { send, contents } = startAcceptance();
    const { body } = accepted(
      await send({
        subject: '{{first-name}}',
        html: `${HTML}{{first name}} {{first name}}`,
        text: '{{Straße}}{{unsubscribe_email_html}}{{company_address_html}}',
      }),
    );
    expect(warningsOf(body)).toEqual([
      warning('{{first-name}}', 'subject'),
      warning('{{first name}}', 'html'),
      warning('{{Straße}}', 'text'),
    ]);
    expect(contents()[0]).toMatchObject({ subject: '{{first-name}}' });
    expect(contents()[0]?.html).toContain('{{first name}} {{first name}}');
  });

  it('causes a warning in each message of a stored template, also when the template is prepared', async () => {
    const setup = startAcceptance();
    const templates = createTemplates(setup, () => null, templateThreads());
    const html = `${HTML}{{#if paid}}`;
    const { template_id: templateId } = granted(
      await templates.create('acct_one', {
        name: 'Order',
        type: null,
        subject: 'Order',
        html,
        text: null,
        design: null,
        variables: [],
      }),
    );
    for (let n = 0; n < 4; n++) {
      const { body } = accepted(await setup.send({ subject: undefined, html: undefined, templateId }));
      expect(warningsOf(body)).toEqual([
        expect.stringMatching(
          /^\{\{#if paid\}\} in html is not a variable, but the syntax of another template language/,
        ),
      ]);
    }
  });

  it('causes 20 warnings at most', async () => {
    const { send } = startAcceptance();
    const many = Array.from({ length: 30 }, (_, n) => `{{#a${n}}}`).join('');
    const { body } = accepted(await send({ html: HTML + many, text: many }));
    expect(warningsOf(body)).toHaveLength(20);
  });

  it('causes no warning after a backslash', async () => {
    const { send } = startAcceptance();
    expect(warningsOf(accepted(await send({ html: `${HTML}\\{{first-name}}` })).body)).toBeUndefined();
  });

  it('is text in mail that was submitted over SMTP', async () => {
    const { send, contents } = startAcceptance();
    const changes = { subject: '{{first-name}}', templateVariables: { 'first-name': 'Ada' } };
    const { body } = accepted(await send(changes, { literalBraces: true, appendFooter: true }));
    expect(warningsOf(body)).toBeUndefined();
    expect(contents()[0]?.subject).toBe('{{first-name}}');
  });

  it.each<[changes: Partial<SendRequest>, field: string, name: string]>([
    [{ subject: '{{first-name}}' }, 'subject', 'first-name'],
    [{ html: `${HTML}{{{ first-name }}}` }, 'html', 'first-name'],
    [{ html: `${HTML}{{first-name|friend}}` }, 'html', 'first-name'],
    [{ text: '{{ Straße }}' }, 'text', 'Straße'],
  ])('is refused when a value has its name: %j', async (changes, field, name) => {
    const { send, stored } = startAcceptance();
    const templateVariables = { name: 'x', order: { number: 1 }, 'first-name': 'Ada', Straße: 'Hauptstraße' };
    const { code, message, extras } = refused(await send({ ...changes, templateVariables }));
    expect(code).toBe('TEMPLATE_VARIABLE_MISSING');
    expect(extras.details).toEqual([{ field, name, message: expect.stringContaining('is not a variable') }]);
    expect(message).toContain(`in ${field} is not a variable: a name consists of`);
    expect(stored()).toEqual([]);
  });

  it('is refused when a value has its name, also when the template is prepared', async () => {
    const { send } = startAcceptance();
    const html = `${HTML}{{first-name}}`;
    for (let n = 0; n < 4; n++) accepted(await send({ html }));
    const templateVariables = { name: 'x', order: { number: 1 }, 'first-name': 'Ada' };
    expect(refused(await send({ html, templateVariables })).code).toBe('TEMPLATE_VARIABLE_MISSING');
  });
});
