import * as z from 'zod';
import { live, section } from './setting-types.ts';

/* Settings of the automatic limits (reputation/). */

const percent = z.number().min(0.01).max(100);

const isAscending = ({ notice, pause }: { notice: number; pause: number }) => notice <= pause;

/** `reputation`. */
export const reputationSettings = section({
  limits: live(
    z.enum(['enforce', 'report', 'off']).default('enforce'),
    'Whether rates that are too high slow and stop mail ("enforce"), are only shown and reported ("report"), or are not judged.',
  ),
  transactional: live(
    z.enum(['slow', 'pause']).default('slow'),
    'What happens to transactional mail where marketing mail would be stopped.',
  ),
  perMinute: live(
    z.int().min(1).max(1_000_000).default(60),
    'Messages per minute of mail that is slowed, or half of its average of today and yesterday (UTC) if that is more.',
  ),
  hardBounces: section({
    notice: live(percent.default(3), 'Percent of messages from which hard bounces are reported.'),
    pause: live(
      percent.default(5),
      'Percent from which they stop a campaign or the marketing mail of a domain or account.',
    ),
  }).refine(isAscending, 'must not have a notice above pause'),
  complaints: section({
    notice: live(percent.default(0.1), 'Percent of delivered messages from which complaints are reported.'),
    pause: live(percent.default(0.3), 'Percent from which they stop a campaign or marketing mail.'),
  }).refine(isAscending, 'must not have a notice above pause'),
  blocks: section({
    slow: live(
      percent.default(20),
      'Percent of messages that a provider refuses because of reputation or content, from which mail of the domain to this provider is slowed.',
    ),
    pause: live(percent.default(50), 'Percent at all providers together from which a campaign is stopped.'),
  }),
  unsubscribes: section({
    notice: live(percent.default(2), 'Percent of delivered messages from which opt-outs are reported.'),
  }),
  ramp: section({
    messages: live(
      z.int().min(0).max(1_000_000_000).default(0),
      'Messages that a new account, and a new sending domain, sends on its first day (UTC); 0: no ramp.',
    ),
    factor: live(z.number().min(1).max(10).default(1.5), 'Factor by which this number grows each day.'),
    days: live(z.int().min(1).max(365).default(21), 'Days after which there is no limit.'),
  }),
});
