import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { HOUR, iso } from '../../../src/core/clock.ts';
import type { SiteLimits } from '../../../src/delivery/shaping/limiter.ts';
import {
  type LimitedSite,
  registerSiteMetrics,
  siteLabel,
  slowSites,
} from '../../../src/delivery/shaping/shaping.ts';
import { heldClock } from '../../support/store.ts';

const LIMITS: SiteLimits = {
  connections: 10,
  perSecond: null,
  level: 0,
  since: null,
  limitedMs: 0,
  suspendedMs: 0,
  accounts: 0,
  inFlight: 0,
};

it('names sites that have had one connection for two hours because they asked to send less', () => {
  const clock = heldClock();
  const site = (key: string, limits: Partial<SiteLimits>) => ({
    key,
    limits: () => ({ ...LIMITS, ...limits }),
  });
  const now = clock.now();
  const sites = [
    site('configured', { connections: 1 }),
    site('two connections', { connections: 2, since: now - 5 * HOUR }),
    site('not for long', { connections: 1, since: now - HOUR }),
    site('slow', { connections: 1, since: now - 2 * HOUR }),
  ];
  expect(slowSites(sites, clock)).toEqual([{ site: 'slow', since: iso(now - 2 * HOUR), connections: 1 }]);
  const many = Array.from({ length: 30 }, (_, n) => site(`${n}`, { connections: 1, since: 0 }));
  expect(slowSites(many, clock)).toHaveLength(20);
});

it('has metrics of the sites that are slowed most and of the busiest', async () => {
  const registry = new Registry();
  const sites: LimitedSite[] = [
    { ...LIMITS, site: 'idle' },
    { ...LIMITS, site: 'busy', inFlight: 3 },
    { ...LIMITS, site: 'slow', level: 2, connections: 2, perSecond: 0.5, limitedMs: 1500 },
    ...Array.from({ length: 100 }, (_, n) => ({ ...LIMITS, site: `small ${n}`, inFlight: 1 })),
  ];
  registerSiteMetrics(registry, () => sites);
  const text = await registry.metrics();
  expect(text).toContain('postrider_site_connections_limit{site="slow"} 2');
  expect(text).toContain('postrider_site_messages_per_second_limit{site="slow"} 0.5');
  expect(text).toContain('postrider_site_backoff_steps{site="slow"} 2');
  expect(text).toContain('postrider_site_limited_seconds{site="slow"} 1.5');
  expect(text).toContain('postrider_site_connections_limit{site="busy"} 10');
  expect(text).not.toContain('site="idle"');
  expect(text).not.toContain('postrider_site_messages_per_second_limit{site="busy"}');
  expect(text.match(/^postrider_site_connections_limit\{/gm)).toHaveLength(50);
});

it('shortens the names of many hosts in labels', () => {
  expect(siteLabel('a'.repeat(200))).toHaveLength(120);
  expect(siteLabel('google via default')).toBe('google via default');
});
