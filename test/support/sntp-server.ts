import { createSocket } from 'node:dgram';

/** An SNTP server (RFC 4330) on 127.0.0.1 whose clock is `now`, epoch ms. */
export interface SntpServer {
  port: number;
  close(): Promise<void>;
}

const NTP_EPOCH = 2_208_988_800;

/** `stratum` 0: the server states that its clock is not synchronized. */
export async function startSntpServer(now: () => number, stratum = 1): Promise<SntpServer> {
  const socket = createSocket('udp4');
  socket.on('message', (request, peer) => {
    const response = Buffer.alloc(48);
    response[0] = 0x24;
    response[1] = stratum;
    // The originate timestamp repeats the transmit timestamp of the request.
    request.copy(response, 24, 40, 48);
    for (const at of [32, 40]) {
      const ms = now();
      response.writeUInt32BE((Math.floor(ms / 1000) + NTP_EPOCH) >>> 0, at);
      response.writeUInt32BE(Math.floor(((ms % 1000) / 1000) * 2 ** 32), at + 4);
    }
    socket.send(response, peer.port, peer.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return {
    port: socket.address().port,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}
