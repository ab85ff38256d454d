import ipaddr from 'ipaddr.js';
import type { Clock } from '../../core/clock.ts';
import { createLru } from '../../core/lru.ts';
import { createTokenBucket, type TokenBucket } from '../../core/token-bucket.ts';

/**
 * Response rate limiting, as in BIND, NSD and Knot: a resolver caches an answer, so that many equal answers to one
 * network within a second go to a victim whose address was forged. Over UDP only, where addresses can be forged.
 */
export interface ResponseRateLimit {
  /**
   * What to do with an answer to `address`. `kind` is equal for equal answers: the name and type of positive ones, the
   * origin of negative ones and of errors, which otherwise differ for each random name. truncate: an empty answer with
   * TC, so that a real client that shares the network repeats its query over TCP.
   */
  judge(address: string, kind: string): 'send' | 'truncate' | 'drop';
}

/** Answers of one kind to one network. */
interface AnswerLimit {
  bucket: TokenBucket;
  /** Limited answers. */
  limited: number;
}

/** Networks and kinds in memory, about 300 bytes each. */
const MAX_ANSWER_LIMITS = 20_000;
/** One of this many limited answers is truncated instead of dropped. */
const SLIP = 2;

/** `perSecond` equal answers to one network (IPv4: /24, IPv6: /56); 0: no limit. */
export function createResponseRateLimit(clock: Clock, perSecond: number): ResponseRateLimit {
  const answerLimits = createLru<AnswerLimit>(MAX_ANSWER_LIMITS);
  return {
    judge: (address, kind) => {
      if (perSecond === 0) return 'send';
      const key = `${networkOf(address, 24, 56)} ${kind}`;
      let answerLimit = answerLimits.get(key);
      if (answerLimit === undefined) {
        answerLimit = { bucket: createTokenBucket(clock, { burst: perSecond, perSecond }), limited: 0 };
        answerLimits.set(key, answerLimit);
      }
      if (answerLimit.bucket.take().allowed) return 'send';
      return answerLimit.limited++ % SLIP === 0 ? 'truncate' : 'drop';
    },
  };
}

/** The network of an address in these prefix lengths; an IPv4 address that is mapped to IPv6 is one of IPv4. */
export function networkOf(address: string, ipv4: number, ipv6: number): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  const bits = parsed.kind() === 'ipv4' ? ipv4 : ipv6;
  const bytes = parsed.toByteArray().slice(0, Math.ceil(bits / 8));
  return `${Buffer.from(bytes).toString('hex')}/${bits}`;
}
