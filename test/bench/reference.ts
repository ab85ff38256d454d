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
import type { Receiver } from './receiver.ts';
import { measured, type RunResult } from './result.ts';

/**
 * The other side of the comparison: Postfix with OpenDKIM does the same work. Messages of the size that ours
 * have at the sink come in over SMTP from Postfix's own load generator, each with a recipient of its own; they
 * are put on the disk, signed and handed on to the same sink over as many connections as ours may use.
 */
export interface ReferenceBench {
  run(count: number): Promise<RunResult>;
  stop(): Promise<void>;
}

const run = promisify(execFile);

/** Octets of the fields that the two put in front of a message: Received and DKIM-Signature. */
const ADDED_ON_THE_WAY = 725;

export async function startReference(settings: {
  receiver: Receiver;
  sessions: number;
  connections: number;
  /** Of a message at the sink. */
  octets: number;
}): Promise<ReferenceBench> {
  const { receiver, sessions, connections, octets } = settings;
  const openDkim = await startOpenDkim('sender.example');
  const postfix = await startPostfixReference({
    nextHop: { host: receiver.hosts[0] ?? '127.0.0.1', port: receiver.port },
    connections,
    sessions,
    milter: openDkim.milter,
  }).catch(async (error: unknown) => {
    await openDkim.stop();
    throw error;
  });
  const signer = findChild('opendkim', openDkim.config);
  const message = join(tmpdir(), 'message.eml');
  await writeFile(message, relayableMessage(octets - ADDED_ON_THE_WAY));

  const source = findProgram('smtp-source') ?? 'smtp-source';
  const load = (count: number) => {
    const amounts = ['-s', String(sessions), '-m', String(count)];
    const envelope = ['-f', 'news@sender.example', '-t', 'reader@there.example'];
    // -N gives every message a recipient of its own, -d keeps the connections.
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
        ...measured(count, { startedAt, acceptedAt }, sink),
        cpuMs: {
          server: each(after.server - before.server),
          mainThread: null,
          load: each(after.load - before.load),
          sink: each(after.sink - before.sink),
        },
        peakMiB: null,
        answerMs: null,
      };
    },
    stop: async () => {
      await postfix.stop();
      await openDkim.stop();
    },
  };
}
