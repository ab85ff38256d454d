import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../../src/core/refusal.ts';
import { clippingWarnings, type LinkOptions } from '../../../src/sending/render/clipping.ts';
import { COMPLIANCE, startCampaigns } from '../../campaigns/setup.ts';
import { accepted, HTML, startAcceptance } from '../acceptance.ts';

const LINK = '<p><a href="https://shop.example/a">More</a></p>\n';
const options = (changes: Partial<LinkOptions> = {}): LinkOptions => ({
  trackClicks: false,
  trackOpens: false,
  linkBase: 'https://link.example.com',
  ...changes,
});

describe('the warning that Gmail clips the HTML', () => {
  it('counts bytes, not characters', () => {
    expect(clippingWarnings({ html: 'a'.repeat(100_000) }, options())).toEqual([]);
    expect(clippingWarnings({ html: 'ü'.repeat(50_001) }, options())).toEqual([
      'The HTML is 100 KB: Gmail clips messages above 102 KB and hides their end, the unsubscribe footer included. Shorten the HTML to less than 100 KB.',
    ]);
  });

  it('counts rewritten links', () => {
    const html = LINK.repeat(800);
    expect(html.length).toBeLessThan(50_000);
    expect(clippingWarnings({ html }, options())).toEqual([]);
    expect(clippingWarnings({ html }, options({ trackClicks: true }))).toEqual([
      expect.stringMatching(/^The HTML is 1[0-9]{2} KB with rewritten links: Gmail clips/),
    ]);
  });

  it('counts links that are not rewritten unchanged', () => {
    const html = LINK.replace('<a', '<a data-no-track').repeat(800);
    expect(clippingWarnings({ html }, options({ trackClicks: true }))).toEqual([]);
    expect(clippingWarnings({ html: '<p>href</p>'.repeat(800) }, options({ trackClicks: true }))).toEqual([]);
  });

  it('is in the response to a send with long html only', async () => {
    const { send } = startAcceptance();
    const warningsOf = ({ body }: { body: string }) => JSON.parse(body).data.warnings;
    const long = { html: HTML + LINK.repeat(800), enableClickTracking: true };
    expect(warningsOf(accepted(await send(long)))).toEqual([expect.stringContaining('Gmail clips')]);
    expect(warningsOf(accepted(await send()))).toBeUndefined();
  });

  it('is in the response to the send of a campaign', async () => {
    const { sending, draft, groupId, tables } = await startCampaigns();
    const account = tables.accounts.get('acct_one');
    if (account === null) throw new Error('no such account');
    const sent = await sending.send(
      { account, useCase: 'mk', allowFrom: [], allowEssential: true },
      await draft(),
      {
        from: 'News <news@news.example>',
        subscriptionGroupId: groupId,
        subject: 'Spring',
        html: LINK.repeat(800) + COMPLIANCE,
        enableClickTracking: true,
      },
    );
    if (isRefusal(sent)) throw new Error(sent.message);
    expect(sent.warnings).toEqual([expect.stringContaining('Gmail clips')]);
  });
});
