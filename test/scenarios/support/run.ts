import { iso, SECOND } from '../../../src/core/clock.ts';
import type { MessageData, SendBody, SendData } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import type { Sink } from '../../support/smtp-sink.ts';
import { type Environment, SENDERS } from './environment.ts';
import { type MailHost, startHost } from './hosts.ts';
import type { ExpectedMessage, Scenario, Zone } from './scenario.ts';
import { hostRecords, publishPolicy, publishZone } from './zone.ts';

/** A scenario in progress, as its `play` and `verify` see it. */
export interface ScenarioRun {
  readonly env: Environment;
  /** The domain of the destination, which no other scenario uses. */
  readonly domain: string;
  /** The programmable server of a host. Throws if the host has none. */
  sink(host: string): Sink;
  address(host: string): string;
  /** Publishes records of the destination; they replace those of the same names and types. */
  publish(zone: Zone): void;
  /** Applies settings in place of those of the scenario. They are reset after the scenario. */
  configure(settings: Record<string, unknown>): Promise<void>;
  /** Returns the reasons for which the message waits. */
  explain(user: string): Promise<readonly WaitReason[]>;
  /** Sends a message, with further fields of the request. Resolves with its id when it is accepted. */
  send(user: string, body?: SendBody): Promise<string>;
  sendAll(): Promise<void>;
  /** Ids of all accepted messages. */
  readonly accepted: readonly string[];
  /** Ids of the accepted messages by local part, the last one of each. */
  readonly sent: ReadonlyMap<string, string>;
  /** `user`: a local part, or a message id. */
  message(user: string): Promise<MessageData>;
  /** Resolves when every message is final, or waits for a time or for the operator. */
  settle(): Promise<void>;
  /**
   * Advances the time to the next attempt, expiry or end of a limit; does not advance it if a message can be sent now, or if
   * every message is final. Returns false in the latter case.
   */
  pass(): Promise<boolean>;
  /** `settle` and `pass` until every message is final. */
  finish(): Promise<void>;
}

/** A scenario in progress, as the test sees it. */
export interface RunningScenario extends ScenarioRun {
  readonly hosts: readonly MailHost[];
  /** Advances the time until idle connections time out. Resolves when all connections to the hosts are closed. */
  closeConnections(): Promise<void>;
  /** Closes the hosts, which remain readable, and resets the settings. */
  close(): Promise<void>;
}

const FINAL = new Set(['delivered', 'bounced', 'failed', 'cancelled', 'complained']);
/** Step of the time while a server is silent: not longer than the shortest timeout of a session. */
const STALLED_STEP_MS = 30 * SECOND;
/** Many more than the longest scenario needs: a scenario that does not end fails. */
const MAX_PASSES = 100;
const POLL_MS = 10;
/** Polls without a new session or command at any host after which the sessions that are left wait for the silent host. */
const QUIET_POLLS = 6;

