import { callerBlock } from '../accounts/caller-addresses.ts';

/**
 * An SMTP client as limits count it: its block, which one host controls (an IPv4 address, an IPv6 /64), and its network
 * (an IPv4 /24, an IPv6 /48), which one operator usually controls.
 */
export interface SmtpCaller {
  block: string;
  network: string;
}

/** Hexadecimal digits of the first 48 bits. */
const IPV6_NETWORK_DIGITS = 12;

/** Returns the block and the network of an IP address. */
export function smtpCaller(address: string): SmtpCaller {
  const block = callerBlock(address);
  const dot = block.lastIndexOf('.');
  return { block, network: dot < 0 ? block.slice(0, IPV6_NETWORK_DIGITS) : block.slice(0, dot) };
}
