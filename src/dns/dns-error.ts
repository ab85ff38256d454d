/**
 * Why a lookup returned no records. ENOTFOUND (the name does not exist) and ENODATA (it has no record of the type) are
 * authoritative answers; all others mean that the result is unknown, and must never cause a bounce or fail a check.
 * EBADNAME: the name is invalid, and no query was sent. ECANCELLED: the resolver was closed.
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

  /** `query` is the query for people (`MX example.com`), `detail` its result. */
  constructor(code: DnsErrorCode, query: string, detail: string) {
    super(`${query}: ${detail}`);
    this.code = code;
  }

  /** An authoritative negative answer. */
  get absent(): boolean {
    return this.code === 'ENOTFOUND' || this.code === 'ENODATA';
  }
}
