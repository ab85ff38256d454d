import { MINUTE } from '../core/clock.ts';
import { errorText } from '../core/errors.ts';
import type { Resolver } from '../dns/resolver.ts';
import { domainOf } from '../mail/address.ts';
import type { Context } from '../store/context.ts';
import { createEgressPools } from './egress-pools.ts';
import { createRouteFinder } from './routes.ts';
import { attempt } from './worker/attempt.ts';
import { createSmtpClient } from './worker/client.ts';
import { SMTP_TIMEOUTS, type SmtpTimeouts } from './worker/socket.ts';
import type { OutgoingMessage } from './worker/transaction.ts';

export type DirectMail = ReturnType<typeof createDirectMail>;

/** `aborted`: whether the mail was accepted is not known. */
export type DirectResult =
  | { kind: 'accepted' }
  | { kind: 'refused'; reason: string; isPermanent: boolean }
  | { kind: 'aborted' };

const POOL = 'default';
/** Such mail is small, and is tried again. */
const TIMEOUTS: SmtpTimeouts = { ...SMTP_TIMEOUTS, command: MINUTE, dot: 2 * MINUTE, message: 4 * MINUTE };

/**
 * Sends mail of the platform itself, such as TLS reports, directly to the hosts of its recipient: it belongs to no account,
 * and is in no queue. The caller tries again.
 *
 * Has an SMTP client with a timer until `close`. Mail is sent from the pool `default`, never through a proxy, and whatever is
 * wrong with TLS there.
 */
export function createDirectMail(
  context: Pick<Context, 'config' | 'clock' | 'monotonic' | 'random'>,
  resolver: Resolver,
) {
  const { config, clock, monotonic } = context;
  const client = createSmtpClient({ clock, monotonic, timeouts: TIMEOUTS });
  const findRoute = createRouteFinder(context, { resolver });
  const egress = createEgressPools(config);

  async function send({ to, ...message }: OutgoingMessage): Promise<DirectResult> {
    const found = await findRoute(domainOf(to), egress.ipv6Of(POOL));
    if (found.kind === 'failure') return refused(`no route: ${found.failure}`);
    const { route } = found;
    if (route?.user !== undefined)
      return refused('its route needs a login, which mail of the platform does not have');
    const entry = egress.entries(POOL).find(({ proxy }) => proxy === undefined);
    if (entry === undefined)
      return refused('it is sent from an address of this machine, and all addresses are behind proxies');
    const { hostname, address, address6 } = entry;
    const job = {
      id: 0,
      slot: `platform ${to}`,
      hosts: found.hosts,
      port: route?.port ?? config.delivery.port,
      tls: route?.tls ?? 'opportunistic',
      tlsSource: route === null ? 'default' : 'route',
      chunking: false,
      egress: { hostname, address, address6 },
      messagesPerConnection: 1,
      idleMs: 0,
    } as const;
    const result = await attempt(job, () => Promise.resolve({ to, ...message }), client);
    if (result === null) return { kind: 'aborted' };
    const { conclusion, reply, sessions } = result;
    if (conclusion === 'replied' && reply !== null && reply.code < 300) return { kind: 'accepted' };
    return reply === null
      ? refused(sessions.at(-1)?.error ?? conclusion)
      : refused(`${reply.code} ${reply.text}`, reply.code >= 500);
  }

  return {
    /** Never rejects. */
    deliver: async (mail: OutgoingMessage): Promise<DirectResult> => {
      try {
        const result = await send(mail);
        return client.aborted() && result.kind === 'refused' ? { kind: 'aborted' } : result;
      } catch (error) {
        return client.aborted() ? { kind: 'aborted' } : refused(errorText(error));
      }
    },
    /** Ends the deliveries in progress, which are `aborted`. */
    close: async (): Promise<void> => {
      client.abort();
      await client.close();
    },
  };
}

function refused(reason: string, isPermanent = false): DirectResult {
  return { kind: 'refused', reason, isPermanent };
}
