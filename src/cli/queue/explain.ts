import type { Command } from 'commander';
import * as z from 'zod';
import { type Clock, iso } from '../../core/clock.ts';
import {
  type DestinationExplanation,
  explainDestination,
  explainMessage,
  type MessageExplanation,
  readDestination,
} from '../../delivery/explain.ts';
import {
  destinationExplanationSchema,
  messageExplanationSchema,
  siteSchema,
} from '../../http/api/queue/queue-schemas.ts';
import { asJson, createCommand, option } from '../command.ts';
import type { CliContext } from '../context.ts';
import { askDaemon } from './daemon-client.ts';

/** `postrider queue explain`: queries the running daemon, or reads the database and states what that does not contain. */
export function explainCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'explain <target>',
    description: 'Explain why mail waits: the reason, the next attempt, the last replies, what to do',
    argument: 'message id, recipient domain, or (part of) the name of a site',
    options: [option('--site', 'the target is the name of a site'), asJson],
    help: `
A site is the set of MX hosts, or the shaping profile, behind destinations: its name contains a host name or a pattern. Only
the running daemon knows sites, routes and connections; it is queried over operator.sock in data.dir.

Examples:
  postrider queue explain msg_1769860800000_4kx0m2p9q8zt
  postrider queue explain example.net
  postrider queue explain --site google.com`,
    run: (target, { site }) => {
      const name = encodeURIComponent(target);
      if (site === true || /[\s,*]/.test(target)) return explainSites(context, target, name);
      if (target.startsWith('msg_')) return explainOne(context, target, name);
      return explainDomain(context, target, name);
    },
  });
}

async function explainOne(context: CliContext, id: string, name: string): Promise<void> {
  const { tables, clock } = await context.open();
  const answer = await askDaemon(context.existingData().dir, `/web-setup/queue/messages/${name}`);
  if (answer.kind === 'refused') return context.fail(answer.message);
  const explained = context.accepted(
    answer.kind === 'ok'
      ? messageExplanationSchema.parse(answer.data)
      : explainMessage(id, { tables, clock, inspection: null, absence: answer.reason }),
  );
  const finalAt = tables.messages.byId(id)?.final_at ?? null;
  context.show(explained, () => messageText(explained, clock, finalAt));
}

async function explainDomain(context: CliContext, domain: string, name: string): Promise<void> {
  const { tables, clock } = await context.open();
  const answer = await askDaemon(context.existingData().dir, `/web-setup/queue/destinations/${name}`);
  if (answer.kind === 'refused')
    return answer.code === 'VALIDATION_ERROR' ? context.usage(answer.message) : context.fail(answer.message);
  const explained = context.accepted(
    answer.kind === 'ok'
      ? destinationExplanationSchema.parse(answer.data)
      : await explainDestination(
          domain,
          { tables, clock, inspection: null, absence: answer.reason },
          async (destination) => readDestination.run(tables, destination),
        ),
  );
  context.show(explained, () => destinationText(explained));
}

async function explainSites(context: CliContext, site: string, name: string): Promise<void> {
  const answer = await askDaemon(context.existingData().dir, `/web-setup/queue/sites?name=${name}`);
  if (answer.kind === 'absent')
    return context.fail(`Only the running daemon knows its sites, and ${answer.reason}`);
  if (answer.kind === 'refused') return context.fail(answer.message);
  const { sites } = z.object({ sites: z.array(siteSchema) }).parse(answer.data);
  if (sites.length === 0 && !context.json)
    context.fail(
      `The daemon has no site whose name contains "${site}": sites without mail for ten minutes are removed`,
    );
  context.show(sites, () => sites.flatMap(siteLines));
}

type Explained = z.output<typeof messageExplanationSchema> | MessageExplanation;

/** `finalAt`: epoch ms of the final state; null: the message has none. */
function messageText(explained: Explained, clock: Clock, finalAt: number | null): string[] {
  const { messageId, recipient, accountId, status, lane, attempts, nextAttemptAt, expiresAt } = explained;
  const heading = `${messageId} to ${recipient}, account ${accountId}: ${status}, ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}${lane === 'secondary' ? ', secondary lane' : ''}`;
  if (explained.reasons.some(({ code }) => code === 'final'))
    return [
      heading,
      '',
      `State: ${status}${finalAt === null ? '' : ` at ${iso(finalAt)}`}`,
      ...attemptLines(explained.lastAttempts),
    ];
  return [
    heading,
    '',
    'Why it is not delivered yet:',
    ...reasonLines(explained.reasons),
    '',
    `Next attempt: ${nextAttemptAt === null ? 'none scheduled' : within(nextAttemptAt, clock)}`,
    `Expires:      ${within(expiresAt, clock)}`,
    `Ahead of it:  ${explained.ahead} due messages of its account to ${explained.destination}`,
    ...(explained.route === null ? [] : ['', ...routeLines(explained.route)]),
    ...(explained.site === null ? [] : siteLines(explained.site)),
    ...attemptLines(explained.lastAttempts),
    ...unknownLines(explained.unknown),
  ];
}

