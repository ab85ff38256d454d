/**
 * The library that verifies DKIM signatures and ARC chains, in a separate module that `verify-authentication.ts` imports with the
 * first signed mail. Imported directly, a bundled CommonJS module has no named exports.
 */
export { arc } from 'mailauth/lib/arc/index.js';
export { dkimVerify } from 'mailauth/lib/dkim/verify.js';
