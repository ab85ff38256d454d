import { connect } from 'node:net';
import type { Child } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';

/** Waits until a server greets on a port of loopback; returns its greeting. Throws when the server has ended. */
export async function untilReady(name: string, server: Child, port: number): Promise<string> {
  let greeting: string | null = null;
  await eventually(name, async () => {
    if (!server.running) throw new Error(`${name} ended: ${server.output}`);
    greeting = await greetingAt(port);
    return greeting !== null;
  });
  return greeting ?? '';
}

function greetingAt(port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('data', (data) => {
      socket.destroy();
      resolve(data.toString('latin1'));
    });
    socket.once('error', () => resolve(null));
  });
}
