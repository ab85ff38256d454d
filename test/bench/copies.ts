import { createSecretKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { withoutPause } from '../../src/core/slices.ts';
import { composing } from '../../src/mail/compose.ts';
import type { CopyDetails, Tracking } from '../../src/mail/content.ts';
import { mergeContent, type SharedContent } from '../../src/mail/shared-content.ts';
import { partsOf, preparingParts } from '../../src/mail/shared-parts.ts';
import { htmlOf } from './message.ts';
import { readOptions } from './options.ts';

/*
 * Processor time of composing one copy of a campaign that greets its recipient by name: like a single message, and with the
 * parts that the copies share (src/mail/shared-parts.ts). Both in turns in this process; the best round of each counts.
 *
 *     npm run bench:copies
 */
const { rounds } = readOptions({
  command: 'npm run bench:copies',
  summary: 'Processor time of composing a copy of a campaign, like a single message and from shared parts.',
  options: { rounds: { integer: 8, help: 'rounds; the best one counts' } },
});

const KB = 1024;
const NEWSLETTER = readFileSync(new URL('../mail/newsletter/newsletter.html', import.meta.url), 'utf8');
const IDENTITY = { messageId: 'msg_1700000000000_abcdefghijkl', date: 1_700_000_000_000 };
const TRACKING: Tracking = {
  linkPrefix: 'https://link.news.example/c/',
  clickSigner: { key: createSecretKey(Buffer.alloc(32, 1)), head: new Uint8Array([1, 2, 3]) },
  messageId: IDENTITY.messageId,
  pixelUrl: 'https://link.news.example/o/abc.gif',
};
const COPY: CopyDetails = {
  kind: 'marketing',
  recipient: 'ann@reader.example',
  unsubscribeUrl: 'https://news.example/u/abc',
  reportAbuseUrl: 'https://news.example/r/abc',
  unsubscribeAddress: null,
  signedId: 'abc',
  feedbackAddress: null,
  feedbackId: 'abc',
};
const OWN = { name: 'Ann', values: ['Ann', 'Ann'] };

for (const [name, html] of Object.entries({
  '10 KB': htmlOf(10 * KB),
  '100 KB': htmlOf(100 * KB),
  '1 MB': htmlOf(1024 * KB),
  'newsletter, 60 KB': NEWSLETTER,
}))
  for (const copy of [COPY, { ...COPY, tracking: TRACKING }]) {
    const [single, shared] = measure(sharedContent(html), copy, html.length > 500 * KB ? 15 : 150);
    const kind = copy.tracking === undefined ? '' : ', tracked';
    console.log(
      `${name}${kind}: ${single.toFixed(3)} ms like a single message, ${shared.toFixed(3)} ms from shared parts`,
    );
  }

function sharedContent(html: string): SharedContent {
  return {
    from: { name: 'News', address: 'news@news.example' },
    fromDomain: 'news.example',
    replyTo: null,
    list: { id: 'grp_1', name: 'News' },
    subject: { texts: ['For ', ''], holes: [0], first: 0 },
    html: { texts: ['<p>Hello ', `</p>${html.replace(/\{\{.*?\}\}/g, '')}`], holes: [0], first: 1 },
    text: null,
  };
}

/** CPU time of one copy in both ways, ms. */
function measure(shared: SharedContent, copy: CopyDetails, count: number): [single: number, shared: number] {
  const prepared = withoutPause(preparingParts(shared, copy.tracking));
  const compose = (isShared: boolean) => {
    const parts = isShared ? partsOf(prepared, shared, OWN.values, copy) : undefined;
    withoutPause(composing(mergeContent(shared, OWN, IDENTITY, copy.recipient), copy, parts));
  };
  let [single, fromShared] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < rounds; round++) {
    single = Math.min(
      single,
      timeOf(() => compose(false), count),
    );
    fromShared = Math.min(
      fromShared,
      timeOf(() => compose(true), count),
    );
  }
  return [single, fromShared];
}

function timeOf(work: () => void, count: number): number {
  const before = process.cpuUsage();
  for (let n = 0; n < count; n++) work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / count;
}
