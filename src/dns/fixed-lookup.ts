import { isIP, type LookupFunction } from 'node:net';

/**
 * Connects to `address`, whatever the name. Calls back in a later turn of the event loop: Node opens the connection in the
 * callback, and an error of `connect` (ENETUNREACH) must not precede the listeners of the caller.
 */
export function fixedLookup(address: string): LookupFunction {
  return (_name, options, done) => {
    const family = isIP(address);
    setImmediate(() => {
      if (options.all === true) done(null, [{ address, family }]);
      else done(null, address, family);
    });
  };
}
