import { constants, cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { createApiClient } from '../support/api-client.ts';
import type { RunningDaemon } from '../support/daemon.ts';
import { findChild, processCost } from '../support/process-cost.ts';
import { listCases } from './large/filters.ts';
import { buildHistory, DAYS, membersOf, personAddress } from './large/history.ts';
import { prepareInstallation, type RunningInstallation, startInstallation } from './large/installation.ts';
import { type Goal, printGoals, printLists, printSides, type Side } from './large/print.ts';
import { createRequester, measureList } from './large/requests.ts';
import { measureSends, type SendMeasures } from './large/sends.ts';
import { measureSpace } from './large/space.ts';
import { thisMachine } from './machine.ts';
import { readOptions } from './options.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { createResources } from './resources.ts';
import { percentile } from './result.ts';

/*
 * Performance with a large database: the same measurements with an empty database and with months of history.
 *
 *     npm run build && npm run bench:large                        5 million messages, 12 million events
 *     npm run bench:large -- --messages 200000                    smaller
 *     npm run bench:large -- --times 10                           ten times as large
 *     npm run bench:large -- --data DIR                           builds into DIR once, and measures it again later
 *     npm run bench:large -- --from DIR                           measures a copy of DIR, which build-large.ts wrote
 *
 * Needs about 2.7 kB of disk per message.
 *
 * Terms
 *   own delay   the longest delay of a timer on the daemon's event loop, without the time in which the thread waited
 *               for a CPU: the load generator and the receiving server run on the same machine.
 *   deep        a page from the middle of the history.
 *   empty       a value that matches no row; "requests to end" is the number of requests until the last page.
 *   steady      50 sends per second, alone or during other work: ms from the time at which a request is due.
 * Exits with 1 when a goal is missed.
 */
const values = readOptions({
  command: 'npm run bench:large',
  summary: `The same measurements with an empty database and with months of history. Exits with 1 when a goal is missed.
Needs about 2.7 kB of disk per message. Build first (npm run build).`,
  options: {
    messages: { integer: 5_000_000, help: 'messages of the history' },
    times: { integer: 1, help: 'factor of --messages' },
    sends: { integer: 6000, help: 'sends per measurement of the throughput' },
    data: { text: 'DIR', help: 'build into DIR once, and measure it again later' },
    from: { text: 'DIR', help: 'measure a copy of DIR, which build-large.ts wrote' },
    statements: { flag: 'report the slowest statements; costs some of the throughput' },
    json: { flag: 'print the result as JSON' },
    only: { text: 'PHASES', help: 'phases to run: sends,lists,erasure,campaign,purge,space (default: all)' },
  },
});
const MESSAGES = values.messages * values.times;
const SENDS = values.sends;
/** The purge deletes the oldest tenth. */
const PURGED_SHARE = 0.1;
/** The first pass of the retention begins a minute after the start. */
const BEFORE_PURGE_MS = 50_000;
const ERASED = 20;
const ALONE_MS = 5000;
const LIST_GOAL_MS = 30;
const DELAY_GOAL_MS = 50;
const SEND_GOAL = 0.9;
const BYTES_GOAL = 800;

const runs = (phase: string) => values.only === '' || values.only.split(',').includes(phase);

const resources = await createResources();
await resources.run(bench);

async function bench(): Promise<boolean> {
  const { cpu, cores, load, memoryGiB } = thisMachine();
  const root = values.data || join(tmpdir(), 'large');
  const dirs = {
    prepared: join(root, 'prepared'),
    empty: join(root, 'empty'),
    history: values.from || join(root, 'history'),
    large: join(root, 'large'),
  };
  mkdirSync(root, { recursive: true });
  const installation = await prepareInstallation(dirs.prepared);
  if (!existsSync(dirs.history)) {
    const began = performance.now();
    // An interrupted build starts again.
    const partial = `${dirs.history}.partial`;
    rmSync(partial, { recursive: true, force: true });
    buildHistory(dirs.prepared, partial, installation, { messages: MESSAGES, now: Date.now() });
    renameSync(partial, dirs.history);
    console.log(`built ${MESSAGES} messages in ${((performance.now() - began) / 1000).toFixed(0)} s`);
  }
  // The measurements change the database: a history that is used again is copied.
  rmSync(dirs.large, { recursive: true, force: true });
  if (values.data === '' && values.from === '') renameSync(dirs.history, dirs.large);
  else cpSync(dirs.history, dirs.large, { recursive: true, mode: constants.COPYFILE_FICLONE });
  rmSync(dirs.empty, { recursive: true, force: true });
  cpSync(dirs.prepared, dirs.empty, { recursive: true });
  const receiver = await resources.start(() => startReceiver());
  console.log(`${cores} × ${cpu}, ${memoryGiB} GiB, Node ${process.version}, load before ${load}`);
  const empty = await measureSide(dirs.empty, receiver, { isLarge: false });
  const large = await measureSide(dirs.large, receiver, { isLarge: true });
  const goals = goalsOf(empty, large);
  if (values.json) console.log(JSON.stringify({ empty, large, goals }, null, 1));
  else {
    printSides(empty, large);
    printLists(large.lists);
    printGoals(goals);
  }
  return goals.every(({ met }) => met);
}

async function measureSide(
  dataDir: string,
  receiver: Receiver,
  { isLarge }: { isLarge: boolean },
): Promise<Side> {
  const side: Side = { lists: [], slowStatements: [] };
  const start = (settings = {}) =>
    resources.start(() =>
      startInstallation(dataDir, receiver.port, settings, { measureStatements: values.statements }),
    );
  const using = async (
    settings: object,
    use: (running: RunningInstallation, sends: SendMeasures) => Promise<void>,
  ) => {
    const running = await start(settings);
    const sends = await resources.start(() => Promise.resolve(measureSends(running, receiver)));
    await use(running, sends);
    side.peakMiB = Math.max(side.peakMiB ?? 0, processCost(findChild('dist/main.js', 'serve')).peakMiB);
    await resources.stop(sends);
    await resources.stop(running);
    return running.startMs;
  };
  side.firstStartMs = await using({}, async () => {});
  side.startMs = await using({}, async (running, sends) => {
    await sends.burst(Math.min(1000, SENDS));
    if (runs('sends')) {
      side.sends = await sends.burst(SENDS);
      side.alone = await sends.during(sleep(ALONE_MS));
    }
    if (runs('lists')) await measureLists(running, side);
    if (runs('erasure') && isLarge) await measureErasure(running, sends, side);
    if (runs('campaign') && isLarge) await measureCampaign(running, sends, side);
    side.slowStatements.push(...(await running.probe.statements()));
  });
  if (runs('purge') && isLarge) {
    await using(
      { 'limits.eventDays': Math.round(DAYS * (1 - PURGED_SHARE)) },
      async ({ daemon, probe }, sends) => {
        await sends.burst(Math.min(1000, SENDS));
        await sleep(BEFORE_PURGE_MS);
        side.purge = await sends.during(untilPurged(daemon));
        side.slowStatements.push(...(await probe.statements()));
      },
    );
  }
  if (runs('space')) side.space = measureSpace(dataDir);
  return side;
}

async function untilPurged(daemon: RunningDaemon): Promise<void> {
  while ((await daemon.metric('postrider_retention_completed_timestamp_seconds')) === 0) await sleep(500);
}

async function measureLists(running: RunningInstallation, side: Side): Promise<void> {
  const { daemon, probe, accounts, history = { messages: SENDS, now: Date.now() } } = running;
  const [owner] = accounts;
  if (owner === undefined) throw new Error('the installation has no account');
  const requester = createRequester(daemon.baseUrl, createApiClient(daemon.baseUrl, owner));
  for (const one of listCases(running, history)) side.lists.push(await measureList(requester, probe, one));
  requester.close();
}

/** Erases people of the first account one after the other. */
async function measureErasure(running: RunningInstallation, sends: SendMeasures, side: Side): Promise<void> {
  const { daemon, accounts, history } = running;
  const [owner] = accounts;
  if (owner === undefined || history === undefined) throw new Error('the installation has no history');
  const requester = createRequester(daemon.baseUrl, createApiClient(daemon.baseUrl, owner));
  const times: number[] = [];
  const erase = async () => {
    for (let number = 0; number < ERASED; number++) {
      // Contacts outside the group, so that the campaign reaches all its members.
      const person = emailIdentifier(personAddress(membersOf(history.messages) + 1 + number * 3));
      const began = performance.now();
      const { status, body } = await requester.call(`/web-setup/contacts/${person}`, 'DELETE');
      times.push(performance.now() - began);
      if (status !== 200 && status !== 404) throw new Error(`erasure: ${status} ${body}`);
    }
  };
  const steady = await sends.during(erase());
  times.sort((a, b) => a - b);
  side.erasure = { ...steady, each: { p50: percentile(times, 0.5), p99: percentile(times, 0.99) } };
  requester.close();
}

/** Sends a campaign to the first account's group. */
async function measureCampaign(running: RunningInstallation, sends: SendMeasures, side: Side): Promise<void> {
  const { daemon, accounts, group, history } = running;
  const [owner] = accounts;
  if (owner === undefined || history === undefined) throw new Error('the installation has no history');
  const api = createApiClient(daemon.baseUrl, owner);
  const created = await api.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
    name: 'Measured',
  });
  const path = `/web-setup/campaigns/${created.data.campaign.campaignId}`;
  const sent = await api.post(`${path}/send`, {
    from: 'News <news@news.example>',
    subject: 'News for {{firstName}}',
    html: '<p>Hello {{firstName}}</p><p>{{company_address_html}}</p><p>{{unsubscribe_email_html}}</p>',
    subscriptionGroupId: group.subscriptionGroupId,
  });
  if (sent.status !== 202) throw new Error(sent.text);
  const finished = async () => {
    for (;;) {
      const { data } = await api.get<{ campaign: { status: string } }>(path);
      if (data.campaign.status === 'sent') return;
      await sleep(500);
    }
  };
  side.campaign = { ...(await sends.during(finished())), members: membersOf(history.messages) };
}

