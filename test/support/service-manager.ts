import { createServer } from 'node:http';

/** What `systemctl` does with the service of a test. */
export interface ServiceActions {
  start(): Promise<void>;
  stop(): Promise<void>;
  restart(): Promise<void>;
  reload(): Promise<void>;
}

/** `systemctl ACTION postrider` for a daemon that a test runs; other units and actions fail. */
export interface ServiceManager {
  /** Shell script of the program `systemctl`; it needs curl. */
  program: string;
  close(): Promise<void>;
}

/** Listens on a UNIX socket at `path`. */
export async function startServiceManager(path: string, actions: ServiceActions): Promise<ServiceManager> {
  const byName: Record<string, (() => Promise<void>) | undefined> = {
    '/start/postrider': actions.start,
    '/stop/postrider': actions.stop,
    '/restart/postrider': actions.restart,
    '/reload/postrider': actions.reload,
  };
  const server = createServer((request, response) => {
    const action = byName[request.url ?? ''];
    if (action === undefined) {
      response.writeHead(404).end(`the test has no ${request.url}\n`);
      return;
    }
    action().then(
      () => response.end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  return {
    program: `exec curl -sS --fail-with-body --unix-socket "${path}" "http://service/$1/$2"`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
