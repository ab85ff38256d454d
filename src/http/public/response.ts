import type { FormFields } from './form-body.ts';
import type { Visitor } from './visitor.ts';

/*
 * Requests and responses of the public pages. A response is a complete page or image, not in the envelope of the API:
 * its readers are recipients of mail.
 */

/** A request for a public page. */
export interface PublicRequest {
  /** GET for HEAD as well. */
  method: 'GET' | 'POST';
  isHead: boolean;
  /** Whether the client has disconnected: nothing more has to be done for it. */
  isClosed(): boolean;
  /** The requested host name in lower case, without port; '' if unknown. */
  host: string;
  /** The last part of the path. */
  token: string;
  visitor: Visitor;
  /** The field Accept-Language; '' when it is absent. */
  acceptLanguage: string;
  ifNoneMatch: string | undefined;
  /** The form fields of a POST, with names in lower case; empty for GET. */
  fields: FormFields;
}

export interface PublicResponse {
  status: number;
  headers: Record<string, string>;
  /** Null in place of a body that is not read for HEAD: its length is in `headers`, or unknown. */
  body: string | Buffer | null;
  /** Called when the response has ended or the client has disconnected. */
  onClosed?: () => void;
}

/** Handles `/<name>/<token>`. */
export interface PublicRoute {
  name: string;
  methods: readonly PublicRequest['method'][];
  /** Null: the client has disconnected. */
  handle(request: PublicRequest): PublicResponse | null | Promise<PublicResponse | null>;
}

/** Header fields of every response: not indexed, not cached, no Referer to other sites. */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};
