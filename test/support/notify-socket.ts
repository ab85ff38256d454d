import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { PYTHON } from './required-programs.ts';

/** The receiving side of sd_notify(3), as systemd implements it: a datagram socket, in Python since Node has none. */
export interface NotifySocket {
  /** For `$NOTIFY_SOCKET`. */
  path: string;
  /** The messages so far, each as its lines; without the barriers of systemd-notify. */
  messages(): string[][];
  /** Waits for a message with this line; returns its number, from 0. */
  waitFor(line: string): Promise<number>;
}

const RECEIVER = `
import json, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
server.bind(sys.argv[1])
print('ready', flush=True)
while True:
    # Without space for control messages the kernel closes the descriptor of a barrier, which answers it.
    lines = server.recv(65536).decode().splitlines()
    if lines != ['BARRIER=1']:
        print(json.dumps(lines), flush=True)
`;

export async function startNotifySocket(): Promise<NotifySocket> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-notify-'));
  const path = join(dir, 'notify');
  const child = startChild(PYTHON, ['-c', RECEIVER, path]);
  onTestFinished(async () => {
    await child.kill('SIGKILL');
    await rm(dir, { recursive: true, force: true });
  });
  const received: string[][] = [];
  let ready = false;
  child.onLine((line) => {
    if (line === 'ready') ready = true;
    else received.push(JSON.parse(line));
  });
  await eventually('the socket to be bound', () => {
    if (!child.running) throw new Error(child.output);
    return ready;
  });
  return {
    path,
    messages: () => received,
    waitFor: (line) =>
      eventually(`the message ${line}`, () => {
        const index = received.findIndex((lines) => lines.includes(line));
        return index < 0 ? null : index;
      }),
  };
}
