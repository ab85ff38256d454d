import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endedChildrenCpu, processCost } from '../../support/process-cost.ts';
import { findProgram } from '../../support/required-programs.ts';
import { epochNow } from '../benchmark-process.ts';
import { relayableMessage } from '../message.ts';
import { MX_HOSTS, type Receiver } from '../receiver.ts';
import { deliveryResult, type RunResult } from '../result.ts';

/** A mail server that Postrider is compared with: stores mail durably, signs it and relays it to the sink. */
export interface PeerServer {
  /** With its version. */
  name: string;
  /** Where it accepts mail, on loopback. */
  port: number;
  /** CPU time of all its processes, in seconds. */
  cpu(): number;
  stop(): Promise<void>;
}

export interface PeerOptions {
  nextHop: { host: string; port: number };
  /** Connections to the next hop. */
  connections: number;
  /** Concurrent clients. */
  sessions: number;
  /** Whether the next hop offers STARTTLS and mail to it is encrypted. */
  tls: boolean;
}

/**
 * A server under load: Postfix's load generator sends messages over SMTP, each to another recipient; they arrive at the
 * sink that Postrider's mail arrives at, in the same size, over as many connections as Postrider may use.
 */
export interface Peer {
  readonly name: string;
  /** Sends a few messages, so that those of `run` have the size at the sink. Call it before `run`. */
  prepare(bytes: number): Promise<void>;
  run(count: number): Promise<RunResult>;
  stop(): Promise<void>;
}

const run = promisify(execFile);
const PREPARED = 20;

/** Starts a server that relays to the sink. `start` gets the options for it. */
export async function startPeer(
  start: (options: PeerOptions) => Promise<PeerServer>,
  options: { receiver: Receiver; sessions: number; connections: number; tls: boolean },
): Promise<Peer> {
  const { receiver, sessions, connections, tls } = options;
  const nextHop = { host: MX_HOSTS[0] ?? '127.0.0.1', port: receiver.port };
  const server = await start({ nextHop, sessions, connections, tls });
  const source = findProgram('smtp-source') ?? 'smtp-source';
  const message = join(tmpdir(), `message-${server.port}.eml`);

  const send = async (count: number): Promise<RunResult> => {
    await receiver.reset();
    const cpu = () => ({
      server: server.cpu(),
      load: endedChildrenCpu(),
      sink: processCost(receiver.pid).cpu,
    });
    const before = cpu();
    const startedAt = epochNow();
    // -N numbers the recipients, -d reuses connections.
    const amounts = ['-N', '-d', '-s', String(Math.min(sessions, count)), '-m', String(count)];
    const envelope = ['-f', 'news@sender.example', '-t', 'reader@recipient.example'];
    await run(source, [...amounts, '-F', message, ...envelope, `127.0.0.1:${server.port}`]);
    const acceptedAt = epochNow();
    const sink = await receiver.waitFor(count);
    const after = cpu();
    const each = (seconds: number) => (seconds * 1000) / count;
    return {
      name: server.name,
      ...deliveryResult(count, { startedAt, acceptedAt }, sink),
      cpuMs: {
        server: each(after.server - before.server),
        mainThread: null,
        load: each(after.load - before.load),
        sink: each(after.sink - before.sink),
      },
      peakMiB: null,
      responseMs: null,
    };
  };
  return {
    name: server.name,
    prepare: async (bytes) => {
      await writeFile(message, relayableMessage(bytes));
      // The server adds fields.
      const { bytes: arrived } = await send(PREPARED);
      await writeFile(message, relayableMessage(2 * bytes - arrived));
    },
    run: send,
    stop: server.stop,
  };
}
