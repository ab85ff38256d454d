import type { Fields } from './form-body.ts';
import type { Visitor } from './visitor.ts';

/**
 * What a public page is asked, and what it answers: a whole text or picture, made before the first byte is
 * sent. Nothing here is in the API's envelope; those who read it are people.
 */
export interface PublicRequest {
  /** GET stands for HEAD, too. */
  method: 'GET' | 'POST';
  isHead: boolean;
  /** The host name that the visitor asked for, lower case, without port; '' when not known. */
  host: string;
  /** The last part of the path. */
  token: string;
  visitor: Visitor;
  /** What a POST sent, names in lower case; empty with GET. */
  fields: Fields;
}

export interface PublicAnswer {
  status: number;
  headers: Record<string, string>;
  body: string | Buffer;
}

/** A place among the public pages: what answers to `/<name>/<token>`. */
export interface PublicPlace {
  name: string;
  methods: readonly PublicRequest['method'][];
  answer(request: PublicRequest): PublicAnswer | Promise<PublicAnswer>;
}

/** Of every answer: no index lists it, nobody keeps it, and no address of ours goes on to another site. */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};
