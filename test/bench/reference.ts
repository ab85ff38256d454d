import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startOpenDkim } from '../support/opendkim.ts';
import { endedChildrenCpu, familyCpu, findChild, processCost } from '../support/process-cost.ts';
import { findProgram } from '../support/required-programs.ts';
import { epochNow } from './benchmark-process.ts';
import { relayableMessage } from './message.ts';
import { startPostfixReference } from './postfix-reference.ts';
import { MX_HOSTS, type Receiver } from './receiver.ts';
import { deliveryResult, type RunResult } from './result.ts';

/**
 * The reference of the comparison: Postfix with OpenDKIM. Postfix's load generator sends messages of the size that
 * Postrider's have at the sink over SMTP, each to another recipient; they are stored, signed and relayed to the same sink
 * over as many connections as Postrider may use.
 */
export interface ReferenceBench {
  run(count: number): Promise<RunResult>;
  stop(): Promise<void>;
}

const run = promisify(execFile);

/** Octets of the fields that Postfix and OpenDKIM prepend: Received and DKIM-Signature. */
const PREPENDED_OCTETS = 725;

export async function startReference(options: {
  receiver: Receiver;
  sessions: number;
  connections: number;
  /** Size of a message at the sink. */
  octets: number;
}): Promise<ReferenceBench> {
  const { receiver, sessions, connections, octets } = options;
  const openDkim = await startOpenDkim('sender.example');
  const postfix = await startPostfixReference({
    nextHop: { host: MX_HOSTS[0] ?? '127.0.0.1', port: receiver.port },
    connections,
    sessions,
    milter: openDkim.milter,
  }).catch(async (error: unknown) => {
    await openDkim.stop();
    throw error;
  });
  const signer = findChild('opendkim', openDkim.config);
  const message = join(tmpdir(), 'message.eml');
  await writeFile(message, relayableMessage(octets - PREPENDED_OCTETS));

  const source = findProgram('smtp-source') ?? 'smtp-source';
  const load = (count: number) => {
    const amounts = ['-s', String(sessions), '-m', String(count)];
    const envelope = ['-f', 'news@sender.example', '-t', 'reader@recipient.example'];
    // -N numbers the recipients, -d reuses connections.
    return run(source, ['-N', '-d', ...amounts, '-F', message, ...envelope, `127.0.0.1:${postfix.port}`]);
  };
  const cpu = () => ({
    server: familyCpu(postfix.pid) + processCost(signer).cpu,
    load: endedChildrenCpu(),
    sink: processCost(receiver.pid).cpu,
  });
  return {
    run: async (count) => {
      await receiver.reset();
      const before = cpu();
      const startedAt = epochNow();
      await load(count);
      const acceptedAt = epochNow();
      const sink = await receiver.waitFor(count);
      const after = cpu();
      const each = (seconds: number) => (seconds * 1000) / count;
      return {
        name: `Postfix ${postfix.version} + OpenDKIM`,
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
    },
    stop: async () => {
      await postfix.stop();
      await openDkim.stop();
    },
  };
}
