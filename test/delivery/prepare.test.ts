import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createPrepare, linkBase } from '../../src/delivery/prepare.ts';
import { createTokens } from '../../src/mail/tokens.ts';
import { readyMessage } from './messages.ts';
import { jsonContent } from './worker/setup.ts';

describe('the base URL of links', () => {
  it.each([
    ['https://track.example.net', null, 'https://track.example.net'],
    ['https://track.example.net', 'link.example.com', 'https://link.example.com'],
    ['https://track.example.net:8443', 'link.example.com', 'https://link.example.com:8443'],
    ['http://127.0.0.1:8081', 'link.example.com', 'http://link.example.com:8081'],
    ['https://example.net/mail', null, 'https://example.net/mail'],
    ['https://example.net/mail', 'eu-m-link.example.com', 'https://eu-m-link.example.com'],
  ])('public.url %s and the host %s: %s', (publicUrl, tracking_host, base) => {
    expect(linkBase(publicUrl, { tracking_host })).toBe(base);
  });
});

/** The sender of Feedback-ID. */
const SENDER = 'maileuexample-h';

describe('the details of a copy', () => {
  const tokens = createTokens(createSeal(Buffer.alloc(32, 1), systemRandom));
  const prepared = (
    columns: Parameters<typeof readyMessage>[1],
    trackingHost: string | null = 'link.example.org',
  ) => {
    const message = readyMessage(1, columns);
    const prepare = createPrepare({
      config: { ...loadConfig({ env: {} }), hostname: 'mail.eu.example-host.net' },
      tokens,
      publicUrl: 'https://track.example.net',
    });
    return {
      message,
      copy: prepare(
        message,
        { name: 'example.org', return_path: 'customer', tracking_host: trackingHost },
        jsonContent('{}'),
        [],
      ).copy,
    };
  };

  it("has links to the domain's host, with tokens that identify the recipient", () => {
    const groupId = 'sgroup_1700000000000_abcdefghijkl';
    const { message, copy } = prepared({ use_case: 'mk', subscription_group_id: groupId });
    const [, token = ''] = /^https:\/\/link\.example\.org\/u\/(.*)$/.exec(copy.unsubscribeUrl) ?? [];
    expect(tokens.unsubscribeUrl(token)).toEqual({
      messageId: message.message_id,
      accountId: 'acct_one',
      recipientHash: message.recipient_hash,
      stream: 'mk',
      groupId,
      simulated: false,
    });
    expect(copy.reportAbuseUrl).toMatch(/^https:\/\/link\.example\.org\/r\/[\w-]+$/);
    expect(copy.unsubscribeAddress).toMatch(/^unsubscribe-[a-z2-7]{48}@return-a\.example\.org$/);
  });

  const groupId = 'sgroup_1700000000000_abcdefghijkl';
  it.each([
    [
      'a campaign',
      { use_case: 'mk', campaign_id: 'campaign_1', subscription_group_id: groupId },
      'campaign_1',
      'mk',
    ],
    ['a group', { use_case: 'mk', subscription_group_id: groupId }, groupId, 'mk'],
    ['neither, marketing', { use_case: 'mk' }, '-', 'mk'],
    ['neither, transactional', {}, '-', 'tx'],
  ] as const)('has Feedback-ID fields for %s', (_, columns, first, stream) => {
    expect(prepared(columns).copy.feedbackId).toBe(`${first}:acct_one:${stream}:${SENDER}`);
  });

  it.each(['tx', SENDER])('has different Feedback-ID fields for an account with the id %s', (account_id) => {
    expect(prepared({ account_id }).copy.feedbackId).toBe(`-:account-${account_id}:tx:${SENDER}`);
  });

  it.each([
    [{ use_case: 'mk' }, 'marketing'],
    [{}, 'transactional'],
    [{ essential: 1 }, 'essential'],
  ] as const)('has the kind of mail: %j, %s', (columns, kind) => {
    expect(prepared(columns).copy.kind).toBe(kind);
  });

  it('has links to the platform while the domain has no verified tracking host', () => {
    expect(prepared({}, null).copy.unsubscribeUrl).toMatch(/^https:\/\/track\.example\.net\/u\/[\w-]+$/);
  });

  it.each([
    [0, 0, false, false],
    [1, 0, true, false],
    [0, 1, false, true],
    [1, 1, true, true],
  ] as const)('tracks clicks %s, opens %s', (track_clicks, track_opens, clicks, opens) => {
    const { message, copy } = prepared({ track_clicks, track_opens });
    expect(copy.tracking !== undefined).toBe(clicks || opens);
    if (copy.tracking === undefined) return;
    const { linkPrefix, clickSigner, messageId, pixelUrl } = copy.tracking;
    expect([linkPrefix, messageId]).toEqual(['https://link.example.org/c/', message.message_id]);
    expect(clickSigner !== null).toBe(clicks);
    const [, token = ''] = /\/o\/([\w-]+)\.gif$/.exec(pixelUrl ?? '') ?? [];
    expect(tokens.openUrl(token)?.id ?? null).toBe(opens ? message.message_id : null);
  });
});
