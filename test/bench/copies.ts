import { readFileSync } from 'node:fs';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { composeInSteps } from '../../src/mail/compose.ts';
import type { CopyDetails } from '../../src/mail/content.ts';
import {
  mergeContent,
  partsOf,
  preparePartsInSteps,
  type SharedContent,
} from '../../src/mail/shared-content.ts';
import { copyWith, IDENTITY, sharedContent, TRACKING } from '../support/campaign-copy.ts';
import { htmlOf } from './message.ts';
import { readOptions } from './options.ts';

/*
 * Processor time of composing one copy of a campaign that greets its recipient by name: like a single message, and with the
 * parts that the copies share (src/mail/shared-content.ts). Both in turns in this process; the best round of each counts.
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
const OWN = { name: 'Ann', values: ['Ann', 'Ann'] };

for (const [name, html] of Object.entries({
  '10 KB': htmlOf(10 * KB),
  '100 KB': htmlOf(100 * KB),
  '1 MB': htmlOf(1024 * KB),
  'newsletter, 60 KB': NEWSLETTER,
}))
  for (const copy of [copyWith(undefined), copyWith(TRACKING)]) {
    // The variables of the compliance snippets belong to templates.
    const source = `<p>Hello {0}</p>${html.replace(/\{\{.*?\}\}/g, '')}`;
    const [single, shared] = measure(sharedContent(source), copy, html.length > 500 * KB ? 15 : 150);
    const kind = copy.tracking === undefined ? '' : ', tracked';
    console.log(
      `${name}${kind}: ${single.toFixed(3)} ms like a single message, ${shared.toFixed(3)} ms from shared parts`,
    );
  }

/** CPU time of one copy in both ways, ms. */
function measure(shared: SharedContent, copy: CopyDetails, count: number): [single: number, shared: number] {
  const prepared = withoutPause(preparePartsInSteps(shared, copy.tracking));
  const compose = (isShared: boolean) => {
    const parts = isShared ? partsOf(prepared, shared, OWN.values, copy) : undefined;
    withoutPause(composeInSteps(mergeContent(shared, OWN, IDENTITY, copy.recipient), copy, parts));
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
