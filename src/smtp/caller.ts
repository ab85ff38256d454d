import { callerBlock } from '../accounts/caller-addresses.ts';

/**
 * A client as the limits count it: the block that one host holds (an IPv4 address, an IPv6 /64), and the network
 * around it (an IPv4 /24, an IPv6 /48), which one operator usually controls as a whole.
 */
export interface SmtpCaller {
  block: string;
  network: string;
}

/** Hexadecimal digits of the first 48 bits. */
const IPV6_NETWORK_DIGITS = 12;

export function smtpCaller(address: string): SmtpCaller {
  const block = callerBlock(address);
  const dot = block.lastIndexOf('.');
  return { block, network: dot < 0 ? block.slice(0, IPV6_NETWORK_DIGITS) : block.slice(0, dot) };
}
