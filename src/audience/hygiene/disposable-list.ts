/* The list of disposable domains, 170 KB: loaded with the first addresses that are examined. */
export { disposableEmailBlocklistSet } from 'disposable-email-domains-js';
