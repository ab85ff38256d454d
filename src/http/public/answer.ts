import type { Fields } from './form-body.ts';
import type { Visitor } from './visitor.ts';

/**
 * Request and response of a public page. A response is complete before its first byte is sent. The pages are for people,
 * so they do not use the API's envelope.
 */
export interface PublicRequest {
  /** Also GET for a HEAD request. */
  method: 'GET' | 'POST';
  isHead: boolean;
  /** Host name of the request, lower case, without port; '' when unknown. */
  host: string;
  /** The last part of the path. */
  token: string;
  visitor: Visitor;
  /** Form fields of a POST, names in lower case; empty for GET. */
  fields: Fields;
}

export interface PublicAnswer {
  status: number;
  headers: Record<string, string>;
  body: string | Buffer;
}

/** A public page at `/<name>/<token>`. */
export interface PublicPage {
  name: string;
  methods: readonly PublicRequest['method'][];
  answer(request: PublicRequest): PublicAnswer | Promise<PublicAnswer>;
}

/** Of every response: not indexed, not cached, and without a referrer to other sites. */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};
