import { isIP } from 'node:net';
import type { Config } from '../config/schema.ts';
import { MINUTE, SECOND } from '../core/clock.ts';
import { errorText } from '../core/errors.ts';
import { oneAddressOf, type Resolver } from '../dns/resolver.ts';
import type { Context } from '../store/context.ts';
import { readPasswords } from './prepare.ts';
import { configuredAuthorities } from './tls-policies.ts';
import { createSmtpClient } from './worker/client.ts';
import { newRecord, openSmtpConnection } from './worker/connection.ts';
import { SmtpSessionError } from './worker/errors.ts';
import { replyOf } from './worker/reply-reader.ts';
import { SMTP_TIMEOUTS } from './worker/socket.ts';
import { requirementOf } from './worker/tls.ts';

const STEP_MS = 10 * SECOND;
const TOTAL_MS = 20 * SECOND;
const TIMEOUTS = {
  ...SMTP_TIMEOUTS,
  connect: STEP_MS,
  greeting: STEP_MS,
  handshake: STEP_MS,
  command: STEP_MS,
};

type ProbeContext = Pick<Context, 'config' | 'clock' | 'monotonic'>;

/** Returns `probeRelay` with a result that is reused for a minute, as long as the settings stay the same. */
export function createRelayProbe(
  context: ProbeContext,
  resolver: Pick<Resolver, 'a' | 'aaaa'>,
): () => Promise<string | null> {
  const { config, monotonic } = context;
  let last: { at: number; setting: Config['secondary']; result: Promise<string | null> } | null = null;
  return () => {
    const { secondary: setting } = config;
    if (last === null || last.setting !== setting || monotonic.now() - last.at >= MINUTE)
      last = { at: monotonic.now(), setting, result: probeRelay(context, resolver) };
    return last.result;
  };
}

/**
 * Tests the relay of the secondary lane as a delivery would: connection, TLS as configured, login. Resolves with the
 * fault, a clause; null: the relay can be used, or the lane has none. Never rejects.
 */
export async function probeRelay(
  { config, clock, monotonic }: ProbeContext,
  resolver: Pick<Resolver, 'a' | 'aaaa'>,
): Promise<string | null> {
  const { secondary } = config;
  if (secondary.type !== 'relay') return null;
  const authorities = configuredAuthorities(config);
  const client = createSmtpClient({ clock, monotonic, timeouts: TIMEOUTS, authorities });
  try {
    const { relay: password } = readPasswords(config);
    const { host, port, tls, user, allowUnverifiedAuth: allowUnverified } = secondary;
    const auth =
      user === undefined || password === undefined ? undefined : { user, password, allowUnverified };
    const address = isIP(host) === 0 ? await oneAddressOf(resolver, host) : host;
    const record = newRecord(host, address, port, clock.now());
    const requirement = requirementOf({ tls, tlsSource: 'route' }, { name: host, addresses: [] });
    const terms = {
      port,
      auth,
      egress: { hostname: config.hostname },
      requirement,
      chunking: false,
      plain: false,
    };
    const dueAt = client.deadlines.now() + TOTAL_MS;
    const opened = await openSmtpConnection(record, terms, dueAt, client);
    if ('wire' in opened) {
      opened.wire.quit();
      return null;
    }
    if (opened.kind === 'replied') return `${host}:${port} replied ${opened.reply.code} ${opened.reply.text}`;
    return 'error' in opened ? opened.error : opened.reply.text;
  } catch (error) {
    if (!(error instanceof SmtpSessionError) || !error.reply) return errorText(error);
    const { code, text } = replyOf(error.reply);
    return `${error.message}: ${code} ${text}`;
  } finally {
    await client.close();
  }
}
