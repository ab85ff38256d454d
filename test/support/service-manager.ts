import { createServer } from 'node:http';

/** What `systemctl` does with the service of a test. */
export interface ServiceActions {
  start(): Promise<void>;
  stop(): Promise<void>;
  restart(): Promise<void>;
  reload(): Promise<void>;
}

/** `systemctl ACTION UNIT` for programs that a test runs; other units and actions fail. */
export interface ServiceManager {
  /** Shell script of the program `systemctl`; it needs curl. */
  program: string;
  close(): Promise<void>;
}

/** Listens on a UNIX socket at `path`. `units`: the actions of each unit. */
export async function startServiceManager(
  path: string,
  units: Readonly<Record<string, Partial<ServiceActions>>>,
): Promise<ServiceManager> {
  const byName = new Map<string, () => Promise<void>>(
    Object.entries(units).flatMap(([unit, actions]) =>
      Object.entries(actions).map(([action, perform]) => [`/${action}/${unit}`, perform] as const),
    ),
  );
  const server = createServer((request, response) => {
    const action = byName.get(request.url ?? '');
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
    program: `case "$1 $2" in
  'enable --now') set -- start "$3" ;;
  'disable --now') set -- stop "$3" ;;
esac
exec curl -sS --fail-with-body --unix-socket "${path}" "http://service/$1/$2"`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