function goalsOf(empty: Side, large: Side): Goal[] {
  const goals: Goal[] = [];
  const atMost = (name: string, value: number | undefined, limit: number, unit: string) => {
    if (value !== undefined) goals.push({ name, value, limit, unit, met: value <= limit });
  };
  const worst = large.lists.toSorted((a, b) => b.p99 - a.p99)[0];
  if (worst !== undefined) {
    atMost(
      `slowest list, p99 (${worst.list} by ${worst.filter}, ${worst.page})`,
      worst.p99,
      LIST_GOAL_MS,
      'ms',
    );
    atMost(
      'event-loop delay, lists',
      Math.max(...large.lists.map(({ delay }) => delay.ownMs)),
      DELAY_GOAL_MS,
      'ms',
    );
  }
  atMost('event-loop delay, sends', large.sends?.delay.ownMs, DELAY_GOAL_MS, 'ms');
  atMost('event-loop delay, erasure', large.erasure?.delay.ownMs, DELAY_GOAL_MS, 'ms');
  atMost('event-loop delay, campaign', large.campaign?.delay.ownMs, DELAY_GOAL_MS, 'ms');
  atMost('event-loop delay, purge', large.purge?.delay.ownMs, DELAY_GOAL_MS, 'ms');
  atMost('bytes per message without contents', large.space?.perMessage, BYTES_GOAL, '');
  if (empty.sends !== undefined && large.sends !== undefined) {
    const value = large.sends.deliveredPerSecond / empty.sends.deliveredPerSecond;
    goals.push({ name: 'sends, large to empty', value, limit: SEND_GOAL, unit: '', met: value >= SEND_GOAL });
  }
  return goals;
}
