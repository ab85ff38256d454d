import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import { parseTemplate } from '../../src/mail/template.ts';
import { renderWording } from '../../src/sending/render.ts';

const SERVICE = { html: {}, text: {} };

describe('a wording whose names have no value', () => {
  it.each([1, 100, 101, 160_000])('is refused with the first hundred of %i told', (count) => {
    const source = Array.from({ length: count }, (_, n) => `{{f${n}}}`).join('');
    const parts = [{ field: 'html', kind: 'html', template: parseTemplate(source) } as const];
    const refused = renderWording({ parts: [...parts], service: SERVICE }, {});
    if (!isRefusal(refused)) throw new Error('it was not refused');
    expect(refused.code).toBe('TEMPLATE_VARIABLE_MISSING');
    expect(refused.extras.details).toHaveLength(Math.min(100, count));
    if (count > 100) expect(refused.message).toMatch(new RegExp(`; and ${count - 100} more$`));
  });
});
