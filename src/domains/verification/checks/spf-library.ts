/**
 * The library that evaluates SPF, in a separate module that `spf.ts` imports when it is needed: with its libraries it is
 * a sixth of what the daemon would load at the start. Imported directly, a bundled CommonJS module has no named exports.
 */
export { spf } from 'mailauth/lib/spf/index.js';
