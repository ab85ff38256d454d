import type { Credentials } from '../support/api-client.ts';
import { ABUSES_ACCOUNT } from './abuses-account.ts';
import { ABUSES_HTTP } from './abuses-http.ts';
import { ABUSES_SMTP } from './abuses-smtp.ts';
import type { Listener } from './daemon.ts';

/**
 * The abusive clients of one scenario, as a separate process:
 *
 *     node --import tsx test/chaos/abuse-process.ts '{"kind":"unread","ports":{…},"accounts":[…],"addresses":[…]}'
 *
 * Prints its counts twice per second as a line of JSON. Runs until it is killed.
 */
export interface AbuseJob {
  kind: AbuseKind;
  ports: Record<Listener, number>;
  /** The attackers' accounts. */
  accounts: Attacker[];
  /** Return path addresses of messages that the attackers received. */
  addresses: string[];
}

/** An account with a verified domain. */
export interface Attacker extends Credentials {
  domain: string;
}

export type AbuseKind = keyof typeof ABUSES_HTTP | keyof typeof ABUSES_SMTP | keyof typeof ABUSES_ACCOUNT;

export type Count = (what: string | number) => void;
/** Runs until the process ends. The first count states that it has begun. */
export type Attack = (job: AbuseJob, count: Count) => void | Promise<void>;

const [argument] = process.argv.slice(2);
if (argument !== undefined) {
  const job: AbuseJob = JSON.parse(argument);
  const counts: Record<string, number> = {};
  const attacks: Record<string, Attack> = { ...ABUSES_HTTP, ...ABUSES_SMTP, ...ABUSES_ACCOUNT };
  const count: Count = (what) => {
    counts[what] = (counts[what] ?? 0) + 1;
  };
  // The daemon closes connections at any time; some of these errors have no listener, after the response.
  process.on('uncaughtException', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') throw error;
    count('broken');
  });
  void attacks[job.kind]?.(job, count);
  setInterval(() => {
    if (Object.keys(counts).length > 0) console.log(JSON.stringify(counts));
  }, 500);
}
