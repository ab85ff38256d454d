/**
 * Why a look-up gave no records. ENOTFOUND (the name does not exist) and ENODATA (it has no record of that
 * type) are answers and may be acted on; everything else means "not known at present" and must never end in a
 * bounce or turn a passing check off. EBADNAME: never asked, it is not a domain name. ECANCELLED: the resolver
 * was closed meanwhile.
 */
export type DnsErrorCode =
  | 'ENOTFOUND'
  | 'ENODATA'
  | 'ESERVFAIL'
  | 'ETIMEOUT'
  | 'EREFUSED'
  | 'EBADRESP'
  | 'EBADNAME'
  | 'ECANCELLED';

export class DnsError extends Error {
  override readonly name = 'DnsError';
  readonly code: DnsErrorCode;

  /** `what` is the question as a person writes it (`MX example.com`), `detail` says what came of it. */
  constructor(code: DnsErrorCode, what: string, detail: string) {
    super(`${what}: ${detail}`);
    this.code = code;
  }

  /** An authoritative "no". */
  get absent(): boolean {
    return this.code === 'ENOTFOUND' || this.code === 'ENODATA';
  }
}