/** Starts the hosts of a scenario, publishes its records and applies its settings. */
export async function startScenario(
  env: Environment,
  scenario: Scenario,
  name: string,
): Promise<RunningScenario> {
  const domain = `${name}.example`;
  const { daemon, api, clock } = env;
  const hosts: MailHost[] = [];
  for (const [label, behavior] of Object.entries(scenario.hosts))
    hosts.push(await startHost(label, behavior, { host: env.addressOf(domain, label), port: env.port }));
  const accepted: string[] = [];
  const sent = new Map<string, string>();

  const find = (label: string): MailHost => {
    const host = hosts.find((each) => each.label === label);
    if (host === undefined) throw new Error(`the scenario has no host ${label}`);
    return host;
  };
  const address = (label: string) => find(label).address;
  const publish = (zone: Zone) => publishZone(env, domain, zone);
  publish(hostRecords(hosts));
  if (scenario.mtaSts) publishPolicy(env, domain, scenario.mtaSts);
  publish(scenario.zone?.(address) ?? {});
  const today = iso(clock.now()).slice(0, 10);
  let isConfigured = scenario.settings !== undefined;
  if (scenario.settings) await env.reload(scenario.settings({ domain, port: env.port, address, today }));

  const expected = (user: string): ExpectedMessage => {
    const message = scenario.messages[user];
    if (message === undefined) throw new Error(`the scenario has no message ${user}`);
    return message;
  };

  const send: ScenarioRun['send'] = async (user, more = {}) => {
    const { marketing, subdomain, body = {} } = expected(user);
    const to = `${user}@${subdomain === undefined ? '' : `${subdomain}.`}${domain}`;
    const id = await sendMail(env, to, marketing === true, { ...body, ...more });
    accepted.push(id);
    sent.set(user, id);
    return id;
  };

  /** The stored rows of all messages that are not final. */
  const open = (): OpenMessage[] =>
    accepted.flatMap((id) => {
      const message = daemon.tables.messages.byId(id);
      if (message === null) throw new Error(`message ${id} is not stored`);
      if (FINAL.has(message.status)) return [];
      const row = daemon.tables.queue.get(message.seq);
      return [{ message, row }];
    });
  const suspendedMs = async (): Promise<number> => {
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    const seconds = [...metrics.matchAll(SUSPENDED)].flatMap(([, site = '', value]) =>
      site.includes(domain) ? [Number(value)] : [],
    );
    return Math.max(0, ...seconds) * SECOND;
  };
  /** The message is not sent before the time is advanced. */
  const waitsForTime = ({ message, row }: OpenMessage, isSuspended: boolean) => {
    const now = clock.now();
    if (row === null || row.lease !== null) return false;
    return row.due_at > now || (isSuspended && message.expires_at > now);
  };
  /** The reason for which a due message is not sent, if it lasts until the time is advanced or the operator acts. */
  const lastingReason = async ({ message }: OpenMessage): Promise<WaitReason | null> => {
    const path = `/web-setup/queue/messages/${message.message_id}`;
    const { data } = await api.get<{ reasons: WaitReason[] }>(path);
    return data.reasons.find(({ code }) => LASTING.has(code)) ?? null;
  };
  /** As `waitsForTime`, but also if the message waits for the operator. */
  const waitsForLong = async (each: OpenMessage): Promise<boolean> => {
    if (each.row === null || each.row.lease !== null) return false;
    if (waitsForTime(each, false)) return true;
    const reason = await lastingReason(each);
    // Expired mail is about to fail, unless it is paused.
    return reason !== null && (reason.code === 'paused' || each.message.expires_at > clock.now());
  };

  /** Grows with each session and each command at a host. */
  const activity = () =>
    hosts
      .flatMap(({ sink }) => sink?.sessions ?? [])
      .reduce((sum, { commands }) => sum + 1 + commands.length, 0);

  const settle = async () => {
    let before = -1;
    let quietPolls = 0;
    await eventually(
      `the messages of ${name} to be sent or delayed`,
      async () => {
        const left = open();
        if (left.every((each) => waitsForTime(each, false))) return true;
        if (hosts.some((host) => host.isStalling()) && left.some(({ row }) => row?.lease !== null)) {
          // A session with another host is in progress in real time: its timeouts must not end meanwhile.
          const now = activity();
          quietPolls = now === before ? quietPolls + 1 : 0;
          before = now;
          if (quietPolls < QUIET_POLLS) return false;
          quietPolls = 0;
          await env.advance(STALLED_STEP_MS);
          return false;
        }
        const isSuspended = (await suspendedMs()) > 0;
        if (open().every((each) => waitsForTime(each, isSuspended))) return true;
        return (await Promise.all(left.map(waitsForLong))).every(Boolean) && open().length === left.length;
      },
      { everyMs: POLL_MS },
    );
  };
  const pass = async (): Promise<boolean> => {
    const left = open();
    if (left.length === 0) return false;
    const suspended = await suspendedMs();
    const times = left.flatMap(({ message, row }) => [row?.due_at ?? 0, message.expires_at]);
    for (const each of left) {
      if (waitsForTime(each, false)) continue;
      const reason = await lastingReason(each);
      // Since `settle`, what delayed the message has ended: its attempt must not meet a time that jumps to its expiry.
      if (reason === null && !waitsForTime(each, suspended > 0)) return true;
      if (reason?.until) times.push(Date.parse(reason.until));
    }
    const next = Math.min(...times.map((at) => at - clock.now()).filter((ms) => ms > 0));
    const ms = suspended > 0 ? Math.min(next, suspended) : next;
    if (!Number.isFinite(ms)) throw new Error(`the messages of ${name} have no next attempt and no expiry`);
    await env.advance(ms + 1);
    return true;
  };

  return {
    env,
    domain,
    hosts,
    accepted,
    sent,
    address,
    publish,
    configure: async (settings) => {
      isConfigured = true;
      await env.reload(settings);
    },
    explain: async (user) => {
      const path = `/web-setup/queue/messages/${sent.get(user) ?? user}`;
      const { data } = await api.get<{ reasons: WaitReason[] }>(path);
      return data.reasons;
    },
    send,
    sink: (label) => {
      const { sink } = find(label);
      if (sink === null) throw new Error(`host ${label} is not a programmable server`);
      return sink;
    },
    sendAll: async () => {
      for (const user of Object.keys(scenario.messages)) await send(user);
    },
    message: (user) => api.message(sent.get(user) ?? user),
    settle,
    pass,
    finish: async () => {
      for (let passes = 0; passes < MAX_PASSES; passes++) {
        await settle();
        if (!(await pass())) return;
      }
      throw new Error(`the messages of ${name} are not final after ${MAX_PASSES} passes`);
    },
    closeConnections: () =>
      eventually(
        `the connections of ${name} to be closed`,
        async () => {
          if (hosts.every(({ sink }) => (sink?.open ?? 0) === 0)) return true;
          await env.advance(STALLED_STEP_MS);
          return false;
        },
        { everyMs: POLL_MS },
      ).then(() => undefined),
    close: async () => {
      await Promise.all(hosts.map((host) => host.close()));
      if (isConfigured) await env.reload();
    },
  };
}

