import ipaddr from 'ipaddr.js';
import type { Clock } from '../../core/clock.ts';
import { createLru } from '../../core/lru.ts';
import { createTokenBucket, type TokenBucket } from '../../core/token-bucket.ts';

/** Responses of one kind to one network. */
interface ResponseLimit {
  bucket: TokenBucket;
  /** Responses above the limit. */
  limited: number;
}

/** Networks and kinds in memory, about 300 bytes each. */
const MAX_RESPONSE_LIMITS = 20_000;
/** One of this many responses above the limit is truncated instead of dropped. */
const SLIP = 2;

/**
 * Response rate limiting, as in BIND, NSD and Knot. A resolver caches what it receives, so that many identical responses
 * to one network within a second are sent to a victim whose address was forged. Over UDP only: TCP clients cannot forge
 * their address. `perSecond`: identical responses to one network (IPv4: /24, IPv6: /56); 0: no limit.
 */
export function createResponseRateLimit(clock: Clock, perSecond: number) {
  const responseLimits = createLru<ResponseLimit>(MAX_RESPONSE_LIMITS);
  return {
    /**
     * What to do with a response to `address`. `kind` identifies responses that count as identical: the name and type of
     * positive ones, the origin of negative ones and of errors, which differ for each random name. truncate: send an empty
     * response with TC, so that a real client in the same network repeats its query over TCP.
     */
    judge: (address: string, kind: string): 'send' | 'truncate' | 'drop' => {
      if (perSecond === 0) return 'send';
      const key = `${networkOf(address, 24, 56)} ${kind}`;
      let limit = responseLimits.get(key);
      if (limit === undefined) {
        limit = { bucket: createTokenBucket(clock, { burst: perSecond, perSecond }), limited: 0 };
        responseLimits.set(key, limit);
      }
      if (limit.bucket.take().allowed) return 'send';
      return limit.limited++ % SLIP === 0 ? 'truncate' : 'drop';
    },
  };
}

/** The network of an address, by prefix length in bits for each family; an IPv4-mapped IPv6 address counts as IPv4. */
export function networkOf(address: string, ipv4: number, ipv6: number): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  const bits = parsed.kind() === 'ipv4' ? ipv4 : ipv6;
  const bytes = parsed.toByteArray().slice(0, Math.ceil(bits / 8));
  return `${Buffer.from(bytes).toString('hex')}/${bits}`;
}
