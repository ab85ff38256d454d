import type { ZoneRecordType } from '../../../src/dns/zone-record.ts';
import type { SendBody } from '../../support/api-client.ts';
import type { Certificate } from '../../support/certificates.ts';
import type { DnsBehavior } from '../../support/dns-server.ts';
import type { Handler } from '../../support/policy-host.ts';
import type { SinkBehavior } from '../../support/smtp-sink-session.ts';
import type { RealServer } from './hosts.ts';
import type { ScenarioRun } from './run.ts';

/**
 * One delivery scenario: the behavior of the destination's servers, the messages that are sent, and all expected results.
 * See ../README.md.
 */
export interface Scenario {
  /** What the daemon does, in the present tense: the title of the test. */
  title: string;
  /**
   * The destination's mail hosts by label. Each has its own address, published as `<label>.<destination>`; in their
   * order they are the MX hosts of the destination, unless `zone` names others.
   */
  hosts: Record<string, HostBehavior>;
  /** Records in addition to those of the hosts, or instead of them. `address`: the address of a host. */
  zone?: (address: (host: string) => string) => Zone;
  /** Settings that a reload applies, by path. They are reset after the scenario. */
  settings?: (names: SettingNames) => Record<string, unknown>;
  /** The MTA-STS policy of the destination, announced with the id 1. Only in families with a policy host. */
  mtaSts?: MtaSts;
  /**
   * Has Knot sign the zone of the destination. Returns lines of the zone file in addition to the MX hosts and their
   * addresses, relative to the destination. Only in families with signed zones.
   */
  signed?: (names: SettingNames) => readonly string[];
  /** By local part, in the order in which they are sent. */
  messages: Record<string, ExpectedMessage>;
  /**
   * The commands that each host received: one string for each connection, in order, with the verbs, `TLS` for a handshake
   * and `.` for the end of a message: `EHLO MAIL RCPT DATA . QUIT`. Hosts that are not named are not compared.
   */
  connections?: Record<string, readonly string[]>;
  /** Addresses that are suppressed at the end, by local part. Default: none. */
  suppressed?: readonly string[];
  /** Replaces the default, which sends all messages. Afterwards every message is followed to its final state. */
  play?: (run: ScenarioRun) => Promise<void>;
  /** Further assertions, which run after all others. */
  verify?: (run: ScenarioRun) => Promise<void> | void;
}

/** The names and addresses that settings can refer to. */
export interface SettingNames {
  /** The destination. */
  domain: string;
  /** The port of all hosts. */
  port: number;
  address: (host: string) => string;
  /** The date of the daemon's clock in UTC: `2026-12-01`. */
  today: string;
}

export interface MtaSts {
  /** The text of the policy, or a handler of the requests to its host. Null: the host does not know the domain. */
  policy: string | Handler | null;
  /** The certificate of the policy host. Default: a valid one. */
  certificate?: Certificate;
}

/**
 * `refused`: nothing listens at the address. `unresponsive`: packets to it are not answered. `start`: a real mail server,
 * see `real-servers.ts`.
 */
export type HostBehavior =
  | 'refused'
  | 'unresponsive'
  | Partial<SinkBehavior>
  | { start(at: { host: string; port: number }): Promise<RealServer> };

/**
 * Behaviors by name and type. Names are relative to the destination, `@` is the destination itself. In values of MX and
 * CNAME records, a name without a final dot is relative, too.
 */
export type Zone = Record<string, Partial<Record<ZoneRecordType | '*', DnsBehavior | readonly string[]>>>;

export interface ExpectedMessage {
  /** Sent as marketing mail. Default: transactional. */
  marketing?: true;
  /** The recipient's domain is `<subdomain>.<destination>`. */
  subdomain?: string;
  /** Fields of the request. */
  body?: SendBody;
  attempts: readonly ExpectedAttempt[];
  status: 'delivered' | 'bounced' | 'failed' | 'cancelled';
  /**
   * The types of its events. Default: `email_sent`, `email_delayed` for each attempt that deferred it, and the event of
   * its status.
   */
  events?: readonly string[];
  /** Fields of the last event. */
  lastEvent?: Record<string, unknown>;
  /** Fields of the encryption of its last attempt, which has one session. */
  tls?: Record<string, unknown>;
  /** How many times the hosts accepted it. Default: once if it is delivered, else never. */
  accepted?: number;
}

export interface ExpectedAttempt {
  /** Code and enhanced code of the deciding reply, of a server or of the daemon: `450 4.2.0`, `250 2.0.0`, `554`. */
  reply: string;
  action: 'deliver' | 'defer' | 'bounce';
  classification?: string;
  /** Its sessions in order, in the form of `sessionText` in ledger.ts: `mx rcpt 450`, `mx2 connect: connection refused`. */
  sessions?: readonly string[];
  /**
   * Time until the next attempt in ms, as announced in `nextAttemptAt`; it may differ by 10 %. `named`: the reply states
   * the time; the wait may be up to 10 % longer and never shorter.
   */
  wait?: number | { named: number };
}
