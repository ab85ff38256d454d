import type { Config } from './schema.ts';
import { type ListenAddress, parseListen } from './setting-types.ts';

/** An address at which the daemon listens. */
export interface Listener {
  setting: string;
  address: ListenAddress;
  protocol: 'TCP' | 'UDP';
}

/** All listeners that the configuration turns on. A port 0 is any free port. */
export function listenersOf({ api, public: pages, console: web, mx, submission, dns }: Config): Listener[] {
  const settings: [setting: string, listen: string | string[], protocol: Listener['protocol']][] = [
    ['dns.server.listen', dns.server.listen, 'TCP'],
    ['dns.server.listen', dns.server.listen, 'UDP'],
    ['public.listen', pages.listen, 'TCP'],
    ['public.tls.listen', pages.tls.listen, 'TCP'],
    ['console.listen', web.listen, 'TCP'],
    ['api.listen', api.listen, 'TCP'],
    ['mx.listen', mx.listen, 'TCP'],
    ['submission.listen', submission.listen, 'TCP'],
  ];
  return settings.flatMap(([setting, listen, protocol]) =>
    [listen].flat().flatMap((at) => {
      const address = at === 'off' ? null : parseListen(at);
      return address === null ? [] : [{ setting, address, protocol }];
    }),
  );
}