function attemptLines(attempts: Explained['lastAttempts']): string[] {
  if (attempts.length === 0) return [];
  const lines = attempts.flatMap((one) =>
    replyLines(`attempt ${one.attempt ?? ''}, ${one.at}, ${one.lane} lane`, one),
  );
  return ['', 'Last attempts:', ...lines];
}

function destinationText(
  explained: z.output<typeof destinationExplanationSchema> | DestinationExplanation,
): string[] {
  const { destination, messages, sending, deferred, held, nextAttemptAt, oldestAcceptedAt } = explained;
  if (messages === 0)
    return [
      `No mail to ${destination} is queued.`,
      ...(explained.control === null
        ? []
        : [
            `Mail to ${destination} is ${explained.control.action === 'pause' ? 'paused' : 'rejected'}: ${explained.control.reason}`,
          ]),
    ];
  return [
    `${destination}: ${messages} queued (${sending} being sent, ${deferred} deferred, ${held} held)`,
    `Oldest of those examined: ${oldestAcceptedAt ?? ''}; next attempt: ${nextAttemptAt ?? 'none scheduled'}`,
    '',
    explained.examined === 1
      ? 'Why the message that is due first waits:'
      : `Why the ${explained.examined} messages that are due first wait:`,
    ...explained.reasons.flatMap((one) => reasonLines([one], `${one.messages ?? 0} × `)),
    ...(explained.routes.length === 0 ? [] : ['', ...explained.routes.flatMap(routeLines)]),
    ...explained.sites.flatMap(siteLines),
    ...(explained.replies.length === 0 ? [] : ['', 'Last replies:']),
    ...explained.replies.flatMap((one) =>
      replyLines(`${one.messages ?? 0} ×, last ${one.at}, ${one.lane} lane`, one),
    ),
    ...unknownLines(explained.unknown),
  ];
}

function reasonLines(reasons: Explained['reasons'], prefix = ''): string[] {
  return reasons.flatMap(({ text, remedy }) => [
    `  ${prefix}${text}`,
    ...(remedy === null ? [] : [`    ${remedy}`]),
  ]);
}

function routeLines(route: NonNullable<Explained['route']>): string[] {
  if (route.failure !== null) return [`Route: ${route.failure}`];
  const names = { mx: 'MX hosts', configured: 'delivery.routes', rerouted: 'rerouted', relay: 'relay' };
  return [
    `Route (${names[route.via]}, pool ${route.pool}):`,
    ...route.hosts.map(({ name, addresses }) => `  ${name}  ${addresses.join(', ')}`),
  ];
}

function siteLines(site: z.output<typeof siteSchema>): string[] {
  const { connections, readAhead, suspendedUntil, limitedUntil, pause, waitingKeys } = site;
  const state =
    pause !== null
      ? `paused: ${pause.reason}`
      : suspendedUntil !== null
        ? `suspended until ${suspendedUntil}`
        : limitedUntil !== null
          ? `asked to send less until ${limitedUntil}`
          : 'active';
  return [
    `Site ${site.site}: ${state}`,
    `  connections ${connections.used} of ${connections.allowed} (limit ${connections.limit}), read ahead ${readAhead.transactional} transactional and ${readAhead.marketing} marketing, ${waitingKeys} queues waiting`,
  ];
}

function replyLines(
  heading: string,
  { host, reply, remedy, classification }: Omit<Explained['lastAttempts'][number], 'attempt'>,
): string[] {
  const text =
    reply === null
      ? 'no reply'
      : [reply.code, reply.enhanced, reply.text].filter((part) => part !== null).join(' ');
  return [
    `  ${heading}${host === null ? '' : `, ${host}`}${classification === null ? '' : ` (${classification})`}`,
    `    ${text}`,
    ...(remedy === null ? [] : [`    ${remedy}`]),
  ];
}

function unknownLines(unknown: readonly string[]): string[] {
  return unknown.length === 0 ? [] : ['', 'Not known:', ...unknown.map((text) => `  ${text}`)];
}

/** `2026-02-01T12:00:00.000Z (in 5 min)`. */
function within(at: string, clock: Clock): string {
  const seconds = Math.round((Date.parse(at) - clock.now()) / 1000);
  const size = Math.abs(seconds);
  const [amount, unit] =
    size < 120 ? [size, 's'] : size < 7200 ? [Math.round(size / 60), 'min'] : [Math.round(size / 3600), 'h'];
  return `${at} (${seconds < 0 ? `${amount} ${unit} ago` : `in ${amount} ${unit}`})`;
}
