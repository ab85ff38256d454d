import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SECOND } from '../../src/core/clock.ts';
import { createControlIndex } from '../../src/delivery/control.ts';
import {
  type Inspection,
  type MessageFacts,
  reasonsOf,
  WAIT_REASON_CODES,
} from '../../src/delivery/waits.ts';
import type { ListedInQueue } from '../../src/store/messages/queue-list.ts';
import { readyMessage } from '../delivery/messages.ts';
import { heldClock } from '../support/store.ts';
import type { ExplainedScenario, ReasonCode } from './support/explained.ts';
import { registerScenarios } from './support/register.ts';

// One of two sessions is for sites without an answer.
await registerScenarios('explanations', { settings: { 'delivery.connections': 2 } });

/** The facts of a message that nothing delays. */
const FACTS: MessageFacts = {
  path: { pool: 'default', lane: 'primary', via: null },
  route: { kind: 'hosts', hosts: [], route: null, ttl: 60 },
  site: null,
  accountLimitedMs: 0,
  obstacle: null,
  parked: null,
  exhausted: null,
};

/** Reasons that no mail host causes: failures of this server, and states that last only a moment. */
const WITHOUT_SCENARIO: [
  code: ReasonCode,
  text: string,
  facts: Partial<MessageFacts>,
  stopped: string | null,
][] = [
  ['in_line', 'sent within a second or two', {}, null],
  ['parked', 'Mail of this domain cannot be prepared.', { parked: { kind: 'domain', ms: SECOND } }, null],
  ['stopped', 'No mail is sent: the disk is full.', {}, 'the disk is full'],
];

describe('a message that no mail host delays', () => {
  it.each(WITHOUT_SCENARIO)('has the reason %s', (code, text, facts, stopped) => {
    const queued: ListedInQueue = { ...readyMessage(1), ready: 1, paused: 0, hold_reason: null };
    const inspection: Inspection = {
      message: () => FACTS,
      sites: () => [],
      stopped: () => stopped,
      sessions: () => ({ used: 0, limit: 2 }),
    };
    const live = { inspection, facts: { ...FACTS, ...facts } };
    const reasons = reasonsOf(queued, createControlIndex([]), live, heldClock().now());
    expect(reasons).toEqual([expect.objectContaining({ code, text: expect.stringContaining(text) })]);
  });
});

it('every reason has a scenario or a test, and is documented', async () => {
  const folder = new URL('explanations/', import.meta.url);
  const modules = readdirSync(folder).map((file) => import(new URL(file, folder).pathname));
  const scenarios: { default: ExplainedScenario }[] = await Promise.all(modules);
  const explained = scenarios.map(({ default: { explains } }) => explains);
  const tested = new Set([...explained, ...WITHOUT_SCENARIO.map(([code]) => code)]);
  expect([...tested].toSorted()).toEqual(WAIT_REASON_CODES.toSorted());
  const document = readFileSync(new URL('../../docs/queue.md', import.meta.url), 'utf8');
  const [, table = ''] = document.split('## What the reasons mean');
  expect(WAIT_REASON_CODES.filter((code) => !table.includes(`\`${code}\``))).toEqual([]);
});