/** A reason in an explanation of the API. */
export interface WaitReason {
  code: string;
  text: string;
  until: string | null;
}

/** Codes of reasons that last until the time is advanced or the operator acts. */
const LASTING = new Set([
  'paused',
  'held',
  'warmup',
  'address_unusable',
  'address_blocked',
  'site_limited',
  'account_limited',
  'site_rate',
]);

/** Columns of a message that is not final, and of its row in the queue. */
interface OpenMessage {
  message: { status: string; expires_at: number; message_id: string };
  row: { due_at: number; lease: number | null } | null;
}

const SUSPENDED = /^postrider_(?:delivery_site_suspended|site_limited)_seconds\{site="([^"]*)"\} (\S+)$/gm;

const MAIL = {
  subject: 'Hello',
  html: '<p>Hello.</p>{{company_address_html}}{{unsubscribe_email_html}}',
};

async function sendMail(
  { api, groupId }: Environment,
  to: string,
  isMarketing: boolean,
  body: SendBody,
): Promise<string> {
  if (!isMarketing) {
    const { data } = await api.send({ ...MAIL, from: `a@${SENDERS.transactional}`, to, ...body });
    return data.messageId;
  }
  await api.post('/web-setup/contacts', { email: to });
  const subscriptions = `/web-setup/contacts/subscription-groups/${groupId}/subscriptions`;
  await api.post(subscriptions, { email: to, isActive: true });
  const from = `a@${SENDERS.marketing}`;
  const mail = { ...MAIL, from, to, subscriptionGroupId: groupId, ...body };
  const { data } = await api.post<SendData>('/marketing/send', mail);
  const [recipient] = data.recipients;
  if (recipient === undefined) throw new Error('the send has no recipient');
  return recipient.messageId;
}
