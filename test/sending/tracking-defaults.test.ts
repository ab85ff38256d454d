import { expect, it } from 'vitest';
import { granted } from '../support/refusal.ts';
import { startAcceptance } from './acceptance.ts';

/* What a domain tracks of mail that does not state it. */

it.each([
  ['nothing by default', [0, 0], {}, [0, 0]],
  ['what the domain tracks', [1, 1], {}, [1, 1]],
  ['opens alone', [1, 0], {}, [1, 0]],
  ['what the send states, not what the domain has', [1, 1], { enableOpenTracking: false }, [0, 1]],
  ['what the send states where the domain tracks nothing', [0, 0], { enableClickTracking: true }, [0, 1]],
] as const)('tracks %s', async (_, [opens, clicks], own, [trackedOpens, trackedClicks]) => {
  const { send, stored, tables } = startAcceptance();
  const [domain] = tables.domains.named('acct_one', 'example.com');
  if (domain === undefined) throw new Error('no domain');
  tables.domains.update({ ...domain, track_opens: opens, track_clicks: clicks });
  granted(await send(own));
  expect(stored()).toMatchObject([{ track_opens: trackedOpens, track_clicks: trackedClicks }]);
});
