import { startOpenDkim } from '../../support/opendkim.ts';
import { familyCpu, findChild, processCost } from '../../support/process-cost.ts';
import type { PeerOptions, PeerServer } from './peer.ts';
import { startPostfixServer } from './postfix-server.ts';

/** Postfix with OpenDKIM, which signs over a UNIX socket. */
export async function startPostfixWithOpenDkim(options: PeerOptions): Promise<PeerServer> {
  const openDkim = await startOpenDkim('sender.example');
  const postfix = await startPostfixServer({ ...options, milter: openDkim.milter }).catch(
    async (error: unknown) => {
      await openDkim.stop();
      throw error;
    },
  );
  const signer = findChild('opendkim', openDkim.config);
  return {
    name: `Postfix ${postfix.version} + OpenDKIM`,
    port: postfix.port,
    cpu: () => familyCpu(postfix.pid) + processCost(signer).cpu,
    stop: async () => {
      await postfix.stop();
      await openDkim.stop();
    },
  };
}
