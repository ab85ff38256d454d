import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { type Sink, startSink } from '../../support/smtp-sink.ts';
import type { HostBehavior } from './scenario.ts';

/** A mail host of a scenario. */
export interface MailHost {
  label: string;
  address: string;
  /** Null: the host is a real server, or nothing listens. */
  sink: Sink | null;
  /** A client waits for a connection or a reply that it will not get. */
  isStalling(): boolean;
  /** The messages that the host has accepted. Real servers deliver them first. */
  received(): Promise<readonly ReceivedMail[]>;
  close(): Promise<void>;
}

/** A message that a host accepted for one recipient; `raw` has CRLF. */
export interface ReceivedMail {
  to: readonly string[];
  raw: string;
}

/** A running Postfix or Exim. */
export interface RealServer {
  received(): Promise<readonly ReceivedMail[]>;
  stop(): Promise<void>;
}

export async function startHost(
  label: string,
  behavior: HostBehavior,
  at: { host: string; port: number },
): Promise<MailHost> {
  const address = at.host;
  const absent = { label, address, sink: null, isStalling: () => false, received: async () => [] };
  if (behavior === 'refused') return { ...absent, close: async () => {} };
  if (behavior === 'unresponsive') {
    const close = await listenWithoutAccepting(at);
    return { ...absent, isStalling: () => true, close };
  }
  if ('start' in behavior) {
    const server = await behavior.start(at);
    return { ...absent, received: server.received, close: server.stop };
  }
  const sink = await startSink({ ...at, ...behavior });
  return {
    label,
    address,
    sink,
    isStalling: () => sink.sessions.some(({ stalled, closed }) => stalled && !closed),
    received: async () => sink.messages,
    close: () => sink.close(),
  };
}

/**
 * Starts a listener whose thread is blocked and whose backlog is full: Linux completes one connection more than the backlog
 * and ignores further ones, so that clients wait as for a host that is switched off. Returns a function that stops it.
 */
async function listenWithoutAccepting(at: { host: string; port: number }): Promise<() => Promise<void>> {
  const code = `
    const { createServer } = require('node:net');
    const { parentPort, workerData } = require('node:worker_threads');
    createServer().listen({ ...workerData, backlog: 1 }, () => {
      parentPort.postMessage('listening');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const thread = new Worker(code, { eval: true, workerData: at });
  await new Promise<void>((resolve, reject) => {
    thread.once('message', () => resolve()).once('error', reject);
  });
  const queued = [await connected(at), await connected(at)];
  return async () => {
    for (const socket of queued) socket.destroy();
    await thread.terminate();
  };
}

function connected(at: { host: string; port: number }): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(at, () => resolve(socket));
    // When the thread ends, the connection is reset.
    socket.on('error', reject);
  });
}
